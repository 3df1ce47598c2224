//! SQLite: one thread owns the database, and does everything that has gathered in one transaction.

use std::fmt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OptionalExtension};
use tokio::sync::{mpsc, oneshot};

use super::db::Db;
use super::{StoreError, TABLES, VERSION};
use crate::say;

/// A handle to the thread.
#[derive(Clone)]
pub(crate) struct Thread(mpsc::UnboundedSender<Message>);

pub(super) enum Message {
    Work(Work),
    /// The thread finishes what it has, closes its connection, and ends.
    Close(oneshot::Sender<()>),
}

/// Runs within the open transaction, or gets the error if none could be opened.
type Work = Box<dyn FnOnce(Result<&Connection, StoreError>) -> Done + Send>;

/// Work that ran, with or without success.
pub(super) struct Done {
    /// Sends the answer, given how the transaction ended.
    settle: Box<dyn FnOnce(Result<(), StoreError>) + Send>,
    /// Why the transaction cannot go on, if it cannot.
    spoiled: Option<StoreError>,
}

/// How much work shares a transaction.
const BATCH_MAX: usize = 256;

/// How many prepared statements are kept: more than there are.
const STATEMENTS_MAX: usize = 64;

/// Opens a database, and makes it if it is not there.
pub(super) fn open(path: &Path) -> Result<Thread, String> {
    let cannot = |why: &dyn fmt::Display| format!("cannot open {}: {why}", path.display());
    let connection = connect(path).map_err(|error| cannot(&error))?;
    over(connection).map_err(|error| cannot(&error))
}

/// Gives a connection a thread of its own.
pub(super) fn over(connection: Connection) -> std::io::Result<Thread> {
    // Bounded all the same: every sender waits for its answer, and the numbers of workers and
    // of connections are limited.
    let (messages, inbox) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("database".into())
        .spawn(move || serve(connection, inbox))?;
    Ok(Thread(messages))
}

impl Thread {
    #[cfg(test)]
    pub(super) fn new(messages: mpsc::UnboundedSender<Message>) -> Self {
        Self(messages)
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError> + Send + 'static,
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
        let sent = self.0.send(Message::Work(work));
        sent.map_err(|_| StoreError::Closed)?;
        answered.await.unwrap_or(Err(StoreError::Closed))
    }

    pub(super) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        // If the thread is gone, its connection is closed.
        let _ = self.0.send(Message::Close(closed));
        let _ = is_closed.await;
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
fn transact(db: &Connection, works: &mut impl Iterator<Item = Work>) {
    // If a transaction could not be rolled back the last time, none can begin before it is.
    roll_back(db);
    let mut ended = batch(db, "BEGIN IMMEDIATE");
    let mut settles = Vec::new();
    for work in works {
        let done = work(match &ended {
            Ok(()) => Ok(db),
            Err(error) => Err(error.clone()),
        });
        settles.push(done.settle);
        if let Some(error) = done.spoiled {
            ended = Err(error);
            break;
        }
        if db.is_autocommit() && ended.is_ok() {
            // Work that hid its error; `COMMIT` says that there is no transaction.
            break;
        }
    }
    let ended = ended.and_then(|()| batch(db, "COMMIT"));
    if let Err(error) = &ended {
        say(&error.to_string());
        roll_back(db);
    }
    for settle in settles {
        settle(ended.clone());
    }
}

/// Does work so that nothing of it is left if it fails. The second value says that this was not
/// possible: the whole transaction has to be rolled back, or already is.
fn in_savepoint<T>(
    db: &Connection,
    work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError>,
) -> (Result<T, StoreError>, Option<StoreError>) {
    let begun = batch(db, "SAVEPOINT work");
    let done = begun.and_then(|()| work(&mut Db::Sqlite(db)));
    let done = done.and_then(|value| batch(db, "RELEASE work").map(|()| value));
    let error = match done {
        Ok(value) => return (Ok(value), None),
        Err(error) => error,
    };
    let is_undone = !may_roll_back(&error) && batch(db, "ROLLBACK TO work; RELEASE work").is_ok();
    let spoiled = (!is_undone).then(|| error.clone());
    (Err(error), spoiled)
}

fn batch(db: &Connection, sql: &str) -> Result<(), StoreError> {
    Ok(db.execute_batch(sql)?)
}

fn roll_back(db: &Connection) {
    if !db.is_autocommit() {
        let _ = db.execute_batch("ROLLBACK");
    }
}

/// Returns whether this is one of the errors after which SQLite may have rolled the transaction
/// back. Its documentation recommends a `ROLLBACK` in either case.
fn may_roll_back(error: &StoreError) -> bool {
    let StoreError::Sqlite(error) = error else {
        return false;
    };
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

/// Opens a database for this process alone: two dispatchers would deliver everything twice.
pub(super) fn connect(path: &Path) -> Result<Connection, String> {
    keep_to_oneself(path).map_err(|error| error.to_string())?;
    let db = Connection::open(path).map_err(|error| error.to_string())?;
    let version = prepare(&db).map_err(|error| match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy) => "another process has it open".to_owned(),
        _ => error.to_string(),
    })?;
    match version {
        VERSION => Ok(db),
        other => Err(format!("it has version {other}, this program {VERSION}")),
    }
}

/// URLs may hold secrets: a file that is made here is read by its owner alone. SQLite gives the
/// files next to it the same rights.
fn keep_to_oneself(path: &Path) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path).map(drop)
}

/// Sets the database up and returns the version of its tables.
fn prepare(db: &Connection) -> rusqlite::Result<i64> {
    db.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    // Another process that has it open keeps it.
    db.busy_timeout(Duration::ZERO)?;
    // FULL: what was answered survives a power cut as well, not only a kill.
    db.execute_batch(
        "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         BEGIN EXCLUSIVE",
    )?;
    let first = "SELECT name FROM sqlite_schema LIMIT 1";
    if db.query_row(first, [], |_| Ok(())).optional()?.is_none() {
        db.execute_batch(TABLES)?;
        db.pragma_update(None, "user_version", VERSION)?;
    }
    let version = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    db.execute_batch("COMMIT")?;
    Ok(version)
}
