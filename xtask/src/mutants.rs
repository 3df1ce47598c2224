//! Breaks core and the adapters in every small way that cargo-mutants knows, and checks whether a
//! test notices.

use std::collections::BTreeSet;

use crate::cmd::{cmd, read, target};
use crate::report::{Verdict, verdict};
use crate::toolchain::has;

/// The packages to break.
const BROKEN: &str = "--package requeue-core --package requeue-std --package requeue-tokio --package requeue-embassy \
                      --package requeue-bare";

/// The passes: a package, its tests, and the seconds for them. Each pass tries the mutants that the
/// passes before it missed. First the tests that build in a second, then interrupts and random
/// bytes, which stop at the first failure and shrink nothing, then everything else.
const PASSES: [(&str, &str, &str); 4] = [
    ("requeue-core", "--lib --tests", "25"),
    ("requeue-interrupts requeue-fuzz", "--tests", "120"),
    (
        "requeue-std requeue-tokio requeue-embassy requeue-bare requeue-proptest \
         requeue-proptest-tests requeue-replay",
        "--lib --tests",
        "240",
    ),
    (
        "requeue-core requeue-std requeue-tokio requeue-embassy requeue-bare",
        "--doc",
        "120",
    ),
];

/// `[FILE…]`. Without a file, all of core and of the adapters. `.cargo/mutants.toml` has the
/// exceptions.
///
/// # Errors
///
/// cargo-mutants is not installed, fails before its first mutant, or all tests miss a mutant.
pub(crate) fn run(files: &[&str]) -> Verdict {
    if !has("cargo mutants") {
        return Err("no cargo-mutants: `cargo install cargo-mutants --locked`".into());
    }
    for file in files {
        // Without this check, a name that matches no source would pass.
        let list = cmd("cargo mutants --list --file")
            .arg(*file)
            .args(BROKEN.split(' '));
        if list.read()?.trim().is_empty() {
            return Err(format!("nothing to break in `{file}`").into());
        }
    }
    let mut missed: Option<BTreeSet<String>> = None;
    let breaks_core = files.is_empty() || files.iter().any(|file| file.starts_with("core/"));
    // Core's own tests cannot see an adapter.
    for pass in PASSES.iter().skip(usize::from(!breaks_core)) {
        let found = misses(pass, missed.is_some(), files)?;
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

/// The mutants that a pass misses. It does not try mutants that an earlier pass caught.
fn misses(
    (packages, tests, seconds): &(&str, &str, &str),
    is_later: bool,
    files: &[&str],
) -> Verdict<BTreeSet<String>> {
    let packages = packages
        .split(' ')
        .flat_map(|name| ["--test-package", name]);
    let line = cmd("cargo mutants --jobs 1 --timeout")
        .arg(*seconds)
        .args(BROKEN.split(' '))
        .args(packages)
        .args(["--output", &target("")])
        .args(is_later.then_some("--iterate"))
        .args(files.iter().flat_map(|file| ["--file", file]))
        .arg("--")
        .args(tests.split(' '));
    println!("$ {line}");
    let status = line.command().status()?;
    // Nothing was missed, a mutant was missed, or one never ended.
    if ![Some(0), Some(2), Some(3)].contains(&status.code()) {
        return Err(format!("cargo mutants: {status}").into());
    }
    let list = read(target("mutants.out/missed.txt"))?;
    Ok(list.lines().map(str::to_owned).collect())
}
