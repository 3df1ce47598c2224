//! Replicas that share a set, and what they work on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue};
use requeue_shards::{EngineError, Held, Shards, Status, Taken};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::{TTL, leases};
use crate::api::{Cluster, Link};
use crate::seconds;

pub(super) const COUNT: u32 = 8;

/// What every replica watches: keys, and which change of each was worked on.
#[derive(Clone, Default)]
pub(super) struct Store(Arc<Mutex<Table>>);

type Feed = Box<dyn Fn(&str) + Send>;

#[derive(Default)]
struct Table {
    wanted: BTreeMap<String, u64>,
    done: BTreeMap<String, u64>,
    /// The greatest fence of each shard.
    fences: BTreeMap<u32, u64>,
    at_work: BTreeMap<String, String>,
    feeds: BTreeMap<String, Feed>,
    wrong: Vec<String>,
    runs: usize,
}

impl Store {
    pub(super) fn with_keys(count: usize) -> Self {
        let store = Self::default();
        for number in 0..count {
            store.change(&format!("key-{number}"));
        }
        store
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap()
    }

    /// Every replica hears of it.
    pub(super) fn change(&self, key: &str) {
        let mut table = self.table();
        *table.wanted.entry(key.to_owned()).or_default() += 1;
        table.feeds.values().for_each(|feed| feed(key));
    }

    pub(super) fn runs(&self) -> usize {
        self.table().runs
    }

    pub(super) fn undone(&self) -> Vec<String> {
        let table = self.table();
        let undone = table
            .wanted
            .iter()
            .filter(|(key, wanted)| table.done.get(*key) != Some(wanted));
        undone.map(|(key, _)| key.clone()).collect()
    }

    pub(super) fn wrong(&self) -> Vec<String> {
        self.table().wrong.clone()
    }

    #[track_caller]
    pub(super) fn assert_sound(&self) {
        assert_eq!(self.wrong(), [""; 0]);
    }

    /// A store raises the fence before it lists.
    fn list(&self, taken: Taken) -> Result<Vec<String>, String> {
        let mut table = self.table();
        let greatest = table.fences.entry(taken.shard.0).or_default();
        if taken.fence.0 < *greatest {
            return Err(format!("the fence {} is old", taken.fence));
        }
        *greatest = taken.fence.0;
        Ok(table.wanted.keys().cloned().collect())
    }

    async fn work(&self, who: &str, key: String, held: Held) -> Result<Action, String> {
        let wanted = {
            let mut table = self.table();
            table.runs += 1;
            if let Some(other) = table.at_work.insert(key.clone(), who.to_owned()) {
                table.wrong.push(format!("{key} at {who} and at {other}"));
            }
            table.wanted[&key]
        };
        let _leave = AtWork(self, &key);
        tokio::select! {
            biased;
            () = held.lost() => return Err(String::from("lost")),
            () = sleep(Duration::from_millis(20)) => {}
        }
        let mut table = self.table();
        let greatest = table
            .fences
            .get(&held.shard().0)
            .copied()
            .unwrap_or_default();
        if held.fence().0 != greatest {
            return Err(format!("the fence is {greatest}, not {}", held.fence()));
        }
        let done = table.done.entry(key.clone()).or_default();
        *done = wanted.max(*done);
        Ok(Action::Success)
    }
}

struct AtWork<'s>(&'s Store, &'s str);

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.table().at_work.remove(self.1);
    }
}

pub(super) struct Replica {
    pub(super) name: String,
    pub(super) link: Link,
    stop: CancellationToken,
    running: JoinHandle<Result<(), EngineError>>,
    store: Store,
}

impl Replica {
    pub(super) fn start(cluster: &Cluster, store: &Store, name: &str, link: &Link) -> Self {
        let engine = leases(cluster, link);
        let shards = Shards::builder(engine, "web")
            .count(COUNT)
            .ttl(TTL)
            .member(name);
        let shards = shards.build();
        let stop = CancellationToken::new();
        let run = {
            let (stop, store, name) = (stop.clone(), store.clone(), name.to_owned());
            async move {
                let queue = WorkQueue::builder().levels::<2>().build();
                let listed = store.clone();
                let relist = move |taken| std::future::ready(listed.list(taken));
                let member = shards.join(&queue, relist).await?;
                let fed = member.clone();
                let feed = move |key: &str| drop(fed.add(key.to_owned()));
                store.table().feeds.insert(name.clone(), Box::new(feed));
                let work = move |key, held| {
                    let (store, name) = (store.clone(), name.clone());
                    async move { store.work(&name, key, held).await }
                };
                member.run(4, stop, work).await
            }
        };
        Self {
            name: name.to_owned(),
            link: link.clone(),
            stop,
            running: tokio::spawn(run),
            store: store.clone(),
        }
    }

    /// As `kill -9`.
    pub(super) async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
        self.store.table().feeds.remove(&self.name);
    }

    /// As SIGTERM.
    pub(super) async fn stop(self) -> Result<(), EngineError> {
        self.stop.cancel();
        let ended = self.running.await.unwrap();
        self.store.table().feeds.remove(&self.name);
        ended
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
    store.change("key-7");
    sleep(seconds(1)).await;
    assert_eq!(store.undone(), [""; 0]);
    first.stop().await.unwrap();
    third.stop().await.unwrap();
    assert!(status(&cluster).await.members.is_empty());
    store.assert_sound();
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
        (0..100).for_each(|number| store.change(&format!("key-{number}")));
        let after = all_owned_without(&cluster, &["web-0"]).await;
        assert!(after > TTL / 2 && after < TTL + seconds(1), "{after:?}");
        sleep(seconds(1)).await;
        assert_eq!(store.undone(), [""; 0]);
        store.assert_sound();
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
    store.assert_sound();
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
        (0..100).for_each(|number| store.change(&format!("key-{number}")));
        sleep(seconds(1)).await;
        assert_eq!(store.undone(), [""; 0], "round {round}");
    }
    let writes = cluster.writes(super::LEASES) - before;
    assert!(store.runs() >= runs + 6000);
    assert!((70..=74).contains(&writes), "{writes} writes");
    first.stop().await.unwrap();
    second.stop().await.unwrap();
    store.assert_sound();
}
