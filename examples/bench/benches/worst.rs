//! The slowest single operations: CPU time of the thread, and instructions.
//!
//! callgrind adds up calls, and has no maximum. So this counts the instructions of one operation. A
//! few rounds with fixed seeds find the slowest operation by time. Then one process ends before it
//! and another after it, and the difference is its cost.

use std::hash::BuildHasher;
use std::process::ExitCode;

use requeue_bench::callgrind::instructions;
use requeue_bench::harness::{Suite, machine};
use requeue_bench::keys::{Key, Random};
use requeue_bench::port::Port;
use requeue_bench::subject::ours;
use requeue_bench::worst::{
    self, Contender, Gauged, Shared, Started, Watch, delays, end, fill, noise, produce,
    produce_and_work, report_running, shut_down_due, slowest, take_delayed, work,
};

type Fold = foldhash::fast::RandomState;
type Sip = std::hash::RandomState;
/// Without random seeds, for instructions.
type FixedFold = foldhash::fast::FixedState;

const QUEUE: &str = "requeue";
const THREADS: &str = "requeue on threads";
const PORT_SIP: &str = "port, SipHash";
const PORT_FOLD: &str = "port, foldhash";
const COLUMNS: [&str; 4] = [QUEUE, THREADS, PORT_SIP, PORT_FOLD];

/// A round takes longer with more keys.
const MANY: (usize, usize) = (3, 1_000_000);
const FEWER: (usize, usize) = (5, 100_000);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case, contender, keys, number] = arguments.as_slice()
        && flag == "--run"
    {
        let (keys, number) = (keys.parse().unwrap_or(0), number.parse().unwrap_or(0));
        return run_until(case, contender, keys, number);
    }
    println!("{}", machine());
    let mut suite = Suite::from_args();
    println!("\n{}", noise(&suite, MANY.1));
    suite.group("The slowest operation, u64 keys: 99.99 % of them, and the slowest");
    growing::<u64>(&mut suite, 4_000_000);
    all_else(&mut suite);
    suite.group("The slowest operation, String keys: 99.99 % of them, and the slowest");
    growing::<String>(&mut suite, 1_000_000);
    suite.group("Instructions of the slowest operation, u64 keys");
    counts(&mut suite);
    suite.finish()
}

/// The contenders of a scenario on a queue of each kind.
macro_rules! contenders {
    ($K:ty: $play:ident) => {
        vec![
            Contender::new(QUEUE, |keys, watch: &mut Watch| {
                $play::<$K, _>(ours::<$K, Fold>(), keys, Random::any_seed(), watch);
            }),
            Contender::new(THREADS, |keys, watch: &mut Watch| {
                $play::<$K, _>(Shared::<$K, Fold>::default(), keys, Random::any_seed(), watch);
            }),
        ]
    };
    ($K:ty: $play:ident, port) => {{
        let mut contenders = contenders!($K: $play);
        contenders.push(Contender::new(PORT_SIP, |keys, watch: &mut Watch| {
            $play::<$K, _>(Port::<$K, Sip>::default(), keys, Random::any_seed(), watch);
        }));
        contenders.push(Contender::new(PORT_FOLD, |keys, watch: &mut Watch| {
            $play::<$K, _>(Port::<$K, Fold>::default(), keys, Random::any_seed(), watch);
        }));
        contenders
    }};
}

/// The scenarios for keys of each type.
fn growing<K: Key>(suite: &mut Suite, growth: usize) {
    let mut row = |work: &str, scale, contenders: Vec<Contender>| {
        worst::row(suite, work, &COLUMNS, scale, &contenders);
    };
    let grows = format!("an empty queue grows to {growth}");
    row(&grows, (MANY.0, growth), contenders!(K: fill, port));
    row(
        "1000000 due at once, then both in turn",
        MANY,
        contenders!(K: produce_and_work, port),
    );
    row("the end of 1000000", MANY, ending::<K>());
}

/// Scenarios in which the type of the keys makes little difference.
fn all_else(suite: &mut Suite) {
    let mut row = |work: &str, scale, contenders: Vec<Contender>| {
        worst::row(suite, work, &COLUMNS, scale, &contenders);
    };
    let grows = "an empty queue grows to 1000000 delayed";
    row(grows, MANY, contenders!(u64: delays, port));
    for scale in [FEWER, MANY] {
        let keys = scale.1;
        let due = format!("{keys} due at once, then");
        let (adds, gets) = (format!("{due} adds"), format!("{due} gets"));
        row(&adds, scale, contenders!(u64: produce, port));
        row(&gets, scale, contenders!(u64: work, port));
        let end = format!("shut down as {keys} are due");
        row(&end, scale, contenders!(u64: shut_down_due));
    }
    let both = "100000 due at once, then both in turn";
    row(both, FEWER, contenders!(u64: produce_and_work, port));
    let end = "shut down, 1000000 delayed";
    row(end, MANY, contenders!(u64: take_delayed));
    row("1000000 active", MANY, reporting::<u64>());
}

fn reporting<K: Key>() -> Vec<Contender> {
    fn contender<K: Key, Q: worst::Reports<K> + Default>(name: &'static str) -> Contender {
        Contender::new(name, |keys, watch: &mut Watch| {
            report_running(Q::default(), keys, Random::any_seed(), watch);
        })
    }
    vec![
        contender::<K, Gauged<K, Fold>>(QUEUE),
        contender::<K, Started<K, Sip>>(PORT_SIP),
        contender::<K, Started<K, Fold>>(PORT_FOLD),
    ]
}

fn ending<K: Key>() -> Vec<Contender> {
    fn port<K: Key, H: BuildHasher + Default>(keys: usize, watch: &mut Watch) {
        end::<K, _>(Port::<K, H>::default, keys, Random::any_seed(), watch);
    }
    vec![
        Contender::new(QUEUE, |keys, watch: &mut Watch| {
            end::<K, _>(ours::<K, Fold>, keys, Random::any_seed(), watch);
        }),
        Contender::new(PORT_SIP, port::<K, Sip>),
        Contender::new(PORT_FOLD, port::<K, Fold>),
    ]
}

/// Does the operations of a scenario on so many keys.
type Play = fn(usize, &mut Watch);
/// The cases on requeue and on the port: a name, in which N is the number of keys, and the
/// operations.
type Case = (&'static str, [Option<Play>; 2]);

const SEED: u64 = 20_261_122;
const COUNTED_KEYS: [usize; 3] = [1_000, 10_000, 100_000];
const COUNTED: [&str; 2] = [QUEUE, PORT_FOLD];
const ROUNDS: usize = 5;

/// A case of the scenario on both.
macro_rules! case {
    ($name:literal: $play:ident) => {
        (
            $name,
            [
                Some(|keys, watch: &mut Watch| {
                    $play::<u64, _>(ours::<u64, FixedFold>(), keys, SEED, watch);
                }),
                None,
            ],
        )
    };
    ($name:literal: $play:ident, port) => {{
        let (name, [ours, _]): Case = case!($name: $play);
        let port: Play = |keys, watch| {
            $play::<u64, _>(Port::<u64, FixedFold>::default(), keys, SEED, watch);
        };
        (name, [ours, Some(port)])
    }};
}

fn cases() -> [Case; 6] {
    [
        case!("an empty queue grows to N": fill, port),
        case!("N due at once, then adds": produce, port),
        case!("N due at once, then gets": work, port),
        case!("N due at once, then both in turn": produce_and_work, port),
        case!("shut down as N are due": shut_down_due),
        case!("shut down, N delayed": take_delayed),
    ]
}

/// Does the operations of a case on so many keys, up to this number, exclusive.
fn run_until(case: &str, contender: &str, keys: usize, number: usize) -> ExitCode {
    let cases = cases();
    let plays = cases.iter().find(|(name, _)| *name == case);
    let plays = COUNTED
        .iter()
        .zip(plays.map_or([None; 2], |(_, plays)| *plays));
    for (_, play) in plays.filter(|(name, _)| **name == contender) {
        if let Some(play) = play {
            play(keys, &mut Watch::stopping_at(number));
        }
    }
    ExitCode::SUCCESS
}

fn counts(suite: &mut Suite) {
    if suite.is_quick() {
        return;
    }
    for (case, plays) in cases() {
        for keys in COUNTED_KEYS {
            let work = case.replace('N', &keys.to_string());
            if suite.asks_for(&work) {
                count(suite, &work, case, plays, keys);
            }
        }
    }
}

/// Prints one line for each kind of operation of a case.
fn count(suite: &mut Suite, work: &str, case: &str, plays: [Option<Play>; 2], keys: usize) {
    let [ours, port] = [0, 1].map(|index| {
        plays[index].map_or_else(Vec::new, |play| {
            of_slowest(case, COUNTED[index], keys, play)
        })
    });
    for (name, count) in ours {
        let theirs = port.iter().find(|(other, _)| *other == name);
        let theirs = theirs.and_then(|(_, count)| *count);
        let work = format!("{work}: {name}");
        let line = format!("| {work} | {} | {} |", show(count), show(theirs));
        suite.print(&COUNTED, &line);
        for (name, count) in COUNTED.into_iter().zip([count, theirs]) {
            if let Some(count) = count {
                suite.record(&work, keys as u64, name, count as f64, "instructions");
            }
        }
    }
}

/// The instructions of the slowest operation of each name.
fn of_slowest(
    case: &str,
    contender: &str,
    keys: usize,
    play: Play,
) -> Vec<(&'static str, Option<u64>)> {
    let rounds: Vec<Watch> = (0..ROUNDS)
        .map(|_| {
            let mut watch = Watch::default();
            play(keys, &mut watch);
            watch
        })
        .collect();
    let keys = keys.to_string();
    // The length does not depend on the number of operations.
    let until =
        |number: usize| instructions(&["--run", case, contender, &keys, &format!("{number:08}")]);
    let count = |number: usize| Some(until(number + 1)?.saturating_sub(until(number)?));
    let names = slowest(&rounds).into_iter();
    names.map(|(name, number)| (name, count(number))).collect()
}

fn show(count: Option<u64>) -> String {
    count.map_or_else(|| String::from("–"), |count| count.to_string())
}
