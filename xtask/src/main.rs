//! `cargo xtask …`: everything the continuous integration does, one command each.
//!
//! A command is a row of [`COMMANDS`], a check a row of [`steps::STEPS`]; both tables print
//! themselves under `cargo xtask help`.

mod api;
mod book;
mod builds;
mod combinations;
mod debian;
mod deny;
mod examples;
mod firmware;
mod fuzz;
mod invocation;
mod kube;
mod links;
mod miri;
mod mutants;
mod pictures;
mod platforms;
mod release;
mod report;
mod servers;
mod shards;
mod soak;
mod steps;
mod summary;
mod tidy;
mod toolchain;
mod webhooks;
mod workspace;

use std::env;
use std::process::ExitCode;

use invocation::Invocation;
use report::{Asked, OnFailure, Report, Stop, Verdict};
use steps::{STEPS, Step};
use workspace::Workspace;

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    match dispatch(&words) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(mistake) => {
            eprintln!("xtask: {mistake}");
            eprintln!("xtask: `cargo xtask help` lists the commands and the steps");
            ExitCode::from(2)
        }
    }
}

/// Something a person asks for.
struct Command {
    name: &'static str,
    arguments: &'static str,
    about: &'static str,
    run: Run,
}

/// What a command runs.
enum Run {
    /// Takes words. Returns whether all went well; an error is a mistake in how it was called.
    Words(fn(&[String]) -> Result<bool, String>),
    /// Hands its words on. No step of `ci`, because it takes long or needs more than others.
    Check(fn(&Workspace, &[String]) -> Verdict),
    /// The same without words.
    Alone(fn(&Workspace) -> Verdict),
}

const COMMANDS: [Command; 15] = [
    Command {
        name: "test",
        arguments: "",
        about: "the recorded traces, every test and every doctest; stops at the first failure",
        run: Run::Words(test),
    },
    Command {
        name: "ci",
        arguments: "[STEP…] [--except STEP…]",
        about: "every step, or those named, or all but those named; goes on after a failure",
        run: Run::Words(ci),
    },
    Command {
        name: "api",
        arguments: "",
        about: "writes the lists of public items, docs/api, which the step `api` compares",
        run: Run::Alone(api::write),
    },
    Command {
        name: "bench",
        arguments: "[ARGUMENT…] | --plot [PICTURE…]",
        about: "hands its arguments to `cargo bench -p requeue-bench`, or measures what is drawn",
        run: Run::Words(bench),
    },
    Command {
        name: "firmware",
        arguments: "",
        about: "the images of `examples/firmware`, on every emulated board",
        run: Run::Words(firmware),
    },
    Command {
        name: "kube",
        arguments: "[SCENARIO…]",
        about: "controllers on a real API server, which is built once; takes a quarter of an hour",
        run: Run::Check(kube::real),
    },
    Command {
        name: "release",
        arguments: "[--dry-run [CHECK…]]",
        about: "whether a release could go out; with `--version X.Y.Z`, raises the version",
        run: Run::Words(release::run),
    },
    Command {
        name: "replicas",
        arguments: "[COUNT]",
        about: "three replicas of `webhooks`, to try; with a PostgreSQL and an etcd of their own",
        run: Run::Check(webhooks::try_replicas),
    },
    Command {
        name: "shards",
        arguments: "[--marks] [--seeds N] [--minutes M]",
        about: "replicas on a real etcd, faults, their writes checked; then the step `replicas`",
        run: Run::Check(shards::run),
    },
    Command {
        name: "soak",
        arguments: "--minutes M [--seed S]",
        about: "the tests of chance, with new seeds until the time is over",
        run: Run::Words(soak::run),
    },
    Command {
        name: "platforms",
        arguments: "",
        about: "the steps `systems` and `processors`, the adapters' tests and the recordings there",
        run: Run::Alone(platforms::run),
    },
    Command {
        name: "miri",
        arguments: "[ARGUMENT…]",
        about: "core's tests under Miri: hands its arguments to `cargo miri test`",
        run: Run::Check(miri::run),
    },
    Command {
        name: "deny",
        arguments: "",
        about: "the step `deny`, and known advisories, which are fetched",
        run: Run::Alone(deny::run),
    },
    Command {
        name: "mutants",
        arguments: "[FILE…]",
        about: "whether the tests notice when core, or a file of it, is broken; takes hours",
        run: Run::Words(mutants::run),
    },
    Command {
        name: "help",
        arguments: "",
        about: "this page",
        run: Run::Words(help),
    },
];

fn dispatch(words: &[String]) -> Result<bool, String> {
    let (name, arguments) = match words.split_first() {
        None => return help(&[]),
        Some((name, _)) if ["-h", "--help"].contains(&name.as_str()) => return help(&[]),
        Some((name, arguments)) => (name, arguments),
    };
    let command = COMMANDS.iter().find(|command| command.name == name);
    let command = command.ok_or_else(|| format!("no command is called `{name}`"))?;
    match command.run {
        Run::Words(run) => run(arguments),
        Run::Check(run) => shown(run(&Workspace::load()?, arguments)),
        Run::Alone(run) => {
            refuse(arguments)?;
            shown(run(&Workspace::load()?))
        }
    }
}

fn test(arguments: &[String]) -> Result<bool, String> {
    refuse(arguments)?;
    let chosen: Vec<&Step> = STEPS.iter().filter(|step| step.in_test).collect();
    run(&chosen, OnFailure::Stop, Asked::ForAll)
}

fn ci(arguments: &[String]) -> Result<bool, String> {
    let asked = match arguments.first() {
        Some(first) if first != "--except" => Asked::ByName,
        _ => Asked::ForAll,
    };
    run(&steps::choose(arguments)?, OnFailure::GoOn, asked)
}

fn bench(arguments: &[String]) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    if let Some((_, names)) = arguments
        .split_first()
        .filter(|(first, _)| *first == "--plot")
    {
        return pictures::measure(names, &workspace).map(|()| true);
    }
    let command = Invocation::new("cargo bench -p requeue-bench").args(arguments);
    Ok(command.run(&workspace.root).is_ok())
}

fn firmware(arguments: &[String]) -> Result<bool, String> {
    refuse(arguments)?;
    ci(&["firmware".to_owned()])
}

/// Prints how a command went that is no step. A command that could not run has failed, because a
/// person asked for it by name.
fn shown(verdict: Verdict) -> Result<bool, String> {
    match verdict {
        Ok(()) => Ok(true),
        Err(Stop::Failed(why)) => {
            println!("FAILED: {why}");
            Ok(false)
        }
        Err(Stop::Skipped(why) | Stop::NotRun(why)) => {
            println!("NOT RUN: {why}");
            Ok(false)
        }
    }
}

fn help(arguments: &[String]) -> Result<bool, String> {
    refuse(arguments)?;
    println!("Usage: cargo xtask COMMAND\n\nCommands:");
    let call = |command: &Command| format!("{} {}", command.name, command.arguments);
    let calls = COMMANDS.iter().map(|command| call(command).chars().count());
    let width = calls.max().unwrap_or(0);
    for command in &COMMANDS {
        println!("  {:<width$} {}", call(command), command.about);
    }
    println!("\nSteps of `ci`, those of `test` marked with a star:");
    for step in &STEPS {
        let star = if step.in_test { '*' } else { ' ' };
        println!("{star} {:<10} {}", step.name, step.about);
    }
    println!(
        "\nA step that cannot be run on this machine is skipped and says why. Where CI=true, or if \
         it was\nasked for by name, it has failed. A command that cannot be run has failed.\n\
         Exit code: 0 all well, 1 a step failed, 2 a mistake in the call."
    );
    Ok(true)
}

fn refuse(arguments: &[String]) -> Result<(), String> {
    match arguments.first() {
        Some(argument) => Err(format!("unexpected argument `{argument}`")),
        None => Ok(()),
    }
}

fn run(steps: &[&Step], on_failure: OnFailure, asked: Asked) -> Result<bool, String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new(on_failure, asked, steps.len());
    for step in steps {
        report.step(step, &workspace);
    }
    Ok(report.conclude())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_that_could_not_run_has_failed() {
        assert_eq!(shown(Ok(())), Ok(true));
        assert_eq!(shown(Err(Stop::Failed("broken".to_owned()))), Ok(false));
        assert_eq!(shown(Err(Stop::Skipped("no tool".to_owned()))), Ok(false));
        assert_eq!(shown(Err(Stop::NotRun("no sources".to_owned()))), Ok(false));
    }
}
