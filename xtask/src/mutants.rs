//! Breaks core and the adapters in every small way that cargo-mutants knows, and sees whether a test
//! notices.

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use crate::invocation::Invocation;
use crate::toolchain;
use crate::workspace::Workspace;

/// The packages that are broken.
const BROKEN: [&str; 4] = [
    "requeue-core",
    "requeue-std",
    "requeue-tokio",
    "requeue-embassy",
];

/// Some tests of these packages, and how long they may take.
struct Pass {
    packages: &'static [&'static str],
    tests: &'static str,
    seconds: &'static str,
}

/// Who is asked, in this order, about what got past those before: the tests that are built in a
/// second; interrupts and random bytes, which stop at the first failure and shrink nothing;
/// everything else.
const PASSES: [Pass; 4] = [
    Pass {
        packages: &["requeue-core"],
        tests: "--lib --tests",
        seconds: "25",
    },
    Pass {
        packages: &["requeue-interrupts", "requeue-fuzz"],
        tests: "--tests",
        seconds: "120",
    },
    Pass {
        packages: &[
            "requeue-std",
            "requeue-tokio",
            "requeue-embassy",
            "requeue-proptest",
            "requeue-proptest-tests",
            "requeue-replay",
        ],
        tests: "--lib --tests",
        seconds: "240",
    },
    Pass {
        packages: &BROKEN,
        tests: "--doc",
        seconds: "120",
    },
];

/// `[FILE…]`; without one, all of core and of the adapters. What is left out stands in
/// `.cargo/mutants.toml`.
///
/// # Errors
///
/// cargo-mutants is not installed, or fails before it has broken anything.
pub(crate) fn run(files: &[String]) -> Result<bool, String> {
    if !toolchain::has("cargo mutants") {
        return Err("no cargo-mutants: `cargo install cargo-mutants --locked`".to_owned());
    }
    let workspace = Workspace::load()?;
    for file in files {
        refuse_without_mutants(file, &workspace)?;
    }
    let breaks_core = files.is_empty() || files.iter().any(|file| file.starts_with("core/"));
    let mut missed: Option<BTreeSet<String>> = None;
    // Core's own tests cannot see an adapter.
    for pass in PASSES.iter().skip(usize::from(!breaks_core)) {
        let found = pass.run(missed.is_some(), files, &workspace)?;
        // A later pass is asked again about what never ended in an earlier one.
        missed = Some(match missed {
            Some(before) => &before & &found,
            None => found,
        });
    }
    let missed = missed.unwrap_or_default();
    println!("missed by all: {}", missed.len());
    for mutant in &missed {
        println!("{mutant}");
    }
    Ok(missed.is_empty())
}

/// A name that matches no source would pass, because nothing is missed where nothing is broken.
fn refuse_without_mutants(file: &str, workspace: &Workspace) -> Result<(), String> {
    let mut list = Command::new("cargo");
    list.args(["mutants", "--list", "--file", file])
        .args(broken());
    match toolchain::answer(&mut list, &workspace.root) {
        Ok(listed) if listed.trim().is_empty() => Err(format!("nothing to break in `{file}`")),
        Ok(_) => Ok(()),
        Err(stop) => Err(format!("{stop:?}")),
    }
}

fn broken() -> impl Iterator<Item = &'static str> {
    BROKEN.into_iter().flat_map(|name| ["--package", name])
}

impl Pass {
    /// Returns what these tests miss. What an earlier pass has caught is not tried again.
    fn run(
        &self,
        is_later: bool,
        files: &[String],
        workspace: &Workspace,
    ) -> Result<BTreeSet<String>, String> {
        let output = workspace.target();
        let packages = self.packages.iter();
        let packages = packages.flat_map(|name| ["--test-package", name]);
        let files = files.iter().flat_map(|file| ["--file", file]);
        let status = Invocation::new("cargo mutants --jobs 1")
            .args(broken())
            .args(packages)
            .args(["--timeout", self.seconds])
            .args(["--output".to_owned(), output.display().to_string()])
            .args(is_later.then_some("--iterate"))
            .args(files)
            .args(["--"])
            .args(self.tests.split_whitespace())
            .status(&workspace.root)?;
        // Nothing was missed; something was; something never ended.
        if ![Some(0), Some(2), Some(3)].contains(&status.code()) {
            return Err(format!("cargo mutants: {status}"));
        }
        let list = output.join("mutants.out/missed.txt");
        let list = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
        Ok(list.lines().map(str::to_owned).collect())
    }
}
