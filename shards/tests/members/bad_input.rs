//! Unreachable engines, wrong credentials, other counts, taken names, failing sources.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use requeue_shards::{Engine, EngineError, Memory, Shard, Shards, Taken};
use requeue_tokio::AddOptions;
use tokio::time::{Instant, sleep};

use crate::replica::{Local, Log, SET, TTL, alone, builder, queue, run_member, start};
use crate::switch::{Reach, Switch};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

/// Gives an owned shard to a member that does nothing.
pub(crate) async fn steal(engine: &Memory, shard: Shard) {
    let thief = engine.join(SET, "thief", 100 * SECOND).await.unwrap();
    let shards = Shards::builder(engine.clone(), SET).build();
    let status = shards.status().await.unwrap();
    let place = usize::try_from(shard.0).unwrap();
    let owner = status.shards[place].clone().unwrap();
    engine.release(&thief, shard, owner.fence).await.unwrap();
    assert!(engine.claim(&thief, shard).await.unwrap() > Some(owner.fence));
}

async fn nothing(_: Taken) -> Result<[String; 0], Infallible> {
    Ok([])
}

async fn join(engine: &Switch, name: &str) -> Result<Local, EngineError> {
    builder(engine, name).build().join(&queue(), nothing).await
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_is_out_of_reach_at_the_start_is_named_in_time() {
    for (reach, why) in [(Reach::Silent, "no reply"), (Reach::Refused, "refused")] {
        let engine = Switch::default();
        engine.set(reach);
        let begun = Instant::now();
        let error = join(&engine, "first").await.unwrap_err();
        assert!(matches!(error, EngineError::Unreachable(_)), "{error:?}");
        assert!(error.to_string().contains(why), "{error}");
        assert!(begun.elapsed() <= 3 * TTL);
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_credentials_are_named_at_once() {
    let engine = Switch::default();
    engine.set(Reach::Denied);
    let begun = Instant::now();
    let error = join(&engine, "first").await.unwrap_err();
    assert!(matches!(error, EngineError::Denied(_)), "{error:?}");
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_are_withdrawn_end_the_run_once_its_membership_has_ended() {
    let (engine, _, first) = alone(&["a"], MS).await;
    engine.set(Reach::Denied);
    let error = first.process.await.unwrap().unwrap_err();
    assert!(matches!(error, EngineError::Denied(_)), "{error:?}");
    assert!(first.member.queue().is_shutting_down());
}

#[tokio::test(start_paused = true)]
async fn another_number_of_shards_is_refused() {
    let engine = Switch::default();
    let _first = join(&engine, "first").await.unwrap();
    let shards = builder(&engine, "second").count(17).build();
    let error = shards.join(&queue(), nothing).await.unwrap_err();
    let stored = r#"the set "members" has 16 shards, not 17"#;
    assert_eq!(error.to_string(), stored);
}

#[tokio::test(start_paused = true)]
async fn of_two_members_of_one_name_the_second_is_refused_while_the_first_lives() {
    let (engine, log) = (Switch::default(), Log::default());
    let first = start(builder(&engine, "first"), "first", &log, &[], MS).await;
    let error = join(&engine, "first").await.unwrap_err();
    assert!(matches!(error, EngineError::NameTaken { .. }), "{error:?}");
    assert_eq!(first.owned("first"), 16);

    // A killed member is replaced by another one of the same name, within the TTL.
    first.process.abort();
    let begun = Instant::now();
    let _second = join(&engine, "first").await.unwrap();
    assert!(begun.elapsed() <= 2 * TTL, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_relist_that_fails_panics_or_never_ends_is_repeated() {
    let (engine, log) = (Switch::default(), Log::default());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let relist = move |_| {
        let call = counted.fetch_add(1, Ordering::Relaxed);
        async move {
            match call {
                0 => Err("the source has failed"),
                1 => panic!("the source has a defect"),
                2 => pending().await,
                _ => Ok([String::from("a")]),
            }
        }
    };
    let limit = 5 * SECOND;
    let shards = builder(&engine, "first")
        .count(1)
        .relist_limit(limit)
        .build();
    let member = shards.join(&queue(), relist).await.unwrap();
    let first = run_member(member, "first", &log, MS);
    sleep(SECOND).await;
    assert_eq!(first.member.counters().relists_failed, 2);
    // Work continues meanwhile.
    assert!(first.member.add(String::from("b")).unwrap().is_some());
    sleep(2 * limit).await;
    let counters = first.member.counters();
    assert_eq!((counters.relists_failed, counters.relisted), (3, 1));
    let keys: Vec<String> = log
        .lock()
        .unwrap()
        .iter()
        .map(|run| run.key.clone())
        .collect();
    assert_eq!(keys, ["b", "a"]);
}

#[tokio::test(start_paused = true)]
async fn relisted_keys_of_other_shards_are_passed_over_and_new_keys_go_first() {
    let engine = Switch::default();
    let listed = (0..100).map(|number| format!("old-{number}"));
    let listed: Vec<String> = listed.collect();
    let relist = move |_| {
        let listed = listed.clone();
        async { Ok::<_, Infallible>(listed) }
    };
    let member = builder(&engine, "first")
        .build()
        .join(&queue(), relist)
        .await
        .unwrap();
    // There are no workers, so nothing runs.
    let stop = requeue_tokio::CancellationToken::new();
    let (running, token) = (member.clone(), stop.clone());
    let process = tokio::spawn(async move {
        let concurrency = requeue_tokio::Concurrency::new(0);
        let workers = requeue_tokio::Workers::new(0).concurrency(&concurrency);
        let reconcile = |_, _| async { requeue_tokio::Action::Success };
        running.run(workers, token, reconcile).await
    });
    sleep(SECOND).await;
    assert_eq!(
        member.queue().len(),
        100,
        "each once, although every shard lists all"
    );
    assert!(member.add(String::from("new")).unwrap().is_some());
    let next = member.queue().get().await.unwrap();
    assert_eq!(*next, "new");
    next.success();
    stop.cancel();
    process.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_can_list_again() {
    let (_, log, first) = alone(&["a"], MS).await;
    assert_eq!(log.lock().unwrap().len(), 1);
    first.member.relist();
    sleep(SECOND).await;
    assert_eq!(log.lock().unwrap().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_queue_without_levels_or_that_is_shut_down_is_one_too() {
    let engine = Switch::default();
    let queue = requeue_tokio::WorkQueue::new();
    let member = builder(&engine, "first")
        .build()
        .join(&queue, nothing)
        .await
        .unwrap();
    let stop = requeue_tokio::CancellationToken::new();
    let running = member.clone();
    let process = tokio::spawn(async move {
        let reconcile = |_, _| async { requeue_tokio::Action::Success };
        running.run(1, stop, reconcile).await
    });
    sleep(SECOND).await;
    let later = AddOptions {
        after: Some(SECOND),
        ..AddOptions::new()
    };
    assert!(member.add(String::from("a")).unwrap().is_some());
    assert!(member.add_with(String::from("b"), later).unwrap().is_some());
    queue.shut_down();
    process.await.unwrap().unwrap();
    let status = member.shards().status().await.unwrap();
    assert_eq!(
        status.free().count(),
        16,
        "the end of the queue ends the membership"
    );
    assert!(status.members.is_empty());
}

#[tokio::test(start_paused = true)]
async fn limits_may_be_without_end() {
    let (engine, log) = (Switch::default(), Log::default());
    let endless = builder(&engine, "first")
        .ttl(Duration::MAX)
        .drain_timeout(Duration::MAX)
        .relist_limit(Duration::MAX);
    let first = start(endless, "first", &log, &["a"], SECOND).await;
    sleep(500 * MS).await;
    assert_eq!(first.owned("first"), 16);
    first.stop.cancel();
    first.process.await.unwrap().unwrap();
    assert_eq!(first.member.counters().released, 16);
    assert_eq!(log.lock().unwrap().len(), 1);
}

/// A source that is interrupted many times while it is listed is not listed once for each time.
#[tokio::test(start_paused = true)]
async fn what_is_listed_again_meanwhile_is_listed_once_more() {
    let (engine, log) = (Switch::default(), Log::default());
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let relist = move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async {
            sleep(10 * SECOND).await;
            Ok::<_, Infallible>([])
        }
    };
    let shards = builder(&engine, "first").count(1).build();
    let member = shards.join(&queue(), relist).await.unwrap();
    let first = run_member(member, "first", &log, MS);
    for _ in 0..5 {
        sleep(SECOND).await;
        first.member.relist();
    }
    sleep(60 * SECOND).await;
    assert_eq!(calls.load(Ordering::Relaxed), 2);
    assert_eq!(first.member.counters().relisted, 2);
    first.member.relist();
    sleep(60 * SECOND).await;
    assert_eq!(calls.load(Ordering::Relaxed), 3);
}
