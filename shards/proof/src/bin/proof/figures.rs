//! Measures durations and rates in a world without other faults.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::stream::{self, StreamExt, TryStreamExt};
use requeue_shards::{Engine, Etcd, NewMark, Shard};
use requeue_shards_proof::history::{Event, History, RunId};
use tokio::time::sleep;

use crate::cluster::Cluster;
use crate::world::{SHARDS, TTL, World, connect};

/// A figure, its aim, and whether it meets the aim.
pub(crate) struct Figure {
    pub(crate) name: &'static str,
    pub(crate) value: String,
    pub(crate) aim: String,
    pub(crate) is_met: bool,
    /// Whether a busy machine also has to meet the aim.
    pub(crate) is_certain: bool,
}

impl Figure {
    fn within(name: &'static str, value: Duration, aim: Duration) -> Self {
        Self {
            name,
            value: format!("{:.3} s", value.as_secs_f64()),
            aim: format!("<= {:.3} s", aim.as_secs_f64()),
            is_met: value <= aim,
            is_certain: false,
        }
    }

    fn rate(name: &'static str, count: usize, took: Duration, aim: u32) -> Self {
        let rate = f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64();
        Self {
            name,
            value: format!("{rate:.0} puts/s"),
            aim: format!(">= {aim} puts/s"),
            is_met: rate >= f64::from(aim),
            is_certain: false,
        }
    }
}

/// Measures in a world with three nodes and three replicas.
pub(crate) async fn measure(world: &mut World) -> io::Result<Vec<Figure>> {
    sleep(Duration::from_secs(2)).await;
    let mut figures = vec![calls_per_key(world).await];
    figures.extend(kill(world).await?);
    figures.extend(leave(world).await?);
    figures.push(leader_dies(world).await?);
    Ok(figures)
}

async fn calls_per_key(world: &World) -> Figure {
    let before = (world.store.calls(), world.store.len());
    sleep(Duration::from_secs(3)).await;
    let calls = world.store.calls() - before.0;
    // A change, the beginning of its run and its end.
    let runs = (world.store.len() - before.1) / 3;
    Figure {
        name: "calls of etcd for keys without marks",
        value: format!("{calls} in {runs} runs"),
        aim: "0".to_owned(),
        is_met: calls == 0 && runs > 0,
        is_certain: true,
    }
}

/// The time from `kill -9` until each of its shards has run a key on another replica.
async fn kill(world: &mut World) -> io::Result<Vec<Figure>> {
    let shards = world.shards_of(0);
    let at = world.store.now();
    world.kill(0).await?;
    sleep(TTL + Duration::from_secs(2)).await;
    let history = world.store.history();
    let firsts = shards.iter().map(|shard| first_after(&history, *shard, at));
    let slowest = firsts
        .map(|first| first.map_or(Duration::MAX, |first| first - at))
        .max();
    world.begin(0)?;
    world.all_owned(Duration::from_secs(20)).await?;
    sleep(Duration::from_secs(2)).await;
    let aim = TTL + Duration::from_secs(1);
    let slowest = slowest.unwrap_or(Duration::MAX);
    Ok(vec![Figure::within(
        "kill -9: all its shards work again",
        slowest,
        aim,
    )])
}

/// The first run of a shard by a new fence.
fn first_after(history: &History, shard: u32, at: Duration) -> Option<Duration> {
    let mut known = Vec::new();
    for entry in &history.entries {
        let Event::Begun {
            shard: of, fence, ..
        } = &entry.event
        else {
            continue;
        };
        if *of == shard && entry.at <= at {
            known.push(*fence);
        } else if *of == shard && !known.contains(fence) {
            return Some(entry.at);
        }
    }
    None
}

/// The time from the last run of each shard to its first run on the next owner.
async fn leave(world: &mut World) -> io::Result<Vec<Figure>> {
    let shards = world.shards_of(1);
    let at = world.store.now();
    world.signal(1, "-TERM").await?;
    sleep(Duration::from_secs(3)).await;
    let history = world.store.history();
    let mut gaps: Vec<Duration> = shards
        .iter()
        .map(|shard| gap_after(&history, *shard, at).unwrap_or(Duration::MAX))
        .collect();
    gaps.sort_unstable();
    let last = gaps.last().copied().unwrap_or(Duration::MAX);
    let median = gaps.get(gaps.len() / 2).copied().unwrap_or(Duration::MAX);
    world.begin(1)?;
    world.all_owned(Duration::from_secs(20)).await?;
    sleep(Duration::from_secs(2)).await;
    let aim = Duration::from_millis(200);
    Ok(vec![
        Figure::within("SIGTERM: a shard's gap, median", median, aim),
        // With some 20 shards, the 99th percentile is the longest.
        Figure::within("SIGTERM: a shard's gap, longest", last, aim),
    ])
}

fn gap_after(history: &History, shard: u32, at: Duration) -> Option<Duration> {
    let next = first_after(history, shard, at)?;
    let mut open: BTreeMap<RunId, u32> = BTreeMap::new();
    let mut end = Duration::ZERO;
    for entry in history.entries.iter().filter(|entry| entry.at <= next) {
        match &entry.event {
            Event::Begun { run, shard, .. } => drop(open.insert(*run, *shard)),
            Event::Accepted { run, .. } | Event::Refused { run } | Event::Dropped { run } => {
                if open.remove(run) == Some(shard) {
                    end = entry.at;
                }
            }
            Event::Changed { .. } => {}
        }
    }
    Some(next - end)
}

async fn leader_dies(world: &mut World) -> io::Result<Figure> {
    let before = world.view.borrow().owners.clone();
    let leader = world.cluster.leader().await;
    let leader = leader.ok_or_else(|| io::Error::other("etcd has no leader"))?;
    world.cluster.kill(leader).await?;
    sleep(2 * TTL).await;
    // As etcd shows it now.
    let etcd = connect(&world.cluster).await?;
    let set = requeue_shards::Shards::builder(etcd, "proof").count(SHARDS.get());
    let status = set.build().status().await.map_err(io::Error::other)?;
    let now = (0..).map(Shard).zip(status.shards);
    let moved = now.filter(|(shard, now)| {
        now.as_ref().map(|owner| owner.fence) != before.get(shard).map(|owner| owner.fence)
    });
    let moved = moved.count();
    world.cluster.begin(leader)?;
    Ok(Figure {
        name: "kill -9 of etcd's leader: shards that moved",
        value: moved.to_string(),
        aim: "0".to_owned(),
        is_met: moved == 0,
        is_certain: true,
    })
}

/// How many marks three nodes store per second, without other work.
pub(crate) async fn marks(program: &Path, folder: &Path) -> io::Result<Vec<Figure>> {
    const SINGLE: usize = 20_000;
    const BATCHED: usize = 100_000;
    let cluster = Cluster::start(program, &folder.join("etcd"), 3).await?;
    let etcd = connect(&cluster).await?;
    let mark = |number: usize| {
        let shard = Shard(u32::try_from(number).unwrap_or(0) % SHARDS);
        NewMark::new(shard, format!("key-{number}").into_bytes())
    };
    let start = Instant::now();
    put(&etcd, (0..SINGLE).map(|number| vec![mark(number)]), 256).await?;
    let single = start.elapsed();
    let numbers: Vec<usize> = (0..BATCHED).collect();
    let batches = numbers.chunks(1000);
    let batches = batches.map(|numbers| numbers.iter().map(|number| mark(*number)).collect());
    let start = Instant::now();
    put(&etcd, batches, 4).await?;
    let batched = start.elapsed();
    Ok(vec![
        Figure::rate("marks, three nodes, 256 at once", SINGLE, single, 8_000),
        Figure::rate("marks, three nodes, batched", BATCHED, batched, 30_000),
    ])
}

async fn put(
    etcd: &Etcd,
    calls: impl Iterator<Item = Vec<NewMark>>,
    at_once: usize,
) -> io::Result<()> {
    let puts =
        stream::iter(calls).map(|marks| async move { etcd.put_marks("marks", &marks).await });
    let done = puts.buffer_unordered(at_once).try_collect::<()>();
    done.await.map_err(io::Error::other)
}
