//! Builds the targets of `proptest/fuzz` with a fuzzer and runs them, half a minute all together.
//!
//! It does what cargo-fuzz does, with the flags below and nothing installed. Nothing of ours is
//! unsafe, so it asks for no sanitizer: a finding is a panic, or a run that hangs.

use std::fs;
use std::path::Path;

use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::toolchain;
use crate::workspace::Workspace;

/// Programs of the package, each with a folder of its name in the corpus.
const TARGETS: [&str; 4] = ["queue", "clock", "limiters", "backoff"];

/// How long all of them run together.
const SECONDS: usize = 30;

/// libFuzzer's arguments, beside the time. Long inputs from the start, since a short one is too few
/// operations to find anything. A run of ten seconds counts as hung.
const OPTIONS: &str = "-max_len=600 -len_control=0 -timeout=10 -rss_limit_mb=1024 -verbosity=0 \
                       -print_funcs=0 -print_final_stats=1";

/// A compiler that marks which branches are taken, and checks its arithmetic.
const RUSTFLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module \
                         -Cllvm-args=-sanitizer-coverage-level=4 \
                         -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                         -Cllvm-args=-sanitizer-coverage-pc-table \
                         -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Where the package is, from the root.
const FOLDER: &str = "proptest/fuzz";

pub(crate) fn run(workspace: &Workspace) -> Verdict {
    toolchain::nightly(&workspace.root)?;
    if !toolchain::has("c++") {
        let hint = "no C++ compiler, which the fuzzer is compiled with (Debian: g++)";
        return Err(Stop::NotRun(hint.to_owned()));
    }
    // Named, so that what runs while building is built without the flags.
    let host = toolchain::host(&workspace.root)?;
    Invocation::new("cargo +nightly build --release -p requeue-fuzz --bins --target")
        .args([host.as_str()])
        .variable("RUSTFLAGS", RUSTFLAGS)
        .run(&workspace.root)?;
    let programs = workspace.target().join(&host).join("release");
    let findings = workspace.target().join("fuzz");
    let failed = TARGETS.map(|target| fuzz(target, &programs, &findings, workspace).err());
    let failed: Vec<String> = failed.into_iter().flatten().collect();
    if failed.is_empty() {
        return Ok(());
    }
    println!("what was found, in words: cargo run -p requeue-fuzz --bin TARGET -- FILE");
    Err(Stop::Failed(failed.join("; ")))
}

/// New inputs go into the first folder, which is not committed; findings into `artifacts`, where
/// cargo-fuzz puts them too.
fn fuzz(
    target: &str,
    programs: &Path,
    findings: &Path,
    workspace: &Workspace,
) -> Result<(), String> {
    let corpus = findings.join(target);
    let artifacts = workspace.root.join(FOLDER).join("artifacts").join(target);
    for folder in [&corpus, &artifacts] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    Invocation::new("")
        .args([programs.join(target).display().to_string()])
        .args([format!("-max_total_time={}", SECONDS / TARGETS.len())])
        .args(OPTIONS.split_whitespace())
        .args([format!("-artifact_prefix={}/", artifacts.display())])
        .args([corpus.display().to_string()])
        .args([format!("{FOLDER}/corpus/{target}")])
        .run(&workspace.root)
}
