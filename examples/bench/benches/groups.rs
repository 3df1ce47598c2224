//! Groups: how long a small group waits behind a large one, and the cost of turns.

use std::process::ExitCode;

use requeue_bench::fairness::{group_of, wait_of_the_last};
use requeue_bench::harness::{Contender, Suite, machine};
use requeue_bench::keys::Random;
#[cfg(feature = "peers")]
use requeue_bench::peers::Fifo;
use requeue_bench::port::Port;
use requeue_bench::subject::{Locked, Subject, grouped, ours};
use requeue_bench::workloads::{Scale, Steady, Workload};
use requeue_core::priority::{Groups, Plain};

type Fold = foldhash::fast::RandomState;

/// How many keys the large group has.
const LARGE: [u64; 7] = [1, 10, 100, 1_000, 10_000, 100_000, 1_000_000];

fn main() -> ExitCode {
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Keys handed out until the last of 999 small groups has its turn");
    waits(&mut suite);
    suite.group("One thread, u64 keys in 1,000 groups: CPU time per key");
    for keys in [100, 10_000, 1_000_000] {
        let in_turn = grouped::<u64, Fold>(|key| key % 1_000);
        steady(&mut suite, keys, ours::<u64, Fold>(), in_turn);
    }
    suite.group("One thread, u64 keys in 1,000 groups, through the lock of requeue-std");
    for keys in [100, 10_000, 1_000_000] {
        // The same on threads, with locks and guards.
        let in_turn = Locked::<_, Groups<u64>, Fold>::grouped(|key| key % 1_000);
        steady(&mut suite, keys, Locked::<_, Plain, Fold>::plain(), in_turn);
    }
    suite.finish()
}

/// Counts the keys that are handed out until the last small group has had its turn.
fn waits(suite: &mut Suite) {
    for large in LARGE {
        let work = format!("{large} keys of the large group");
        if !suite.asks_for(&work) || (suite.is_quick() && large > 100) {
            continue;
        }
        let waits = [
            (
                "requeue, groups",
                wait_of_the_last(grouped::<u64, Fold>(group_of), large),
            ),
            ("requeue", wait_of_the_last(ours::<u64, Fold>(), large)),
            (
                "client-go's layout",
                wait_of_the_last(Port::<u64, Fold>::default(), large),
            ),
            #[cfg(feature = "peers")]
            ("crossbeam", wait_of_the_last(Fifo::default(), large)),
        ];
        let columns = waits.map(|(name, _)| name);
        let counts = waits.map(|(_, wait)| wait.to_string());
        suite.print(&columns, &format!("| {work} | {} |", counts.join(" | ")));
        for (name, wait) in waits {
            suite.record(&work, large, name, wait as f64, "keys");
        }
    }
}

/// The cycle of a queue under load, without groups and with a thousand of them.
fn steady(suite: &mut Suite, keys: usize, plain: impl Subject<u64>, in_turn: impl Subject<u64>) {
    let scale = Scale {
        keys,
        operations: 50_000,
    };
    suite.row(&format!("steady, {keys} waiting"), 25, scale, |scale| {
        let seed = Random::any_seed();
        let mut plain = Steady::set_up(plain, scale, seed);
        let mut grouped = Steady::set_up(in_turn, scale, seed);
        vec![
            Contender::new("no groups", move || plain.round()),
            Contender::new("1,000 groups", move || grouped.round()),
        ]
    });
}
