//! What only tasks can do. shuttle polls them: each is a thread of its schedules, and may be
//! aborted between any two polls.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod dropped;
mod run;

use requeue_schedules::{Tasks, curious};
use requeue_tokio::Guard;
use requeue_tokio::limiter::Exponential;
use requeue_tokio::priority::Plain;
use shuttle::future::{JoinHandle, block_on, spawn_local};
use shuttle::sync::mpsc::{Receiver, Sender, channel};

/// A task, which awaits nothing but the queue.
fn task<T: 'static>(queue: &Tasks, work: impl AsyncFnOnce(&Tasks) -> T + 'static) -> JoinHandle<T> {
    let waiting = queue.clone();
    spawn_local(curious(queue, async move { work(&waiting).await }))
}

fn getter(queue: &Tasks, count: usize, taken: &Sender<u32>) -> JoinHandle<()> {
    let taken = taken.clone();
    task(queue, async move |queue| {
        for _ in 0..count {
            if let Ok(guard) = queue.get().await {
                taken.send(finish(guard)).unwrap();
            }
        }
    })
}

fn getters(queue: &Tasks, getters: usize, count: usize) -> (Receiver<u32>, Vec<JoinHandle<()>>) {
    let (sender, receiver) = channel();
    let tasks = (0..getters).map(|_| getter(queue, count, &sender));
    (receiver, tasks.collect())
}

fn finish(guard: Guard<u32, Plain, Exponential>) -> u32 {
    requeue_schedules::finish::<Tasks>(guard)
}

fn join<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) {
    for task in tasks {
        block_on(task).unwrap();
    }
}
