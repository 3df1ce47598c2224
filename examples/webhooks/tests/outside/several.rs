//! Several processes on one database, here as several stores.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use hyper::Method;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::key::Key;
use crate::store::cases::stop_within_a_change;
use crate::store::{Database, NewSecret, NewSubscription, News, Presence, State, Store};
use crate::support::postgres::Server;
use crate::support::{BROKEN_AFTER, Manner, Place, Receiver, User};

/// Calls a macro with the names of all cases.
macro_rules! with_several {
    ($run:ident) => {
        $run! {
            a_process_alone_keeps_others_out,
            replicas_share_a_database,
            a_password_is_not_shown,
            changes_are_heard_by_others,
            nothing_is_missed_while_the_connection_is_lost,
            a_lost_connection_is_made_again,
            versions_are_committed_in_their_order,
            a_version_that_is_committed_meanwhile_is_still_owed,
            no_change_is_lost_beside_deliveries,
            a_process_that_stops_within_a_change_does_not_hold_up_others,
            a_lock_that_is_kept_is_an_error_and_no_silence,
            a_stop_ends_although_the_server_hangs,
            a_start_is_stopped_although_the_server_hangs,
        }
    };
}
pub(crate) use with_several;

fn open(url: &str, presence: Presence) -> Result<Store, String> {
    Store::open(&Database::Server(url.into(), None), presence)
}

fn replica(url: &str) -> Store {
    open(url, Presence::Shared).unwrap()
}

fn to(url: &str) -> NewSubscription {
    NewSubscription {
        url: url.into(),
        rate: None,
        secret: NewSecret::Kept,
    }
}

async fn subscribe(store: &Store, id: &str, url: &str) {
    store.put_subscription(id.into(), to(url)).await.unwrap();
}

async fn put(store: &Store, id: &str) -> i64 {
    let put = store.put_object(id.into(), "1".into()).await;
    put.unwrap().version
}

/// Collects news until they are what is expected.
async fn until(store: &Store, is_expected: impl Fn(&News) -> bool) -> News {
    let mut all = News::default();
    let hear = async {
        while !is_expected(&all) {
            let news = store.listener().unwrap().next().await;
            all.everything |= news.everything;
            all.subscriptions.extend(news.subscriptions);
            all.objects.extend(news.objects);
        }
    };
    timeout(BROKEN_AFTER, hear).await.unwrap();
    all
}

pub async fn a_process_alone_keeps_others_out(_: &Server, url: String) {
    let alone = open(&url, Presence::Alone).unwrap();
    let error = open(&url, Presence::Alone).err().unwrap();
    assert!(error.contains("another process has it open"), "{error}");
    let error = open(&url, Presence::Shared).err().unwrap();
    assert!(error.contains("a process without --etcd"), "{error}");
    alone.close().await;
    open(&url, Presence::Shared).unwrap().close().await;
    open(&url, Presence::Alone).unwrap().close().await;
}

pub async fn replicas_share_a_database(_: &Server, url: String) {
    // All of them make the tables.
    let mut opened = JoinSet::new();
    for _ in 0..4 {
        let url = url.clone();
        opened.spawn_blocking(move || replica(&url));
    }
    let replicas = opened.join_all().await;
    let version = put(&replicas[0], "a").await;
    for replica in &replicas {
        let object = replica.object("a".into()).await.unwrap().unwrap();
        assert_eq!(object.version, version);
    }
    for replica in &replicas {
        replica.close().await;
    }
}

pub async fn a_password_is_not_shown(_: &Server, url: String) {
    let wrong = url.replace("webhooks@", "webhooks:hush@") + "none";
    let error = open(&wrong, Presence::Alone).err().unwrap();
    assert!(error.contains("does not exist"), "{error}");
    assert!(!error.contains("hush"), "{error}");
}

pub async fn changes_are_heard_by_others(_: &Server, url: String) {
    let (one, two) = (replica(&url), replica(&url));
    for object in ["a", "b", "c"] {
        put(&one, object).await;
    }
    subscribe(&one, "s", "u").await;
    one.delete_object("b".into()).await.unwrap();
    let news = until(&two, |news| {
        news.objects.len() == 3 && news.subscriptions.contains("s")
    })
    .await;
    assert!(!news.everything && news.subscriptions.len() == 1);
    let key = Key::new("s", "b");
    assert_eq!(two.owed_of(&["b".into()]).await.unwrap(), [key]);

    // What a process has changed itself is no news to it.
    put(&two, "d").await;
    let news = until(&one, |news| news.objects.contains("d")).await;
    assert_eq!(news.objects.len(), 1);
    assert!(!news.everything && news.subscriptions.is_empty());
}

/// Ends all connections but that of this query.
const CUT: &str = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid()";

pub async fn nothing_is_missed_while_the_connection_is_lost(server: &Server, url: String) {
    let (one, two) = (replica(&url), replica(&url));
    server.run(&url, CUT).await;
    until(&two, |news| news.everything).await;
    // The first of these may find its own connection lost.
    while one.put_object("a".into(), "1".into()).await.is_err() {}
    until(&two, |news| news.objects.contains("a")).await;
}

pub async fn a_lost_connection_is_made_again(server: &Server, url: String) {
    let store = open(&url, Presence::Alone).unwrap();
    subscribe(&store, "s", "u").await;
    let mut newest = put(&store, "a").await;
    for _ in 0..3 {
        server.run(&url, CUT).await;
        let wait = async {
            loop {
                if let Ok(change) = store.put_object("a".into(), "2".into()).await {
                    assert!(change.version > newest);
                    newest = change.version;
                    return;
                }
            }
        };
        timeout(BROKEN_AFTER, wait).await.unwrap();
        let task = async {
            loop {
                if let Ok(task) = store.task(&Key::new("s", "a")).await {
                    assert_eq!(task.unwrap().version, newest);
                    return;
                }
            }
        };
        timeout(BROKEN_AFTER, task).await.unwrap();
    }
}

pub async fn versions_are_committed_in_their_order(server: &Server, url: String) {
    let mut writers = JoinSet::new();
    for writer in 0..4 {
        let store = replica(&url);
        writers.spawn(async move {
            let mut seen = 0;
            for round in 0..100 {
                let version = put(&store, &format!("o{}", (writer + round) % 7)).await;
                // It follows what any writer has committed before.
                assert!(version > seen);
                seen = version;
                for object in 0..7 {
                    let object = store.object(format!("o{object}").into()).await.unwrap();
                    seen = seen.max(object.map_or(0, |object| object.version));
                }
            }
            seen
        });
    }
    let seen = writers.join_all().await;
    let newest = server
        .run(&url, "SELECT newest FROM webhooks.versions")
        .await;
    assert_eq!(newest, seen.iter().max().map(i64::to_string));
}

/// How many wait for a lock.
const WAITING: &str = "SELECT count(*) FROM pg_stat_activity
    WHERE datname = current_database() AND wait_event_type = 'Lock'";

pub async fn a_version_that_is_committed_meanwhile_is_still_owed(server: &Server, url: String) {
    let (store, key) = (replica(&url), Key::new("s", "a"));
    subscribe(&store, "s", "u").await;
    put(&store, "a").await;
    let task = store.task(&key).await.unwrap().unwrap();
    // What a change of the object holds until it is committed; it writes nothing of the delivery,
    // which is pending already.
    let change = "BEGIN; UPDATE webhooks.objects SET version = version + 1;
        SELECT 1 FROM webhooks.deliveries FOR UPDATE";
    let (committed, may_commit) = std::sync::mpsc::channel();
    let changing = server.transaction(&url, change, may_commit).await;
    let record = tokio::spawn({
        let (store, key) = (store.clone(), key.clone());
        async move { store.record_delivered(&key, &task, None).await }
    });
    let wait = async { while server.run(&url, WAITING).await.as_deref() != Some("1") {} };
    timeout(BROKEN_AFTER, wait).await.unwrap();
    committed.send(()).unwrap();
    changing.await.unwrap();
    record.await.unwrap().unwrap();
    let owed = store.owed(State::Pending, None, 10).await.unwrap();
    assert_eq!(owed.len(), 1);
    store.close().await;
}

/// Less than a client waits for an answer, and far more than a change waits for a lock.
const HELD_UP: Duration = Duration::from_secs(20);

pub async fn a_process_that_stops_within_a_change_does_not_hold_up_others(_: &Server, url: String) {
    let (one, two) = (replica(&url), replica(&url));
    let (go_on, may_go_on) = std::sync::mpsc::channel();
    let stopped = stop_within_a_change(&one, may_go_on).await;
    timeout(HELD_UP, put(&two, "a")).await.unwrap();
    go_on.send(()).unwrap();
    // It has lost its transaction, and makes the next one.
    stopped.await.unwrap().unwrap_err();
    put(&one, "b").await;
    let versions = [two.object("a".into()).await, two.object("b".into()).await];
    let versions = versions.map(|object| object.unwrap().unwrap().version);
    assert_eq!(versions, [1, 2]);
    one.close().await;
    two.close().await;
}

pub async fn a_lock_that_is_kept_is_an_error_and_no_silence(server: &Server, url: String) {
    let store = replica(&url);
    let keep = "BEGIN; SELECT newest FROM webhooks.versions FOR UPDATE";
    let (committed, may_commit) = std::sync::mpsc::channel();
    let keeping = server.transaction(&url, keep, may_commit).await;
    let put = store.put_object("a".into(), "1".into());
    let error = timeout(HELD_UP, put).await.unwrap().unwrap_err();
    assert!(error.to_string().contains("lock timeout"), "{error}");
    committed.send(()).unwrap();
    keeping.await.unwrap();
    store.put_object("a".into(), "1".into()).await.unwrap();
    store.close().await;
}

pub async fn a_stop_ends_although_the_server_hangs(server: &Server, _: String) {
    let (url, proxy) = server.proxied().await;
    let (place, user) = (Place::new(), User::new());
    let service = place.start_on(&url, &["--allow-private", "--grace", "1"]);
    let receiver = Receiver::new(Manner::Steady).await;
    user.subscribe(&service, "s", &receiver).await;
    proxy.hang();
    // A request is under way as well.
    let (asking, address) = (user.clone(), service.address);
    tokio::spawn(async move { asking.ask(address, Method::PUT, "/objects/o", "1").await });
    let ended = timeout(BROKEN_AFTER, service.terminate()).await;
    assert_eq!(ended.unwrap().code(), Some(0));
    let said = place.said();
    assert!(said.contains("the database did not answer"), "{said}");
}

pub async fn a_start_is_stopped_although_the_server_hangs(server: &Server, _: String) {
    let (url, proxy) = server.proxied().await;
    proxy.hang();
    let service = Place::new().begin_on(&url, &[]);
    proxy.until_connected().await;
    let ended = timeout(BROKEN_AFTER, service.terminate()).await;
    assert_eq!(ended.unwrap().code(), Some(0));
}

/// What each receiver got: by its URL and the object the greatest version, and whether that was
/// the end of the object.
type Known = Arc<Mutex<HashMap<(String, String), (i64, bool)>>>;

const SUBSCRIPTIONS: [&str; 3] = ["s", "t", "w"];

pub async fn no_change_is_lost_beside_deliveries(server: &Server, url: String) {
    let store = replica(&url);
    for id in SUBSCRIPTIONS {
        subscribe(&store, id, "u0").await;
    }
    let known = Known::default();
    let mut busy = JoinSet::new();
    for worker in 0..6 {
        busy.spawn(deliver(replica(&url), Arc::clone(&known), worker));
    }
    for writer in 0..2 {
        let store = replica(&url);
        busy.spawn(async move {
            for round in 0..150 {
                let object = format!("o{}", (writer * 3 + round * 5) % 8);
                match round % 5 {
                    4 => drop(store.delete_object(object.into()).await.unwrap()),
                    _ => drop(put(&store, &object).await),
                }
            }
        });
    }
    let other = replica(&url);
    let subscriber = other.clone();
    busy.spawn(async move {
        let other = subscriber;
        for round in 1..40 {
            let id = SUBSCRIPTIONS[round % 3];
            if round % 4 == 0 {
                other.delete_subscription(id.into()).await.unwrap();
            }
            subscribe(&other, id, &format!("u{round}")).await;
        }
    });
    timeout(BROKEN_AFTER, busy.join_all()).await.unwrap();
    other.close().await;
    // What is still owed is delivered now; then nothing is lacking.
    timeout(BROKEN_AFTER, deliver(store.clone(), Arc::clone(&known), 0))
        .await
        .unwrap();
    assert_known(&store, &known).await;
    for sql in [
        "SELECT count(*) FROM webhooks.objects o WHERE body IS NULL",
        "SELECT count(*) - count(DISTINCT version) FROM webhooks.objects",
        "SELECT count(*) FROM webhooks.deliveries d JOIN webhooks.objects o ON o.id = d.object
         WHERE d.state IS NOT NULL OR d.delivered <> o.version",
    ] {
        assert_eq!(server.run(&url, sql).await.as_deref(), Some("0"), "{sql}");
    }
}

/// Delivers what is owed, from some key on, until nothing has been owed for several rounds.
async fn deliver(store: Store, known: Known, worker: usize) {
    let mut idle = 0;
    while idle < 50 {
        let owed = store.owed(State::Pending, None, 100).await.unwrap();
        idle += usize::from(owed.is_empty());
        let keys = owed.iter().map(|owed| &owed.key);
        for key in keys
            .skip(worker * 3)
            .step_by(2)
            .chain(owed.first().map(|owed| &owed.key))
        {
            let Some(task) = store.task(key).await.unwrap() else {
                continue;
            };
            let place = (task.url.clone(), key.object.to_string());
            let came = (task.version, task.body.is_none());
            known
                .lock()
                .unwrap()
                .entry(place)
                .and_modify(|known| *known = came.max(*known))
                .or_insert(came);
            store.record_delivered(key, &task, None).await.unwrap();
        }
    }
}

async fn assert_known(store: &Store, known: &Known) {
    for (id, subscription) in store.subscriptions().await.unwrap() {
        for object in (0..8).map(|object| format!("o{object}")) {
            let place = (subscription.url.clone(), object.clone());
            let known = known.lock().unwrap().get(&place).copied();
            let found = store.object(object.as_str().into()).await.unwrap();
            let lacks = || format!("{id} of {object}: {known:?}, {found:?}");
            match &found {
                Some(found) => assert_eq!(known, Some((found.version, false)), "{}", lacks()),
                None => assert!(known.is_none_or(|(_, is_end)| is_end), "{}", lacks()),
            }
        }
    }
}
