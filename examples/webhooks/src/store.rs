//! The source of truth: what there is, who wants to know, and who knows what.
//!
//! One thread owns the database, so that no task ever waits for a disk with others behind it. It
//! takes all the work that has gathered, does it in one transaction, and answers when that is on
//! the disk: however many tasks there are, they share the wait.

mod deliveries;
mod objects;
mod pages;
mod schema;
mod subscriptions;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rusqlite::Connection;
use tokio::sync::{mpsc, oneshot};

pub(crate) use deliveries::{Owed, State, Task};
pub(crate) use objects::{Change, Object};
pub(crate) use subscriptions::{PutSubscription, Subscription};

/// A handle to the database. Clones are handles to the same.
#[derive(Clone)]
pub(crate) struct Store {
    messages: mpsc::UnboundedSender<Message>,
}

/// Why the database did not answer.
#[derive(Debug)]
pub(crate) enum StoreError {
    /// SQLite says no. Nothing has changed.
    Sqlite(Arc<rusqlite::Error>),
    /// The database is closed, or gone.
    Closed,
}

enum Message {
    Work(Work),
    Close(oneshot::Sender<()>),
}

/// Does its work within the open transaction; what it returns is told how that ended.
type Work = Box<dyn FnOnce(&Connection) -> Settle + Send>;
type Settle = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// How much work shares a transaction.
const BATCH_MAX: usize = 256;

impl Store {
    /// Opens a database, and makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let cannot = |why: &dyn fmt::Display| format!("cannot open {}: {why}", path.display());
        let connection = schema::open(path).map_err(|error| cannot(&error))?;
        // Whoever sends waits for the answer, and there are only so many workers and connections:
        // that is the bound.
        let (messages, inbox) = mpsc::unbounded_channel();
        thread::Builder::new()
            .name("database".into())
            .spawn(move || serve(connection, inbox))
            .map_err(|error| cannot(&error))?;
        Ok(Self { messages })
    }

    /// Whether the database answers.
    pub(crate) async fn check(&self) -> Result<(), StoreError> {
        let ask = |db: &Connection| db.query_row("SELECT 1", [], |_| Ok(()));
        self.run(ask).await
    }

    /// Finishes what was asked before, and closes the database.
    pub(crate) async fn close(&self) {
        let (closed, is_closed) = oneshot::channel();
        // If nobody listens, it is closed.
        let _ = self.messages.send(Message::Close(closed));
        let _ = is_closed.await;
    }

    /// Does `work` in a transaction and answers when it is on the disk. If the work fails, nothing
    /// of it has happened.
    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> Result<T, StoreError> {
        let (answer, answered) = oneshot::channel();
        let work: Work = Box::new(move |db| {
            let done = in_savepoint(db, work);
            Box::new(move |committed| {
                let done = done.map_err(StoreError::from);
                // Who has gone away meanwhile does not want to know.
                let _ = answer.send(committed.and(done));
            })
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
        transact(&connection, works);
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

fn transact(connection: &Connection, works: Vec<Work>) {
    let begun = connection.execute_batch("BEGIN IMMEDIATE");
    let (settles, ended): (Vec<Settle>, _) = match begun {
        Ok(()) => {
            let settles = works.into_iter().map(|work| work(connection)).collect();
            (settles, connection.execute_batch("COMMIT"))
        }
        // Work that is dropped undone answers that the database is closed, which it is to them.
        Err(error) => (Vec::new(), Err(error)),
    };
    let ended = ended.map_err(Arc::new);
    if let Err(error) = &ended {
        crate::say(&format!("database: {error}"));
        if !connection.is_autocommit() {
            let _ = connection.execute_batch("ROLLBACK");
        }
    }
    for settle in settles {
        settle(ended.clone().map_err(StoreError::Sqlite));
    }
}

fn in_savepoint<T>(
    db: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    db.execute_batch("SAVEPOINT work")?;
    let done = work(db);
    let end = match &done {
        Ok(_) => "RELEASE work",
        Err(_) => "ROLLBACK TO work; RELEASE work",
    };
    db.execute_batch(end)?;
    done
}

#[cfg(test)]
mod tests;
