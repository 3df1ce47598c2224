//! Replicas that share a set.

use std::time::Duration;

use requeue::tokio::CancellationToken;
use requeue_shards::{EngineError, Shards, Status};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::store::{Store, replica};
use super::{TTL, leases};
use crate::api::{Cluster, Link};
use crate::seconds;

pub(super) const COUNT: u32 = 8;
const RUN: Duration = Duration::from_millis(20);

pub(super) struct Replica {
    pub(super) name: String,
    pub(super) link: Link,
    stop: CancellationToken,
    running: JoinHandle<Result<(), EngineError>>,
}

impl Replica {
    pub(super) fn start(cluster: &Cluster, store: &Store, name: &str, link: &Link) -> Self {
        let shards = Shards::builder(leases(cluster, link), "web")
            .count(COUNT)
            .ttl(TTL)
            .member(name);
        let (shards, stop, name) = (shards.build(), CancellationToken::new(), name.to_owned());
        let run = replica(shards, store.clone(), name.clone(), RUN, stop.clone());
        Self {
            name,
            link: link.clone(),
            stop,
            running: tokio::spawn(run),
        }
    }

    /// As `kill -9`.
    pub(super) async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    /// As SIGTERM.
    pub(super) async fn stop(self) -> Result<(), EngineError> {
        self.stop.cancel();
        self.running.await.unwrap()
    }

    /// Ends the faults of its link.
    pub(super) fn heal(&self) {
        self.link.set_down(false);
        self.link.set_deaf(false);
        self.link.set_faults(Duration::from_millis(30), 0, 0);
    }

    pub(super) fn has_ended(&self) -> bool {
        self.running.is_finished()
    }
}

/// Who owns what, as another process sees it.
pub(super) async fn status(cluster: &Cluster) -> Status {
    let engine = leases(cluster, &Link::default());
    let shards = Shards::builder(engine, "web").count(COUNT).ttl(TTL).build();
    shards.status().await.unwrap()
}

pub(super) fn owns(status: &Status, name: &str) -> usize {
    status.members.get(name).map_or(0, |(_, shards)| *shards)
}

/// Waits until every shard is owned, by none of these.
pub(super) async fn all_owned_without(cluster: &Cluster, gone: &[&str]) -> Duration {
    let start = Instant::now();
    loop {
        let status = status(cluster).await;
        let is_done =
            status.free().count() == 0 && gone.iter().all(|name| owns(&status, name) == 0);
        if is_done {
            return start.elapsed();
        }
        assert!(start.elapsed() < seconds(60), "{status}");
        sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn three_replicas_share_the_shards_and_one_that_leaves_hands_them_over() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let start = |name| Replica::start(&cluster, &store, name, &Link::default());
    let (first, second, third) = (start("web-0"), start("web-1"), start("web-2"));
    sleep(TTL).await;
    let shared = status(&cluster).await;
    assert!(shared.free().count() == 0, "{shared}");
    let shares = [&first, &second, &third].map(|replica| owns(&shared, &replica.name));
    assert!(shares.iter().all(|&share| share > 0), "{shared}");
    assert_eq!(store.undone(), [""; 0]);

    let before = Instant::now();
    second.stop().await.unwrap();
    all_owned_without(&cluster, &["web-1"]).await;
    assert!(
        before.elapsed() < Duration::from_millis(200),
        "{:?}",
        before.elapsed()
    );
    assert_eq!(status(&cluster).await.members.len(), 2);
    store.change(7);
    sleep(seconds(1)).await;
    assert_eq!(store.undone(), [""; 0]);
    first.stop().await.unwrap();
    third.stop().await.unwrap();
    assert!(status(&cluster).await.members.is_empty());
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn what_a_killed_replica_owned_is_owned_again_within_the_ttl_and_a_second() {
    for offset in 0..10 {
        let (cluster, store) = (Cluster::new(), Store::with_keys(100));
        let start = |name| Replica::start(&cluster, &store, name, &Link::default());
        let (first, second) = (start("web-0"), start("web-1"));
        sleep(TTL + TTL / 10 * offset).await;
        assert!(owns(&status(&cluster).await, "web-0") > 0);
        first.kill().await;
        (0..100).for_each(|number| store.change(number));
        let after = all_owned_without(&cluster, &["web-0"]).await;
        assert!(after > TTL / 2 && after < TTL + seconds(1), "{after:?}");
        sleep(seconds(1)).await;
        assert_eq!(store.undone(), [""; 0]);
        assert_eq!(store.wrong(), [""; 0]);
        second.stop().await.unwrap();
    }
}

/// No replica is left that saw the last renewal.
#[tokio::test(start_paused = true)]
async fn replicas_that_start_after_all_were_killed_wait_for_one_ttl() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(10));
    let start = |name| Replica::start(&cluster, &store, name, &Link::default());
    let (first, second) = (start("web-0"), start("web-1"));
    sleep(TTL).await;
    first.kill().await;
    second.kill().await;
    sleep(10 * TTL).await;
    // One under its old name.
    let (again, new) = (start("web-0"), start("web-2"));
    let after = all_owned_without(&cluster, &["web-1"]).await;
    assert!(after >= TTL && after < TTL + seconds(1), "{after:?}");
    // It looks now and then whether its name is free.
    sleep(TTL).await;
    let status = status(&cluster).await;
    assert_eq!(
        status.members.keys().collect::<Vec<_>>(),
        ["web-0", "web-2"]
    );
    again.stop().await.unwrap();
    new.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn a_second_process_of_a_name_gets_an_error_that_names_it() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(1));
    let start = || Replica::start(&cluster, &store, "web-0", &Link::default());
    let first = start();
    sleep(seconds(1)).await;
    let second = start();
    sleep(3 * TTL).await;
    assert!(second.has_ended() && !first.has_ended());
    let error = second.stop().await.unwrap_err();
    assert_eq!(error.to_string(), "another member is called \"web-0\"");
    first.stop().await.unwrap();
}

/// 8 shards and 100 keys that change all the time cost the API server what two sessions cost.
#[tokio::test(start_paused = true)]
async fn keys_cost_no_request() {
    let (cluster, store) = (Cluster::new(), Store::with_keys(100));
    let start = |name| Replica::start(&cluster, &store, name, &Link::default());
    let (first, second) = (start("web-0"), start("web-1"));
    sleep(2 * TTL).await;
    let (before, runs) = (cluster.writes(super::LEASES), store.runs());
    for round in 0..60 {
        (0..100).for_each(|number| store.change(number));
        sleep(seconds(1)).await;
        assert_eq!(store.undone(), [""; 0], "round {round}");
    }
    let writes = cluster.writes(super::LEASES) - before;
    assert!(store.runs() >= runs + 6000);
    assert!((70..=74).contains(&writes), "{writes} writes");
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    assert_eq!(store.wrong(), [""; 0]);
}
