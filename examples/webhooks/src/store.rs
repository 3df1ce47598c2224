//! The source of truth: the objects, the subscriptions, and what each subscription has.
//!
//! It is SQLite, for one process, or PostgreSQL, for several. What is asked of it is written once,
//! for both (`db`).
//!
//! Threads own the connections, so that no task blocks a thread of the runtime on the disk. With
//! SQLite it is one thread. It takes all work that has gathered, does it in one transaction, and
//! answers once that is on the disk: all tasks share the wait. With PostgreSQL, changes of objects
//! are gathered like that; what else is written at the same time shares the wait in the server.
//!
//! # Errors
//!
//! Work that is answered without an error is on the disk. When the disk is full or broken, SQLite
//! may roll the whole transaction back, and with it work that had gone well. Then all work of that
//! transaction is answered with the error, and what had not begun gets another one. With PostgreSQL
//! the same happens if the connection is lost; the next work makes a new one.
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
mod objects;
mod pages;
mod postgres;
mod sqlite;
mod subscriptions;
mod work;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use db::Db;
use work::{Message, Work};

pub(crate) use deliveries::{Stale, State, Task};
pub(crate) use objects::{Change, Object};
pub(crate) use postgres::{Listener, News, Presence, Range};
pub(crate) use subscriptions::{NewSecret, NewSubscription, PutSubscription, Subscription};

/// A handle to the database. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Store {
    /// What changes objects and subscriptions.
    changes: Lane,
    rest: Lane,
    /// Hears of the changes that other processes make, if there may be others.
    listener: Option<Arc<Listener>>,
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
    /// An object, and what is owed of it.
    Object,
    /// Subscriptions, and what is owed to them.
    Change,
}

/// Threads that do the same kind of work.
#[derive(Clone)]
struct Lane {
    messages: mpsc::UnboundedSender<Message>,
    threads: usize,
}

impl Lane {
    fn new(messages: mpsc::UnboundedSender<Message>, threads: usize) -> Self {
        Self { messages, threads }
    }

    /// Lets every thread finish what was asked before.
    async fn close(&self) {
        for _ in 0..self.threads {
            let (closed, is_closed) = oneshot::channel();
            // If the thread is gone, its connection is closed.
            let _ = self.messages.send(Message::Close(closed));
            let _ = is_closed.await;
        }
    }
}

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
            (Database::File(path), Presence::Alone) => sqlite::open(path),
            (Database::File(_), Presence::Shared) => {
                Err("replicas need a database that they share: postgres://…".into())
            }
            (Database::Server(url, password), _) => {
                postgres::open(postgres::parse(url, password.clone())?, presence)
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
        self.listener.as_deref()
    }

    /// Finishes what was asked before, and closes the database.
    pub(crate) async fn close(&self) {
        self.changes.close().await;
        self.rest.close().await;
        if let Some(listener) = &self.listener {
            listener.close().await;
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
        let (work, answered) = Work::new(scope, work);
        let lane = match scope {
            Scope::Object | Scope::Change => &self.changes,
            Scope::Read | Scope::Delivery => &self.rest,
        };
        let sent = lane.messages.send(Message::Work(work));
        sent.map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
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
pub(crate) mod cases;
#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
mod tests;
