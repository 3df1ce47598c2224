//! Replicas, and what goes wrong around them.

use std::time::Duration;

use proptest::collection::vec;
use requeue_shards::Status;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::replicas::{Replica, all_owned_without, owns, status};
use super::store::Store;
use super::{LEASES, TTL};
use crate::api::{Cluster, Link};
use crate::seconds;
use crate::seeds::each_seed;

/// Two replicas, once they share the set.
async fn two(cluster: &Cluster, store: &Store) -> (Replica, Replica) {
    let start = |name| Replica::start(cluster, store, name, &Link::default());
    let both = (start("web-0"), start("web-1"));
    sleep(TTL).await;
    let status = status(cluster).await;
    assert!(
        owns(&status, "web-0") > 0 && owns(&status, "web-1") > 0,
        "{status}"
    );
    both
}

fn fences(status: &Status) -> Vec<Option<u64>> {
    let owners = status.shards.iter();
    owners
        .map(|owner| owner.as_ref().map(|owner| owner.fence.0))
        .collect()
}

#[tokio::test(start_paused = true)]
async fn watches_that_break_or_lose_their_place_move_no_shard() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    let before = fences(&status(&cluster).await);
    for round in 0..20_u64 {
        cluster.cut_watches(LEASES);
        if round % 2 == 0 {
            cluster.compact();
        }
        sleep(Duration::from_millis(700 * (round % 3))).await;
    }
    assert_eq!(fences(&status(&cluster).await), before);
    second.kill().await;
    cluster.cut_watches(LEASES);
    let after = all_owned_without(&cluster, &["web-1"]).await;
    assert!(after < TTL + seconds(1), "{after:?}");
    first.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

/// Its connection is up, but nothing comes: what it sees by requests is enough.
#[tokio::test(start_paused = true)]
async fn a_watch_that_has_gone_silent_is_noticed() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    first.link.set_deaf(true);
    let before = fences(&status(&cluster).await);
    sleep(10 * TTL).await;
    // No session was ended because its renewals were not seen.
    assert_eq!(fences(&status(&cluster).await), before);
    second.kill().await;
    let after = all_owned_without(&cluster, &["web-1"]).await;
    assert!(after < 3 * TTL, "{after:?}");
    first.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

/// The Lease of its old session was deleted while nothing came: there is none left whose renewals
/// it could miss.
#[tokio::test(start_paused = true)]
async fn a_watch_that_died_while_the_session_ended_is_noticed() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    second.kill().await;
    first.link.set_deaf(true);
    cluster.delete(LEASES, "web.member.web-0");
    cluster.delete(LEASES, "web.member.web-1");
    sleep(TTL / 2).await;
    first.link.set_deaf(false);
    let after = all_owned_without(&cluster, &["web-1"]).await;
    assert!(after < 5 * TTL, "{after:?}");
    first.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_replica_that_is_cut_off_stops_before_another_begins() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    first.link.set_down(true);
    let change = async {
        for number in (0..100).cycle() {
            store.change(number);
            sleep(Duration::from_millis(10)).await;
        }
    };
    let after = tokio::select! {
        after = all_owned_without(&cluster, &["web-0"]) => after,
        () = change => Duration::ZERO,
    };
    assert!(after < TTL + seconds(1), "{after:?}");
    first.link.set_down(false);
    sleep(seconds(40)).await;
    // It is back, under its name.
    assert!(owns(&status(&cluster).await, "web-0") > 0);
    assert_eq!(store.undone(), [""; 0]);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_for_a_third_of_the_ttl_moves_no_shard() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    let before = fences(&status(&cluster).await);
    let links = [&first.link, &second.link];
    for _ in 0..5 {
        links.iter().for_each(|link| link.set_down(true));
        sleep(TTL / 3).await;
        links.iter().for_each(|link| link.set_down(false));
        sleep(TTL).await;
    }
    assert_eq!(fences(&status(&cluster).await), before);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn all_work_stops_while_the_api_server_is_away_and_goes_on_after() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    let links = [&first.link, &second.link];
    links.iter().for_each(|link| link.set_down(true));
    sleep(TTL).await;
    let runs = store.runs();
    store.change(1);
    sleep(3 * TTL).await;
    assert_eq!(store.runs(), runs);
    links.iter().for_each(|link| link.set_down(false));
    all_owned_without(&cluster, &[]).await;
    sleep(seconds(40)).await;
    assert_eq!(store.undone(), [""; 0]);
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn rights_that_are_taken_away_for_a_while_end_nothing_but_the_sessions() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let (first, second) = two(&cluster, &store).await;
    cluster.refuse(LEASES, 503, "Unavailable");
    sleep(2 * TTL).await;
    cluster.allow(LEASES);
    all_owned_without(&cluster, &[]).await;
    sleep(2 * TTL).await;
    assert!(!first.has_ended() && !second.has_ended());
    // But without rights for longer than the TTL a member cannot go on.
    cluster.refuse(LEASES, 403, "Forbidden");
    sleep(3 * TTL).await;
    let error = first.stop().await.unwrap_err();
    assert!(
        error.to_string().starts_with("the engine denies access"),
        "{error}"
    );
    cluster.allow(LEASES);
    assert!(second.stop().await.is_err());
    assert_eq!(store.wrong(), [""; 0]);
}

/// A Lease that another client writes into, or creates.
fn note(name: &str) -> Value {
    json!({"metadata": {
        "name": name, "namespace": "default", "labels": {"requeue.dev/set": "web"},
        "annotations": {"note": format!("{:?}", Instant::now())},
    }})
}

/// What happens, to which replica, which key changes then, and the milliseconds until the next.
type Step = (u8, usize, u8, u64);

/// One history: kills, starts, links that are down, slow, deaf, fail, watches that break, Leases
/// that others write into. Then, without faults, everything has to be done.
async fn live(steps: &[Step]) -> Result<(), String> {
    let (cluster, store) = (Cluster::new(), Store::with_keys(20));
    let mut started = 0;
    let mut start = || {
        started += 1;
        let link = Link::seeded(started);
        link.set_faults(Duration::from_millis(30), 0, 10);
        Replica::start(&cluster, &store, &format!("web-{started}"), &link)
    };
    let mut replicas = vec![start(), start(), start()];
    sleep(TTL).await;
    for &(what, which, key, pause) in steps {
        let which = which % replicas.len();
        match what {
            0 => replicas.swap_remove(which).kill().await,
            1 => drop(replicas.swap_remove(which).stop().await),
            2 => cluster.compact(),
            3 => replicas[which].link.set_down(true),
            4 => replicas.iter().for_each(Replica::heal),
            5 => replicas[which]
                .link
                .set_faults(Duration::from_millis(300), 20, 30),
            6 => replicas[which].link.set_deaf(true),
            7 => cluster.put(LEASES, note(&format!("web.shard-{}", key % 8))),
            _ => cluster.cut_watches(LEASES),
        }
        if replicas.len() < 2 + usize::from(key % 2) {
            replicas.push(start());
        }
        store.change(key.into());
        sleep(Duration::from_millis(pause)).await;
    }
    replicas.iter().for_each(Replica::heal);
    // A request that was lost is given up after half a minute.
    let began = Instant::now();
    while !store.undone().is_empty() && began.elapsed() < seconds(120) {
        sleep(seconds(1)).await;
    }
    let undone = store.undone();
    all_owned_without(&cluster, &[]).await;
    for replica in replicas {
        let _ = replica.stop().await;
    }
    match (store.wrong(), undone) {
        (wrong, undone) if wrong.is_empty() && undone.is_empty() => Ok(()),
        wrong => Err(format!("{wrong:?}")),
    }
}

#[test]
fn nothing_is_lost_and_nothing_runs_twice_whatever_happens() {
    let step = (0..10_u8, 0..8_usize, 0..20_u8, 0..3000_u64);
    each_seed(20, &vec(step, 30), |steps| {
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }
            .enable_time()
            .start_paused(true)
            .build()
            .unwrap();
        (String::new(), runtime.block_on(live(steps)))
    });
}
