//! Subscriptions to many objects: how long other requests wait, and what a kill leaves.

use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::task::JoinHandle;

use super::*;
use crate::args::Options;
use crate::service::assemble;
use crate::store::faults::{Fault, Faults};
use crate::store::{Database, NewSecret, Presence, State, Store};

const OBJECTS: usize = 20 * PAGE_LEN;

struct Place {
    folder: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { folder }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("db")
    }

    /// Runs SQL while the database is closed.
    fn write(&self, sql: &str) {
        let db = rusqlite::Connection::open(self.path()).unwrap();
        db.execute_batch(sql).unwrap();
    }

    /// A database with many objects.
    async fn with_objects() -> Self {
        let place = Self::new();
        place.store().close().await;
        place.write(&format!(
            "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {OBJECTS})
             INSERT INTO objects SELECT printf('o%06d', i), i, '1' FROM n;
             UPDATE versions SET newest = {OBJECTS};"
        ));
        place
    }

    /// A dispatcher without workers.
    fn open(&self) -> Arc<Dispatcher> {
        dispatcher(self.store())
    }

    fn store(&self) -> Store {
        Store::open(&Database::File(self.path()), Presence::Alone).unwrap()
    }
}

fn dispatcher(store: Store) -> Arc<Dispatcher> {
    let options = Options {
        allow_private: true,
        pause: Duration::from_millis(1),
        ..Options::default()
    };
    let prometheus = PrometheusBuilder::new().build_recorder().handle();
    assemble(&options, store, prometheus).unwrap().dispatcher
}

fn subscription() -> NewSubscription {
    NewSubscription {
        url: "http://127.0.0.1:9/".into(),
        rate: None,
        secret: NewSecret::Kept,
    }
}

/// Puts a subscription, and waits for it however long it takes.
async fn put(dispatcher: Arc<Dispatcher>) {
    let id: Arc<str> = "s".into();
    let put = dispatcher
        .store
        .put_subscription(Arc::clone(&id), subscription());
    put.await.unwrap();
    let host = dispatcher.host_of(&subscription().url);
    dispatcher.shares.set(&id, &host, None, dispatcher.now());
    dispatcher.fill(&id).await;
}

/// Sends one query after the other until `work` has ended. Returns the greatest number of
/// deliveries that were recorded between two answers.
async fn greatest_step<T>(dispatcher: &Dispatcher, work: JoinHandle<T>) -> i64 {
    let owed = async || dispatcher.store.owed_len(State::Pending).await.unwrap();
    let (mut last, mut greatest) = (owed().await, 0);
    while !work.is_finished() {
        let now = owed().await;
        greatest = greatest.max((now - last).abs());
        last = now;
    }
    greatest
}

#[tokio::test]
async fn many_objects_are_owed_a_page_at_a_time() {
    let place = Place::with_objects().await;
    let dispatcher = place.open();
    let (all, page) = (OBJECTS as i64, PAGE_LEN as i64);
    let put = tokio::spawn(put(Arc::clone(&dispatcher)));
    let step = greatest_step(&dispatcher, put).await;
    assert!((1..=3 * page).contains(&step), "{step}");
    assert_eq!(
        dispatcher.store.owed_len(State::Pending).await.unwrap(),
        all
    );
    assert_eq!(dispatcher.queue.len(), OBJECTS);
    let delete = tokio::spawn({
        let dispatcher = Arc::clone(&dispatcher);
        async move { dispatcher.delete_subscription("s".into()).await }
    });
    let step = greatest_step(&dispatcher, delete).await;
    assert!((1..=3 * page).contains(&step), "{step}");
    assert_eq!(dispatcher.store.owed_len(State::Pending).await.unwrap(), 0);
}

#[tokio::test]
async fn what_had_failed_comes_back_a_page_at_a_time() {
    let place = Place::with_objects().await;
    place.write(
        "INSERT INTO subscriptions VALUES ('s', 'http://127.0.0.1:9/', NULL, 1, NULL, NULL);
         INSERT INTO deliveries (subscription, object, delivered, state, error)
         SELECT 's', id, 0, 'failed', 'x' FROM objects",
    );
    let dispatcher = place.open();
    assert_eq!(dispatcher.resume().await.unwrap(), 0);
    let put = tokio::spawn(put(Arc::clone(&dispatcher)));
    let step = greatest_step(&dispatcher, put).await;
    assert!((1..=3 * PAGE_LEN as i64).contains(&step), "{step}");
    assert_eq!(dispatcher.queue.len(), OBJECTS);
}

#[tokio::test]
async fn a_start_goes_on_where_a_kill_broke_off() {
    let place = Place::with_objects().await;
    place.write(
        "INSERT INTO subscriptions VALUES ('s', 'http://127.0.0.1:9/', NULL, 1, NULL, 'o000007');
         INSERT INTO deliveries (subscription, object, state)
         SELECT id, object, 'pending' FROM (SELECT 's' AS id UNION ALL SELECT 'gone'),
         (SELECT id AS object FROM objects WHERE id <= 'o000007')",
    );
    let dispatcher = place.open();
    assert_eq!(dispatcher.resume().await.unwrap(), OBJECTS);
    assert_eq!(dispatcher.queue.len(), OBJECTS);
    let owed = dispatcher.store.owed_len(State::Pending).await.unwrap();
    assert_eq!(owed, OBJECTS as i64);
}

/// Waits until the dispatcher has noticed an error, and lists what is owed as it would.
async fn resume_after_error(dispatcher: &Dispatcher) -> usize {
    let noticed = timeout(Duration::from_secs(60), dispatcher.doubt.notified());
    noticed.await.expect("the error was not noticed");
    dispatcher.resume().await.unwrap()
}

#[tokio::test]
async fn a_subscription_that_was_written_despite_an_error_is_filled() {
    let place = Place::with_objects().await;
    let (store, faults) = Faults::open(&place.path());
    let dispatcher = dispatcher(store);
    // The transaction that is answered with the error has been written.
    let put = dispatcher
        .store
        .put_subscription("s".into(), subscription());
    put.await.unwrap();
    faults.arm(Fault::Commit(0));
    let put = dispatcher.put_subscription("s".into(), subscription());
    assert!(put.await.is_err());
    assert_eq!(resume_after_error(&dispatcher).await, OBJECTS);
    assert_eq!(dispatcher.queue.len(), OBJECTS);
}

#[tokio::test]
async fn a_deletion_that_was_written_despite_an_error_is_ended() {
    let place = Place::with_objects().await;
    let (store, faults) = Faults::open(&place.path());
    let dispatcher = dispatcher(store);
    put(Arc::clone(&dispatcher)).await;
    let deleted = dispatcher.store.delete_subscription("s".into());
    assert!(deleted.await.unwrap());
    faults.arm(Fault::Commit(0));
    let deleted = dispatcher.delete_subscription("s".into());
    assert!(deleted.await.is_err());
    assert_eq!(resume_after_error(&dispatcher).await, 0);
    assert_eq!(dispatcher.store.owed_len(State::Pending).await.unwrap(), 0);
}

#[tokio::test]
async fn a_page_that_was_written_despite_an_error_is_queued() {
    let place = Place::with_objects().await;
    let (store, faults) = Faults::open(&place.path());
    let dispatcher = dispatcher(store);
    let id: Arc<str> = "s".into();
    let put = dispatcher
        .store
        .put_subscription(Arc::clone(&id), subscription());
    put.await.unwrap();
    let owe = || dispatcher.store.owe(Arc::clone(&id), "".into(), PAGE_LEN);
    let written = owe().await.unwrap();
    assert_eq!(written.objects.len(), PAGE_LEN);
    faults.arm(Fault::Commit(0));
    let page = dispatcher.page(owe).await.unwrap();
    assert_ne!(page.objects, written.objects);
    assert_eq!(resume_after_error(&dispatcher).await, OBJECTS);
    assert_eq!(dispatcher.queue.len(), OBJECTS);
}
