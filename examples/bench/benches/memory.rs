//! Bytes per key, as requested from the allocator.

use std::alloc::System;
use std::process::ExitCode;

use requeue_bench::harness::Suite;
use requeue_bench::keys::{Key, Random};
use requeue_bench::port::Port;
use requeue_bench::subject::{Subject, ours};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

type Fold = foldhash::fast::RandomState;

const COLUMNS: [&str; 2] = ["requeue", "port, foldhash"];

/// The operation on each key.
#[derive(Clone, Copy)]
enum Fill {
    Queued,
    Delayed,
    Failed,
}

fn main() -> ExitCode {
    let mut suite = Suite::from_args();
    let keys = if suite.is_quick() { 100 } else { 1_000_000 };
    suite.group("Bytes per key, 1000000 keys, without having reserved");
    for (name, fill) in [
        ("queued", Fill::Queued),
        ("delayed", Fill::Delayed),
        ("failed once, all else over", Fill::Failed),
    ] {
        row::<u64>(&mut suite, name, fill, keys);
        row::<String>(&mut suite, name, fill, keys);
    }
    suite.finish()
}

fn row<K: Key>(suite: &mut Suite, name: &str, fill: Fill, keys: u64) {
    let work = format!("{} {name}", K::NAME);
    if !suite.asks_for(&work) {
        return;
    }
    let ours = bytes_per_key::<K, _>(ours::<K, Fold>(), fill, keys);
    let port = bytes_per_key::<K, _>(Port::<K, Fold>::default(), fill, keys);
    let ratio = ours / port;
    let line = format!("| {work} | {ours:.0} **{ratio:.2}×** | {port:.0} |");
    suite.print(&COLUMNS, &line);
    for (name, value) in COLUMNS.into_iter().zip([ours, port]) {
        suite.record(&work, keys, name, value, "bytes");
    }
}

/// The bytes per key of `subject`, with so many keys.
fn bytes_per_key<K: Key, Q: Subject<K>>(mut subject: Q, fill: Fill, keys: u64) -> f64 {
    let region = Region::new(ALLOCATOR);
    let mut random = Random::new(Random::any_seed());
    for now in 0..keys {
        let key = K::from_number(random.next());
        match fill {
            Fill::Queued => subject.add(key, 0),
            Fill::Delayed => subject.add_at(key, u64::MAX / 2 + random.next() / 4, 0),
            Fill::Failed => fail_and_rest(&mut subject, key, now),
        }
    }
    let change = region.change();
    drop(subject);
    let taken = change
        .bytes_allocated
        .saturating_sub(change.bytes_deallocated);
    taken as f64 / keys as f64
}

/// Leaves only the failure record of a key.
fn fail_and_rest<K: Key>(subject: &mut impl Subject<K>, key: K, run: u64) {
    const STEP_NANOS: u64 = 1_000_000_000;
    subject.add_rate_limited(key, run * STEP_NANOS);
    let later = (run + 1) * STEP_NANOS;
    if let Some((key, ticket)) = subject.get(later) {
        subject.done(&key, ticket, later);
    }
}
