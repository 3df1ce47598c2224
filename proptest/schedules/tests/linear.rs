//! Calls of threads and of tasks at the same time, held against the model as in
//! `requeue_proptest::linear`, under many schedules of each drawn program.
#![cfg(shuttle)]
#![allow(clippy::panic, reason = "a test that panics has failed")]

use std::time::Duration;

use requeue_proptest::linear::{
    Answer, Concurrent, Op, Runs, SharedTasks, SharedThreads, Trial, Work, seeded_programs,
};
use requeue_proptest::subject::Setup;
use requeue_schedules::{Tasks, Threads, Waits, explore_each};
use shuttle::future::block_on;
use shuttle::thread;

/// One of the queues that programs run on, where shuttle says who goes on.
struct Scheduled<Q>(Q);

impl<Q: Concurrent> Concurrent for Scheduled<Q> {
    type Guard<'q> = Q::Guard<'q>;
    const TICK: Duration = Q::TICK;
    const MOVES_ITS_CLOCK: bool = Q::MOVES_ITS_CLOCK;
    const GETS_MANY: bool = Q::GETS_MANY;

    fn new(setup: &Setup) -> Self {
        Self(Q::new(setup))
    }

    fn capacity(&self) -> Option<usize> {
        self.0.capacity()
    }

    async fn perform<'q>(&'q self, op: &Op, runs: &mut Runs<Self::Guard<'q>>) -> Answer {
        self.0.perform(op, runs).await
    }

    fn employ(work: Work<Self>) {
        thread::spawn(move || block_on(work.run()));
    }

    async fn pause() {
        thread::yield_now();
    }

    fn assert_valid(&self) {
        self.0.assert_valid();
    }
}

fn explore_programs<N: Waits, Q: Concurrent>() {
    let draw = |seed, count| seeded_programs(Q::TICK, seed, count);
    explore_each::<N, _, _>("programs", draw, |program| {
        let trial = Trial::<Scheduled<Q>>::new(program);
        let thread = |thread| {
            let work = trial.work(thread);
            thread::spawn(move || block_on(work.run()))
        };
        let threads: Vec<_> = (0..program.threads.len()).map(thread).collect();
        for thread in threads {
            thread
                .join()
                .unwrap_or_else(|_| panic!("a thread has panicked"));
        }
        if let Err(story) = trial.judge() {
            panic!("{program}{story}");
        }
    });
}

#[test]
fn threads() {
    explore_programs::<Threads, SharedThreads>();
}

#[test]
fn tasks() {
    explore_programs::<Tasks, SharedTasks>();
}
