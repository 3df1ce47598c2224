//! Keys that only one replica knows of.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::Ordering;
use std::time::{Duration, SystemTime};

use requeue_shards::{Builder, Engine, Mark, Shard};
use requeue_tokio::CancellationToken;
use requeue_tokio::{Action, Workers};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};

use crate::replica::{Local, Log, Replica, SET, builder, queue, run_member, start};
use crate::switch::{Reach, Switch};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// A wall clock that follows virtual time, and jumps.
#[derive(Clone)]
struct Wall {
    begun: Instant,
    offset: Arc<Mutex<Duration>>,
}

impl Wall {
    fn new() -> Self {
        Self {
            begun: Instant::now(),
            offset: Arc::new(Mutex::new(1_000_000 * SECOND)),
        }
    }

    fn set(&self, builder: Builder<Switch>) -> Builder<Switch> {
        let wall = self.clone();
        builder.marks(true).wall_clock(move || {
            let offset = *wall.offset.lock().unwrap();
            SystemTime::UNIX_EPOCH + offset + wall.begun.elapsed()
        })
    }
}

/// A single member, which has taken all shards and runs marked keys.
async fn alone(run: Duration) -> (Switch, Log, Wall, Replica) {
    let (engine, log, wall) = (Switch::default(), Log::default(), Wall::new());
    let first = wall.set(builder(&engine, "first"));
    let first = start(first, "first", &log, &[], run).await;
    sleep(SECOND).await;
    (engine, log, wall, first)
}

async fn stored(engine: &Switch) -> Vec<Mark> {
    let mut stored = Vec::new();
    for shard in (0..16).map(Shard) {
        let (sender, mut marks) = mpsc::channel(100);
        let memory = engine.memory();
        let follow = memory.follow_marks(SET, shard, &sender);
        let _ = timeout(Duration::ZERO, follow).await;
        while let Ok(mark) = marks.try_recv() {
            stored.push(mark);
        }
    }
    stored
}

fn keys(log: &Log) -> Vec<String> {
    log.lock()
        .unwrap()
        .iter()
        .map(|run| run.key.clone())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn a_mark_runs_at_its_owner_and_is_removed_by_success() {
    let (engine, log, wall) = (Switch::default(), Log::default(), Wall::new());
    // A producer that does not join.
    let producer = wall.set(builder(&engine, "producer")).build();
    let first = start(
        wall.set(builder(&engine, "first")),
        "first",
        &log,
        &[],
        SECOND,
    )
    .await;
    let second = start(
        wall.set(builder(&engine.another(), "second")),
        "second",
        &log,
        &[],
        SECOND,
    )
    .await;
    sleep(SECOND).await;
    producer
        .mark_many(&["a", "b", "c", "d"].map(String::from))
        .await
        .unwrap();
    sleep(500 * MS).await;
    assert_eq!(stored(&engine).await.len(), 4, "they stay while they run");
    sleep(SECOND).await;
    assert_eq!(stored(&engine).await, []);
    let log = log.lock().unwrap();
    assert_eq!(log.len(), 4);
    for run in log.iter() {
        let member = if run.replica == "first" {
            &first
        } else {
            &second
        };
        assert!(member.member.owns(&run.key), "{run:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_mark_during_the_run_makes_another_run() {
    let (engine, log, _, first) = alone(SECOND).await;
    let (shards, key) = (first.member.shards(), String::from("a"));
    shards.mark(&key).await.unwrap();
    sleep(500 * MS).await;
    shards.mark(&key).await.unwrap();
    sleep(SECOND).await;
    assert_eq!(
        stored(&engine).await.len(),
        1,
        "the first run has not removed the second mark"
    );
    sleep(SECOND).await;
    assert_eq!(keys(&log), ["a", "a"]);
    assert_eq!(stored(&engine).await, []);
}

#[tokio::test(start_paused = true)]
async fn of_two_delays_the_one_that_ends_first_counts() {
    let (_, log, _, first) = alone(MS).await;
    let (shards, key) = (first.member.shards(), String::from("a"));
    for delay in [50, 10, 30] {
        shards.mark_after(&key, delay * SECOND).await.unwrap();
    }
    sleep(9 * SECOND).await;
    assert_eq!(keys(&log).len(), 0);
    sleep(2 * SECOND).await;
    assert_eq!(keys(&log).len(), 1);
    sleep(60 * SECOND).await;
    assert_eq!(keys(&log).len(), 1, "it is one mark");
}

#[tokio::test(start_paused = true)]
async fn a_mark_survives_its_owner() {
    let (engine, log, wall, first) = alone(100 * SECOND).await;
    let shards = first.member.shards();
    shards.mark(&String::from("a")).await.unwrap();
    shards
        .mark_after(&String::from("b"), 40 * SECOND)
        .await
        .unwrap();
    sleep(SECOND).await;
    first.process.abort();
    let marked = Instant::now();
    let second = start(
        wall.set(builder(&engine, "second")),
        "second",
        &log,
        &[],
        MS,
    )
    .await;
    sleep(30 * SECOND).await;
    assert_eq!(keys(&log), ["a", "a"]);
    sleep(10 * SECOND).await;
    assert_eq!(keys(&log), ["a", "a", "b"]);
    let begun = log.lock().unwrap()[2].begin;
    let waited = begun.duration_since(marked) + SECOND;
    assert!(waited >= 39 * SECOND && waited <= 41 * SECOND, "{waited:?}");
    assert_eq!(second.member.counters().marks_unreadable, 0);
}

/// The wall clock only decides when a delayed mark runs.
#[tokio::test(start_paused = true)]
async fn a_wall_clock_that_jumps_loses_nothing() {
    let (engine, log, wall, first) = alone(MS).await;
    let shards = first.member.shards();
    *wall.offset.lock().unwrap() = Duration::ZERO;
    shards.mark(&String::from("a")).await.unwrap();
    shards
        .mark_after(&String::from("b"), 10 * SECOND)
        .await
        .unwrap();
    shards
        .mark_after(&String::from("c"), Duration::MAX)
        .await
        .unwrap();
    *wall.offset.lock().unwrap() = 2_000_000 * SECOND;
    sleep(12 * SECOND).await;
    let mut keys = keys(&log);
    keys.sort();
    assert_eq!(keys, ["a", "b"]);
    assert_eq!(first.member.counters().sessions_lost, 0);
    assert_eq!(first.owned("first"), 16);
    assert_eq!(stored(&engine).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn requeue_after_stores_the_delay_and_failures_keep_the_mark() {
    let (engine, wall) = (Switch::default(), Wall::new());
    let shards = wall.set(builder(&engine, "first")).build();
    let nothing = |_| async { Ok::<_, &str>([]) };
    let member: Local = shards.join(&queue(), nothing).await.unwrap();
    let ends = Arc::new(Mutex::new(vec![
        Ok(Action::Success),
        Ok(Action::RequeueAfter(20 * SECOND)),
        Err("it failed"),
    ]));
    let stop = CancellationToken::new();
    let token = stop.clone();
    let left = Arc::clone(&ends);
    let reconcile = move |_, _| {
        let end = left.lock().unwrap().pop().unwrap();
        async move { end }
    };
    let process = tokio::spawn(async move { member.run(Workers::new(1), token, reconcile).await });
    sleep(SECOND).await;
    shards.mark(&String::from("a")).await.unwrap();
    sleep(500 * MS).await;
    assert_eq!(ends.lock().unwrap().len(), 2);
    assert_eq!(
        stored(&engine).await[0].not_before,
        None,
        "it failed: it stays as it is"
    );
    sleep(SECOND).await;
    assert_eq!(ends.lock().unwrap().len(), 1);
    assert!(
        stored(&engine).await[0].not_before.is_some(),
        "the delay is stored"
    );
    sleep(18 * SECOND).await;
    assert_eq!(ends.lock().unwrap().len(), 1);
    sleep(3 * SECOND).await;
    assert_eq!(ends.lock().unwrap().len(), 0);
    assert_eq!(stored(&engine).await, []);
    stop.cancel();
    process.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_cannot_be_removed_is_worked_on_again() {
    let (engine, log, _, first) = alone(SECOND).await;
    first
        .member
        .shards()
        .mark(&String::from("a"))
        .await
        .unwrap();
    sleep(500 * MS).await;
    engine.set(Reach::Refused);
    sleep(SECOND).await;
    assert_eq!(stored(&engine).await.len(), 1);
    engine.set(Reach::Whole);
    sleep(4 * SECOND).await;
    assert_eq!(stored(&engine).await, []);
    assert_eq!(keys(&log), ["a", "a"]);
}

#[tokio::test(start_paused = true)]
async fn a_mark_that_is_no_key_stays_and_is_counted() {
    let (engine, log, wall) = (Switch::default(), Log::default(), Wall::new());
    let shards = wall.set(builder(&engine, "first")).build();
    let nothing = |_| async { Ok::<_, &str>([]) };
    let member: Local = shards.join(&queue(), nothing).await.unwrap();
    shards.mark(&vec![0xff_u8]).await.unwrap();
    let first = run_member(member, "first", &log, MS);
    sleep(SECOND).await;
    assert_eq!(first.member.counters().marks_unreadable, 1);
    assert_eq!(stored(&engine).await.len(), 1);
    assert_eq!(keys(&log).len(), 0);
}

/// If the reply to the removal of a mark is lost, the run is repeated, and finds no mark.
#[tokio::test(start_paused = true)]
async fn a_mark_that_has_ended_is_not_ended_by_every_run_of_its_key() {
    let (engine, log, _, first) = alone(MS).await;
    engine.set(Reach::Lost);
    let (shards, key) = (first.member.shards(), String::from("a"));
    shards.mark(&key).await.unwrap();
    sleep(500 * MS).await;
    assert_eq!(stored(&engine).await, []);
    engine.set(Reach::Whole);
    sleep(SECOND).await;
    assert_eq!(keys(&log), ["a", "a"], "it has run again");
    let ends = engine.ends.load(Ordering::Relaxed);
    for _ in 0..5 {
        first.member.add(key.clone()).unwrap();
        sleep(100 * MS).await;
    }
    assert_eq!(keys(&log).len(), 7);
    assert_eq!(engine.ends.load(Ordering::Relaxed), ends);
}

/// An earlier run for another reason does not replace the delayed one.
#[tokio::test(start_paused = true)]
async fn a_mark_with_a_time_stays_until_then_though_its_key_has_run() {
    let (engine, log, wall, first) = alone(MS).await;
    let (shards, key) = (first.member.shards(), String::from("a"));
    shards.mark_after(&key, 20 * SECOND).await.unwrap();
    sleep(SECOND).await;
    first.member.add(key).unwrap();
    sleep(SECOND).await;
    assert_eq!(keys(&log), ["a"]);
    first.process.abort();
    let second = wall.set(builder(&engine, "second"));
    let second = start(second, "second", &log, &[], MS).await;
    sleep(30 * SECOND).await;
    assert_eq!(keys(&log), ["a", "a"]);
    assert_eq!(stored(&engine).await, []);
    assert_eq!(second.member.counters().marks_unreadable, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_before_the_time_of_a_mark_can_give_it_an_earlier_one() {
    let (engine, wall) = (Switch::default(), Wall::new());
    let shards = wall.set(builder(&engine, "first")).build();
    let nothing = |_| async { Ok::<_, Infallible>([]) };
    let member: Local = shards.join(&queue(), nothing).await.unwrap();
    let delays = Arc::new(Mutex::new(vec![50 * SECOND, 20 * SECOND]));
    let left = Arc::clone(&delays);
    let reconcile = move |_, _| {
        let delay = left.lock().unwrap().pop();
        let end = delay.map_or(Action::Success, Action::RequeueAfter);
        async move { end }
    };
    let (running, stop) = (member.clone(), CancellationToken::new());
    let token = stop.clone();
    let process = tokio::spawn(async move { running.run(1, token, reconcile).await });
    sleep(SECOND).await;
    let key = String::from("a");
    shards.mark_after(&key, 100 * SECOND).await.unwrap();
    let later = stored(&engine).await[0].not_before;
    for added in 0..2 {
        member.add(key.clone()).unwrap();
        sleep(SECOND).await;
        let not_before = stored(&engine).await[0].not_before;
        assert!(not_before < later);
        assert_eq!(engine.ends.load(Ordering::Relaxed), 1, "{added}");
    }
    sleep(20 * SECOND).await;
    assert_eq!(stored(&engine).await, []);
    stop.cancel();
    process.await.unwrap().unwrap();
}

/// No owner would find the mark.
#[tokio::test(start_paused = true)]
async fn a_mark_by_another_number_of_shards_is_refused() {
    let (engine, log, wall, first) = alone(MS).await;
    let other = wall.set(builder(&engine, "producer")).count(8).build();
    let key = String::from("a");
    let error = other.mark(&key).await.unwrap_err();
    let stored = r#"the set "members" has 16 shards, not 8"#;
    assert_eq!(error.to_string(), stored);
    let same = wall.set(builder(&engine, "producer")).build();
    for _ in 0..2 {
        same.mark(&key).await.unwrap();
        sleep(SECOND).await;
    }
    assert_eq!(keys(&log), ["a", "a"]);
    assert_eq!(first.member.counters().marks_unreadable, 0);
}
