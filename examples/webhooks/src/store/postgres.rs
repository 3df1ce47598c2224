//! PostgreSQL: a few connections, each with one transaction at a time.
//!
//! # Order
//!
//! Changes get their versions while their transaction holds the one row of `versions`, so that of
//! all processes one at a time changes objects or subscriptions, and versions are committed in
//! their order.
//!
//! Deliveries are recorded side by side. Such a transaction first locks out changes of its
//! subscription and of its object, and then looks whether they are still what was delivered: its
//! later statements see all that was committed before. It touches one delivery, so there is no
//! cycle of transactions that wait for each other.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use postgres::types::ToSql;
use postgres::{Client, Config, NoTls, Row, Statement};
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use super::db::{Db, Param};
use super::listen::{Listener, Presence};
use super::{Scope, StoreError, TABLES, VERSION};

/// How many connections read, and record deliveries. One more makes the changes.
const CONNECTIONS: u32 = 8;

/// How long a server may not be heard of.
const SILENCE_MAX: Duration = Duration::from_secs(15);

/// What each connection begins with. A statement that takes longer is broken.
///
/// A transaction takes several messages to the server. A process that is stopped between two of
/// them keeps its locks until the server ends the transaction: other processes wait as long. A lock
/// that is kept nevertheless is an error before the client of a request has given up.
const SETTINGS: &str = "
SET search_path TO webhooks;
SET client_min_messages TO warning;
SET statement_timeout TO '30s';
SET lock_timeout TO '10s';
SET idle_in_transaction_session_timeout TO '2s';
";

/// The words of the tables in SQLite and in PostgreSQL, which compares texts by their bytes, too.
const WORDS: [(&str, &str); 5] = [
    (" STRICT, WITHOUT ROWID", ""),
    (" STRICT", ""),
    ("INTEGER", "BIGINT"),
    ("REAL", "DOUBLE PRECISION"),
    ("TEXT", "TEXT COLLATE \"C\""),
];

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

/// The connections of this process, made when they are needed.
pub(crate) struct Pool {
    config: Config,
    /// Marks the news of this process.
    sender: String,
    idle: Mutex<Vec<Session>>,
    changes: Arc<Semaphore>,
    rest: Arc<Semaphore>,
    listener: Listener,
}

/// Connects, and makes the tables if they are not there.
pub(super) fn open(config: Config, presence: Presence) -> Result<Pool, String> {
    let sender = format!("{:x}", RandomState::new().hash_one(()));
    let listener = Listener::start(config.clone(), presence, sender.clone())
        .map_err(|error| format!("cannot open the PostgreSQL database: {error}"))?;
    Ok(Pool {
        config,
        sender,
        idle: Mutex::default(),
        changes: Arc::new(Semaphore::new(1)),
        rest: Arc::new(Semaphore::new(CONNECTIONS as usize)),
        listener,
    })
}

impl Pool {
    pub(super) fn listener(&self) -> &Listener {
        &self.listener
    }

    pub(super) async fn run<T: Send + 'static>(
        self: &Arc<Self>,
        scope: Scope,
        work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let turn = match scope {
            Scope::Change => &self.changes,
            Scope::Read | Scope::Delivery => &self.rest,
        };
        let turn = Arc::clone(turn).acquire_owned().await;
        let turn = turn.map_err(|_| StoreError::Closed)?;
        let pool = Arc::clone(self);
        let done = spawn_blocking(move || {
            let _turn = turn;
            let mut session = pool.session()?;
            let done = session.transact(scope, work);
            pool.idle().push(session);
            done
        });
        done.await.unwrap_or(Err(StoreError::Closed))
    }

    pub(super) async fn close(self: &Arc<Self>) {
        // Whoever has asked before comes first.
        let _ = tokio::join!(self.changes.acquire(), self.rest.acquire_many(CONNECTIONS));
        self.changes.close();
        self.rest.close();
        let pool = Arc::clone(self);
        let _ = spawn_blocking(move || drop(std::mem::take(&mut *pool.idle()))).await;
        self.listener.close().await;
    }

    /// Returns a connection that is not lost, as far as is known.
    fn session(&self) -> Result<Session, StoreError> {
        while let Some(session) = { self.idle().pop() } {
            if !session.is_lost() {
                return Ok(session);
            }
        }
        let mut session = connect(&self.config)?;
        session.sender.clone_from(&self.sender);
        Ok(session)
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Session>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Closes the connections on a thread that may wait for them.
impl Drop for Pool {
    fn drop(&mut self) {
        let idle = std::mem::take(&mut *self.idle());
        let _ = thread::Builder::new().spawn(move || drop(idle));
    }
}

/// A connection, and what is prepared on it.
pub(super) struct Session {
    pub(super) client: Client,
    statements: HashMap<&'static str, Statement>,
    /// A transaction could not be rolled back.
    is_broken: bool,
    sender: String,
    /// Sent with the transaction.
    news: Vec<String>,
}

/// Connects to the server.
pub(super) fn connect(config: &Config) -> Result<Session, StoreError> {
    let mut session = Session {
        client: config.connect(NoTls)?,
        statements: HashMap::new(),
        is_broken: false,
        sender: String::new(),
        news: Vec::new(),
    };
    session.batch(SETTINGS)?;
    Ok(session)
}

impl Session {
    fn is_lost(&self) -> bool {
        self.is_broken || self.client.is_closed()
    }

    fn transact<T>(
        &mut self,
        scope: Scope,
        work: impl FnOnce(&mut Db<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let begin = match scope {
            Scope::Read => return work(&mut Db::Postgres(self)),
            Scope::Delivery => "BEGIN ISOLATION LEVEL READ COMMITTED",
            // One at a time, over all processes.
            Scope::Change => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT newest FROM versions FOR UPDATE"
            }
        };
        self.news.clear();
        let begun = self.batch(begin);
        let done = begun.and_then(|()| work(&mut Db::Postgres(self)));
        let done = done.and_then(|value| self.commit().map(|()| value));
        if done.is_err() {
            self.is_broken = self.batch("ROLLBACK").is_err();
        }
        done
    }

    fn commit(&mut self) -> Result<(), StoreError> {
        if !self.news.is_empty() {
            let news = std::mem::take(&mut self.news);
            let sql = "SELECT pg_notify('webhooks', news) FROM unnest($1::text[]) AS news";
            let statement = self.prepared(sql)?;
            self.client.execute(&statement, &[&news])?;
        }
        self.batch("COMMIT")
    }

    pub(super) fn execute(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
    ) -> Result<u64, StoreError> {
        let statement = self.prepared(sql)?;
        Ok(self.client.execute(&statement, &values(params))?)
    }

    pub(super) fn query(
        &mut self,
        sql: &'static str,
        params: &[&dyn Param],
    ) -> Result<Vec<Row>, StoreError> {
        let statement = self.prepared(sql)?;
        Ok(self.client.query(&statement, &values(params))?)
    }

    pub(super) fn batch(&mut self, sql: &str) -> Result<(), StoreError> {
        Ok(self.client.batch_execute(sql)?)
    }

    pub(super) fn announce(&mut self, news: &str) {
        self.news.push(format!("{}/{news}", self.sender));
    }

    fn prepared(&mut self, sql: &'static str) -> Result<Statement, StoreError> {
        if let Some(statement) = self.statements.get(sql) {
            return Ok(statement.clone());
        }
        // No statement has a question mark but before the number of a parameter.
        let statement = self.client.prepare(&sql.replace('?', "$"))?;
        self.statements.insert(sql, statement.clone());
        Ok(statement)
    }

    /// Makes the tables if they are not there. Several processes may do so at once.
    pub(super) fn prepare(&mut self) -> Result<(), String> {
        let cannot = |error: StoreError| error.to_string();
        self.batch(
            "BEGIN; SELECT pg_advisory_xact_lock(0, 0); CREATE SCHEMA IF NOT EXISTS webhooks",
        )
        .map_err(cannot)?;
        let known = "SELECT 1 FROM pg_tables WHERE schemaname = 'webhooks'";
        if self.query(known, &[]).map_err(cannot)?.is_empty() {
            let mut tables = TABLES.to_owned();
            for (sqlite, postgres) in WORDS {
                tables = tables.replace(sqlite, postgres);
            }
            let version = format!("CREATE TABLE tables AS SELECT {VERSION}::bigint AS version");
            self.batch(&tables).map_err(cannot)?;
            self.batch(&version).map_err(cannot)?;
        }
        self.batch("COMMIT").map_err(cannot)?;
        let versions = self
            .query("SELECT version FROM tables", &[])
            .map_err(cannot)?;
        match versions.first().and_then(|row| row.try_get(0).ok()) {
            Some(VERSION) => Ok(()),
            other => Err(format!(
                "it has version {}, this program {VERSION}",
                other.unwrap_or(0)
            )),
        }
    }
}

fn values<'p>(params: &[&'p dyn Param]) -> Vec<&'p (dyn ToSql + Sync)> {
    let value = |param: &&'p dyn Param| *param as &'p (dyn ToSql + Sync);
    params.iter().map(value).collect()
}
