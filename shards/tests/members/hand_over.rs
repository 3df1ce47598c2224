//! Shards that move because a member joins, leaves, dies or is unreachable.

use std::time::Duration;

use futures_util::FutureExt;
use tokio::time::{Instant, advance, sleep};

use crate::replica::{Log, Replica, TTL, alone, builder, run_member, start};
use crate::switch::{Reach, Switch};

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

const KEYS: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

async fn pair(run: Duration) -> (Switch, Switch, Log, Replica, Replica) {
    let (engine, log) = (Switch::default(), Log::default());
    let other = engine.another();
    let first = start(builder(&engine, "first"), "first", &log, &KEYS, run).await;
    let second = start(builder(&other, "second"), "second", &log, &KEYS, run).await;
    sleep(SECOND).await;
    (engine, other, log, first, second)
}

#[tokio::test(start_paused = true)]
async fn two_members_share_the_shards() {
    let (_, _, log, first, second) = pair(10 * MS).await;
    let (mine, other) = (first.owned("first"), second.owned("second"));
    assert_eq!(mine + other, 16);
    assert!(mine.abs_diff(other) <= 4, "{mine} and {other}");
    assert_eq!(first.member.status(), second.member.status());
    let log = log.lock().unwrap();
    let has_run = |key: &&&str| log.iter().any(|run| run.key == **key);
    assert_eq!(KEYS.iter().filter(has_run).count(), KEYS.len());
}

#[tokio::test(start_paused = true)]
async fn a_key_runs_where_its_shard_is_owned() {
    let (_, _, log, first, second) = pair(10 * MS).await;
    log.lock().unwrap().clear();
    for key in KEYS {
        let added = [&first, &second].map(|replica| replica.member.add(key.to_owned()).unwrap());
        assert_eq!(added.iter().flatten().count(), 1, "{key}: {added:?}");
    }
    sleep(SECOND).await;
    let log = log.lock().unwrap();
    assert_eq!(log.len(), KEYS.len());
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
async fn a_key_of_another_members_shard_is_skipped() {
    let (_, _, log, first, second) = pair(10 * MS).await;
    log.lock().unwrap().clear();
    let foreign = KEYS
        .iter()
        .find(|&&key| second.member.owns(&key.to_owned()));
    first
        .member
        .queue()
        .add((*foreign.unwrap()).to_owned())
        .unwrap();
    sleep(SECOND).await;
    assert_eq!(log.lock().unwrap().len(), 0);
    assert!(first.member.queue().is_empty());
    assert_eq!(first.member.counters().skipped, 1);
}

#[tokio::test(start_paused = true)]
async fn the_shards_of_a_member_that_died_are_at_work_within_its_ttl() {
    let (_, _, log, first, second) = pair(10 * MS).await;
    log.lock().unwrap().clear();
    let key = KEYS.iter().find(|&&key| first.member.owns(&key.to_owned()));
    let key = (*key.unwrap()).to_owned();
    first.process.abort();
    let died = Instant::now();
    while !second.member.owns(&key) {
        sleep(10 * MS).await;
    }
    assert!(died.elapsed() <= TTL + SECOND, "{:?}", died.elapsed());
    assert_eq!(second.owned("second"), 16);
}

#[tokio::test(start_paused = true)]
async fn a_member_that_leaves_hands_over_without_a_gap_or_an_overlap() {
    let (_, _, log, first, second) = pair(300 * MS).await;
    let key = KEYS.iter().find(|&&key| first.member.owns(&key.to_owned()));
    let key = (*key.unwrap()).to_owned();
    first.member.add(key.clone()).unwrap();
    sleep(100 * MS).await;
    log.lock()
        .unwrap()
        .retain(|run| run.key == key && run.end.is_none());
    assert_eq!(log.lock().unwrap().len(), 1, "it is active");

    first.stop.cancel();
    // Shards without a run move at once. This one moves after its run.
    sleep(50 * MS).await;
    assert!(second.owned("second") >= 15);
    assert!(!second.member.owns(&key));
    sleep(160 * MS).await;
    assert!(second.member.owns(&key));
    assert_eq!(second.owned("second"), 16);
    first.process.await.unwrap().unwrap();
    assert!(!second.member.status().members.contains_key("first"));
    assert_eq!(second.member.counters().lost, 0);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_does_not_end_learns_at_the_limit_that_its_shard_moves() {
    let hour = Duration::from_secs(3600);
    let (engine, log, first) = alone(&["a"], hour).await;
    first.stop.cancel();
    let second = start(
        builder(&engine.another(), "second"),
        "second",
        &log,
        &["a"],
        MS,
    )
    .await;
    sleep(19 * SECOND).await;
    assert_eq!(second.owned("second"), 15, "its other shards have moved");
    assert_eq!(log.lock().unwrap().len(), 1);

    sleep(2 * SECOND).await;
    assert_eq!(first.member.counters().given_up, 1);
    let log = log.lock().unwrap();
    assert!(
        log[0].was_lost && log[0].end.unwrap() <= log[1].begin,
        "{log:?}"
    );
    assert_eq!(log[1].replica, "second");
    assert!(log[1].fence > log[0].fence);
}

#[tokio::test(start_paused = true)]
async fn an_outage_that_is_shorter_than_the_ttl_moves_nothing() {
    let (engine, other, _, first, second) = pair(10 * MS).await;
    let before = first.member.status();
    for reach in [Reach::Silent, Reach::Refused] {
        engine.set(reach);
        other.set(reach);
        sleep(TTL / 2).await;
        engine.set(Reach::Whole);
        other.set(Reach::Whole);
        sleep(2 * TTL).await;
        assert_eq!(first.member.status().shards, before.shards, "{reach:?}");
    }
    assert_eq!(second.member.counters().sessions_lost, 0);
}

#[tokio::test(start_paused = true)]
async fn after_a_longer_one_runs_have_ended_nothing_begins_and_then_all_goes_on() {
    let (engine, _, log, first, second) = pair(3600 * SECOND).await;
    sleep(SECOND).await;
    let own: Vec<&str> = KEYS
        .into_iter()
        .filter(|key| first.member.owns(&(*key).to_owned()))
        .collect();
    engine.set(Reach::Silent);
    let cut = Instant::now();
    sleep(TTL + SECOND).await;
    {
        let log = log.lock().unwrap();
        for run in log.iter().filter(|run| run.replica == "first") {
            assert!(run.was_lost && run.end.unwrap() <= cut + TTL, "{run:?}");
        }
    }
    assert_eq!(first.member.add(own[0].to_owned()).unwrap(), None);
    assert_eq!(second.owned("second"), 16, "the other has all");

    engine.set(Reach::Whole);
    sleep(TTL).await;
    assert!(first.owned("first") >= 6, "it has joined again");
    assert_eq!(first.member.counters().sessions_lost, 1);
}

#[tokio::test(start_paused = true)]
async fn a_shard_that_the_engine_gave_to_another_is_lost() {
    let (engine, log, first) = alone(&["a"], 3600 * SECOND).await;
    // As if its key had been deleted by hand.
    let shard = first.member.shards().shard_of(&String::from("a"));
    crate::bad_input::steal(&engine.memory(), shard).await;
    sleep(MS).await;
    assert!(log.lock().unwrap()[0].was_lost);
    assert_eq!(first.member.counters().lost, 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_shards_move_at_once_than_may() {
    let (engine, log) = (Switch::default(), Log::default());
    let builder_of = |name| builder(&engine, name).moves_max(1);
    let first = start(builder_of("first"), "first", &log, &KEYS, 2 * SECOND).await;
    sleep(100 * MS).await;
    let second = start(builder_of("second"), "second", &log, &[], 10 * MS).await;
    let mut most = 0;
    for _ in 0..400 {
        let owned = first.owned("first") + second.owned("second");
        most = most.max(16 - owned);
        sleep(10 * MS).await;
    }
    assert!(most <= 1, "{most} had no owner at once");
    assert!(second.owned("second") >= 6);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_run_leaves_its_shards_to_the_ttl() {
    let (_, log, first) = alone(&["a"], 3600 * SECOND).await;
    first.process.abort();
    sleep(MS).await;
    assert!(
        !first.member.owns(&String::from("a")),
        "nothing runs here any more"
    );
    sleep(TTL).await;
    let status = first.member.shards().status().await.unwrap();
    assert_eq!(status.free().count(), 16);

    // A member that is dropped in a test of its own is one that can run again.
    let again = run_member(first.member, "first", &log, MS);
    sleep(SECOND).await;
    assert_eq!(again.owned("first"), 16);
}

/// An ended membership is final, because keys may have been skipped since.
#[tokio::test(start_paused = true)]
async fn a_reply_that_comes_after_the_end_of_a_membership_does_not_prolong_it() {
    let (engine, log, first) = alone(&["a"], MS).await;
    engine.set(Reach::Slow(100 * MS));
    sleep(SECOND + 50 * MS).await;
    // The process is stopped while it renews its session. It continues after the end of the
    // membership that it knows, and the source of changes runs first.
    assert!(advance(TTL - SECOND).now_or_never().is_none());
    assert_eq!(first.member.add(String::from("a")).unwrap(), None);
    sleep(TTL).await;
    assert_eq!(first.owned("first"), 16);
    assert_eq!(first.member.counters().sessions_lost, 1);
    assert_eq!(log.lock().unwrap().len(), 2, "it is listed again");
}

/// A view that broke a few times over hours is followed again as quickly as the first time.
#[tokio::test(start_paused = true)]
async fn who_owns_what_is_followed_again_soon_however_often_it_broke_off() {
    let (engine, _, _, first, second) = pair(MS).await;
    for _ in 0..10 {
        engine.set(Reach::Refused);
        sleep(MS).await;
        engine.set(Reach::Whole);
        sleep(10 * TTL).await;
    }
    engine.set(Reach::Refused);
    sleep(MS).await;
    engine.set(Reach::Whole);
    second.stop.cancel();
    sleep(SECOND).await;
    assert_eq!(first.owned("first"), 16);
}
