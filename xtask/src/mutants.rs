//! Breaks `core` in every small way that cargo-mutants knows, and sees whether a test notices.

use crate::invocation::Invocation;
use crate::toolchain;
use crate::workspace::Workspace;

/// Some tests of these packages, and how long they may take.
struct Pass {
    packages: &'static [&'static str],
    tests: &'static str,
    seconds: &'static str,
}

/// Who is asked, in this order, about what got past those before: the tests that are built in a
/// second; random bytes, which stop at the first failure and shrink nothing; everything else.
const PASSES: [Pass; 4] = [
    Pass {
        packages: &["requeue-core"],
        tests: "--lib --tests",
        seconds: "25",
    },
    Pass {
        packages: &["requeue-fuzz"],
        tests: "--tests",
        seconds: "60",
    },
    Pass {
        packages: &["requeue-proptest", "requeue-std", "requeue-tokio"],
        tests: "--lib --tests",
        seconds: "240",
    },
    Pass {
        packages: &["requeue-core"],
        tests: "--doc",
        seconds: "120",
    },
];

/// `[FILE…]`; without one, all of `core/src`. What is left out stands in `.cargo/mutants.toml`.
///
/// # Errors
///
/// cargo-mutants is not installed.
pub(crate) fn run(files: &[String]) -> Result<bool, String> {
    if !toolchain::has("cargo-mutants") {
        return Err("no cargo-mutants: `cargo install cargo-mutants --locked`".to_owned());
    }
    let workspace = Workspace::load()?;
    let files = files.iter().flat_map(|file| ["--file", file]);
    let files: Vec<&str> = files.collect();
    let output = workspace.target().display().to_string();
    let mut all_caught = false;
    for (index, pass) in PASSES.iter().enumerate() {
        let packages = pass.packages.iter();
        let packages = packages.flat_map(|name| ["--test-package", name]);
        // It fails if anything was missed, and then the next pass has its turn.
        all_caught = Invocation::new("cargo mutants --package requeue-core --jobs 1")
            .args(packages)
            .args(["--timeout", pass.seconds, "--output", &output])
            .args((index > 0).then_some("--iterate"))
            .args(files.iter().copied())
            .args(["--"])
            .args(pass.tests.split_whitespace())
            .run(&workspace.root)
            .is_ok();
    }
    println!("what was missed: {output}/mutants.out/missed.txt; those known are in");
    println!("docs/verification.md, each with its reason");
    Ok(all_caught)
}
