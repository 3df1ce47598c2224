//! `cargo xtask …`: everything that CI does, one command each. A check is a row of
//! [`steps::STEPS`].

mod api;
mod book;
mod bounds;
mod builds;
mod cmd;
mod examples;
mod firmware;
mod fuzz;
mod kube;
mod mutants;
mod release;
mod report;
mod servers;
mod soak;
mod steps;
mod tidy;
mod toolchain;
mod tools;
mod workspace;

use std::env;
use std::process::ExitCode;

use cmd::cmd;
use report::{How, Stop, Verdict};
use steps::{IN_TEST, STEPS, choose};

const HELP: &str = "\
Usage: cargo xtask COMMAND

Commands:
  test                        runs the recordings, and the tests and doctests of the queue, its
                              runtimes and its kit; stops at a failure
  ci [STEP…]                  runs every step, or the named ones; continues after a failure
  ci --except STEP…           runs all steps except the named ones
  api                         writes docs/api, the lists of public items, for the step `api`
  book                        copies the guide's programs into its pages, for the step `book`
  bench [ARGUMENT…]           passes its arguments to `cargo bench -p requeue-bench`
  bench --plot [PICTURE…]     measures the figures of pictures, and draws them
  firmware [--write]          runs the images of `examples/firmware` on every emulated board,
                              and writes the tables of `docs/firmware.md`
  kube [SCENARIO…]            runs controllers on a real API server, which is built once; takes a
                              quarter of an hour
  release --dry-run [CHECK…]  checks whether a release could go out; publishes nothing
  replicas [COUNT]            starts three replicas of `webhooks` to try, with PostgreSQL and etcd
  shards [--marks] [--seeds N] [--minutes M]
                              runs replicas on a real etcd, with faults, and checks their writes
  soak --minutes M [--seed S] runs the randomised tests with new seeds until the time is over
  platforms                   runs the steps `systems` and `processors`, and there also the tests of
                              the adapters and the recordings
  miri [ARGUMENT…]            runs core's tests under Miri, with the arguments of `cargo miri test`
  deny                        runs the step `deny`, and fetches and checks known advisories
  mutants [FILE…]             checks whether the tests notice defects in core, or in a file of it;
                              takes hours
  help                        prints this page

A step that cannot run on this machine is skipped and prints why. It has failed if you named it, or,
for most steps, if CI=true. A command that cannot run has failed.
Exit code: 0 all well, 1 a step failed, 2 wrong arguments.

Steps of `ci` (a star marks those of `test`):";

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match dispatch(&words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Stop::Failed(why)) => {
            println!("FAILED: {why}");
            ExitCode::FAILURE
        }
        Err(Stop::Skipped(why) | Stop::NotRun(why)) => {
            println!("NOT RUN: {why}");
            ExitCode::FAILURE
        }
        Err(Stop::Mistake(what)) => {
            eprintln!("xtask: {what}; `cargo xtask help` lists the commands and the steps");
            ExitCode::from(2)
        }
    }
}

fn dispatch(words: &[&str]) -> Verdict {
    match words {
        [] | ["help" | "-h" | "--help"] => help(),
        ["test"] => ci(&IN_TEST, How::new(true, false)),
        ["ci", names @ ..] => {
            let by_name = names.first().is_some_and(|first| *first != "--except");
            ci(names, How::new(false, by_name))
        }
        ["api"] => api::write(),
        ["book"] => book::write(),
        ["bench", "--plot", names @ ..] => {
            let line = "cargo run --release -p requeue-bench --features peers --bin pictures --";
            cmd(line).arg("--measure").args(names.to_vec()).run()
        }
        ["bench", rest @ ..] => cmd("cargo bench -p requeue-bench")
            .args(rest.to_vec())
            .run(),
        ["firmware", "--write"] => firmware::write(),
        ["firmware"] => ci(&["firmware"], How::new(false, true)),
        ["kube", scenarios @ ..] => kube::real(scenarios),
        ["release", rest @ ..] => release::run(rest),
        ["replicas", rest @ ..] => servers::try_replicas(rest),
        ["shards", rest @ ..] => servers::prove_shards(rest),
        ["soak", rest @ ..] => soak::run(rest),
        ["platforms"] => builds::platforms(),
        ["miri", rest @ ..] => fuzz::miri(rest),
        ["deny"] => steps::advisories(),
        ["mutants", files @ ..] => mutants::run(files),
        other => Err(Stop::Mistake(format!(
            "unknown command `{}`",
            other.join(" ")
        ))),
    }
}

fn ci(names: &[&str], how: How) -> Verdict {
    report::run(&choose(names).map_err(Stop::Mistake)?, how)
}

fn help() -> Verdict {
    println!("{HELP}");
    for step in STEPS {
        let star = IN_TEST.contains(&step.name).then_some('*');
        println!("{} {:<10} {}", star.unwrap_or(' '), step.name, step.about);
    }
    Ok(())
}
