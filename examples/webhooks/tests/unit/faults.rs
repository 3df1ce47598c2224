//! A database that fails at any step a test chooses, and what must hold nevertheless.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

use super::*;
use crate::key::Key;

/// Makes a store fail, once for each time that it is armed.
#[derive(Clone)]
pub(crate) struct Faults {
    /// Steps of SQLite's machine until one is interrupted. SQLite rolls the whole transaction back
    /// then, unless it was reading or has just committed.
    steps_left: Arc<AtomicI64>,
    /// How many steps later the next one is interrupted.
    period: Arc<AtomicI64>,
    /// Transactions until one cannot be committed.
    commits_left: Arc<AtomicI64>,
}

/// Where a store fails.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Step(i64),
    /// Again and again.
    EverySteps(i64),
    Commit(i64),
}

const NEVER: i64 = i64::MAX;

impl Faults {
    /// Opens a store that works until a fault is armed.
    pub(crate) fn open(path: &Path) -> (Store, Self) {
        let faults = Self {
            steps_left: Arc::new(AtomicI64::new(NEVER)),
            period: Arc::new(AtomicI64::new(NEVER)),
            commits_left: Arc::new(AtomicI64::new(NEVER)),
        };
        let connection = sqlite::connect(path).unwrap();
        // No test here depends on the disk, and there are thousands of transactions.
        connection
            .execute_batch("PRAGMA synchronous = OFF")
            .unwrap();
        let own = faults.clone();
        let is_due = move || {
            let left = own.steps_left.fetch_sub(1, Ordering::SeqCst);
            left.checked_rem(own.period.load(Ordering::SeqCst)) == Some(0) && left <= 0
        };
        connection.progress_handler(1, Some(is_due));
        let commits_left = Arc::clone(&faults.commits_left);
        let is_due = move || commits_left.fetch_sub(1, Ordering::SeqCst) == 0;
        connection.commit_hook(Some(is_due));
        (Store::Sqlite(sqlite::over(connection).unwrap()), faults)
    }

    pub(crate) fn arm(&self, fault: Fault) {
        let period = match fault {
            Fault::EverySteps(steps) => steps + 1,
            _ => NEVER,
        };
        self.period.store(period, Ordering::SeqCst);
        match fault {
            Fault::Step(steps) | Fault::EverySteps(steps) => {
                self.steps_left.store(steps, Ordering::SeqCst);
            }
            Fault::Commit(commits) => self.commits_left.store(commits, Ordering::SeqCst),
        }
    }

    /// Lets the store work again. Returns whether it has failed.
    pub(crate) fn disarm(&self) -> bool {
        [&self.steps_left, &self.commits_left]
            .map(|left| left.swap(NEVER, Ordering::SeqCst) < 0)
            .contains(&true)
    }
}

/// A store that takes work and never answers, and what keeps it so.
pub(crate) fn silent() -> (Store, impl Sized) {
    let (changes, inbox) = mpsc::unbounded_channel();
    (Store::Sqlite(sqlite::Thread::new(changes)), inbox)
}

/// An object that was put, and the version if that was acknowledged.
struct Put {
    object: String,
    body: String,
    version: Option<i64>,
}

/// A database, and what is known of it from its answers alone.
struct Witness {
    store: Store,
    _folder: tempfile::TempDir,
    faults: Faults,
    /// The greatest version that was acknowledged.
    newest: i64,
    /// What each object was when it was read last.
    objects: HashMap<String, Option<Object>>,
    failures: usize,
}

impl Witness {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, faults) = Faults::open(&folder.path().join("db"));
        let witness = Self {
            store,
            _folder: folder,
            faults,
            newest: 0,
            objects: HashMap::new(),
            failures: 0,
        };
        for id in ["s", "t"] {
            witness.subscribe(id, "u").await.unwrap();
        }
        witness
    }

    async fn subscribe(&self, id: &str, url: &str) -> Result<PutSubscription, StoreError> {
        let subscription = NewSubscription {
            url: url.into(),
            rate: None,
            secret: NewSecret::Kept,
        };
        self.store.put_subscription(id.into(), subscription).await
    }

    async fn put(&self, object: &str, body: String) -> Put {
        let put = self.store.put_object(object.into(), body.clone()).await;
        Put {
            object: object.into(),
            body,
            version: put.ok().map(|change| change.version),
        }
    }

    /// Calls `arm`, does all kinds of work in one transaction, and checks the result. Returns
    /// whether a fault came.
    async fn batch(&mut self, round: i64, names: i64, body_len: usize, arm: impl FnOnce()) -> bool {
        let gone = self.put("gone", "0".into()).await;
        let known = self.put("known", "0".into()).await;
        self.look(vec![gone, known]).await;
        let key = Key::new("s", "known");
        let task = self.store.task(&key).await.unwrap().unwrap();

        // The thread waits until all of them have been sent, and so takes them at once.
        let (begun, has_begun) = oneshot::channel();
        let (go, may_go) = std::sync::mpsc::channel::<()>();
        let held = self.store.run(Scope::Change, move |_| {
            let _ = begun.send(());
            let _ = may_go.recv();
            Ok(())
        });
        let go_on = async {
            has_begun.await.unwrap();
            let begin = async {
                arm();
                go.send(()).unwrap();
            };
            let new = format!("new{}", round % names);
            let body = |name: &str| format!("\"{round} {name} {}\"", "x".repeat(body_len));
            let url = format!("u{round}");
            let (one, delivered, _, two, deleted, _, three, ()) = tokio::join!(
                self.put("a", body("first")),
                self.store.record_delivered(&key, &task, None),
                self.store.task(&key),
                self.put("b", body("only")),
                self.store.delete_object("gone".into()),
                self.subscribe("t", &url),
                self.put("a", body("second")),
                begin,
            );
            let four = self.put(&new, body("new")).await;
            (vec![one, two, three, four], delivered, deleted)
        };
        let (_, (puts, delivered, deleted)) = tokio::join!(held, go_on);
        let has_failed = self.faults.disarm();

        if delivered.is_ok() {
            assert!(self.store.task(&key).await.unwrap().is_none());
        }
        if let Ok(change) = deleted {
            let version = change.unwrap().version;
            assert!(version > self.newest);
            assert_eq!(self.store.object("gone".into()).await.unwrap(), None);
        }
        self.look(puts).await;
        has_failed
    }

    /// Compares the database with its answers: what was acknowledged is there, and what was not is
    /// there in whole or not at all.
    async fn look(&mut self, puts: Vec<Put>) {
        let versions: Vec<i64> = puts.iter().filter_map(|put| put.version).collect();
        for version in &versions {
            assert!(*version > self.newest, "version {version} was given before");
            self.newest = *version;
        }
        self.failures += puts.len() - versions.len();
        for object in puts.iter().map(|put| &put.object) {
            let found = self.store.object(object.as_str().into()).await.unwrap();
            let tried: Vec<&Put> = puts.iter().filter(|put| put.object == *object).collect();
            let acknowledged = tried.iter().rposition(|put| put.version.is_some());
            let is_put = |put: &&Put| {
                let is_version = |found: &Object| put.version.is_none_or(|v| v == found.version);
                found
                    .as_ref()
                    .is_some_and(|found| found.body == put.body && is_version(found))
            };
            let is_old = || acknowledged.is_none() && self.objects.get(object) == Some(&found);
            let is_absent = || acknowledged.is_none() && found.is_none();
            let is_right = tried[acknowledged.unwrap_or(0)..].iter().any(is_put);
            assert!(is_right || is_old() || is_absent(), "{object} is {found:?}");
            self.objects.insert(object.clone(), found);
        }
        self.store
            .run(Scope::Read, assert_consistent)
            .await
            .unwrap();
    }
}

/// No two objects share a version, and every subscription has the newest one or is owed it.
pub(super) fn assert_consistent(db: &mut Db<'_>) -> Result<(), StoreError> {
    let none = [
        "SELECT count(*) - count(DISTINCT version) FROM objects",
        "SELECT count(*) FROM objects JOIN versions ON version > newest",
        "SELECT count(*) FROM objects o JOIN subscriptions s
         LEFT JOIN deliveries d ON d.object = o.id AND d.subscription = s.id
         WHERE o.body IS NOT NULL AND d.state IS NULL AND d.delivered IS DISTINCT FROM o.version",
    ];
    for sql in none {
        let count: Option<i64> = db.row(sql, &[], |row| row.get(0))?;
        assert_eq!(count, Some(0), "{sql}");
    }
    Ok(())
}

#[tokio::test]
async fn a_failure_at_any_step_takes_back_only_what_was_not_acknowledged() {
    let mut witness = Witness::new().await;
    for fault in [
        Fault::Step as fn(i64) -> Fault,
        Fault::EverySteps,
        Fault::Commit,
    ] {
        let mut at = 0;
        let faults = witness.faults.clone();
        while witness.batch(at, 8, 1, || faults.arm(fault(at))).await {
            at += 1;
        }
        assert!(at > 2);
    }
    assert!(witness.failures > 1000, "{}", witness.failures);
}

#[tokio::test]
async fn a_database_that_is_full_at_any_page_takes_back_only_what_was_not_acknowledged() {
    let mut witness = Witness::new().await;
    let limit = |pages: i64| {
        move |db: &mut Db<'_>| match db {
            Db::Sqlite(db) => Ok(limit(db, pages)?),
            Db::Postgres(_) => Ok(()),
        }
    };
    let mut spare = 0;
    loop {
        witness
            .store
            .run(Scope::Change, limit(spare))
            .await
            .unwrap();
        let failures = witness.failures;
        witness.batch(spare, 1000, 100_000, || ()).await;
        if witness.failures == failures {
            break;
        }
        // With room again, it goes on.
        witness
            .store
            .run(Scope::Change, limit(1_000_000))
            .await
            .unwrap();
        spare += 1;
    }
    assert!(spare > 10, "{spare}");
}

/// Lets a database grow by so many pages.
fn limit(db: &Connection, pages: i64) -> rusqlite::Result<()> {
    let used: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let sql = format!("PRAGMA max_page_count = {}", used + pages);
    db.query_row(&sql, [], |_| Ok(()))
}
