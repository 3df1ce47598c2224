//! Nightly Rust: targets of `proptest/fuzz`, built with a fuzzer, for half a minute all together;
//! and Miri, which interprets core's tests.
//!
//! The first does what cargo-fuzz does, with the flags below and nothing installed. Nothing of ours
//! is unsafe, so it asks for no sanitizer: a finding is a panic, or a run that hangs.

use std::fs;

use crate::cmd::{all, cmd, root, target};
use crate::report::{Stop, Verdict};
use crate::toolchain::{described, has};

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

/// Nightly Rust is not fetched: which one it is, is the choice of the person who installs it.
pub(crate) fn run() -> Verdict {
    if !has("cargo +nightly") || !has("c++") {
        let nightly = "`rustup toolchain install nightly --profile minimal`";
        let why = format!("needs {nightly} and a C++ compiler (Debian: g++)");
        return Err(Stop::NotRun(why));
    }
    // Named, so that what runs while building is built without the flags.
    let host = described("host: ")?;
    let build = "cargo +nightly build --release -p requeue-fuzz --bins --target";
    cmd(build).arg(&host).env("RUSTFLAGS", RUSTFLAGS).run()?;
    let programs = target(&format!("{host}/release"));
    let found = all(TARGETS.map(|name| fuzz(name, &programs)));
    if found.is_err() {
        println!("what was found, in words: cargo run -p requeue-fuzz --bin TARGET -- FILE");
    }
    found
}

/// New inputs go into the first folder, which is not committed; findings into `artifacts`, where
/// cargo-fuzz puts them too.
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

/// A nightly that has Miri: not every one does.
const WITH_MIRI: &str = "nightly-2026-04-14";

/// Undefined behaviour, also in what core is built from, and leaks. Hands its words to `cargo miri
/// test`: `--target s390x-unknown-linux-gnu` interprets another processor.
pub(crate) fn miri(words: &[&str]) -> Verdict {
    if !has(&format!("cargo +{WITH_MIRI} miri")) {
        let install = "--profile minimal --component miri --component rust-src --no-self-update";
        cmd(&format!("rustup toolchain install {WITH_MIRI} {install}")).run()?;
    }
    let test = "miri test --no-fail-fast -p requeue-core --all-features --lib --tests";
    let line = cmd(&format!("cargo +{WITH_MIRI} {test}")).args(words.to_vec());
    line.env("CARGO_TARGET_DIR", target("miri")).run()
}
