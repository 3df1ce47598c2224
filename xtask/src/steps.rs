//! The table of checks, and those that are a line or two.

use crate::builds::{self, core_alone, program, whole};
use crate::cmd::{Cmd, cmd, run_each, target};
use crate::report::{Step, Verdict};
use crate::tools::{CARGO_DENY, ZIZMOR, with_protoc};
use crate::{api, book, examples, firmware, fuzz, kube, servers, tidy};

/// A table of steps: name, what it checks, function.
macro_rules! steps {
    ($($name:literal $about:literal $run:path;)*) => {
        &[$($crate::report::Step { name: $name, about: $about, run: $run }),*]
    };
}
pub(crate) use steps;

/// Every check, in the order in which they are run: the quick ones first, and what prints the
/// results of tests last, so that they stand at the end of the output.
pub(crate) const STEPS: &[Step] = steps! {
    "fmt" "the sources are formatted" fmt;
    "tidy" "which package may use which, what the state machine knows, what pages name" tidy::run;
    "links" "the links of every page" book::links;
    "workflows" "what GitHub runs: no mistake and no right that zizmor knows to be wrong" workflows;
    "book" "the guide: its contents, and its pages, in target/book" book::run;
    "clippy" "every target of every package, warnings denied" clippy;
    "doc" "the documentation, warnings denied" doc;
    "api" "the public items of what is published are those of docs/api" api::check;
    "features" "the features of what is published: each alone, every pair, and all" builds::features;
    "no_std" "what firmware is built from, for its processors" builds::no_std;
    "msrv" "what is published, with the oldest Rust that its manifest promises" builds::msrv;
    "deny" "licences, versions and sources of what is depended on" deny;
    "systems" "what is published compiles for macOS, Windows and WebAssembly" builds::systems;
    "processors" "the tests of core on a 32-bit processor, and on a big-endian one" builds::processors;
    "schedules" "waiting, waking and ending, under many schedules of the threads" schedules;
    "fuzz" "half a minute of bytes made operations, where nightly Rust is installed" fuzz::run;
    "firmware" "client-go's recordings and an application, on emulated boards" firmware::run;
    "full_disk" "the webhooks on a disk that is full, where a small one can be made" servers::full_disk;
    "kube" "controllers with kube-rs, on an API in memory: a workspace of its own" kube::fast;
    "shards" "replicas on a real etcd, with faults, where Debian's packages can be had" servers::shards;
    "replicas" "the webhooks on a real PostgreSQL and etcd, as above" servers::replicas;
    "build" "what the steps after it run" builds::tests;
    "replay" "what the real client-go did, on each runtime" replay;
    "examples" "the small programs of the guide print what they say" examples::run;
    "doctest" "the examples in the documentation" doctest;
    "test" "the tests" test;
};

/// The steps of `cargo xtask test`.
pub(crate) const IN_TEST: [&str; 5] = ["build", "replay", "examples", "doctest", "test"];

/// The steps that the words after `ci` ask for: those named, or all but those after `--except`.
///
/// # Errors
///
/// A word that names no step, or nothing where a name has to stand.
pub(crate) fn choose(words: &[&str]) -> Result<Vec<&'static Step>, String> {
    let (names, chosen_if_named) = match words {
        [] => (words, false),
        ["--except"] => return Err("--except which steps?".to_owned()),
        ["--except", names @ ..] => (names, false),
        names => (names, true),
    };
    if let Some(name) = names
        .iter()
        .find(|name| STEPS.iter().all(|step| step.name != **name))
    {
        return Err(format!("no step is called `{name}`"));
    }
    let is_chosen = |step: &&Step| names.contains(&step.name) == chosen_if_named;
    Ok(STEPS.iter().filter(is_chosen).collect())
}

fn fmt() -> Verdict {
    let firmware = [
        "examples/firmware",
        "examples/firmware/first",
        "examples/firmware/rtic",
    ];
    let check = |at| cmd("cargo fmt --check --manifest-path").arg(format!("{at}/Cargo.toml"));
    run_each(
        [cmd("cargo fmt --all --check")]
            .into_iter()
            .chain(firmware.map(check)),
    )
}

fn workflows() -> Verdict {
    let line = ZIZMOR
        .get()?
        .args("--offline --quiet --persona=pedantic .".split(' '));
    line.run()
}

fn clippy() -> Verdict {
    let line = "cargo clippy --workspace --all-targets --all-features --keep-going -- -D warnings";
    with_protoc(cmd(line)).run()
}

fn doc() -> Verdict {
    let line = cmd("cargo doc --workspace --all-features --no-deps --keep-going");
    with_protoc(line.env("RUSTDOCFLAGS", "-D warnings")).run()
}

/// What a user's program is built from is held to licences and versions, all else to where it comes
/// from.
fn deny() -> Verdict {
    println!("NOT LOOKED UP: advisories, which only `cargo xtask deny` fetches");
    denied(&[
        ("--exclude-unpublished --exclude-dev", "bans licenses"),
        ("", "sources"),
    ])
}

/// As the step, and with the advisories of RustSec, a repository that has to be fetched.
pub(crate) fn advisories() -> Verdict {
    deny()?;
    denied(&[("", "advisories")])
}

fn denied(checks: &[(&str, &str)]) -> Verdict {
    let program = CARGO_DENY.get()?;
    let line = |manifest, (options, checks): &(&str, &str)| {
        let line = "--locked --workspace --config deny.toml --manifest-path";
        let line = program.clone().args(line.split(' ')).arg(manifest);
        let line = line.args(options.split_whitespace());
        line.args(["check", "--hide-inclusion-graph"])
            .args(checks.split(' '))
    };
    let of = |manifest| checks.iter().map(move |check| line(manifest, check));
    run_each(of("Cargo.toml").chain(of("kube/Cargo.toml")))
}

/// Each test prints how many schedules it has tried.
fn schedules() -> Verdict {
    let line = cmd("cargo test --release -p requeue-schedules -- --nocapture");
    line.env("RUSTFLAGS", "--cfg shuttle -D warnings").run()
}

/// Where the recordings are replayed.
const REPLAY_RUNTIMES: [&str; 5] = ["core-fixed", "core-growable", "std", "tokio", "embassy"];

fn replay() -> Verdict {
    program("--bin replay")?;
    let program = target("debug/replay");
    let on = |runtime| cmd("").args([&program, "--runtime", runtime, "proptest/traces"]);
    run_each(REPLAY_RUNTIMES.map(on))
}

fn doctest() -> Verdict {
    run_each(cargo_test("--doc"))
}

/// Benchmarks are not among the targets.
fn test() -> Verdict {
    run_each(cargo_test("--tests"))
}

/// Core alone first: the other members turn its features on.
fn cargo_test(what: &str) -> [Cmd; 2] {
    let command = format!("cargo test --no-fail-fast {what}");
    [core_alone(&command), whole(&command)].map(|line| line.args(["--", "--quiet"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(words: &[&str]) -> Result<Vec<&'static str>, String> {
        Ok(choose(words)?.iter().map(|step| step.name).collect())
    }

    #[test]
    fn steps_are_named_or_excepted_and_keep_the_order_of_the_table() {
        assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
        assert_eq!(chosen(&["test", "fmt"]), Ok(vec!["fmt", "test"]));
        let rest = chosen(&["--except", "fmt", "test"]).unwrap();
        assert_eq!(rest.len(), STEPS.len() - 2);
        assert!(!rest.contains(&"fmt") && !rest.contains(&"test"));
        assert_eq!(chosen(&IN_TEST).unwrap(), IN_TEST);
    }

    #[test]
    fn unknown_steps_are_mistakes() {
        assert!(
            chosen(&["fmt", "tidiness"])
                .unwrap_err()
                .contains("`tidiness`")
        );
        for wrong in [
            &["--except", "tidiness"][..],
            &["--except"],
            &["fmt", "--except", "test"],
        ] {
            assert!(chosen(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn no_two_steps_share_a_name() {
        for (at, step) in STEPS.iter().enumerate() {
            assert!(
                STEPS[..at].iter().all(|other| other.name != step.name),
                "{}",
                step.name
            );
        }
    }
}
