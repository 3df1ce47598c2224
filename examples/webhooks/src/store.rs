//! The source of truth: the objects, the subscriptions, and what each subscription has.
//!
//! One thread owns the database, so that no task blocks a thread of the runtime on the disk. It
//! takes all work that has gathered, does it in one transaction, and answers once that is on the
//! disk: all tasks share the wait.
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

mod deliveries;
mod objects;
mod pages;
mod schema;
mod subscriptions;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rusqlite::{Connection, ErrorCode};
use tokio::sync::{mpsc, oneshot};

pub(crate) use deliveries::{Owed, State, Task};
pub(crate) use objects::{Change, Object};
pub(crate) use subscriptions::{PutSubscription, Subscription};

/// A handle to the database. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Store {
    messages: mpsc::UnboundedSender<Message>,
}

/// Why the database failed.
#[derive(Clone, Debug)]
pub(crate) enum StoreError {
    /// SQLite failed.
    Sqlite(Arc<rusqlite::Error>),
    /// The database is closed, or gone.
    Closed,
}

enum Message {
    Work(Work),
    Close(oneshot::Sender<()>),
}

/// Runs within the open transaction, or gets the error if none could be opened.
type Work = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Done + Send>;

/// Work that ran, with or without success.
struct Done {
    /// Sends the answer, given how the transaction ended.
    settle: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
    /// Why the transaction cannot go on, if it cannot.
    spoiled: Option<StoreError>,
}

/// How much work shares a transaction.
const BATCH_MAX: usize = 256;

impl Store {
    /// Opens a database, and makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let cannot = |why: &dyn fmt::Display| format!("cannot open {}: {why}", path.display());
        let connection = schema::open(path).map_err(|error| cannot(&error))?;
        Self::over(connection).map_err(|error| cannot(&error))
    }

    /// Gives a connection a thread of its own.
    fn over(connection: Connection) -> std::io::Result<Self> {
        // Bounded all the same: every sender waits for its answer, and the numbers of workers and
        // of connections are limited.
        let (messages, inbox) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("database".into())
            .spawn(move || serve(connection, inbox))?;
        Ok(Self { messages })
    }

    /// Returns `Ok` if the database works.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let ask = |db: &Connection| db.query_row("SELECT 1", [], |_| Ok(()));
        self.run(ask).await
    }

    /// Finishes what was asked before, and closes the database.
    pub(crate) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        // If the thread is gone, the database is closed.
        let _ = self.messages.send(Message::Close(closed));
        let _ = is_closed.await;
    }

    /// Does `work` in a transaction and returns once it is on the disk.
    ///
    /// # Errors
    ///
    /// If the work fails, nothing of it is written. If the transaction fails, nothing is written
    /// either, unless SQLite failed after it had written it.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |db| {
            let (done, spoiled) = match db {
                Ok(db) => in_savepoint(db, work),
                Err(error) => (Err(error), None),
            };
            let settle = move |ended: Result<(), StoreError>| {
                // A caller that has gone away needs no answer.
                let _ = answer.send(done.and_then(|value| ended.map(|()| value)));
            };
            let settle = Box::new(settle);
            Done { settle, spoiled }
        });
        let sent = self.messages.send(Message::Work(work));
        sent.map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(error) => write!(f, "database: {error}"),
            Self::Closed => f.write_str("the database is closed"),
        }
    }
}

/// The thread's loop.
fn serve(connection: Connection, mut inbox: mpsc::UnboundedReceiver<Message>) {
    let mut batch = Vec::with_capacity(BATCH_MAX);
    while inbox.blocking_recv_many(&mut batch, BATCH_MAX) > 0 {
        let mut closers = Vec::new();
        let mut works = Vec::with_capacity(batch.len());
        for message in batch.drain(..) {
            match message {
                Message::Work(work) => works.push(work),
                Message::Close(closer) => closers.push(closer),
            }
        }
        let mut works = works.into_iter();
        while works.len() > 0 {
            transact(&connection, &mut works);
        }
        if !closers.is_empty() {
            // What is left in the write-ahead log is found by the next to open it.
            let _ = connection.close();
            for closer in closers {
                let _ = closer.send(());
            }
            return;
        }
    }
}

/// Does work in one transaction: all of it, or as much as is done when the transaction is lost.
/// Takes at least one.
fn transact(connection: &Connection, works: &mut impl Iterator<Item = Work>) {
    let mut ended = begin(connection);
    let mut settles = Vec::new();
    for work in works {
        let done = work(ended.clone().map(|()| connection));
        settles.push(done.settle);
        if let Some(error) = done.spoiled {
            ended = Err(error);
            break;
        }
        if connection.is_autocommit() && ended.is_ok() {
            // Work that hid its error; `COMMIT` says that there is no transaction.
            break;
        }
    }
    let ended = ended.and_then(|()| Ok(connection.execute_batch("COMMIT")?));
    if let Err(error) = &ended {
        crate::say(&error.to_string());
        roll_back(connection);
    }
    for settle in settles {
        settle(ended.clone());
    }
}

fn begin(connection: &Connection) -> Result<(), StoreError> {
    // One that could not be rolled back the last time.
    roll_back(connection);
    Ok(connection.execute_batch("BEGIN IMMEDIATE")?)
}

fn roll_back(connection: &Connection) {
    if !connection.is_autocommit() {
        // If that also fails, the next transaction cannot begin before it succeeds.
        let _ = connection.execute_batch("ROLLBACK");
    }
}

/// Does work so that nothing of it is left if it fails. The second value says that this was not
/// possible: the whole transaction has to be rolled back, or already is.
fn in_savepoint<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> (Result<T, StoreError>, Option<StoreError>) {
    let begun = db.execute_batch("SAVEPOINT work");
    let done = begun.and_then(|()| work(db));
    let done = done.and_then(|value| db.execute_batch("RELEASE work").map(|()| value));
    let error = match done {
        Ok(value) => return (Ok(value), None),
        Err(error) => error,
    };
    let is_undone =
        !may_roll_back(&error) && db.execute_batch("ROLLBACK TO work; RELEASE work").is_ok();
    let error = StoreError::from(error);
    let spoiled = (!is_undone).then(|| error.clone());
    (Err(error), spoiled)
}

/// Returns whether this is one of the errors after which SQLite may have rolled the transaction
/// back. Its documentation recommends a `ROLLBACK` in either case.
fn may_roll_back(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(
            ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::OutOfMemory
                | ErrorCode::DatabaseBusy
                | ErrorCode::OperationInterrupted
        )
    )
}

#[cfg(test)]
pub(crate) mod faults;
#[cfg(test)]
mod tests;
