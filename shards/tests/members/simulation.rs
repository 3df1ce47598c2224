//! Replicas on virtual time, with an engine in memory at the end of links that delay, cut and lose,
//! and processes that are killed, stopped and ended. A seed gives the same history each time:
//!
//! `SEED=17 cargo test -p requeue-shards --test members simulation -- --nocapture`

use std::env;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use requeue_shards::{Memory, Shards};
use tokio::time::sleep;

mod link;
mod store;
mod world;

use link::Plant;
use world::World;

const SET: &str = "simulation";
const COUNT: u32 = 8;
const TTL: Duration = Duration::from_secs(5);
const SEEDS: u64 = 2000;

/// The result of one history.
#[derive(Debug, Default)]
struct Report {
    wrong: Vec<String>,
    refused: u64,
}

/// Runs one seed: a minute of changes and faults, then half a minute without faults. After that all
/// work has to be done.
fn live(seed: u64, plant: Plant) -> Report {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut world = World::new(seed, plant);
        for _ in 0..3 {
            world.start();
        }
        let mut fault_in = 20_u32;
        for _ in 0..600 {
            sleep(Duration::from_millis(100)).await;
            if world.rng.u32(0..3) == 0 {
                world.change();
            }
            fault_in -= 1;
            if fault_in == 0 {
                world.disturb();
                fault_in = world.rng.u32(1..60);
            }
        }
        world.heal();
        sleep(4 * TTL).await;
        world.heal();
        sleep(2 * TTL).await;
        let mut wrong = world.store.review();
        let refused = world.store.refused();
        let memory = world.memory.clone();
        wrong.extend(unowned(&memory).await);
        wrong.extend(world.finish().await);
        Report { wrong, refused }
    })
}

/// Reports shards without an owner although there are members.
async fn unowned(memory: &Memory) -> Vec<String> {
    let shards = Shards::builder(memory.clone(), SET).count(COUNT).build();
    let status = shards.status().await.unwrap();
    let free = status
        .free()
        .map(|shard| format!("shard {shard} has no owner:\n{status}"));
    free.collect()
}

#[test]
fn nothing_is_lost_and_nothing_runs_twice_whatever_happens() {
    let seeds = match env::var("SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 0..SEEDS,
    };
    let (next, refused) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let live_on = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if !seeds.contains(&seed) {
                return;
            }
            let report = live(seed, Plant::Nothing);
            assert!(report.wrong.is_empty(), "SEED={seed}: {:#?}", report.wrong);
            refused.fetch_add(report.refused, Ordering::Relaxed);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(live_on);
        }
    });
    println!("{} stale writes were refused", refused.into_inner());
}

/// How many seeds it takes to find a planted bug.
fn found_after(plant: Plant, seeds: u64) -> Option<u64> {
    (0..seeds).find(|seed| !live(*seed, plant).wrong.is_empty())
}

#[test]
fn defects_are_found() {
    let plants = [
        Plant::EndsEarly,
        Plant::OneFence,
        Plant::EndsAnyMark,
        Plant::FenceUnchecked,
        Plant::NoDrain,
    ];
    for plant in plants {
        let found = found_after(plant, 300);
        println!("{plant:?} is found by seed {found:?}");
        assert!(found.is_some(), "{plant:?} is not found");
    }
}
