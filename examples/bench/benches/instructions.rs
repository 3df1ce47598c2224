//! Instructions per operation, counted by valgrind's callgrind: the same on every run.
//!
//! The program runs itself under valgrind twice for each case, with N and with 2N operations; the
//! difference is what N operations cost, and all that was set up cancels. Hashers have fixed seeds.
//! A subject that does nothing shows what the loop itself costs, which is taken off.

use std::process::ExitCode;

use requeue_bench::callgrind::instructions;
use requeue_bench::keys::{Key, Random};
use requeue_bench::port::Port;
use requeue_bench::subject::{Nothing, Subject, grouped, ours};
use requeue_bench::workloads::{Scale, Steady, Workload};

const SEED: u64 = 20_261_120;
const OPERATIONS: u32 = 20_000;
/// How many keys wait.
const WAITING: usize = 10_000;
/// How many instructions our steady cycle with u64 keys may have.
const AIM: f64 = 250.0;

/// `SipHash` without a random seed.
type Sip = core::hash::BuildHasherDefault<std::hash::DefaultHasher>;
type Fold = foldhash::fast::FixedState;

/// What is counted: a name, and how to do it so many times.
type Case = (&'static str, fn(u32));

const fn cases<K: Key>() -> [Case; 4] {
    [
        ("loop", |count| {
            steady::<K, _>(Nothing::default(), WAITING, count);
        }),
        ("requeue", |count| {
            steady::<K, _>(ours::<K, Fold>(), WAITING, count);
        }),
        ("port, SipHash", |count| {
            steady::<K, _>(Port::<K, Sip>::default(), WAITING, count);
        }),
        ("port, foldhash", |count| {
            steady::<K, _>(Port::<K, Fold>::default(), WAITING, count);
        }),
    ]
}

/// Keys in 1,000 groups: so few that most groups come and go with a key, and so many that they
/// stay.
const GROUPED: [(Case, Case); 2] = [
    (
        ("no groups, 100", |count| {
            steady::<u64, _>(ours::<u64, Fold>(), 100, count);
        }),
        ("groups, 100", |count| {
            steady::<u64, _>(grouped::<u64, Fold>(|key| key % 1_000), 100, count);
        }),
    ),
    (
        ("no groups, 10000", |count| {
            steady::<u64, _>(ours::<u64, Fold>(), WAITING, count);
        }),
        ("groups, 10000", |count| {
            steady::<u64, _>(grouped::<u64, Fold>(|key| key % 1_000), WAITING, count);
        }),
    ),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, key, case, count] = arguments.as_slice()
        && flag == "--run"
    {
        let count = count.parse().unwrap_or(0);
        let cases = if key == u64::NAME {
            cases::<u64>()
        } else {
            cases::<String>()
        };
        let grouped = GROUPED.iter().flat_map(|(plain, grouped)| [plain, grouped]);
        for (_, run) in cases.iter().chain(grouped).filter(|(name, _)| name == case) {
            run(count);
        }
        return ExitCode::SUCCESS;
    }
    println!("\n### Instructions per steady cycle, 1e4 waiting\n");
    println!("| key | requeue | port, SipHash | port, foldhash | loop, taken off |");
    println!("|---|--:|--:|--:|--:|");
    let lines = [line::<u64>(), line::<String>()];
    if lines.iter().any(Option::is_none) {
        eprintln!("valgrind is needed to count instructions, and did not run");
        return ExitCode::FAILURE;
    }
    for line in lines.into_iter().flatten() {
        println!("{line}");
    }
    println!("\nAim: at most {AIM} for u64.");
    println!("\n### Instructions per steady cycle in 1,000 groups, u64\n");
    println!("| waiting | no groups | 1,000 groups |");
    println!("|---|--:|--:|");
    for (plain, grouped) in GROUPED {
        if let Some(line) = line_of_groups(plain.0, grouped.0) {
            println!("{line}");
        }
    }
    ExitCode::SUCCESS
}

/// A row of the table.
fn line<K: Key>() -> Option<String> {
    let [idle, ours, sip, fold] = cases::<K>().map(|(case, _)| count::<K>(case));
    let (idle, ours, sip, fold) = (idle?, ours? - idle?, sip? - idle?, fold? - idle?);
    Some(format!(
        "| {} | {ours:.0} | {sip:.0} **{:.2}×** | {fold:.0} **{:.2}×** | {idle:.0} |",
        K::NAME,
        sip / ours,
        fold / ours,
    ))
}

/// A row of the table of groups.
fn line_of_groups(plain: &str, grouped: &str) -> Option<String> {
    let idle = count::<u64>("loop")?;
    let (plain, in_turn) = (count::<u64>(plain)? - idle, count::<u64>(grouped)? - idle);
    Some(format!(
        "| {} | {plain:.0} | {in_turn:.0} **{:.2}×** |",
        grouped.trim_start_matches("groups, "),
        in_turn / plain,
    ))
}

/// Instructions per operation of a case.
fn count<K: Key>(case: &str) -> Option<f64> {
    let of = |operations: u32| instructions(&["--run", K::NAME, case, &operations.to_string()]);
    let (once, twice) = (of(OPERATIONS)?, of(2 * OPERATIONS)?);
    Some(twice.saturating_sub(once) as f64 / f64::from(OPERATIONS))
}

/// Runs `count` cycles, after as many that bring the queue into its steady state.
fn steady<K: Key, Q: Subject<K>>(subject: Q, keys: usize, count: u32) {
    let scale = Scale {
        keys,
        operations: 10_000,
    };
    let mut steady = Steady::set_up(subject, scale, SEED);
    let warm_up = steady.keys(scale.operations);
    steady.cycles(warm_up);
    // As many keys are made and dropped however many cycles there are.
    let mut keys: Vec<K> = Random::new(!SEED).keys(2 * OPERATIONS as usize);
    let rest = keys.split_off(count as usize);
    steady.cycles(keys);
    core::mem::forget(rest);
}
