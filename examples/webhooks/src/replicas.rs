//! Several processes that share the subscriptions, through `requeue-shards` and etcd.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use requeue::priority::Groups;
use requeue::tokio::{Action, CancellationToken};
use requeue_shards::{
    Engine, EngineError, Etcd, Member, Ownership, Shard, ShardKey, Shards, Taken, shard_of,
};
use serde_json::{Value, json};

use crate::args::Replicas;
use crate::dispatch::{Dispatcher, Run};
use crate::key::Key;
use crate::say;
use crate::store::StoreError;
use crate::team::Team;

/// What the set is called in etcd.
const SET: &str = "webhooks";

type Members<E> = Member<Key, E, Groups<Arc<str>>>;

/// One of several processes.
pub(crate) struct Replica<E: Engine = Etcd> {
    member: Members<E>,
}

/// A subscription is placed as a whole.
impl ShardKey for Key {
    fn encode(&self) -> Cow<'_, [u8]> {
        self.to_string().into_bytes().into()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        str::from_utf8(bytes).ok()?.parse().ok()
    }

    fn placed_by(&self) -> Cow<'_, [u8]> {
        self.subscription.as_bytes().into()
    }
}

/// Joins the set that etcd keeps. From now on the dispatcher adds only keys that it owns.
pub(crate) async fn join(
    replicas: &Replicas,
    grace: Duration,
    dispatcher: &Arc<Dispatcher>,
) -> Result<Replica, String> {
    let cannot = |error: EngineError| format!("cannot join the replicas: {error}");
    let etcd = Etcd::connect(replicas.etcd.iter().cloned()).await;
    let etcd = etcd.map_err(cannot)?;
    Replica::join(etcd, replicas, grace, dispatcher)
        .await
        .map_err(cannot)
}

impl<E: Engine> Replica<E> {
    async fn join(
        engine: E,
        replicas: &Replicas,
        grace: Duration,
        dispatcher: &Arc<Dispatcher>,
    ) -> Result<Self, EngineError> {
        let count = replicas.shards;
        let mut shards = Shards::builder(engine, SET)
            .count(count.get())
            .ttl(replicas.ttl)
            .drain_timeout(grace)
            .on_error(said_once());
        if let Some(name) = &replicas.name {
            shards = shards.member(name);
        }
        let lister = Arc::clone(dispatcher);
        let list = move |taken: Taken| {
            let dispatcher = Arc::clone(&lister);
            async move { dispatcher.list(|id| place(id, count) == taken.shard).await }
        };
        let member = shards.build().join(&dispatcher.queue, list).await?;
        let team: Arc<dyn Team> = Arc::new(member.clone());
        // It is joined once.
        let _ = dispatcher.team.set(team);
        Ok(Self { member })
    }

    /// Keeps this many workers until `stop` is cancelled, and then hands over what is owned. The
    /// error says why etcd does not take this replica back.
    pub(crate) async fn employ(
        self,
        dispatcher: Arc<Dispatcher>,
        workers: usize,
        stop: CancellationToken,
    ) -> Result<(), String> {
        let workers = dispatcher.crew(workers);
        let deliver = {
            let dispatcher = Arc::clone(&dispatcher);
            move |key: Key, owned: Ownership| {
                let dispatcher = Arc::clone(&dispatcher);
                async move { deliver(&dispatcher, &key, &owned).await }
            }
        };
        let mut ended = Ok(());
        let work = async { ended = self.member.run(workers, stop, deliver).await };
        dispatcher.assist(work).await;
        ended.map_err(|error| format!("this is no replica any more: {error}"))
    }
}

/// Says each error of etcd, but one that is repeated only once.
fn said_once() -> impl Fn(&EngineError) + Send + Sync {
    let last = Mutex::new(String::new());
    move |error| {
        let error = error.to_string();
        let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != error {
            say(&format!("etcd: {error}"));
            *last = error;
        }
    }
}

/// Delivers, unless the subscription is another replica's meanwhile: then that one does.
async fn deliver(dispatcher: &Dispatcher, key: &Key, owned: &Ownership) -> Result<Action, String> {
    let run = Run {
        attempt: owned.context().attempt,
        fence: Some(i64::try_from(owned.fence().0).unwrap_or(i64::MAX)),
    };
    tokio::select! {
        action = dispatcher.reconcile(key, run) => action,
        () = owned.lost() => Ok(Action::Success),
    }
}

impl Dispatcher {
    /// Lists the keys of a shard.
    async fn list(&self, is_of_shard: impl Fn(&str) -> bool) -> Result<Vec<Key>, StoreError> {
        let mut ids = self.share_out().await?;
        ids.retain(|id| is_of_shard(id));
        let mut keys = Vec::new();
        for id in &ids {
            self.each_owed(Some(id), |page| keys.extend(page)).await?;
        }
        Ok(keys)
    }
}

fn place(id: &str, count: NonZeroU32) -> Shard {
    shard_of(&Key::new(id, ""), count)
}

impl<E: Engine> Team for Members<E> {
    fn owns(&self, key: &Key) -> bool {
        Member::owns(self, key)
    }

    fn shown(&self) -> Value {
        let (status, counters) = (self.status(), self.counters());
        let members = status.members.iter().map(|(name, (member, shards))| {
            json!({ "name": name, "retiring": member.is_retiring, "shards": shards })
        });
        let shards = status.shards.iter().map(|owner| {
            let owner = owner.as_ref()?;
            Some(json!({ "member": owner.member, "fence": owner.fence.0 }))
        });
        json!({
            "members": members.collect::<Vec<_>>(),
            "shards": shards.collect::<Vec<_>>(),
            "taken": counters.taken,
            "released": counters.released,
            "given_up": counters.given_up,
            "lost": counters.lost,
            "relisted": counters.relisted,
        })
    }

    fn health(&self) -> Result<(), String> {
        Member::health(self)
    }
}

#[cfg(test)]
#[path = "../tests/unit/replicas.rs"]
mod tests;
