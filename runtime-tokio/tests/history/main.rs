//! Many tasks at once: producers, workers that fail, panic, are aborted or lose patience, and a
//! shutdown that meets all of them. What they did is held against what a queue promises.
//!
//! Every choice follows from a seed; on one thread with a paused clock so does the whole run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use requeue_test_tools::Dice;
use requeue_tokio::Drained;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use world::{World, dawdle};

const PRODUCERS: usize = 3;
/// So long a run may take before somebody has waited for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

async fn history(seed: u64) {
    let mut dice = Dice::new(seed);
    let world = World::new();
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let world = world.clone();
        tasks.spawn(async move {
            world.queue.drained().await;
            assert!(world.books.is_idle(), "drained too early");
        });
    }
    tasks.spawn(world.clone().employ(dice.another()));
    let mut producers = JoinSet::new();
    for _ in 0..PRODUCERS {
        producers.spawn(world.clone().produce(dice.another()));
    }
    let is_interrupted = dice.roll(2) == 0;
    if is_interrupted {
        tasks.spawn(world.clone().collect(dice.another()));
        dawdle(&mut dice, 150).await;
        for _ in 0..dice.roll(3) {
            tasks.spawn(world.clone().drain(dice.another()));
        }
        if dice.roll(2) == 0 {
            dawdle(&mut dice, 20).await;
            world.queue.shut_down();
        }
    } else {
        while let Some(produced) = producers.join_next().await {
            produced.unwrap();
        }
        world.settled().await;
    }
    assert_eq!(world.queue.drain().await, Drained::Complete);
    assert!(world.books.is_idle(), "drained too early");
    world.is_over.store(true, Ordering::SeqCst);
    for tasks in [&mut tasks, &mut producers] {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }
    for left in world.queue.leftovers() {
        world.books.leave(left.key);
    }
    world.books.assert_kept();
    assert!(world.queue.is_empty());
}

fn check(runtime: impl Fn() -> Runtime, seeds: u64) {
    for seed in 0..seeds {
        let history = async { tokio::time::timeout(PATIENCE, history(seed)).await };
        let outcome = runtime().block_on(history);
        assert!(outcome.is_ok(), "seed {seed}: somebody waits for nothing");
    }
    println!("{seeds} histories kept every promise");
}

#[test]
fn histories_on_one_thread_keep_every_promise() {
    let runtime = || {
        let mut builder = Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    check(runtime, 300);
}

#[test]
fn histories_on_several_threads_keep_every_promise() {
    let runtime = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(4).enable_time().build().unwrap()
    };
    check(runtime, 60);
}
