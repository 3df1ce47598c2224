//! Nothing that is owed is forgotten, wherever the database fails, and no receiver pays for the
//! failures of another.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::Path;
use std::sync::Mutex as Blocking;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::http::Uri;
use axum::{Json, Router};
use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::Value;
use tokio::net::{TcpListener, TcpSocket};
use tokio::time::timeout;

use super::*;
use crate::args::Options;
use crate::service::assemble;
use crate::store::faults::{Fault, Faults};
use crate::store::{Database, NewSecret, NewSubscription, Presence};

/// Longer than anything takes that happens at all.
pub(crate) const BROKEN_AFTER: Duration = Duration::from_secs(60);

/// What came to a receiver.
#[derive(Clone, Default)]
pub(crate) struct Known {
    /// The newest version of each object that came to each path.
    newest: Arc<Blocking<HashMap<(String, String), i64>>>,
    pub(crate) calls: Arc<AtomicUsize>,
}

pub(crate) async fn receiver() -> (SocketAddr, Known) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, known) = (listener.local_addr().unwrap(), Known::default());
    let shared = known.clone();
    let take = async move |path: Uri, Json(json): Json<Value>| {
        let object = json["object"].as_str().unwrap().to_owned();
        let version = json["version"].as_i64().unwrap();
        let mut known = shared.newest.lock().unwrap();
        let newest = known.entry((path.path().to_owned(), object)).or_default();
        *newest = version.max(*newest);
        shared.calls.fetch_add(1, Ordering::SeqCst);
    };
    let router = Router::new().fallback(take);
    tokio::spawn(async { axum::serve(listener, router).await });
    (address, known)
}

pub(crate) fn dispatcher(store: Store) -> Arc<Dispatcher> {
    let options = Options {
        workers: NonZeroUsize::new(8).unwrap(),
        allow_private: true,
        tries: NonZeroU32::new(2).unwrap(),
        pause: Duration::from_millis(1),
        ..Options::default()
    };
    let prometheus = PrometheusBuilder::new().build_recorder().handle();
    assemble(&options, store, prometheus).unwrap().dispatcher
}

pub(crate) fn open(folder: &tempfile::TempDir) -> Store {
    let database = Database::File(folder.path().join("db"));
    Store::open(&database, Presence::Alone).unwrap()
}

pub(crate) fn to(address: SocketAddr, path: &str) -> NewSubscription {
    NewSubscription {
        url: format!("http://{address}{path}"),
        rate: None,
        secret: NewSecret::Kept,
    }
}

/// Changes everything that can be changed. Any of it may fail.
async fn change(dispatcher: &Arc<Dispatcher>, address: SocketAddr, round: i64) {
    let body = || round.to_string();
    let path = format!("/t{}", round % 2);
    let _ = tokio::join!(
        dispatcher.put_object("a".into(), body()),
        dispatcher.put_subscription("t".into(), to(address, &path)),
        dispatcher.put_object("b".into(), body()),
        dispatcher.delete_object("c".into()),
        dispatcher.delete_subscription("d".into()),
    );
    let _ = dispatcher.put_object("c".into(), body()).await;
    let _ = dispatcher
        .put_subscription("d".into(), to(address, "/d"))
        .await;
}

pub(crate) async fn settle(dispatcher: &Dispatcher) {
    // Each query waits for the database, and so leaves time to the workers.
    let store = &dispatcher.store;
    while !matches!(store.owed_len(State::Pending).await, Ok(0)) {
        tokio::task::yield_now().await;
    }
}

/// Every subscriber has the newest version of everything.
async fn assert_known(store: &Store, known: &Known) {
    for (_, subscription) in store.subscriptions().await.unwrap() {
        let url: Uri = subscription.url.parse().unwrap();
        for id in ["a", "b", "c"] {
            let Some(object) = store.object(id.into()).await.unwrap() else {
                continue;
            };
            let place = (url.path().to_owned(), id.to_owned());
            let version = known.newest.lock().unwrap().get(&place).copied();
            let is_down = url.path() == "/down";
            assert_eq!(version, (!is_down).then_some(object.version), "{place:?}");
        }
    }
}

async fn assert_all_delivered(path: &Path, rounds: i64, kind: fn(i64) -> Fault) {
    let (store, faults) = Faults::open(path);
    let dispatcher = dispatcher(store);
    let (address, known) = receiver().await;
    // The port is taken, and no server listens.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let down = to(socket.local_addr().unwrap(), "/down");
    dispatcher
        .put_subscription("down".into(), down)
        .await
        .unwrap();
    dispatcher
        .put_subscription("s".into(), to(address, "/s"))
        .await
        .unwrap();
    let crew = tokio::spawn(Arc::clone(&dispatcher).employ(8));
    let mut failures = 0;
    for round in 0..rounds {
        faults.arm(kind(round));
        change(&dispatcher, address, round).await;
        let settled = timeout(BROKEN_AFTER, settle(&dispatcher)).await;
        assert!(settled.is_ok(), "pending for ever after {:?}", kind(round));
        failures += i64::from(faults.disarm());
        assert_known(&dispatcher.store, &known).await;
    }
    assert!(failures > rounds / 2, "{failures} of {rounds}");
    dispatcher.queue.shut_down();
    crew.await.unwrap();
}

#[tokio::test]
async fn all_is_delivered_wherever_a_step_of_the_database_fails() {
    let folder = tempfile::tempdir().unwrap();
    assert_all_delivered(&folder.path().join("db"), 200, |round| {
        Fault::Step(round * 23)
    })
    .await;
}

#[tokio::test]
async fn all_is_delivered_whichever_commit_fails() {
    let folder = tempfile::tempdir().unwrap();
    assert_all_delivered(&folder.path().join("db"), 30, Fault::Commit).await;
}

#[tokio::test]
async fn what_was_written_during_a_run_is_listed_for_another() {
    let folder = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(open(&folder));
    let nowhere = to(SocketAddr::from(([127, 0, 0, 1], 1)), "/");
    dispatcher
        .put_subscription("s".into(), nowhere)
        .await
        .unwrap();
    dispatcher.put_object("a".into(), "1".into()).await.unwrap();
    let guard = dispatcher.queue.get().await.unwrap();
    // As if this had been answered with an error: the key is not added.
    dispatcher
        .store
        .put_object("a".into(), "2".into())
        .await
        .unwrap();
    dispatcher.resume().await.unwrap();
    guard.success();
    assert!(dispatcher.queue.contains(&Key::new("s", "a")));
}

#[tokio::test]
async fn a_subscription_that_was_written_despite_an_error_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let (store, faults) = Faults::open(&folder.path().join("db"));
    let dispatcher = dispatcher(store);
    dispatcher.put_object("a".into(), "1".into()).await.unwrap();
    let nowhere = || to(SocketAddr::from(([127, 0, 0, 1], 1)), "/");
    let put = dispatcher.store.put_subscription("s".into(), nowhere());
    put.await.unwrap();
    // As if that had been answered with this error.
    faults.arm(Fault::Commit(0));
    let put = dispatcher.put_subscription("s".into(), nowhere());
    assert!(put.await.is_err());
    assert!(dispatcher.queue.is_empty());
    let noticed = timeout(BROKEN_AFTER, dispatcher.doubt.notified());
    noticed.await.expect("the error was not noticed");
    assert_eq!(dispatcher.resume().await.unwrap(), 1);
    assert!(dispatcher.queue.contains(&Key::new("s", "a")));
    assert!(dispatcher.shares.is_set("s", "127.0.0.1:1", None));
}

#[tokio::test]
async fn a_pause_after_a_failure_is_the_key_s_own() {
    let folder = tempfile::tempdir().unwrap();
    let dispatcher = dispatcher(open(&folder));
    for object in 0..100_000 {
        let key = Key::new("failing", object.to_string());
        dispatcher.queue.add_rate_limited(key).unwrap();
    }
    let key = Key::new("other", "o");
    let limited = dispatcher.queue.add_rate_limited(key).unwrap();
    assert_eq!(limited.delay, dispatcher.pause);
}
