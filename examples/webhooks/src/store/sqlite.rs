//! SQLite: one thread owns the database, and does everything that has gathered in one transaction.

pub(super) mod schema;

use std::fmt;
use std::path::Path;
use std::thread;

use rusqlite::Connection;
use tokio::sync::mpsc;

use super::db::Db;
use super::work::{BATCH_MAX, Message, transact};
use super::{Lane, Scope, Store};

/// Opens a database, and makes it if it is not there.
pub(super) fn open(path: &Path) -> Result<Store, String> {
    let cannot = |why: &dyn fmt::Display| format!("cannot open {}: {why}", path.display());
    let connection = schema::open(path).map_err(|error| cannot(&error))?;
    over(connection).map_err(|error| cannot(&error))
}

/// Gives a connection a thread of its own.
pub(super) fn over(connection: Connection) -> std::io::Result<Store> {
    // Bounded all the same: every sender waits for its answer, and the numbers of workers and
    // of connections are limited.
    let (messages, inbox) = mpsc::unbounded_channel();
    thread::Builder::new()
        .name("database".into())
        .spawn(move || serve(connection, inbox))?;
    let lane = Lane::new(messages, 1);
    Ok(Store {
        changes: lane.clone(),
        rest: lane,
        listener: None,
    })
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
            transact(&mut Db::Sqlite(&connection), Scope::Change, &mut works);
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
