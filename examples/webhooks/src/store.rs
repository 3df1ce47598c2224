//! The source of truth: the objects, the subscriptions, and what each subscription has.
//!
//! It is SQLite, for one process, or PostgreSQL, for several. What is asked of it is written once,
//! for both (`db`).
//!
//! No task blocks a thread of the runtime on the disk. With SQLite a thread takes all work that has
//! gathered, does it in one transaction, and answers once that is on the disk: all tasks share the
//! wait. With PostgreSQL each work has a connection and a transaction of its own.
//!
//! # Errors
//!
//! Work that is answered without an error is on the disk. When the disk is full or broken, SQLite
//! may roll the whole transaction back, and with it work that had gone well. Then all work of that
//! transaction is answered with the error, and what had not begun gets another one.
//!
//! An error does not say that nothing was written: the last step may have failed after the
//! transaction was on the disk, and then it is found there, at once or by the next start. That is
//! safe. A transaction is there in whole or not at all, so an object comes with its deliveries; a
//! version that was not acknowledged is never reused; and a request may be repeated. The dispatcher
//! lists what is owed again after each error.
//!
//! # Fences
//!
//! Of several processes one delivers to a subscription at a time, which a lease says. A lease does
//! not stop a process that was paused: what is recorded of a delivery therefore carries the fence
//! of the lease, and is refused if it was recorded under a greater one before.

mod db;
mod deliveries;
mod listen;
mod objects;
mod postgres;
mod sqlite;
mod subscriptions;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use db::Db;

pub(crate) use deliveries::{Stale, State, Task};
pub(crate) use listen::{Listener, News, Presence};
pub(crate) use objects::{Change, Object};
pub(crate) use subscriptions::{NewSecret, NewSubscription, PutSubscription, Subscription};

/// A handle to the database. Clones are handles to the same.
#[derive(Clone)]
pub(crate) enum Store {
    Sqlite(sqlite::Thread),
    Postgres(Arc<postgres::Pool>),
}

/// Which database.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Database {
    /// A file of SQLite.
    File(PathBuf),
    /// The URL of a PostgreSQL, and the password if the URL has none.
    Server(String, Option<String>),
}

/// Why the database failed.
#[derive(Clone, Debug)]
pub(crate) enum StoreError {
    /// SQLite failed.
    Sqlite(Arc<rusqlite::Error>),
    /// PostgreSQL failed, or was not reached.
    Postgres(Arc<::postgres::Error>),
    /// A write came with a fence that is smaller than one that was there before.
    Fenced(Stale),
    /// The database is closed, or gone.
    Closed,
}

/// What work touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// It only reads, with one statement.
    Read,
    /// One delivery.
    Delivery,
    /// Objects or subscriptions, and what is owed of them.
    Change,
}

/// The tables, as SQLite reads them.
///
/// A version is a number that is never reused, so that a receiver that keeps the greatest one is
/// right, whatever was deleted and created again in between.
///
/// `deliveries` has a row for each subscription that has an object, or is owed it. Its `state` is
/// NULL if the newest version was delivered. An object whose `body` is NULL was deleted: it stays
/// until its end is delivered to every subscription.
const TABLES: &str = "
CREATE TABLE versions (newest INTEGER NOT NULL) STRICT;
INSERT INTO versions VALUES (0);

CREATE TABLE subscriptions (
    id TEXT NOT NULL PRIMARY KEY,
    url TEXT NOT NULL,
    rate REAL,
    -- A version of its own, changed with the URL: what the old receiver knows is of no use.
    revision INTEGER NOT NULL,
    secret TEXT
) STRICT;

CREATE TABLE objects (
    id TEXT NOT NULL PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT
) STRICT;
CREATE INDEX deleted_objects ON objects (id) WHERE body IS NULL;

CREATE TABLE deliveries (
    subscription TEXT NOT NULL,
    object TEXT NOT NULL,
    delivered INTEGER NOT NULL DEFAULT 0,
    state TEXT CHECK (state IN ('pending', 'failed')),
    error TEXT,
    -- What delivers in place of another writes with a greater one. Zero in one process.
    fence INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (subscription, object)
) STRICT, WITHOUT ROWID;
CREATE INDEX deliveries_by_object ON deliveries (object);
CREATE INDEX owed_deliveries ON deliveries (state, subscription, object) WHERE state IS NOT NULL;
";

/// Changes with the tables.
const VERSION: i64 = 4;

impl Database {
    /// Understands the URL of a PostgreSQL, and takes everything else for a file.
    pub(crate) fn parse(text: &Path) -> Self {
        let text = text.as_os_str();
        match text.to_str() {
            Some(url) if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
                Self::Server(url.to_owned(), std::env::var("PGPASSWORD").ok())
            }
            _ => Self::File(text.into()),
        }
    }
}

/// Shows no password.
impl fmt::Debug for Database {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
            Self::Server(..) => f.write_str("Server"),
        }
    }
}

impl Store {
    /// Opens a database, and makes it if it is not there. A file is for this process alone.
    pub(crate) fn open(database: &Database, presence: Presence) -> Result<Self, String> {
        match (database, presence) {
            (Database::File(path), Presence::Alone) => sqlite::open(path).map(Self::Sqlite),
            (Database::File(_), Presence::Shared) => {
                Err("replicas need a database that they share: postgres://…".into())
            }
            (Database::Server(url, password), _) => {
                let config = postgres::parse(url, password.clone())?;
                let pool = postgres::open(config, presence)?;
                Ok(Self::Postgres(Arc::new(pool)))
            }
        }
    }

    /// Returns `Ok` if the database works.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let ask = |db: &mut Db<'_>| db.row("SELECT 1", &[], |_| Ok(())).map(drop);
        self.run(Scope::Read, ask).await
    }

    /// Returns what hears of the changes of other processes, if there may be others.
    pub(crate) fn listener(&self) -> Option<&Listener> {
        match self {
            Self::Sqlite(_) => None,
            Self::Postgres(pool) => Some(pool.listener()),
        }
    }

    /// Finishes what was asked before, and closes the database.
    pub(crate) async fn close(&self) {
        match self {
            Self::Sqlite(thread) => thread.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }

    /// Does `work` in a transaction and returns once it is on the disk.
    ///
    /// # Errors
    ///
    /// If the work fails, nothing of it is written. If the transaction fails, nothing is written
    /// either, unless the database failed after it had written it.
    async fn run<T: Send + 'static>(
        &self,
        scope: Scope,
        work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match self {
            Self::Sqlite(thread) => thread.run(work).await,
            Self::Postgres(pool) => pool.run(scope, work).await,
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl From<::postgres::Error> for StoreError {
    fn from(error: ::postgres::Error) -> Self {
        Self::Postgres(Arc::new(error))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "database: {error}"),
            // Without the detail, which may quote what is stored.
            Self::Postgres(error) => match error.as_db_error() {
                Some(said) => write!(f, "database: {} ({})", said.message(), said.code().code()),
                None => write!(f, "database: {error}"),
            },
            Self::Fenced(stale) => stale.fmt(f),
            Self::Closed => f.write_str("the database is closed"),
        }
    }
}

#[cfg(test)]
#[path = "../tests/unit/cases.rs"]
pub(crate) mod cases;
#[cfg(test)]
#[path = "../tests/unit/faults.rs"]
pub(crate) mod faults;
#[cfg(test)]
#[path = "../tests/unit/store.rs"]
mod tests;
