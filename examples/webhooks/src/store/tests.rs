//! What is owed, and when it no longer is.

use std::sync::Arc;

use super::*;
use crate::key::Key;

struct Place {
    store: Store,
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("db")).unwrap();
        Self { store, folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("db")
    }

    async fn subscribe(&self, id: &str, url: &str) -> PutSubscription {
        let subscription = Subscription {
            url: url.into(),
            rate: None,
            secret: None,
        };
        let put = self.store.put_subscription(id.into(), subscription);
        let put = put.await.unwrap();
        self.fill(id).await;
        put
    }

    /// Goes on to the end with pages of two.
    async fn fill(&self, id: &str) {
        let mut next = Some("".into());
        while let Some(after) = next {
            next = self.store.owe(id.into(), after, 2).await.unwrap().next;
        }
    }

    async fn unsubscribe(&self, id: &str) -> bool {
        let is_deleted = self.store.delete_subscription(id.into()).await.unwrap();
        while !self.store.clear(id.into(), 2).await.unwrap() {}
        is_deleted
    }

    async fn put(&self, id: &str) -> i64 {
        let change = self.store.put_object(id.into(), "{}".into()).await;
        change.unwrap().version
    }

    async fn task(&self, key: &Key) -> Option<Task> {
        self.store.task(key).await.unwrap()
    }

    async fn deliver(&self, key: &Key) {
        let task = self.task(key).await.unwrap();
        self.store.record_delivered(key, &task).await.unwrap();
    }

    async fn owed(&self, state: State) -> Vec<String> {
        let owed = self.store.owed(state, None, 100).await.unwrap();
        let len = self.store.owed_len(state).await.unwrap();
        assert_eq!(usize::try_from(len), Ok(owed.len()));
        owed.iter().map(|owed| owed.key.to_string()).collect()
    }
}

#[tokio::test]
async fn every_subscription_is_owed_every_object() {
    let place = Place::new();
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

#[tokio::test]
async fn a_version_that_came_meanwhile_is_still_owed() {
    let place = Place::new();
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    let first = place.put("a").await;
    let task = place.task(&key).await.unwrap();
    let second = place.put("a").await;
    assert!(second > first);
    place
        .store
        .record_failed(&key, &task, "x".into())
        .await
        .unwrap();
    assert_eq!(place.owed(State::Failed).await, [""; 0]);
    place.store.record_delivered(&key, &task).await.unwrap();
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    assert_eq!(place.task(&key).await.unwrap().version, second);
}

#[tokio::test]
async fn what_was_given_up_is_owed_again_after_a_change() {
    let place = Place::new();
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    for revive in ["object", "subscription"] {
        place.put("a").await;
        let task = place.task(&key).await.unwrap();
        place
            .store
            .record_failed(&key, &task, "x".into())
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

#[tokio::test]
async fn another_receiver_knows_nothing() {
    let place = Place::new();
    let key = Key::new("s", "a");
    place.subscribe("s", "u").await;
    place.put("a").await;
    let task = place.task(&key).await.unwrap();
    place.subscribe("s", "v").await;
    // The old receiver's answer comes late.
    place.store.record_delivered(&key, &task).await.unwrap();
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
    place.deliver(&key).await;
    place.subscribe("s", "v").await;
    assert_eq!(place.owed(State::Pending).await, [""; 0]);
    place.subscribe("s", "u").await;
    assert_eq!(place.owed(State::Pending).await, ["s/a"]);
}

#[tokio::test]
async fn an_object_ends_when_its_end_is_delivered() {
    let place = Place::new();
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
    assert!(place.unsubscribe("t").await);
    assert_eq!(place.owed(State::Pending).await, [""; 0]);
    let left = |db: &Connection| db.query_row("SELECT count(*) FROM objects", [], |r| r.get(0));
    assert_eq!(place.store.run::<i64>(left).await.unwrap(), 0);
    // Its versions go on.
    assert!(place.put("a").await > change.version);
}

#[tokio::test]
async fn there_is_an_end_to_subscriptions() {
    let place = Place::new();
    // At once, so that they share transactions.
    let mut puts = tokio::task::JoinSet::new();
    for id in 0..subscriptions::SUBSCRIPTIONS_MAX {
        let store = place.store.clone();
        puts.spawn(async move {
            let subscription = Subscription {
                url: "u".into(),
                rate: None,
                secret: None,
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

#[tokio::test]
async fn work_that_fails_leaves_nothing_and_spoils_nothing() {
    let place = Place::new();
    let half = place.store.run(|db| {
        db.execute("INSERT INTO objects VALUES ('a', 1, '{}')", [])?;
        db.execute("INSERT INTO objects VALUES ('a', 2, '{}')", [])
    });
    let (half, whole) = tokio::join!(half, place.store.put_object("b".into(), "{}".into()));
    assert!(half.unwrap_err().to_string().contains("UNIQUE"));
    assert_eq!(whole.unwrap().version, 1);
    assert_eq!(place.store.object("a".into()).await.unwrap(), None);
}

#[tokio::test]
async fn a_database_is_one_process_s_own_and_is_found_again() {
    let place = Place::new();
    place.subscribe("s", "u").await;
    place.put("a").await;
    let second = Store::open(&place.path()).err().unwrap();
    assert!(second.contains("another process"), "{second}");

    place.store.close().await;
    let closed = place.store.check().await.unwrap_err();
    assert!(matches!(closed, StoreError::Closed));
    let again = Store::open(&place.path()).unwrap();
    again.check().await.unwrap();
    let owed = again.owed(State::Pending, None, 10).await.unwrap();
    assert_eq!(owed[0].key, Key::new("s", "a"));
    again.close().await;
}

#[cfg(unix)]
#[tokio::test]
async fn only_the_owner_reads_the_secrets() {
    use std::os::unix::fs::MetadataExt;

    let place = Place::new();
    place.put("a").await;
    for file in std::fs::read_dir(place.folder.path()).unwrap() {
        let mode = file.unwrap().metadata().unwrap().mode();
        assert_eq!(mode & 0o077, 0);
    }
}

#[tokio::test]
async fn something_else_is_left_alone() {
    let place = Place::new();
    let path = place.folder.path().join("other");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE t (x)").unwrap();
    drop(other);
    let error = Store::open(&path).err().unwrap();
    assert!(error.contains("version 0"), "{error}");
    std::fs::write(
        &path,
        "no database, but long enough to be looked at ".repeat(99),
    )
    .unwrap();
    assert!(Store::open(&path).is_err());
}

#[test]
fn ids_share_their_text() {
    let key = Key::new("s", "a");
    assert!(Arc::ptr_eq(&key.clone().object, &key.object));
}

#[tokio::test]
async fn a_database_of_the_first_version_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let old = Connection::open(&path).unwrap();
    old.execute_batch(include_str!("first.sql")).unwrap();
    drop(old);
    for _ in 0..2 {
        let store = Store::open(&path).unwrap();
        let owed = store.owed(State::Pending, None, 10).await.unwrap();
        assert_eq!(owed[0].key, Key::new("s", "a"));
        let found = store.subscription("s".into()).await.unwrap().unwrap();
        assert_eq!((found.url.as_str(), found.secret), ("u", None));
        store.close().await;
    }
}

#[tokio::test]
async fn a_subscription_that_was_broken_off_is_found_and_ended() {
    let place = Place::new();
    for object in ["a", "b", "c", "d", "e"] {
        place.put(object).await;
    }
    let subscription = Subscription {
        url: "u".into(),
        rate: None,
        secret: None,
    };
    let put = place.store.put_subscription("s".into(), subscription);
    put.await.unwrap();
    let page = place.store.owe("s".into(), "".into(), 2).await.unwrap();
    assert_eq!(page.objects, ["a".into(), "b".into()]);
    assert_eq!(place.owed(State::Pending).await, ["s/a", "s/b"]);
    // What is put meanwhile is owed at once, and delivered once.
    place.put("d").await;
    place.deliver(&Key::new("s", "d")).await;

    place.store.close().await;
    let store = Store::open(&place.path()).unwrap();
    let place = Place { store, ..place };
    assert_eq!(place.store.unfilled().await.unwrap(), ["s".into()]);
    place.fill("s").await;
    let expected = ["s/a", "s/b", "s/c", "s/e"];
    assert_eq!(place.owed(State::Pending).await, expected);
    assert_eq!(place.store.unfilled().await.unwrap(), []);
}

#[tokio::test]
async fn an_unsubscription_that_was_broken_off_is_found_and_ended() {
    let place = Place::new();
    for id in ["q", "s", "t"] {
        place.subscribe(id, "u").await;
    }
    for object in ["a", "b", "c"] {
        place.put(object).await;
    }
    for id in ["q", "t"] {
        assert!(place.store.delete_subscription(id.into()).await.unwrap());
    }
    assert!(!place.store.clear("q".into(), 2).await.unwrap());
    let uncleared = place.store.uncleared().await.unwrap();
    assert_eq!(uncleared, ["q".into(), "t".into()]);
    assert!(place.store.clear("q".into(), 2).await.unwrap());
    // One that is put again meanwhile is a new one, and loses nothing.
    place.subscribe("t", "u").await;
    assert!(place.store.clear("t".into(), 2).await.unwrap());
    let expected = ["s/a", "s/b", "s/c", "t/a", "t/b", "t/c"];
    assert_eq!(place.owed(State::Pending).await, expected);
    assert_eq!(place.store.uncleared().await.unwrap(), []);
}
