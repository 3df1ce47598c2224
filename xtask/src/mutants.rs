//! Breaks `core` in every small way that cargo-mutants knows, and sees whether a test notices.

use crate::invocation::Invocation;
use crate::toolchain;
use crate::workspace::Workspace;

/// Who is asked, in this order: the tests that are built in a second, then those that take a
/// while, about what got past the first. The examples in the documentation are not asked.
const PASSES: [(&[&str], &str); 2] = [
    (&["requeue-core"], "--timeout=25"),
    (
        &["requeue-proptest", "requeue-std", "requeue-tokio"],
        "--timeout=120 --iterate",
    ),
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
    for (packages, options) in PASSES {
        let packages = packages.iter().flat_map(|name| ["--test-package", name]);
        // It fails if anything was missed, and then the next pass has its turn.
        all_caught = Invocation::new("cargo mutants --package requeue-core --jobs 1")
            .args(packages)
            .args(options.split_whitespace())
            .args(["--output", &output])
            .args(files.iter().copied())
            .args(["--", "--lib", "--tests"])
            .run(&workspace.root)
            .is_ok();
    }
    println!("what was missed: {output}/mutants.out/missed.txt; those known are in");
    println!("docs/verification.md, each with its reason");
    Ok(all_caught)
}
