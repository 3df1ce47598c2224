//! The table of checks, and what each of them runs.

use crate::api;
use crate::book;
use crate::builds;
use crate::deny;
use crate::examples;
use crate::firmware;
use crate::fuzz;
use crate::invocation::Invocation;
use crate::kube;
use crate::platforms;
use crate::report::{Stop, Verdict};
use crate::servers::with_protoc;
use crate::shards;
use crate::summary::{self, Totals};
use crate::tidy;
use crate::webhooks;
use crate::workspace::Workspace;

/// A check.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// Whether `cargo xtask test` runs it.
    pub(crate) in_test: bool,
    pub(crate) run: fn(&Workspace) -> Verdict,
}

/// Every check, in the order in which they are run: the quick ones first, and what prints the
/// results of tests last, so that they stand at the end of the output.
pub(crate) const STEPS: [Step; 23] = [
    Step {
        name: "fmt",
        about: "the sources are formatted",
        in_test: false,
        run: fmt,
    },
    Step {
        name: "tidy",
        about: "which package may use which, what the state machine knows, and what pages name",
        in_test: false,
        run: tidy,
    },
    Step {
        name: "book",
        about: "the guide: its contents, its links, and its pages, in target/book",
        in_test: false,
        run: book::run,
    },
    Step {
        name: "clippy",
        about: "every target of every package, warnings denied",
        in_test: false,
        run: clippy,
    },
    Step {
        name: "doc",
        about: "the documentation, warnings denied",
        in_test: false,
        run: doc,
    },
    Step {
        name: "api",
        about: "the public items of what is published are those of docs/api",
        in_test: false,
        run: api::check,
    },
    Step {
        name: "features",
        about: "the features of what is published: each alone, all but one, and all",
        in_test: false,
        run: builds::features,
    },
    Step {
        name: "no_std",
        about: "what firmware is built from, for its processors",
        in_test: false,
        run: builds::no_std,
    },
    Step {
        name: "msrv",
        about: "what is published, with the oldest Rust that its manifest promises",
        in_test: false,
        run: builds::msrv,
    },
    Step {
        name: "deny",
        about: "licences, versions and sources of what is depended on",
        in_test: false,
        run: deny::step,
    },
    Step {
        name: "systems",
        about: "what is published compiles for macOS, Windows and WebAssembly",
        in_test: false,
        run: platforms::systems,
    },
    Step {
        name: "processors",
        about: "the tests of core on a 32-bit processor, and on a big-endian one under QEMU",
        in_test: false,
        run: platforms::processors,
    },
    Step {
        name: "schedules",
        about: "waiting, waking and ending, under many schedules of the threads",
        in_test: false,
        run: schedules,
    },
    Step {
        name: "fuzz",
        about: "half a minute of bytes made operations, where nightly Rust is installed",
        in_test: false,
        run: fuzz::run,
    },
    Step {
        name: "firmware",
        about: "client-go's recordings and an application, on emulated boards",
        in_test: false,
        run: firmware::run,
    },
    Step {
        name: "full_disk",
        about: "the webhooks on a disk that is full, where a small one can be made",
        in_test: false,
        run: webhooks::full_disk,
    },
    Step {
        name: "kube",
        about: "controllers with kube-rs, on an API in memory: a workspace of its own",
        in_test: false,
        run: kube::fast,
    },
    Step {
        name: "shards",
        about: "replicas on a real etcd, with faults, where Debian's packages can be had",
        in_test: false,
        run: shards::short,
    },
    Step {
        name: "replicas",
        about: "the webhooks on a real PostgreSQL and etcd, as above",
        in_test: false,
        run: webhooks::replicas,
    },
    Step {
        name: "replay",
        about: "what the real client-go did, on each runtime",
        in_test: true,
        run: replay,
    },
    Step {
        name: "examples",
        about: "the small programs of the guide print what they say",
        in_test: true,
        run: examples::run,
    },
    Step {
        name: "doctest",
        about: "the examples in the documentation",
        in_test: true,
        run: doctest,
    },
    Step {
        name: "test",
        about: "the tests",
        in_test: true,
        run: test,
    },
];

/// The steps that the words after `ci` ask for: those named, or all but those after `--except`.
///
/// # Errors
///
/// A word that names no step, or nothing where a name has to stand.
pub(crate) fn choose(words: &[String]) -> Result<Vec<&'static Step>, String> {
    let (names, chosen_if_named) = match words.split_first() {
        None => return Ok(STEPS.iter().collect()),
        Some((first, names)) if first == "--except" => (names, false),
        Some(_) => (words, true),
    };
    if names.is_empty() {
        return Err("--except which steps?".to_owned());
    }
    for name in names {
        if !STEPS.iter().any(|step| step.name == name) {
            return Err(format!("no step is called `{name}`"));
        }
    }
    let is_chosen = |step: &&Step| names.iter().any(|n| n == step.name) == chosen_if_named;
    Ok(STEPS.iter().filter(is_chosen).collect())
}

fn fmt(workspace: &Workspace) -> Verdict {
    let lines = [
        "cargo fmt --all --check",
        "cargo fmt --check --manifest-path examples/firmware/Cargo.toml",
        "cargo fmt --check --manifest-path examples/firmware/first/Cargo.toml",
        "cargo fmt --check --manifest-path examples/firmware/rtic/Cargo.toml",
    ];
    run_each(lines.map(Invocation::new), workspace)
}

fn tidy(workspace: &Workspace) -> Verdict {
    println!("$ cargo xtask ci tidy");
    let breaches = tidy::breaches(workspace).map_err(|error| Stop::Failed(error.to_string()))?;
    for breach in &breaches {
        println!("{}: {}", breach.at, breach.what);
    }
    match breaches.len() {
        0 => Ok(()),
        count => Err(Stop::Failed(format!("rules broken in {count} places"))),
    }
}

fn clippy(workspace: &Workspace) -> Verdict {
    let line =
        Invocation::new("cargo clippy --workspace --all-targets --all-features --keep-going --")
            .args(["-D", "warnings"]);
    run_each([with_protoc(line, workspace)?], workspace)
}

fn doc(workspace: &Workspace) -> Verdict {
    let line = Invocation::new("cargo doc --workspace --all-features --no-deps --keep-going")
        .variable("RUSTDOCFLAGS", "-D warnings");
    run_each([with_protoc(line, workspace)?], workspace)
}

/// Each test prints how many schedules it has tried.
fn schedules(workspace: &Workspace) -> Verdict {
    let line = Invocation::new("cargo test --release -p requeue-schedules -- --nocapture")
        .variable("RUSTFLAGS", "--cfg shuttle -D warnings");
    run_each([line], workspace)
}

/// Where the recordings are replayed.
const REPLAY_RUNTIMES: [&str; 5] = ["core-fixed", "core-growable", "std", "tokio", "embassy"];

fn replay(workspace: &Workspace) -> Verdict {
    builds::programs(workspace)?;
    let program = workspace
        .target()
        .join("debug/replay")
        .display()
        .to_string();
    let replays = REPLAY_RUNTIMES
        .map(|runtime| Invocation::new(&program).args(["--runtime", runtime, "proptest/traces"]));
    run_each(replays, workspace)
}

fn doctest(workspace: &Workspace) -> Verdict {
    cargo_test("--doc", workspace)
}

/// Benchmarks are not among the targets.
fn test(workspace: &Workspace) -> Verdict {
    cargo_test("--tests", workspace)
}

/// Core alone first: the other members turn its features on.
fn cargo_test(what: &str, workspace: &Workspace) -> Verdict {
    let command = format!("cargo test --no-fail-fast {what}");
    let lines = [
        builds::core_alone(&command),
        builds::whole(&command, workspace)?,
    ];
    let (mut totals, mut failures) = (Totals::default(), Vec::new());
    for line in lines {
        let (more, outcome) = summary::run(&line, &workspace.root);
        totals.add(more);
        failures.extend(outcome.err());
    }
    println!("{} passed, {} failed", totals.passed, totals.failed);
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(failures.join("; ")))
    }
}

/// Runs all of them, also after one that failed: the second failure is news too.
pub(crate) fn run_each(
    lines: impl IntoIterator<Item = Invocation>,
    workspace: &Workspace,
) -> Verdict {
    let run = |line: Invocation| line.run(&workspace.root).err();
    let failures: Vec<String> = lines.into_iter().filter_map(run).collect();
    if failures.is_empty() {
        Ok(())
    } else {
        Err(Stop::Failed(failures.join("; ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(words: &[&str]) -> Result<Vec<&'static str>, String> {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        let steps = choose(&words)?;
        Ok(steps.iter().map(|step| step.name).collect())
    }

    #[test]
    fn no_word_asks_for_all_steps() {
        assert_eq!(chosen(&[]).unwrap().len(), STEPS.len());
    }

    #[test]
    fn named_steps_keep_the_order_of_the_table() {
        assert_eq!(chosen(&["test", "fmt"]), Ok(vec!["fmt", "test"]));
    }

    #[test]
    fn excepted_steps_are_left_out() {
        let rest = chosen(&["--except", "fmt", "test"]).unwrap();
        assert_eq!(rest.len(), STEPS.len() - 2);
        assert!(!rest.contains(&"fmt") && !rest.contains(&"test"));
    }

    #[test]
    fn unknown_steps_are_mistakes() {
        assert!(
            chosen(&["fmt", "tidiness"])
                .unwrap_err()
                .contains("`tidiness`")
        );
        assert!(chosen(&["--except", "tidiness"]).is_err());
        assert!(chosen(&["--except"]).is_err());
        assert!(chosen(&["fmt", "--except", "test"]).is_err());
    }

    #[test]
    fn no_two_steps_share_a_name() {
        let mut names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), STEPS.len());
    }
}
