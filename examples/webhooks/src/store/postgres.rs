//! PostgreSQL: a thread for each connection. One of them makes the changes of objects and
//! subscriptions, the others read, and record deliveries.
//!
//! # Order
//!
//! Changes get their versions while their transaction holds the one row of `versions`, so that of
//! all processes one at a time changes objects or subscriptions, and versions are committed in
//! their order. Changes of objects that have gathered share a transaction.
//!
//! Deliveries are recorded side by side. Such a transaction first locks out changes of its
//! subscription and of its object, and then looks whether they are still what was delivered: its
//! later statements see all that was committed before. It touches one delivery, so there is no
//! cycle of transactions that wait for each other.

mod listen;
pub(super) mod schema;
mod session;

use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use postgres::{Config, NoTls};
use tokio::sync::mpsc::{self, UnboundedReceiver};

use super::db::Db;
use super::work::{BATCH_MAX, Message, Work, transact};
use super::{Lane, Scope, Store, StoreError};

pub(crate) use listen::{Listener, News, Range};
pub(super) use session::Session;

/// Who else may have the database open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// No other process.
    Alone,
    /// Replicas, which write with fences.
    Shared,
}

/// How many connections read, and record deliveries.
const CONNECTIONS: usize = 8;

/// How many changes of objects share a transaction. Until it is committed, deliveries of these
/// objects wait.
const OBJECTS_MAX: usize = 32;

/// How long a server may not be heard of.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// Reads a URL. The error contains nothing of it, because it may hold a password.
pub(super) fn parse(url: &str, password: Option<String>) -> Result<Config, String> {
    let cannot = |error: postgres::Error| format!("this is no URL of a PostgreSQL: {error}");
    let mut config: Config = url.parse().map_err(cannot)?;
    if let (None, Some(password)) = (config.get_password(), password) {
        config.password(password);
    }
    if config.get_application_name().is_none() {
        config.application_name("webhooks");
    }
    config
        .connect_timeout(SILENCE_MAX / 3)
        .keepalives_idle(SILENCE_MAX / 3)
        .keepalives_interval(SILENCE_MAX / 5)
        .keepalives_retries(3)
        .tcp_user_timeout(SILENCE_MAX);
    Ok(config)
}

/// Connects, and makes the tables if they are not there.
pub(super) fn open(config: Config, presence: Presence) -> Result<Store, String> {
    let (listener, own) = Listener::start(config.clone(), presence)
        .map_err(|error| format!("cannot open the PostgreSQL database: {error}"))?;
    let cannot = |error: std::io::Error| format!("cannot start a thread: {error}");
    let (changes, mut inbox) = mpsc::unbounded_channel();
    let connection = Connection::new(config.clone());
    spawn(move || {
        let mut connection = connection.reported_to(own);
        while change(&mut connection, &mut inbox) {}
    })
    .map_err(cannot)?;
    let (rest, inbox) = mpsc::unbounded_channel();
    let inbox = Arc::new(Mutex::new(inbox));
    for _ in 0..CONNECTIONS {
        let (mut connection, inbox) = (Connection::new(config.clone()), Arc::clone(&inbox));
        spawn(move || while attend(&mut connection, &inbox) {}).map_err(cannot)?;
    }
    Ok(Store {
        changes: Lane::new(changes, 1),
        rest: Lane::new(rest, CONNECTIONS),
        listener: Some(Arc::new(listener)),
    })
}

fn spawn(serve: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let thread = thread::Builder::new().name("database".into());
    thread.spawn(serve).map(drop)
}

/// A connection that is made when it is needed, also after it was lost.
struct Connection {
    config: Config,
    session: Option<Session>,
    own: Option<listen::Own>,
}

impl Connection {
    fn new(config: Config) -> Self {
        Self {
            config,
            session: None,
            own: None,
        }
    }

    /// Tells which connection this is whenever it is made.
    fn reported_to(self, own: listen::Own) -> Self {
        let own = Some(own);
        Self { own, ..self }
    }

    fn session(&mut self) -> Result<&mut Session, StoreError> {
        if self
            .session
            .as_mut()
            .is_some_and(|session| session.is_lost())
        {
            self.session = None;
        }
        if self.session.is_none() {
            let mut session = connect(&self.config)?;
            if let Some(own) = &self.own {
                own.set(session.process()?);
            }
            self.session = Some(session);
        }
        // It was just made, if it was not there.
        self.session.as_mut().ok_or(StoreError::Closed)
    }

    fn transact(&mut self, scope: Scope, works: Vec<Work>) {
        let share = works.len() > 1;
        let mut works = works.into_iter();
        match self.session() {
            Ok(session) => {
                session.use_savepoints(share);
                while works.len() > 0 {
                    transact(&mut Db::Postgres(session), scope, &mut works);
                }
            }
            Err(error) => works.for_each(|work| work.refuse(error.clone())),
        }
    }
}

/// Connects to the server.
fn connect(config: &Config) -> Result<Session, StoreError> {
    let mut session = Session::new(config.connect(NoTls)?);
    session.batch(schema::SETTINGS)?;
    Ok(session)
}

/// Makes the changes that have gathered. Returns whether there may be more.
fn change(connection: &mut Connection, inbox: &mut UnboundedReceiver<Message>) -> bool {
    let mut messages = Vec::with_capacity(BATCH_MAX);
    inbox.blocking_recv_many(&mut messages, BATCH_MAX);
    let is_open = !messages.is_empty();
    // Changes of objects share a transaction. Others wait for deliveries that are being recorded,
    // and those wait for objects: they stay apart.
    let mut objects = Vec::new();
    for message in messages {
        match message {
            Message::Work(work) if work.scope == Scope::Object => {
                objects.push(work);
                if objects.len() == OBJECTS_MAX {
                    connection.flush(&mut objects);
                }
            }
            other => {
                connection.flush(&mut objects);
                match other {
                    Message::Work(work) => connection.transact(work.scope, vec![work]),
                    Message::Close(closer) => {
                        inbox.close();
                        connection.session = None;
                        let _ = closer.send(());
                    }
                }
            }
        }
    }
    connection.flush(&mut objects);
    is_open
}

impl Connection {
    fn flush(&mut self, objects: &mut Vec<Work>) {
        if !objects.is_empty() {
            self.transact(Scope::Object, std::mem::take(objects));
        }
    }
}

/// Does one work of several threads. Returns whether there may be more.
fn attend(connection: &mut Connection, inbox: &Mutex<UnboundedReceiver<Message>>) -> bool {
    let mut locked = inbox.lock().unwrap_or_else(PoisonError::into_inner);
    let message = locked.blocking_recv();
    drop(locked);
    match message {
        Some(Message::Work(work)) if work.scope == Scope::Read => match connection.session() {
            Ok(session) => work.run_alone(Ok(&mut Db::Postgres(session))),
            Err(error) => work.refuse(error),
        },
        Some(Message::Work(work)) => connection.transact(work.scope, vec![work]),
        Some(Message::Close(closer)) => {
            connection.session = None;
            let _ = closer.send(());
            return false;
        }
        None => return false,
    }
    true
}
