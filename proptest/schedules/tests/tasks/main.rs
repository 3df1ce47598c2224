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

type Scene = requeue_schedules::Scene<Tasks>;

/// A task, which awaits nothing but the queue.
fn task<T: 'static>(scene: &Scene, work: impl AsyncFnOnce(&Tasks) -> T + 'static) -> JoinHandle<T> {
    let queue = scene.queue.clone();
    spawn_local(curious(&scene.queue, async move { work(&queue).await }))
}

/// Tasks that each take a key, say which, and complete it; or that end with the queue.
fn getters(scene: &Scene, count: usize) -> Vec<JoinHandle<()>> {
    let getter = |_| {
        let taken = scene.teller();
        task(scene, async move |queue| {
            if let Ok(guard) = queue.get().await {
                taken.send(finish(guard)).unwrap();
            }
        })
    };
    (0..count).map(getter).collect()
}

fn finish(guard: Guard<u32, Plain, Exponential>) -> u32 {
    requeue_schedules::finish::<Tasks>(guard)
}

fn join<T>(tasks: impl IntoIterator<Item = JoinHandle<T>>) {
    for task in tasks {
        block_on(task).unwrap();
    }
}
