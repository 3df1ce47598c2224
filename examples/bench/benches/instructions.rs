//! Instructions per operation, counted by valgrind's callgrind: the same on every run.
//!
//! The program runs itself under valgrind twice for each case, with N and with 2N operations. The
//! difference is the cost of N operations, without any set-up. Hashers have fixed seeds. A subject
//! that does nothing measures the loop itself, and that is subtracted.

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Duration;

use requeue_bench::callgrind::instructions;
use requeue_bench::harness::{Suite, machine};
use requeue_bench::keys::{Key, Random};
use requeue_bench::port::Port;
use requeue_bench::subject::{Nothing, Subject, grouped, ours};
use requeue_bench::taking::{By, Ready, in_a_task, on_a_thread, ready};
use requeue_bench::workloads::{LimitedCycle, Scale, Steady, Workload};
use requeue_core::{Action, Instant};

const SEED: u64 = 20_261_120;
const OPERATIONS: u32 = 20_000;
/// How many keys wait by default.
const WAITING: usize = 10_000;
/// A case that does nothing.
const LOOP: &str = "loop";
/// The same, without a subject.
const LOOP_ALONE: &str = "loop alone";

/// `SipHash` without a random seed.
type Sip = core::hash::BuildHasherDefault<std::hash::DefaultHasher>;
type Fold = foldhash::fast::FixedState;

/// Does so many operations while so many keys wait.
type Play = fn(usize, u32);
/// The cases, by the names of their columns.
type Case = (&'static str, Play);

const fn cases<K: Key>() -> [Case; 4] {
    [
        (LOOP, |waiting, count| {
            steady::<K, _>(Nothing::default(), waiting, count);
        }),
        ("requeue", |waiting, count| {
            steady::<K, _>(ours::<K, Fold>(), waiting, count);
        }),
        ("port, SipHash", |waiting, count| {
            steady::<K, _>(Port::<K, Sip>::default(), waiting, count);
        }),
        ("port, foldhash", |waiting, count| {
            steady::<K, _>(Port::<K, Fold>::default(), waiting, count);
        }),
    ]
}

/// Keys in 1,000 groups. With 100 waiting keys, most groups are added and forgotten with a key.
/// With 10,000 they stay.
const GROUPED: [Case; 3] = [
    cases::<u64>()[0],
    ("no groups", cases::<u64>()[1].1),
    ("1,000 groups", |waiting, count| {
        steady::<u64, _>(grouped::<u64, Fold>(|key| key % 1_000), waiting, count);
    }),
];

/// Keys that fail, and leave after their delay.
const FAILING: [Case; 4] = [
    cases::<u64>()[0],
    ("fails, requeue", |waiting, count| {
        failing(ours::<u64, Fold>(), waiting, count);
    }),
    ("fails, port, SipHash", |waiting, count| {
        failing(Port::<u64, Sip>::default(), waiting, count);
    }),
    ("fails, port, foldhash", |waiting, count| {
        failing(Port::<u64, Fold>::default(), waiting, count);
    }),
];

/// A single worker with its queue.
const TAKING: [Case; 5] = [
    ("no queue", |waiting, count| {
        taking(|_, keys| _ = black_box(keys), waiting, count);
    }),
    ("threads, get", |waiting, count| {
        taking(
            |queue, keys| on_a_thread(By::Get, queue, keys),
            waiting,
            count,
        );
    }),
    ("threads, next", |waiting, count| {
        taking(
            |queue, keys| on_a_thread(By::Next, queue, keys),
            waiting,
            count,
        );
    }),
    ("Tokio, get", |waiting, count| {
        taking(
            |queue, keys| in_a_task(By::Get, queue, keys),
            waiting,
            count,
        );
    }),
    ("Tokio, next", |waiting, count| {
        taking(
            |queue, keys| in_a_task(By::Next, queue, keys),
            waiting,
            count,
        );
    }),
];

/// Keys that wait for an event, compared with keys that are added again.
const SUSPENDING: [Case; 3] = [
    (LOOP_ALONE, |_, count| {
        (0..count).for_each(|count| _ = black_box(count))
    }),
    ("take, release, add", |waiting, count| {
        suspending(waiting, count, false);
    }),
    ("take, suspend, resume", |waiting, count| {
        suspending(waiting, count, true);
    }),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [flag, key, case, waiting, count] = arguments.as_slice()
        && flag == "--run"
    {
        let cases = if key == u64::NAME {
            cases::<u64>()
        } else {
            cases::<String>()
        };
        let all = cases.iter().chain(&GROUPED).chain(&FAILING).chain(&TAKING);
        let mut all = all.chain(&SUSPENDING);
        if let Some((_, run)) = all.find(|(name, _)| name == case) {
            run(waiting.parse().unwrap_or(0), count.parse().unwrap_or(0));
        }
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|first| first == "--bounded") {
        return match bounded() {
            Some(()) => ExitCode::SUCCESS,
            None => no_valgrind(),
        };
    }
    println!("{}", machine());
    let mut suite = Suite::from_args();
    suite.group("Instructions per steady cycle, u64");
    let rows = [100, 1_000, WAITING, 100_000]
        .map(|waiting| row::<u64>(&mut suite, &cases::<u64>(), waiting));
    suite.group("Instructions per steady cycle, String");
    let row_of_strings = row::<String>(&mut suite, &cases::<String>(), WAITING);
    suite.group("Instructions per steady cycle in 1,000 groups, u64");
    let rows_of_groups = [100, WAITING].map(|waiting| row::<u64>(&mut suite, &GROUPED, waiting));
    suite.group("Instructions per fail, wait, get, forget, done, u64");
    let rows_of_failing = [1, WAITING].map(|waiting| row::<u64>(&mut suite, &FAILING, waiting));
    suite.group("Instructions per add, take, success of a worker alone, u64");
    let row_of_taking = row::<u64>(&mut suite, &TAKING, WAITING);
    suite.group("Instructions per wait for an event, u64");
    let row_of_suspending = row::<u64>(&mut suite, &SUSPENDING, WAITING);
    let mut all = rows
        .into_iter()
        .chain([row_of_strings])
        .chain(rows_of_groups)
        .chain(rows_of_failing)
        .chain([row_of_taking, row_of_suspending]);
    if all.any(|row| row.is_none()) {
        return no_valgrind();
    }
    suite.finish()
}

fn no_valgrind() -> ExitCode {
    eprintln!("valgrind is needed to count instructions, and did not run");
    ExitCode::FAILURE
}

/// What `examples/bench/bounds.md` has bounds for, each with its loop taken off. `None` if
/// instructions cannot be counted.
fn bounded() -> Option<()> {
    let strings = count::<String>("requeue", WAITING)? - count::<String>(LOOP, WAITING)?;
    let mut rows = vec![("steady cycle, `String`", strings)];
    let words = [
        (LOOP, "requeue", "steady cycle, `u64`"),
        (LOOP, "1,000 groups", "steady cycle in 1,000 groups, `u64`"),
        (LOOP, "fails, requeue", "fail, wait, get, forget, done"),
        (LOOP_ALONE, "take, suspend, resume", "take, suspend, resume"),
        ("no queue", "threads, get", "threads, get"),
        ("no queue", "threads, next", "threads, next"),
        ("no queue", "Tokio, get", "Tokio, get"),
        ("no queue", "Tokio, next", "Tokio, next"),
    ];
    let mut idle = ("", 0.0);
    for (without, case, row) in words {
        if idle.0 != without {
            idle = (without, count::<u64>(without, WAITING)?);
        }
        rows.push((row, count::<u64>(case, WAITING)? - idle.1));
    }
    println!("| row | instructions |");
    for (row, count) in rows {
        println!("| {row} | {count:.0} |");
    }
    Some(())
}

/// A row of the table, if it is asked for. `None` if instructions cannot be counted.
fn row<K: Key>(suite: &mut Suite, cases: &[Case], waiting: usize) -> Option<()> {
    let work = format!("{waiting} waiting");
    if !suite.asks_for(&work) {
        return Some(());
    }
    let count = |(case, _): &Case| count::<K>(case, waiting);
    let (idle, rest) = cases.split_first()?;
    let idle = count(idle)?;
    let counts = rest.iter().map(count).collect::<Option<Vec<f64>>>()?;
    let mut line = format!("| {work} |");
    for ((name, _), with_loop) in rest.iter().zip(&counts) {
        let (own, first) = (with_loop - idle, counts[0] - idle);
        line += &format!(" {own:.0}");
        if own != first {
            line += &format!(" **{:.2}×**", own / first);
        }
        line += " |";
        suite.record(&work, waiting as u64, name, own, "instructions");
    }
    let mut columns: Vec<&str> = rest.iter().map(|(name, _)| *name).collect();
    columns.push("loop, taken off");
    suite.print(&columns, &format!("{line} {idle:.0} |"));
    Some(())
}

/// Instructions per operation of a case.
fn count<K: Key>(case: &str, waiting: usize) -> Option<f64> {
    let waiting = waiting.to_string();
    let of = |operations: u32| {
        instructions(&["--run", K::NAME, case, &waiting, &operations.to_string()])
    };
    let (once, twice) = (of(OPERATIONS)?, of(2 * OPERATIONS)?);
    Some(twice.saturating_sub(once) as f64 / f64::from(OPERATIONS))
}

/// Runs `count` cycles, after the same number to reach the steady state.
fn steady<K: Key, Q: Subject<K>>(subject: Q, keys: usize, count: u32) {
    let scale = Scale {
        keys,
        operations: 10_000,
    };
    let mut steady = Steady::set_up(subject, scale, SEED);
    let warm_up = steady.keys(scale.operations);
    steady.cycles(warm_up);
    // The number of keys that are made and dropped does not depend on the number of cycles.
    let mut keys: Vec<K> = Random::new(!SEED).keys(2 * OPERATIONS as usize);
    let rest = keys.split_off(count as usize);
    steady.cycles(keys);
    core::mem::forget(rest);
}

/// Runs `count` cycles through a deadline, after others that bring the queue into its steady state.
fn failing<Q: Subject<u64>>(subject: Q, keys: usize, count: u32) {
    let scale = Scale {
        keys,
        operations: 10_000,
    };
    let mut cycle = LimitedCycle::set_up(subject, scale, SEED);
    let mut random = Random::new(!SEED);
    cycle.cycles(random.keys(scale.operations));
    let mut keys: Vec<u64> = random.keys(2 * OPERATIONS as usize);
    let rest = keys.split_off(count as usize);
    cycle.cycles(keys);
    core::mem::forget(rest);
}

/// Runs a worker that adds and takes `count` keys.
fn taking(worker: impl FnOnce(Ready, &[u64]), waiting: usize, count: u32) {
    let mut random = Random::new(SEED);
    let queue = ready(waiting, &mut random);
    let keys: Vec<u64> = random.keys(2 * OPERATIONS as usize);
    worker(queue, &keys[..count as usize]);
}

/// Runs `count` cycles of a key that is taken, waits for an event, and runs again when it comes.
fn suspending(keys: usize, count: u32, suspends: bool) {
    let mut queue = ours::<u64, Fold>();
    let mut random = Random::new(SEED);
    let now = Instant::EPOCH;
    let _ = queue.at(now).add_many(random.keys(keys), |_| {});
    let action = match suspends {
        true => Action::Suspend(Duration::from_secs(60)),
        false => Action::Release,
    };
    for _ in 0..count {
        let Some(work) = queue.at(now).try_get() else {
            return;
        };
        black_box(queue.at(now).finish(work.ticket, action));
        let woken = match suspends {
            true => queue.at(now).resume(&work.key),
            false => queue.at(now).add(work.key).is_ok(),
        };
        black_box(woken);
        let _ = queue.at(now).close();
    }
}
