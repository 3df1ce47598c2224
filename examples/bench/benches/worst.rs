//! The slowest single operations: CPU time of the thread, and instructions.
//!
//! callgrind sums up over calls and knows no maximum. So the instructions are those of one
//! operation: a few rounds with fixed seeds find which was the slowest by time, and two processes,
//! one of which ends before it and one after it, differ by what it costs.

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

/// A round takes longer, the more keys there are.
const MANY: (usize, usize) = (3, 1_000_000);
const FEWER: (usize, usize) = (5, 100_000);

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, case, contender, number] = arguments.as_slice()
        && flag == "--run"
    {
        return run_until(case, contender, number.parse().unwrap_or(0));
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
    ExitCode::SUCCESS
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

/// What keys of each type are measured at.
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

/// What the type of the keys makes little difference to.
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

/// What is counted, on ours and on the port: a name, and how to do it.
type Case = (&'static str, [Option<fn(&mut Watch)>; 2]);

const SEED: u64 = 20_261_122;
const COUNTED_KEYS: usize = 100_000;
const COUNTED: [&str; 2] = [QUEUE, PORT_FOLD];
const ROUNDS: usize = 5;

/// A case of the scenario on both.
macro_rules! case {
    ($name:literal: $play:ident) => {
        (
            $name,
            [
                Some(|watch: &mut Watch| {
                    $play::<u64, _>(ours::<u64, FixedFold>(), COUNTED_KEYS, SEED, watch);
                }),
                None,
            ],
        )
    };
    ($name:literal: $play:ident, port) => {{
        let (name, [ours, _]): Case = case!($name: $play);
        let port: fn(&mut Watch) = |watch| {
            $play::<u64, _>(Port::<u64, FixedFold>::default(), COUNTED_KEYS, SEED, watch);
        };
        (name, [ours, Some(port)])
    }};
}

fn cases() -> [Case; 6] {
    [
        case!("an empty queue grows to 100000": fill, port),
        case!("100000 due at once, then adds": produce, port),
        case!("100000 due at once, then gets": work, port),
        case!("100000 due at once, then both in turn": produce_and_work, port),
        case!("shut down as 100000 are due": shut_down_due),
        case!("shut down, 100000 delayed": take_delayed),
    ]
}

/// Does the operations of a case up to the one with this number, without it.
fn run_until(case: &str, contender: &str, number: usize) -> ExitCode {
    let cases = cases();
    let plays = cases.iter().find(|(name, _)| *name == case);
    let plays = COUNTED
        .iter()
        .zip(plays.map_or([None; 2], |(_, plays)| *plays));
    for (_, play) in plays.filter(|(name, _)| **name == contender) {
        if let Some(play) = play {
            play(&mut Watch::stopping_at(number));
        }
    }
    ExitCode::SUCCESS
}

fn counts(suite: &mut Suite) {
    if suite.is_quick() {
        return;
    }
    for (case, plays) in cases() {
        if !suite.asks_for(case) {
            continue;
        }
        let [ours, port] = [0, 1].map(|index| {
            plays[index].map_or_else(Vec::new, |play| of_slowest(case, COUNTED[index], play))
        });
        for (name, count) in ours {
            let theirs = port.iter().find(|(other, _)| *other == name);
            let theirs = theirs.and_then(|(_, count)| *count);
            let line = format!("| {case}: {name} | {} | {} |", show(count), show(theirs));
            suite.print(&COUNTED, &line);
        }
    }
}

/// The instructions of the slowest operation of each name.
fn of_slowest(
    case: &str,
    contender: &str,
    play: fn(&mut Watch),
) -> Vec<(&'static str, Option<u64>)> {
    let rounds: Vec<Watch> = (0..ROUNDS)
        .map(|_| {
            let mut watch = Watch::default();
            play(&mut watch);
            watch
        })
        .collect();
    let until = |number: usize| instructions(&["--run", case, contender, &format!("{number:08}")]);
    let count = |number: usize| Some(until(number + 1)?.saturating_sub(until(number)?));
    let names = slowest(&rounds).into_iter();
    names.map(|(name, number)| (name, count(number))).collect()
}

fn show(count: Option<u64>) -> String {
    count.map_or_else(|| String::from("–"), |count| count.to_string())
}
