//! Calls of threads and of tasks at the same time: under many schedules of each drawn program, some
//! order of the calls explains every answer.
//!
//! A shared queue is **linearizable** if each call takes effect at one point between its beginning
//! and its end: if one thread made the calls in the order of these points, it would get the same
//! answers. A lock promises this. It fails once a call looks at something before it takes the lock,
//! or does its work under two locks.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod search;
mod shared;
mod trial;

use std::sync::Arc;

use requeue_schedules::{Tasks, Threads, Waits, explore_each};
use shuttle::future::block_on;
use shuttle::thread;

use crate::trial::{Program, Shared, Trial, programs};

fn explore_programs<N: Waits, Q: Shared>() {
    explore_each::<N, _, _>("programs", programs, |program: &Arc<Program>| {
        let trial = Arc::new(Trial::<Q>::new(program));
        let threads = program.0.len();
        let thread = |thread| {
            let (trial, program) = (Arc::clone(&trial), Arc::clone(program));
            thread::spawn(move || block_on(trial.run(thread, &program.0[thread])))
        };
        let running: Vec<_> = (0..threads).map(thread).collect();
        for thread in running {
            let ended = thread.join();
            ended.unwrap_or_else(|_| panic!("{program}a thread has panicked"));
        }
        if let Err(report) = block_on(trial.judge(threads)) {
            panic!("{program}{report}");
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
