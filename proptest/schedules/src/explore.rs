//! Running what is drawn under many schedules.

use std::env;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::thread::panicking;
use std::time::Duration;

use requeue_interrupts::interrupt_with;
use requeue_proptest::proptest::prelude::*;
use requeue_proptest::proptest::strategy::ValueTree;
use requeue_proptest::proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use shuttle::future::spawn_local;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Schedule, Scheduler, Task, TaskId};
use shuttle::{Config, Runner, thread};

use crate::runtimes::within_tokio;

/// Runs a scenario for each of many programs, which are drawn of a seed, under drawn schedules. In
/// some of them, each thread is equally likely to be next. In the others, threads have priorities
/// that rarely change: this finds what needs a long delay at a bad moment. The thread that calls
/// the scenario runs only while no other can: so it knows when nothing moves any more.
///
/// # Panics
///
/// If a schedule fails: shuttle prints it.
pub fn explore<P: fmt::Debug + Send + Sync + 'static>(
    name: &str,
    programs: impl Strategy<Value = P>,
    scenario: fn(&P),
) {
    let number = |name: &str| env::var(name).ok()?.parse::<u64>().ok();
    let seed = number("SCHEDULES_SEED").unwrap_or(SEED);
    let factor = number("SCHEDULES").unwrap_or(1) as usize;
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(ProptestConfig::default(), rng);
    // Between two critical sections of a microcontroller another task can come first.
    interrupt_with(|| {
        if !panicking() {
            thread::sleep(Duration::ZERO);
        }
    });
    let mut schedules = 0;
    for _ in 0..PROGRAMS * factor {
        let program = Arc::new(programs.new_tree(&mut runner).unwrap().current());
        let played = Arc::clone(&program);
        let scenario = move || scenario(&played);
        let tried = catch_unwind(AssertUnwindSafe(|| {
            within_tokio(|| {
                let scheduler = RandomScheduler::new_from_seed(seed, UNIFORM);
                schedules += run(scheduler, scenario.clone());
                let scheduler = PctScheduler::new_from_seed(seed, CHANGES + 1, BY_PRIORITY);
                schedules += run(scheduler, scenario);
            });
        }));
        if let Err(panic) = tried {
            println!("schedules: {name}, SCHEDULES_SEED={seed}, has failed:\n{program:?}");
            resume_unwind(panic);
        }
    }
    println!("schedules: {name}: {schedules}, seed {seed}");
}

fn run(scheduler: impl Scheduler + 'static, scenario: impl Fn() + Send + Sync + 'static) -> usize {
    let mut config = Config::new();
    // Tokio's runtime needs more than shuttle's default.
    config.stack_size = STACK_BYTES;
    Runner::new(FirstIsLast(scheduler), config).run(scenario)
}

const SEED: u64 = 0x7265_7175_6575_6521;
/// How many programs there are, and how many schedules of each.
const PROGRAMS: usize = 600;
const UNIFORM: usize = 30;
const BY_PRIORITY: usize = 10;
/// How many times the priorities of a schedule change.
const CHANGES: usize = 2;
const STACK_BYTES: usize = 256 * 1024;

/// Lets the first thread run only while no other can.
struct FirstIsLast<S>(S);

impl<S: Scheduler> Scheduler for FirstIsLast<S> {
    fn new_execution(&mut self) -> Option<Schedule> {
        self.0.new_execution()
    }

    fn next_task(
        &mut self,
        runnable: &[&Task],
        current: Option<TaskId>,
        is_yielding: bool,
    ) -> Option<TaskId> {
        let first = TaskId::from(0);
        let others: Vec<&Task> = runnable
            .iter()
            .copied()
            .filter(|it| it.id() != first)
            .collect();
        let chosen = if others.is_empty() { runnable } else { &others };
        self.0.next_task(chosen, current, is_yielding)
    }

    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
}

/// Begins threads, all of which may be the first to run. Returns once they have ended, or sleep.
pub fn begin<F: Future<Output = ()> + 'static>(threads: Vec<F>) {
    spawn_local(async move {
        for thread in threads {
            spawn_local(thread);
        }
    });
    quiet();
}

/// Lets every other thread run until it has ended, or sleeps: for the first thread.
pub fn quiet() {
    thread::yield_now();
}
