//! What other processes have changed, and which of them may have the database open.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Config, Notification};
use tokio::sync::Notify;

use super::{Presence, Session, connect, schema};
use crate::say;
use crate::store::StoreError;

/// What others have changed.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Anything may have changed.
    pub(crate) everything: bool,
    /// Some subscription was put or deleted.
    pub(crate) subscriptions: bool,
    /// Objects that were put or deleted.
    pub(crate) objects: HashSet<Arc<str>>,
    /// Subscriptions that are owed more objects.
    pub(crate) pages: HashMap<Arc<str>, Range>,
}

/// A range of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Range {
    /// Without this one.
    pub(crate) after: Arc<str>,
    /// With this one.
    pub(crate) last: Arc<str>,
}

/// Collects the news until they are asked for.
pub(crate) struct Listener {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    news: Mutex<News>,
    has_news: Notify,
    is_closed: AtomicBool,
    own: Own,
}

/// The connection that sends the news of this process.
#[derive(Clone, Default)]
pub(super) struct Own(Arc<AtomicI32>);

/// How many objects and ranges are kept. What is owed is listed in place of more.
const NEWS_MAX: usize = 10_000;

/// How often the connection is looked after.
const PERIOD: Duration = Duration::from_millis(500);

/// How long another process may take to notice that it has lost the database.
const LOCK_WAIT: &str = "SET lock_timeout TO '5s'";

impl Own {
    pub(super) fn set(&self, process: i32) {
        self.0.store(process, Ordering::Relaxed);
    }
}

impl News {
    fn hear(&mut self, text: &str) {
        let mut words = text.split('/');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("object"), Some(id), None, None) => {
                self.objects.insert(id.into());
            }
            (Some("page"), Some(id), Some(after), Some(last)) => self.widen(id, after, last),
            (Some("subscription"), Some(_), None, None) => self.subscriptions = true,
            _ => self.everything = true,
        }
        if self.objects.len() + self.pages.len() > NEWS_MAX {
            *self = Self {
                everything: true,
                ..Self::default()
            };
        }
    }

    fn widen(&mut self, id: &str, after: &str, last: &str) {
        let range = self.pages.entry(id.into()).or_insert_with(|| Range {
            after: after.into(),
            last: last.into(),
        });
        if *after < *range.after {
            range.after = after.into();
        }
        if *last > *range.last {
            range.last = last.into();
        }
    }

    fn is_empty(&self) -> bool {
        let is_some = self.everything || self.subscriptions;
        !is_some && self.objects.is_empty() && self.pages.is_empty()
    }
}

impl Listener {
    /// Connects, makes the tables if they are not there, and listens.
    pub(super) fn start(config: Config, presence: Presence) -> Result<(Self, Own), String> {
        let shared = Arc::new(Shared {
            news: Mutex::default(),
            has_news: Notify::new(),
            is_closed: AtomicBool::new(false),
            own: Own::default(),
        });
        let own = shared.own.clone();
        let thread = thread::Builder::new().name("listener".into());
        let (opened, is_open) = std::sync::mpsc::channel();
        let thread = thread.spawn({
            let shared = Arc::clone(&shared);
            move || match open(&config, presence) {
                Ok(session) => {
                    let _ = opened.send(Ok(()));
                    shared.serve(session, &config, presence);
                }
                Err(OpenError::Taken(who)) => drop(opened.send(Err(who.to_owned()))),
                Err(OpenError::Other(why)) => drop(opened.send(Err(why))),
            }
        });
        let thread = thread.map_err(|error| error.to_string())?;
        is_open.recv().map_err(|error| error.to_string())??;
        let thread = Mutex::new(Some(thread));
        Ok((Self { shared, thread }, own))
    }

    /// Waits until others have changed something.
    ///
    /// Cancel safe: what is not returned is kept.
    pub(crate) async fn next(&self) -> News {
        loop {
            self.shared.has_news.notified().await;
            let news = std::mem::take(&mut *self.shared.news());
            if !news.is_empty() {
                return news;
            }
        }
    }

    /// Ends the connection.
    pub(crate) async fn close(&self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let wait = tokio::task::spawn_blocking(|| thread.map(JoinHandle::join));
        let _ = wait.await;
    }
}

/// Ends the connection, but does not wait for that.
impl Drop for Listener {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::Relaxed);
    }
}

impl Shared {
    fn serve(&self, mut session: Session, config: &Config, presence: Presence) {
        loop {
            match self.listen(&mut session) {
                Ok(()) => return,
                Err(error) => say(&format!("lost the connection that listens: {error}")),
            }
            let mut said = String::new();
            session = loop {
                thread::sleep(PERIOD);
                if self.is_closed.load(Ordering::Relaxed) {
                    return;
                }
                match open(config, presence) {
                    Ok(session) => break session,
                    Err(OpenError::Taken(who)) => {
                        say(&format!("the connection was lost, and now {who}"));
                        std::process::exit(crate::EXIT_USAGE.into());
                    }
                    // Once, however often it is tried.
                    Err(OpenError::Other(why)) if why == said => {}
                    Err(OpenError::Other(why)) => {
                        say(&format!("cannot listen for changes: {why}"));
                        said = why;
                    }
                }
            };
            // What was missed is found by listing everything, now that nothing more is missed.
            self.tell(|news| news.everything = true);
        }
    }

    /// Listens until it is closed. The error says that the connection is lost.
    fn listen(&self, session: &mut Session) -> Result<(), StoreError> {
        while !self.is_closed.load(Ordering::Relaxed) {
            let texts = self.heard(session)?;
            if texts.is_empty() {
                // Finds out whether the server is there.
                session.client.check_connection()?;
                continue;
            }
            self.tell(|news| texts.iter().for_each(|text| news.hear(text)));
        }
        Ok(())
    }

    /// Waits a while for notifications of others, and returns those that are there.
    fn heard(&self, session: &mut Session) -> Result<Vec<String>, StoreError> {
        let mut notifications = session.client.notifications();
        let first = notifications.timeout_iter(PERIOD).next()?;
        let more: Vec<Notification> = notifications.iter().collect()?;
        let own = self.own.0.load(Ordering::Relaxed);
        let all = first.into_iter().chain(more);
        let foreign = all.filter(|notification| notification.process_id() != own);
        Ok(foreign
            .map(|notification| notification.payload().to_owned())
            .collect())
    }

    fn tell(&self, change: impl FnOnce(&mut News)) {
        change(&mut self.news());
        self.has_news.notify_one();
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the database cannot be opened.
enum OpenError {
    /// Another process has it.
    Taken(&'static str),
    Other(String),
}

impl From<StoreError> for OpenError {
    fn from(error: StoreError) -> Self {
        Self::Other(error.to_string())
    }
}

/// Connects, waits until this process may have the database open, and begins to listen.
fn open(config: &Config, presence: Presence) -> Result<Session, OpenError> {
    let mut session = connect(config)?;
    schema::prepare(&mut session).map_err(OpenError::Other)?;
    // Held until the connection ends.
    let (lock, who) = match presence {
        Presence::Alone => (
            "SELECT pg_advisory_lock(hashtext('webhooks'))",
            "another process has it open",
        ),
        Presence::Shared => (
            "SELECT pg_advisory_lock_shared(hashtext('webhooks'))",
            "a process without --etcd has it open",
        ),
    };
    session.batch(LOCK_WAIT)?;
    session.batch(lock).map_err(|error| match error {
        StoreError::Postgres(error) if error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE) => {
            OpenError::Taken(who)
        }
        error => error.into(),
    })?;
    session.batch("LISTEN webhooks")?;
    Ok(session)
}
