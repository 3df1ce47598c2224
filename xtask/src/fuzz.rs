//! Checks with nightly Rust: the fuzz targets of `proptest/fuzz`, for half a minute together, and
//! Miri, which interprets core's tests.
//!
//! Fuzzing does the same as cargo-fuzz, with the flags below and without installing it. The code
//! has no `unsafe`, so it uses no sanitizer. A finding is a panic, or a run that hangs.

use std::fs;

use crate::cmd::{all, cmd, root, target};
use crate::report::{Stop, Verdict};
use crate::toolchain::{described, has};

/// Programs of the package, each with a folder of its name in the corpus.
const TARGETS: [&str; 4] = ["queue", "clock", "limiters", "backoff"];

/// How long all of them run together.
const SECONDS: usize = 30;

/// libFuzzer's arguments, besides the time. Inputs are long from the start, because short ones have
/// too few operations to find anything. A run of ten seconds counts as hung.
const OPTIONS: &str = "-max_len=600 -len_control=0 -timeout=10 -rss_limit_mb=1024 -verbosity=0 \
                       -print_funcs=0 -print_final_stats=1";

/// The compiler records which branches are taken, and checks arithmetic.
const RUSTFLAGS: &str = "--cfg fuzzing -Cdebug-assertions -Cpasses=sancov-module \
                         -Cllvm-args=-sanitizer-coverage-level=4 \
                         -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
                         -Cllvm-args=-sanitizer-coverage-pc-table \
                         -Cllvm-args=-sanitizer-coverage-trace-compares";

/// Nightly Rust is not downloaded. You choose which one to install.
pub(crate) fn run() -> Verdict {
    if !has("cargo +nightly") || !has("c++") {
        let nightly = "`rustup toolchain install nightly --profile minimal`";
        let why = format!("needs {nightly} and a C++ compiler (Debian: g++)");
        return Err(Stop::NotRun(why));
    }
    // With a named target, build scripts are built without the flags.
    let host = described("host: ")?;
    let build = "cargo +nightly build --profile fuzz -p requeue-fuzz --bins --target";
    cmd(build).arg(&host).env("RUSTFLAGS", RUSTFLAGS).run()?;
    let programs = target(&format!("{host}/fuzz"));
    let found = all(TARGETS.map(|name| fuzz(name, &programs)));
    if found.is_err() {
        println!("to print a finding: cargo run -p requeue-fuzz --bin TARGET -- FILE");
    }
    found
}

/// New inputs are written to the first folder, which is not committed. Findings are written to
/// `artifacts`, as by cargo-fuzz.
fn fuzz(name: &str, programs: &str) -> Verdict {
    let corpus = target(&format!("fuzz/{name}"));
    let artifacts = format!("proptest/fuzz/artifacts/{name}");
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(root().join(&artifacts))?;
    cmd("")
        .arg(format!("{programs}/{name}"))
        .arg(format!("-max_total_time={}", SECONDS / TARGETS.len()))
        .args(OPTIONS.split_whitespace())
        .args([format!("-artifact_prefix={artifacts}/"), corpus])
        .arg(format!("proptest/fuzz/corpus/{name}"))
        .run()
}

/// A nightly Rust with Miri. Not every one has it.
const WITH_MIRI: &str = "nightly-2026-04-14";

/// Looks for leaks, and for undefined behaviour, also in core's dependencies. Passes its words to
/// `cargo miri test`: `--target s390x-unknown-linux-gnu` interprets another processor.
pub(crate) fn miri(words: &[&str]) -> Verdict {
    if !has(&format!("cargo +{WITH_MIRI} miri")) {
        let install = "--profile minimal --component miri --component rust-src --no-self-update";
        cmd(&format!("rustup toolchain install {WITH_MIRI} {install}")).run()?;
    }
    let test = "miri test --no-fail-fast -p requeue-core --all-features --lib --tests";
    let line = cmd(&format!("cargo +{WITH_MIRI} {test}")).args(words.to_vec());
    line.env("CARGO_TARGET_DIR", target("miri")).run()
}
