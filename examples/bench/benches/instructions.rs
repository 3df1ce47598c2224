//! Instructions per operation, counted by valgrind's callgrind: the same on every run.
//!
//! The program runs itself under valgrind twice for each case, with N and with 2N operations; the
//! difference is what N operations cost, and all that was set up cancels. Hashers have fixed seeds.
//! Reallocation would not cancel, so the state is steady before the first operation that counts.

use std::process::{Command, ExitCode};

use requeue_bench::keys::{Key, Random};
use requeue_bench::port::Port;
use requeue_bench::subject::{Subject, ours};
use requeue_bench::workloads::{Scale, Steady, Workload};

const SEED: u64 = 20_261_120;
const OPERATIONS: u64 = 20_000;

/// `SipHash` without a random seed.
type Sip = core::hash::BuildHasherDefault<std::hash::DefaultHasher>;
type Fold = foldhash::fast::FixedState;

/// What is counted: a name, the instructions aimed at, and what to run.
type Case = (&'static str, Option<u64>, fn(u64));

const CASES: [Case; 6] = [
    ("steady 1e4 u64 / requeue", Some(250), |count| steady::<u64, _>(ours::<_, Fold>(), count)),
    ("steady 1e4 u64 / port, foldhash", None, |count| steady::<u64, _>(Port::<_, Fold>::default(), count)),
    ("steady 1e4 u64 / port, SipHash", None, |count| steady::<u64, _>(Port::<_, Sip>::default(), count)),
    ("steady 1e4 String / requeue", None, |count| steady::<String, _>(ours::<_, Fold>(), count)),
    ("steady 1e4 String / port, foldhash", None, |count| steady::<String, _>(Port::<_, Fold>::default(), count)),
    ("steady 1e4 String / port, SipHash", None, |count| steady::<String, _>(Port::<_, Sip>::default(), count)),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case, count] = arguments.as_slice()
        && flag == "--run"
    {
        let count = count.parse().unwrap_or(0);
        for (name, _, run) in CASES {
            if name == case {
                run(count);
            }
        }
        return ExitCode::SUCCESS;
    }
    let filter = arguments.iter().find(|argument| !argument.starts_with('-'));
    for (name, _aim, _) in CASES {
        if filter.is_some_and(|filter| !name.contains(filter.as_str())) {
            continue;
        }
        match count(name) {
            Some(instructions) => println!("{name}: {instructions:.1}"),
            None => println!("{name}: valgrind is not here"),
        }
    }
    ExitCode::SUCCESS
}

/// Runs `count` cycles with keys that are made before.
fn steady<K: Key, Q: Subject<K>>(subject: Q, count: u64) {
    let scale = Scale { keys: 10_000, operations: 10_000 };
    let mut steady = Steady::set_up(subject, scale, SEED);
    let warm_up = steady.keys(10_000);
    steady.cycles(warm_up);
    // The same number of keys is made however many cycles run, and the rest is dropped.
    let mut random = Random::new(!SEED);
    let mut keys: Vec<K> = random.keys(2 * OPERATIONS as usize);
    let rest = keys.split_off(count as usize);
    steady.cycles(keys);
    core::mem::forget(rest);
}

fn count(case: &str) -> Option<f64> {
    let once = callgrind(case, OPERATIONS)?;
    let twice = callgrind(case, 2 * OPERATIONS)?;
    Some(twice.saturating_sub(once) as f64 / OPERATIONS as f64)
}

/// The instructions of one run of this program.
fn callgrind(case: &str, operations: u64) -> Option<u64> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().ok()?)
        .args(["--run", case, &operations.to_string()])
        .output()
        .ok()?;
    let report = String::from_utf8(output.stderr).ok()?;
    let collected = report.lines().find(|line| line.contains("Collected"))?;
    collected.split_whitespace().last()?.parse().ok()
}
