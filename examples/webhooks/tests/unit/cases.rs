//! What is owed, and when it no longer is: cases for either database.

use tokio::sync::oneshot;

use super::*;
use crate::key::Key;

/// Calls a macro with the names of all cases.
macro_rules! with_cases {
    ($run:ident) => {
        $run! {
            work_that_fails_leaves_nothing_and_spoils_nothing,
            a_write_with_a_smaller_fence_is_refused,
            every_subscription_is_owed_every_object,
            a_version_that_came_meanwhile_is_still_owed,
            what_was_given_up_is_owed_again_after_a_change,
            another_receiver_knows_nothing,
            an_object_ends_when_its_end_is_delivered,
            there_is_an_end_to_subscriptions,
        }
    };
}
pub(crate) use with_cases;

/// A database that nothing else uses.
pub(crate) struct Place {
    pub(crate) store: Store,
}

impl Place {
    pub(crate) fn new(database: Database) -> Self {
        let store = Store::open(&database, Presence::Alone).unwrap();
        Self { store }
    }

    pub(crate) async fn subscribe(&self, id: &str, url: &str) -> PutSubscription {
        let subscription = NewSubscription {
            url: url.into(),
            rate: None,
            secret: NewSecret::Kept,
        };
        let put = self.store.put_subscription(id.into(), subscription);
        put.await.unwrap()
    }

    pub(crate) async fn put(&self, id: &str) -> i64 {
        let change = self.store.put_object(id.into(), "{}".into()).await;
        change.unwrap().version
    }

    pub(crate) async fn task(&self, key: &Key) -> Option<Task> {
        self.store.task(key).await.unwrap()
    }

    pub(crate) async fn deliver(&self, key: &Key) {
        let task = self.task(key).await.unwrap();
        self.store.record_delivered(key, &task, None).await.unwrap();
    }

    pub(crate) async fn owed(&self, state: State) -> Vec<String> {
        let owed = self.store.owed(state, None, 100).await.unwrap();
        let len = self.store.owed_len(state).await.unwrap();
        assert_eq!(usize::try_from(len), Ok(owed.len()));
        owed.iter().map(|owed| owed.key.to_string()).collect()
    }
}

/// Begins a change of an object, and stops within it until something is sent, as a process does
/// that is stopped.
#[allow(dead_code, reason = "only a PostgreSQL has several processes")]
pub(crate) async fn stop_within_a_change(
    store: &Store,
    may_go_on: std::sync::mpsc::Receiver<()>,
) -> tokio::task::JoinHandle<Result<(), StoreError>> {
    let (stopped, has_stopped) = oneshot::channel();
    let work = move |db: &mut Db<'_>| {
        objects::next_version(db)?;
        let _ = stopped.send(());
        let _ = may_go_on.recv();
        objects::next_version(db).map(drop)
    };
    let store = store.clone();
    let task = tokio::spawn(async move { store.run(Scope::Change, work).await });
    has_stopped.await.unwrap();
    task
}

pub(crate) async fn every_subscription_is_owed_every_object(place: Place) {
    assert_eq!(place.subscribe("s", "u").await, PutSubscription::Created);
    place.put("a").await;
    place.put("b").await;
    place.subscribe("t", "u").await;
    assert_eq!(
        place.owed(State::Pending).await,
        ["s/a", "s/b", "t/a", "t/b"]
    );

    place.deliver(&Key::new("s", "a")).await;
    assert_eq!(place.owed(State::Pending).await, ["s/b", "t/a", "t/b"]);
    assert!(place.task(&Key::new("s", "a")).await.is_none());
    let after = Some(Key::new("s", "b"));
    let rest = place.store.owed(State::Pending, after, 1).await.unwrap();
    assert_eq!(rest[0].key, Key::new("t", "a"));
    assert_eq!(rest.len(), 1);
}

pub(crate) async fn a_version_that_came_meanwhile_is_still_owed(place: Place) {
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    let first = place.put("a").await;
    let task = place.task(&key).await.unwrap();
    let second = place.put("a").await;
    assert!(second > first);
    place
        .store
        .record_failed(&key, &task, "x".into(), None)
        .await
        .unwrap();
    assert_eq!(place.owed(State::Failed).await, [""; 0]);
    place
        .store
        .record_delivered(&key, &task, None)
        .await
        .unwrap();
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    assert_eq!(place.task(&key).await.unwrap().version, second);
}

pub(crate) async fn what_was_given_up_is_owed_again_after_a_change(place: Place) {
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    for revive in ["object", "subscription"] {
        place.put("a").await;
        let task = place.task(&key).await.unwrap();
        place
            .store
            .record_failed(&key, &task, "x".into(), None)
            .await
            .unwrap();
        assert_eq!(place.owed(State::Failed).await, ["s/a"]);
        match revive {
            "object" => drop(place.put("a").await),
            _ => assert_eq!(place.subscribe("s", "u").await, PutSubscription::Changed),
        }
        assert_eq!(place.owed(State::Failed).await, [""; 0]);
        assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    }
}

pub(crate) async fn another_receiver_knows_nothing(place: Place) {
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    place.put("a").await;
    let task = place.task(&key).await.unwrap();
    place.subscribe("s", "v").await;
    // The old receiver's answer comes late.
    place
        .store
        .record_delivered(&key, &task, None)
        .await
        .unwrap();
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    place.deliver(&key).await;
    place.subscribe("s", "v").await;
    assert_eq!(place.owed(State::Pending).await, [""; 0]);
    place.subscribe("s", "u").await;
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
}

pub(crate) async fn an_object_ends_when_its_end_is_delivered(place: Place) {
    place.subscribe("s", "u").await;
    place.subscribe("t", "u").await;
    let first = place.put("a").await;
    place.deliver(&Key::new("s", "a")).await;
    let change = place
        .store
        .delete_object("a".into())
        .await
        .unwrap()
        .unwrap();
    assert!(change.version > first);
    assert_eq!(place.store.object("a".into()).await.unwrap(), None);
    assert_eq!(place.store.delete_object("a".into()).await.unwrap(), None);
    assert_eq!(place.owed(State::Pending).await, ["s/a", "t/a"]);
    // Who comes later need not hear of it.
    place.subscribe("w", "u").await;
    assert_eq!(place.owed(State::Pending).await, ["s/a", "t/a"]);

    assert!(
        place
            .task(&Key::new("s", "a"))
            .await
            .unwrap()
            .body
            .is_none()
    );
    place.deliver(&Key::new("s", "a")).await;
    assert!(place.store.delete_subscription("t".into()).await.unwrap());
    assert_eq!(place.owed(State::Pending).await, [""; 0]);
    let left = |db: &mut Db<'_>| db.row("SELECT id FROM objects", &[], |row| row.id(0));
    assert_eq!(place.store.run(Scope::Read, left).await.unwrap(), None);
    // Its versions go on.
    assert!(place.put("a").await > change.version);
}

pub(crate) async fn there_is_an_end_to_subscriptions(place: Place) {
    // At once, so that they share transactions.
    let mut puts = tokio::task::JoinSet::new();
    for id in 0..subscriptions::SUBSCRIPTIONS_MAX {
        let store = place.store.clone();
        puts.spawn(async move {
            let subscription = NewSubscription {
                url: "u".into(),
                rate: None,
                secret: NewSecret::Kept,
            };
            store
                .put_subscription(id.to_string().into(), subscription)
                .await
        });
    }
    for put in puts.join_all().await {
        assert_eq!(put.unwrap(), PutSubscription::Created);
    }
    assert_eq!(place.subscribe("x", "u").await, PutSubscription::TooMany);
    assert_eq!(place.subscribe("7", "v").await, PutSubscription::Changed);
    assert_eq!(place.store.subscriptions().await.unwrap().len(), 1000);
}

pub(crate) async fn work_that_fails_leaves_nothing_and_spoils_nothing(place: Place) {
    let half = place.store.run(Scope::Change, |db| {
        db.execute("INSERT INTO objects VALUES ('a', 1, '{}')", &[])?;
        db.execute("INSERT INTO objects VALUES ('a', 2, '{}')", &[])
    });
    let (half, whole) = tokio::join!(half, place.store.put_object("b".into(), "{}".into()));
    let error = half.unwrap_err().to_string().to_lowercase();
    assert!(error.contains("unique"), "{error}");
    assert_eq!(whole.unwrap().version, 1);
    assert_eq!(place.store.object("a".into()).await.unwrap(), None);
}

pub(crate) async fn a_write_with_a_smaller_fence_is_refused(place: Place) {
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    place.put("a").await;
    let task = place.task(&key).await.unwrap();
    let deliver = |fence| place.store.record_delivered(&key, &task, Some(fence));
    let fail = |fence| {
        place
            .store
            .record_failed(&key, &task, "x".into(), Some(fence))
    };
    let refused = |error: StoreError| match error {
        StoreError::Fenced(stale) => (stale.fence, stale.stored),
        error => panic!("{error}"),
    };
    assert!(fail(7).await.unwrap());
    assert_eq!(refused(deliver(6).await.unwrap_err()), (6, 7));
    assert_eq!(place.owed(State::Failed).await, ["s/a"]);
    // It is the shard's next owner, and delivers the next version.
    place.put("a").await;
    assert_eq!(refused(fail(5).await.unwrap_err()), (5, 7));
    deliver(8).await.unwrap();
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    // Nothing to record is not refused.
    assert!(!fail(8).await.unwrap());

    assert_eq!(place.store.reset_fences().await.unwrap(), 1);
    deliver(1).await.unwrap();
    // In one process nothing is checked, and fences stay.
    place.deliver(&key).await;
    assert_eq!(place.owed(State::Pending).await, [""; 0]);
    place.put("a").await;
    assert_eq!(refused(deliver(0).await.unwrap_err()), (0, 1));
}
