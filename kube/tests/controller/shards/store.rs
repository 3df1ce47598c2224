//! Keys that replicas share, what they do with them, and what must not happen. The proof on a real
//! API server uses it too.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue};
use requeue_kube::Leases;
use requeue_shards::{EngineError, Ownership, Shards, Taken};
use tokio::time::sleep;

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
        (0..count).for_each(|number| store.change(number));
        store
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Every replica hears of it.
    pub(super) fn change(&self, number: usize) {
        let (mut table, key) = (self.table(), format!("key-{number}"));
        *table.wanted.entry(key.clone()).or_default() += 1;
        table.feeds.values().for_each(|feed| feed(&key));
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

    /// Two runs of a key at once.
    pub(super) fn wrong(&self) -> Vec<String> {
        self.table().wrong.clone()
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

    async fn work(
        &self,
        (who, takes): (&str, Duration),
        key: String,
        owned: Ownership,
    ) -> Result<Action, String> {
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
            () = owned.lost() => return Err(String::from("lost")),
            () = sleep(takes) => {}
        }
        let mut table = self.table();
        if table.fences.get(&owned.shard().0) != Some(&owned.fence().0) {
            return Err(format!("the fence {} is old", owned.fence()));
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

/// Hears of changes until it is dropped.
struct Fed(Store, String);

impl Drop for Fed {
    fn drop(&mut self) {
        self.0.table().feeds.remove(&self.1);
    }
}

/// One replica. A run takes as long as `takes` says.
pub(super) async fn replica(
    shards: Shards<Leases>,
    store: Store,
    name: String,
    takes: Duration,
    stop: CancellationToken,
) -> Result<(), EngineError> {
    let queue = WorkQueue::builder().levels::<2>().build();
    let listed = store.clone();
    let relist = move |taken| std::future::ready(listed.list(taken));
    let member = shards.join(&queue, relist).await?;
    let fed = member.clone();
    let feed = move |key: &str| drop(fed.add(key.to_owned()));
    store.table().feeds.insert(name.clone(), Box::new(feed));
    let _fed = Fed(store.clone(), name.clone());
    let work = move |key, owned| {
        let (store, name) = (store.clone(), name.clone());
        async move { store.work((&name, takes), key, owned).await }
    };
    member.run(4, stop, work).await
}
