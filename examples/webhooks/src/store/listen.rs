//! What other processes have changed, and which of them may have the database open.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use postgres::error::SqlState;
use postgres::fallible_iterator::FallibleIterator;
use postgres::{Config, Notification};
use tokio::sync::Notify;

use super::StoreError;
use super::postgres::{Session, connect};
use crate::say;

/// Who else may have the database open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Presence {
    /// No other process.
    Alone,
    /// Replicas, which write with fences.
    Shared,
}

/// What others have changed.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// Anything may have changed.
    pub(crate) everything: bool,
    /// Subscriptions that were put or deleted.
    pub(crate) subscriptions: HashSet<Arc<str>>,
    /// Objects that were put or deleted.
    pub(crate) objects: HashSet<Arc<str>>,
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
    config: Config,
    presence: Presence,
    /// Marks what this process has changed.
    own: String,
}

/// How many objects and subscriptions are kept. What is owed is listed in place of more.
const NEWS_MAX: usize = 10_000;

/// How often the connection is looked after.
const PERIOD: Duration = Duration::from_millis(500);

/// How long another process may take to notice that it has lost the database.
const LOCK_WAIT: &str = "SET lock_timeout TO '5s'";

impl News {
    /// Reads `SENDER/object/ID` or `SENDER/subscription/ID`.
    fn hear(&mut self, text: &str, own: &str) {
        let mut words = text.split('/');
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some(sender), _, _, None) if sender == own => {}
            (_, Some("object"), Some(id), None) => {
                self.objects.insert(id.into());
            }
            (_, Some("subscription"), Some(id), None) => {
                self.subscriptions.insert(id.into());
            }
            _ => self.everything = true,
        }
        if self.objects.len() + self.subscriptions.len() > NEWS_MAX {
            *self = Self {
                everything: true,
                ..Self::default()
            };
        }
    }

    fn is_empty(&self) -> bool {
        !self.everything && self.objects.is_empty() && self.subscriptions.is_empty()
    }
}

impl Listener {
    /// Connects, makes the tables if they are not there, and listens.
    pub(super) fn start(config: Config, presence: Presence, own: String) -> Result<Self, String> {
        let shared = Arc::new(Shared {
            news: Mutex::default(),
            has_news: Notify::new(),
            is_closed: AtomicBool::new(false),
            config,
            presence,
            own,
        });
        let thread = thread::Builder::new().name("listener".into());
        let (opened, is_open) = std::sync::mpsc::channel();
        let thread = thread.spawn({
            let shared = Arc::clone(&shared);
            move || match shared.open() {
                Ok(session) => {
                    let _ = opened.send(Ok(()));
                    shared.serve(session);
                }
                Err(OpenError::Taken(who)) => drop(opened.send(Err(who.to_owned()))),
                Err(OpenError::Other(why)) => drop(opened.send(Err(why))),
            }
        });
        let thread = thread.map_err(|error| error.to_string())?;
        is_open.recv().map_err(|error| error.to_string())??;
        let thread = Mutex::new(Some(thread));
        Ok(Self { shared, thread })
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
    fn serve(&self, mut session: Session) {
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
                match self.open() {
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

    /// Connects, waits until this process may have the database open, and begins to listen.
    fn open(&self) -> Result<Session, OpenError> {
        let mut session = connect(&self.config)?;
        session.prepare().map_err(OpenError::Other)?;
        // Held until the connection ends.
        let (lock, who) = match self.presence {
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

    /// Listens until it is closed. The error says that the connection is lost.
    fn listen(&self, session: &mut Session) -> Result<(), StoreError> {
        while !self.is_closed.load(Ordering::Relaxed) {
            let texts = self.heard(session)?;
            if texts.is_empty() {
                // Finds out whether the server is there.
                session.client.check_connection()?;
                continue;
            }
            self.tell(|news| {
                for text in &texts {
                    news.hear(text, &self.own);
                }
            });
        }
        Ok(())
    }

    /// Waits a while for notifications, and returns those that are there.
    fn heard(&self, session: &mut Session) -> Result<Vec<String>, StoreError> {
        let mut notifications = session.client.notifications();
        let first = notifications.timeout_iter(PERIOD).next()?;
        let more: Vec<Notification> = notifications.iter().collect()?;
        let all = first.into_iter().chain(more);
        Ok(all.map(|news| news.payload().to_owned()).collect())
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
