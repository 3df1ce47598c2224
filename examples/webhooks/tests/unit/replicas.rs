//! Replicas in one process, on one store and one engine in memory.

use std::sync::atomic::Ordering;

use requeue_shards::Memory;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::*;
use crate::args::Options;
use crate::dispatch::tests::{BROKEN_AFTER, dispatcher, open, receiver, settle, to};
use crate::store::Store;

const SUBSCRIPTIONS: usize = 24;

/// A replica at work.
struct Working {
    dispatcher: Arc<Dispatcher>,
    stop: CancellationToken,
    crew: JoinHandle<Result<(), String>>,
}

impl Working {
    async fn begin(store: &Store, engine: &Memory, name: &str) -> Self {
        let dispatcher = dispatcher(store.clone());
        let replicas = Replicas {
            name: Some(name.into()),
            shards: NonZeroU32::new(16).unwrap(),
            ..Options::default().replicas
        };
        let grace = Duration::from_secs(5);
        let replica = Replica::join(engine.clone(), &replicas, grace, &dispatcher);
        let replica = replica.await.unwrap();
        let stop = CancellationToken::new();
        let crew = replica.employ(Arc::clone(&dispatcher), 8, stop.clone());
        Self {
            crew: tokio::spawn(crew),
            dispatcher,
            stop,
        }
    }

    async fn end(self) {
        self.stop.cancel();
        timeout(BROKEN_AFTER, self.crew)
            .await
            .unwrap()
            .unwrap()
            .unwrap();
    }

    /// How many shards each replica owns.
    fn owned(&self) -> Vec<u64> {
        let shown = self.dispatcher.team.get().unwrap().shown();
        let members = shown["members"].as_array().unwrap().iter();
        members
            .map(|member| member["shards"].as_u64().unwrap())
            .collect()
    }
}

/// Puts an object and subscriptions that are owed it.
async fn fill(store: &Store) -> crate::dispatch::tests::Known {
    let (address, known) = receiver().await;
    for n in 0..SUBSCRIPTIONS {
        let id: Arc<str> = format!("s{n}").into();
        let subscription = to(address, &format!("/{id}"));
        store.put_subscription(id, subscription).await.unwrap();
    }
    store.put_object("a".into(), "1".into()).await.unwrap();
    known
}

#[tokio::test]
async fn each_delivery_is_made_by_the_replica_that_owns_it() {
    let folder = tempfile::tempdir().unwrap();
    let (store, engine) = (open(&folder), Memory::new());
    let known = fill(&store).await;
    let one = Working::begin(&store, &engine, "one").await;
    timeout(BROKEN_AFTER, settle(&one.dispatcher))
        .await
        .unwrap();
    assert_eq!(one.owned(), [16]);

    let two = Working::begin(&store, &engine, "two").await;
    let spread = async {
        let is_spread = |owned: Vec<u64>| owned.len() == 2 && owned.iter().all(|count| *count > 0);
        while !is_spread(one.owned()) || !is_spread(two.owned()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(BROKEN_AFTER, spread).await.unwrap();
    // Both hear of it; with SQLite there is no other way than to tell them.
    let change = one.dispatcher.put_object("b".into(), "2".into()).await;
    let keys = |change: &crate::store::Change| {
        let ids = change.subscriptions.clone().into_iter();
        ids.map(|id| Key::new(id, "b"))
    };
    two.dispatcher.add_newer(keys(&change.unwrap()));
    timeout(BROKEN_AFTER, settle(&two.dispatcher))
        .await
        .unwrap();
    // One of them delivers, and no other does so as well.
    assert_eq!(known.calls.load(Ordering::SeqCst), 2 * SUBSCRIPTIONS);

    one.end().await;
    // What was owed while no replica heard of it is listed by the one that takes over.
    store.put_object("c".into(), "3".into()).await.unwrap();
    let one = Working::begin(&store, &engine, "one").await;
    two.end().await;
    timeout(BROKEN_AFTER, settle(&one.dispatcher))
        .await
        .unwrap();
    assert_eq!(known.calls.load(Ordering::SeqCst), 3 * SUBSCRIPTIONS);
    one.end().await;
}

#[tokio::test]
async fn a_delivery_that_another_replica_has_recorded_is_not_recorded_again() {
    let folder = tempfile::tempdir().unwrap();
    let (store, engine) = (open(&folder), Memory::new());
    fill(&store).await;
    let one = Working::begin(&store, &engine, "one").await;
    timeout(BROKEN_AFTER, settle(&one.dispatcher))
        .await
        .unwrap();
    let change = store.put_object("a".into(), "2".into()).await.unwrap();
    // A run that began before the shard was taken, and was stopped meanwhile.
    let run = Run {
        attempt: 1,
        fence: Some(0),
    };
    let key = Key::new("s0", "a");
    let action = one.dispatcher.reconcile(&key, run).await;
    assert_eq!(action, Ok(Action::Success));
    let task = store.task(&key).await.unwrap().unwrap();
    assert_eq!(task.version, change.version);
    one.end().await;
}
