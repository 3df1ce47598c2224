//! Breaks core and the adapters in every small way that cargo-mutants knows, and checks whether a
//! test notices. `.cargo/mutants.toml` has the profile and the exceptions.

use std::collections::BTreeSet;

use crate::cmd::{cmd, read, target};
use crate::report::{Verdict, verdict};
use crate::toolchain::has;

/// The packages to break.
const BROKEN: &str = "--package requeue-core --package requeue-std --package requeue-tokio \
                      --package requeue-embassy --package requeue-bare";

/// The passes: tests, the packages that have them, and the seconds for them. A pass tries the
/// mutants that no pass before it caught. First the tests that build in a second, then interrupts
/// and random bytes, which stop at the first failure and shrink nothing, then everything else.
const PASSES: [(&str, &str, &str); 4] = [
    ("--lib --tests", "requeue-core", "25"),
    ("--tests", "requeue-interrupts requeue-fuzz", "120"),
    (
        "--lib --tests",
        "requeue-std requeue-tokio requeue-embassy requeue-bare requeue-proptest \
         requeue-proptest-tests requeue-replay",
        "240",
    ),
    (
        "--doc",
        "requeue-core requeue-std requeue-tokio requeue-embassy requeue-bare",
        "120",
    ),
];

/// `[FILE…]`. Without a file, all of core and of the adapters.
///
/// # Errors
///
/// cargo-mutants is not installed, has nothing to break or cannot begin, or no pass catches a mutant.
pub(crate) fn run(files: &[&str]) -> Verdict {
    if !has("cargo mutants") {
        return Err("no cargo-mutants: `cargo install cargo-mutants --locked`".into());
    }
    let files = files.iter().flat_map(|file| ["--file", file]);
    let mutants = cmd("cargo mutants --jobs 1 --output").arg(target(""));
    let mutants = mutants.args(BROKEN.split_whitespace()).args(files);
    // A name that matches no source would pass.
    if mutants.clone().arg("--list").read()?.trim().is_empty() {
        return Err("there is nothing to break".into());
    }
    let mut missed: Option<BTreeSet<String>> = None;
    for (tests, packages, seconds) in PASSES {
        let packages = packages
            .split(' ')
            .flat_map(|name| ["--test-package", name]);
        let line = mutants.clone().args(packages).args(["--timeout", seconds]);
        let line = line.args(missed.is_some().then_some("--iterate"));
        let line = line.arg("--").args(tests.split(' '));
        println!("$ {line}");
        let status = line.command().status()?;
        // Nothing was missed, a mutant was missed, or one never ended.
        if ![Some(0), Some(2), Some(3)].contains(&status.code()) {
            return Err(format!("{status}: {line}").into());
        }
        let list = read(target("mutants.out/missed.txt"))?;
        let found: BTreeSet<_> = list.lines().map(str::to_owned).collect();
        // A mutant that never ended in an earlier pass is tried again.
        missed = Some(match missed {
            Some(before) => &before & &found,
            None => found,
        });
    }
    let missed: Vec<String> = missed.into_iter().flatten().collect();
    println!("missed by all: {}", missed.len());
    verdict(&missed)
}
