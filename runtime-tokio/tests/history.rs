//! Many tasks at once: producers, workers that fail, panic, are aborted or time out, and a
//! shutdown that meets all of them. What they did is checked against what a queue promises.
//!
//! Every choice follows from a seed; on one thread with a paused clock so does the whole run.

mod world;

use std::sync::atomic::Ordering;
use std::time::Duration;

use fastrand::Rng;
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use world::{World, dawdle};

const PRODUCERS: usize = 3;
/// How long a history may take before a call waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

async fn history(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let world = World::new();
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let world = world.clone();
        tasks.spawn(async move {
            world.queue.wait_drained().await;
            assert!(world.ledger.is_idle(), "drained too early");
        });
    }
    tasks.spawn(world.clone().employ(rng.fork()));
    let mut producers = JoinSet::new();
    for _ in 0..PRODUCERS {
        producers.spawn(world.clone().produce(rng.fork()));
    }
    let is_interrupted = rng.u64(..2) == 0;
    if is_interrupted {
        tasks.spawn(world.clone().collect(rng.fork()));
        dawdle(&mut rng, 150).await;
        for _ in 0..rng.u64(..3) {
            tasks.spawn(world.clone().drain(rng.fork()));
        }
        if rng.u64(..2) == 0 {
            dawdle(&mut rng, 20).await;
            world.queue.shut_down();
        }
    } else {
        while let Some(produced) = producers.join_next().await {
            produced.unwrap();
        }
        world.settled().await;
    }
    assert_eq!(world.queue.drain().await, Ok(()));
    assert!(world.ledger.is_idle(), "drained too early");
    world.is_over.store(true, Ordering::SeqCst);
    for tasks in [&mut tasks, &mut producers] {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }
    for left in world.queue.leftovers() {
        world.ledger.leave(left.key);
    }
    world.ledger.assert_kept();
    assert!(world.queue.is_empty());
}

fn check(runtime: impl Fn() -> Runtime, seeds: u64) {
    for seed in 0..seeds {
        let history = async { tokio::time::timeout(PATIENCE, history(seed)).await };
        let outcome = runtime().block_on(history);
        assert!(outcome.is_ok(), "seed {seed}: a call waits in vain");
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
