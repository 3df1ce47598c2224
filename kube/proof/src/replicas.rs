//! Replicas that share the shards of a set in Leases, each with a connection of its own.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use requeue::tokio::{Action, CancellationToken, WorkQueue};
use requeue_kube::Leases;
use requeue_shards::{EngineError, Held, Shards, Status, Taken, conformance};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::server::Server;
use crate::world::{Problem, seconds};

const SET: &str = "proof";
const COUNT: u32 = 64;
const TTL: Duration = Duration::from_secs(5);
const KEYS: usize = 300;

/// The checks of every engine; then three replicas, of which one is killed and one stopped, while
/// keys change; then the API server is killed. No key runs twice at once, and none is left.
///
/// # Errors
///
/// A promise is broken, or something takes too long.
pub async fn share(server: &mut Server) -> Result<String, Problem> {
    let engine = Leases::new(server.client().await?, "default");
    tokio::spawn(async move { conformance::all(&engine, "conformance").await }).await?;

    let store = Store::default();
    (0..KEYS).for_each(|key| store.change(key));
    let producer = tokio::spawn(produce(store.clone()));
    let first = Replica::start(server, &store, "web-0").await?;
    let second = Replica::start(server, &store, "web-1").await?;
    let third = Replica::start(server, &store, "web-2").await?;
    let shared = owned_without(server, "none", 20).await?;
    sleep(2 * TTL).await;
    let (before, writes) = (status(server).await?, versions(server).await?);
    sleep(2 * TTL).await;
    let idle = versions(server).await?.saturating_sub(writes);

    first.kill().await;
    let killed = owned_without(server, "web-0", 20).await?;
    second.stop().await?;
    let stopped = owned_without(server, "web-1", 20).await?;
    let again = Replica::start(server, &store, "web-0").await?;
    sleep(TTL).await;
    let after = status(server).await?;

    server.kill();
    sleep(2 * TTL).await;
    let stale = store.runs();
    sleep(seconds(1)).await;
    let ran = store.runs() - stale;
    server.start_apiserver().await?;
    let back = owned_without(server, "none", 60).await?;

    producer.abort();
    sleep(seconds(3)).await;
    let undone = store.undone();
    let risen = deleted_by_hand(server, &store).await?;
    third.stop().await?;
    again.stop().await?;
    let left = leases(server).await?.into_iter().filter(is_member).count();

    let wrong = store.wrong();
    let told = format!(
        "conforms; {COUNT} shards, {}; owned after {shared:.1?}, after a kill {killed:.1?} \
         (TTL {TTL:?}), after a stop {stopped:.1?}, after an outage {back:.1?}; {idle} writes in \
         {:?}; {} runs",
        shares(&before),
        2 * TTL,
        store.runs(),
    );
    let promises = [
        (wrong.is_empty(), "two runs of a key at once"),
        (undone == 0, "a change without a run"),
        (killed <= TTL + seconds(1), "the kill"),
        (stopped <= seconds(1), "the stop"),
        (after.members.len() == 2, "the members"),
        (rises(&before, &after), "a fence that did not rise"),
        (ran == 0, "runs without an API server"),
        (risen, "a fence of a deleted Lease"),
        (left == 0, "members that stay"),
    ];
    match promises.iter().find(|(is_kept, _)| !is_kept) {
        None => Ok(told),
        Some((_, broken)) => Err(format!("{broken}: {told}; {undone} undone, {wrong:?}").into()),
    }
}

async fn produce(store: Store) {
    for key in (0..KEYS).cycle() {
        store.change(key);
        sleep(Duration::from_millis(5)).await;
    }
}

/// Deletes the Lease of a shard, and returns whether its next owner has a greater fence.
async fn deleted_by_hand(server: &Server, store: &Store) -> Result<bool, Problem> {
    let fence = |status: &Status| status.shards[7].as_ref().map(|owner| owner.fence);
    let before = fence(&status(server).await?);
    let api = Api::<Lease>::namespaced(server.client().await?, "default");
    let name = format!("{SET}.shard-7");
    api.delete(&name, &DeleteParams::default()).await?;
    sleep(seconds(1)).await;
    owned_without(server, "none", 20).await?;
    (0..KEYS).for_each(|key| store.change(key));
    sleep(seconds(3)).await;
    Ok(fence(&status(server).await?) > before && store.undone() == 0)
}

async fn leases(server: &Server) -> Result<Vec<Lease>, Problem> {
    let api = Api::<Lease>::namespaced(server.client().await?, "default");
    let of_set = ListParams::default().labels(&format!("requeue.dev/set={SET}"));
    Ok(api.list(&of_set).await?.items)
}

fn is_member(lease: &Lease) -> bool {
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    name.starts_with(&format!("{SET}.member."))
}

/// The revision of etcd: how often anything was written.
async fn versions(server: &Server) -> Result<u64, Problem> {
    let api = Api::<Lease>::namespaced(server.client().await?, "default");
    let list = api.list(&ListParams::default()).await?;
    Ok(list.metadata.resource_version.unwrap_or_default().parse()?)
}

fn shares(status: &Status) -> String {
    let members = status.members.iter();
    let shares: Vec<String> = members
        .map(|(name, (_, owns))| format!("{name} {owns}"))
        .collect();
    shares.join(", ")
}

fn rises(before: &Status, after: &Status) -> bool {
    before
        .shards
        .iter()
        .zip(&after.shards)
        .all(|pair| match pair {
            (Some(old), Some(new)) if old == new => true,
            (Some(old), Some(new)) => new.fence > old.fence,
            _ => false,
        })
}

async fn set(server: &Server) -> Result<Shards<Leases>, Problem> {
    let engine = Leases::new(server.client().await?, "default");
    Ok(Shards::builder(engine, SET).count(COUNT).ttl(TTL).build())
}

async fn status(server: &Server) -> Result<Status, Problem> {
    Ok(set(server).await?.status().await?)
}

/// Waits until every shard is owned, by another than this.
async fn owned_without(server: &Server, gone: &str, limit: u64) -> Result<Duration, Problem> {
    let set = set(server).await?;
    let start = Instant::now();
    loop {
        // The API server may not be ready yet.
        if let Ok(status) = set.status().await {
            let is_gone = !status
                .shards
                .iter()
                .flatten()
                .any(|owner| owner.member == gone);
            if is_gone && status.free().count() == 0 {
                return Ok(start.elapsed());
            }
        }
        if start.elapsed() > seconds(limit) {
            return Err(format!("not all shards are owned after {limit} s").into());
        }
        sleep(Duration::from_millis(20)).await;
    }
}

/// What every replica watches.
#[derive(Clone, Default)]
struct Store(Arc<Mutex<Table>>);

type Feed = Box<dyn Fn(String) + Send>;

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
    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, key: usize) {
        let (mut table, key) = (self.table(), format!("key-{key}"));
        *table.wanted.entry(key.clone()).or_default() += 1;
        table.feeds.values().for_each(|feed| feed(key.clone()));
    }

    fn undone(&self) -> usize {
        let table = self.table();
        let undone = |(key, wanted): &(&String, &u64)| table.done.get(*key) != Some(*wanted);
        table.wanted.iter().filter(undone).count()
    }

    fn wrong(&self) -> Vec<String> {
        self.table().wrong.clone()
    }

    fn runs(&self) -> usize {
        self.table().runs
    }

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
            table.wanted.get(&key).copied().unwrap_or_default()
        };
        let _leave = AtWork(self, &key);
        tokio::select! {
            biased;
            () = held.lost() => return Err(String::from("lost")),
            () = sleep(Duration::from_millis(5)) => {}
        }
        let mut table = self.table();
        if table.fences.get(&held.shard().0) != Some(&held.fence().0) {
            return Err(format!("the fence {} is old", held.fence()));
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

struct Replica {
    name: String,
    stop: CancellationToken,
    running: JoinHandle<Result<(), EngineError>>,
    store: Store,
}

impl Replica {
    async fn start(server: &Server, store: &Store, name: &str) -> Result<Self, Problem> {
        let engine = Leases::new(server.client().await?, "default");
        let shards = Shards::builder(engine, SET)
            .count(COUNT)
            .ttl(TTL)
            .member(name);
        let (shards, stop) = (shards.build(), CancellationToken::new());
        let run = {
            let (stop, store, name) = (stop.clone(), store.clone(), name.to_owned());
            async move {
                let queue = WorkQueue::builder().levels::<2>().build();
                let listed = store.clone();
                let relist = move |taken| std::future::ready(listed.list(taken));
                let member = shards.join(&queue, relist).await?;
                let fed = member.clone();
                let feed: Feed = Box::new(move |key| drop(fed.add(key)));
                store.table().feeds.insert(name.clone(), feed);
                let work = move |key, held| {
                    let (store, name) = (store.clone(), name.clone());
                    async move { store.work(&name, key, held).await }
                };
                member.run(4, stop, work).await
            }
        };
        Ok(Self {
            name: name.to_owned(),
            stop,
            running: tokio::spawn(run),
            store: store.clone(),
        })
    }

    /// Nothing more is sent, not even that it leaves.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
        self.store.table().feeds.remove(&self.name);
    }

    async fn stop(self) -> Result<(), Problem> {
        self.stop.cancel();
        let ended = self.running.await?;
        self.store.table().feeds.remove(&self.name);
        Ok(ended?)
    }
}
