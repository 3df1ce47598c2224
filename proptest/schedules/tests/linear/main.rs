//! Calls of threads and of tasks at the same time, held against the model by `requeue_linear`,
//! under many schedules of each drawn program.
#![cfg(shuttle)]
#![allow(clippy::panic, reason = "a test that panics has failed")]

mod shared;

use std::sync::Arc;

use requeue_linear::{Shared, Trial, seeded_programs};
use requeue_schedules::{Tasks, Threads, Waits, explore_each};
use shuttle::future::block_on;
use shuttle::thread;

fn explore_programs<N: Waits, Q: Shared>() {
    explore_each::<N, _, _>("programs", seeded_programs, |program| {
        let trial = Arc::new(Trial::<Q>::new(program));
        let thread = |thread| {
            let trial = Arc::clone(&trial);
            thread::spawn(move || block_on(trial.run(thread)))
        };
        let threads: Vec<_> = (0..program.threads.len()).map(thread).collect();
        for thread in threads {
            let ended = thread.join();
            ended.unwrap_or_else(|_| panic!("{program}a thread has panicked"));
        }
        if let Err(chart) = block_on(trial.judge()) {
            panic!("{program}{chart}");
        }
    });
}

#[test]
fn threads() {
    explore_programs::<Threads, shared::Threads>();
}

#[test]
fn tasks() {
    explore_programs::<Tasks, shared::Tasks>();
}

#[test]
fn threads_with_a_full_queue() {
    explore_programs::<Threads, shared::FullThreads>();
}

#[test]
fn tasks_with_a_full_queue() {
    explore_programs::<Tasks, shared::FullTasks>();
}
