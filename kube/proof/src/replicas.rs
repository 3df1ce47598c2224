//! Replicas that share the shards of a set in Leases, each with a connection of its own.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::Lease;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use requeue::tokio::CancellationToken;
use requeue_kube::Leases;
use requeue_shards::{EngineError, Shards, Status, conformance};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use crate::server::Server;
use crate::world::{Problem, seconds};

use store::{Store, replica};

#[path = "../../tests/controller/shards/store.rs"]
mod store;

const SET: &str = "proof";
const COUNT: u32 = 64;
const TTL: Duration = Duration::from_secs(5);
const KEYS: usize = 300;
const RUN: Duration = Duration::from_millis(5);

/// The checks of every engine; then three replicas, of which one is killed and one stopped, while
/// keys change; then the API server is killed. No key runs twice at once, and none is left.
///
/// # Errors
///
/// A promise is broken, or something takes too long.
pub async fn share(server: &mut Server) -> Result<String, Problem> {
    let engine = Leases::new(server.client().await?, "default");
    tokio::spawn(async move { conformance::all(&engine, "conformance").await }).await?;

    let store = Store::with_keys(KEYS);
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
    let undone = store.undone().len();
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
    Ok(fence(&status(server).await?) > before && store.undone().is_empty())
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

struct Replica {
    stop: CancellationToken,
    running: JoinHandle<Result<(), EngineError>>,
}

impl Replica {
    async fn start(server: &Server, store: &Store, name: &str) -> Result<Self, Problem> {
        let engine = Leases::new(server.client().await?, "default");
        let shards = Shards::builder(engine, SET)
            .count(COUNT)
            .ttl(TTL)
            .member(name);
        let (shards, stop) = (shards.build(), CancellationToken::new());
        let run = replica(shards, store.clone(), name.to_owned(), RUN, stop.clone());
        Ok(Self {
            stop,
            running: tokio::spawn(run),
        })
    }

    /// Nothing more is sent, not even that it leaves.
    async fn kill(self) {
        self.running.abort();
        let _ = self.running.await;
    }

    async fn stop(self) -> Result<(), Problem> {
        self.stop.cancel();
        Ok(self.running.await??)
    }
}
