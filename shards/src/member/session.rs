//! A member's sessions: they are kept, and shards are taken and handed over.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_tokio::CancellationToken;
use requeue_tokio::binding::{Shared, TaskHost};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tracing::{debug, warn};

use crate::backoff::Backoff;
use crate::engine::Engine;
use crate::error::EngineError;
use crate::ownership::Expiry;
use crate::shard::{Fence, Shard, ShardKey};
use crate::shards::{Config, late};

use super::Parts;
use super::slot::Step;

/// A session, and the time until which it certainly lasts.
pub(super) struct Session<E: Engine> {
    id: Arc<E::Session>,
    until: Expiry,
}

/// Opens the set and begins a session. Retries until `deadline`.
pub(super) async fn begin<E: Engine>(
    config: &Config<E>,
    deadline: Option<Instant>,
) -> Result<Session<E>, EngineError> {
    let mut backoff = Backoff::new(config.ttl, config.seed);
    loop {
        let sent = Instant::now();
        let joined = async {
            config.engine.open(&config.set, config.count.get()).await?;
            config
                .engine
                .join(&config.set, &config.member, config.ttl)
                .await
        };
        let late = |_| Err(EngineError::Unreachable(late("given no reply", config.ttl)));
        let error = match timeout(config.ttl, joined).await.unwrap_or_else(late) {
            // The engine counts from when it got the message. That is later, so this is safe.
            Ok(id) => {
                let until = Expiry::new(sent + config.ttl);
                return Ok(Session {
                    id: Arc::new(id),
                    until,
                });
            }
            Err(error) => error,
        };
        let pause = backoff.next();
        let is_late = deadline.is_some_and(|deadline| Instant::now() + pause >= deadline);
        if !error.is_transient() || is_late {
            return Err(error);
        }
        warn!(set = config.set, member = config.member, %error, "cannot join; tries again");
        config.report(&error);
        sleep(pause).await;
    }
}

/// Keeps the member in sessions until `stop` is cancelled and everything is handed over.
pub(super) async fn drive<K, E, P, L, S>(
    parts: &Arc<Parts<K, E, P, L, S>>,
    first: Option<Session<E>>,
    stop: &CancellationToken,
) -> Result<(), EngineError>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    let config = &*parts.config;
    let mut next = first;
    loop {
        let session = match next.take() {
            Some(session) => session,
            None => match stop.run_until_cancelled(begin(config, None)).await {
                Some(session) => session?,
                None => return Ok(()),
            },
        };
        parts.begins(&session.until);
        let mut term = Term::new(parts, &session);
        let ended = tokio::select! {
            biased;
            ended = term.serve(stop) => ended,
            error = follow(parts) => Err(error),
        };
        drop(term);
        let Err(error) = ended else {
            return Ok(());
        };
        parts.ends(&error);
        // For the engine the session may last a while longer, and keep its name.
        let _ = timeout(parts.patience(), config.engine.leave(&session.id)).await;
    }
}

/// Keeps the view up to date for one session. Ends if the engine has lost its state, because a view
/// of the old state must not continue.
async fn follow<K, E, P, L, S>(parts: &Parts<K, E, P, L, S>) -> EngineError
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    let config = &*parts.config;
    let mut backoff = Backoff::new(config.ttl, config.seed);
    loop {
        let begun = Instant::now();
        let error = match config.engine.follow(&config.set, &parts.view).await {
            Ok(never) => match never {},
            Err(error @ EngineError::StateLost(_)) => return error,
            Err(error) => error,
        };
        warn!(set = config.set, %error, "cannot follow who owns what; tries again");
        config.report(&error);
        parts.view.send_modify(|view| view.is_complete = false);
        sleep(backoff.next_after(begun.elapsed())).await;
    }
}

/// One session's work.
struct Term<'p, K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    parts: &'p Arc<Parts<K, E, P, L, S>>,
    session: &'p Session<E>,
    work: FuturesUnordered<BoxFuture<'p, Event>>,
    /// When to keep the session next. `None` while that is in progress.
    keep_at: Option<Instant>,
}

/// What has ended.
enum Event {
    Kept(Instant, Result<(), EngineError>),
    Claimed(Shard, Result<Option<Fence>, EngineError>),
    Released(Shard),
    /// Needs no reaction.
    Other,
}

impl<'p, K, E, P, L, S> Term<'p, K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    fn new(parts: &'p Arc<Parts<K, E, P, L, S>>, session: &'p Session<E>) -> Self {
        let keep_at = Some(session.until.get() - parts.config.ttl + parts.config.ttl / 3);
        Self {
            parts,
            session,
            work: FuturesUnordered::new(),
            keep_at,
        }
    }

    /// Works until the member has left.
    ///
    /// # Errors
    ///
    /// The session has ended before.
    async fn serve(&mut self, stop: &CancellationToken) -> Result<(), EngineError> {
        let parts = self.parts;
        let mut view = parts.view.subscribe();
        view.mark_changed();
        parts.table().is_leaving = false;
        loop {
            let now = Instant::now();
            if now >= self.session.until.get() {
                return Err(EngineError::SessionEnded);
            }
            parts.notice_unreadable();
            let is_leaving = stop.is_cancelled();
            if is_leaving && !std::mem::replace(&mut parts.table().is_leaving, true) {
                self.retire();
            }
            let wake = self.advance(&view.borrow_and_update(), now);
            if is_leaving && parts.table().is_empty() {
                // If leaving fails, the TTL ends the session.
                let leave = parts.config.engine.leave(&self.session.id);
                let _ = timeout(parts.patience(), leave).await;
                return Ok(());
            }
            tokio::select! {
                biased;
                () = stop.cancelled(), if !is_leaving => {}
                Some(event) = self.work.next() => self.apply(event)?,
                Ok(()) = view.changed() => {}
                () = parts.drained.notified() => {}
                () = sleep_until(wake) => {}
            }
        }
    }

    /// Begins all steps that are due, and returns when to look again at the latest.
    fn advance(&mut self, view: &crate::View, now: Instant) -> Instant {
        if self.keep_at.is_some_and(|at| now >= at) {
            self.keep_at = None;
            self.keep(now);
        }
        let (steps, next) = {
            let mut table = self.parts.table();
            let steps = table.plan(view, now);
            self.parts.metrics.report(&table.counters);
            (steps, table.next())
        };
        for step in steps {
            match step {
                Step::Claim(shard) => self.claim(shard),
                Step::Release(shard, fence) => self.release(shard, fence),
            }
        }
        let times = [Some(self.session.until.get()), self.keep_at, next];
        times.into_iter().flatten().min().unwrap_or(now)
    }

    /// # Errors
    ///
    /// The session has ended.
    fn apply(&mut self, event: Event) -> Result<(), EngineError> {
        let config = &*self.parts.config;
        let now = Instant::now();
        match event {
            Event::Kept(sent, Ok(())) => {
                if !self.session.until.extend(sent + config.ttl) {
                    return Err(EngineError::SessionEnded);
                }
                self.keep_at = Some(sent + config.ttl / 3);
            }
            Event::Kept(_, Err(error)) | Event::Claimed(_, Err(error)) if ends(&error) => {
                return Err(error);
            }
            Event::Kept(_, Err(error)) => {
                warn!(set = config.set, member = config.member, %error, "cannot keep the session");
                config.report(&error);
                self.keep_at = Some(now + config.ttl / 12);
            }
            Event::Claimed(shard, Ok(Some(fence))) => self.take(shard, fence),
            Event::Claimed(shard, Ok(None)) => {
                // The view shows the owner soon.
                let retry_at = now + config.ttl / 12;
                self.parts.table().leave(shard, Some(retry_at));
            }
            Event::Claimed(shard, Err(error)) => {
                warn!(set = config.set, %shard, %error, "cannot claim a shard");
                config.report(&error);
                let retry_at = now + config.ttl / 6;
                self.parts.table().leave(shard, Some(retry_at));
            }
            Event::Released(shard) => {
                debug!(set = config.set, %shard, "released");
                self.parts.table().leave(shard, None);
            }
            Event::Other => {}
        }
        Ok(())
    }

    /// A shard is owned from now on.
    fn take(&mut self, shard: Shard, fence: Fence) {
        let (parts, session) = (self.parts, self.session);
        let tenure = {
            let mut table = parts.table();
            table.claimed(shard, fence, &session.id, &session.until)
        };
        let Some(tenure) = tenure else { return };
        debug!(set = parts.config.set, %shard, %fence, "taken");
        if parts.config.follows_marks {
            let tenure = Arc::clone(&tenure);
            self.push(async move {
                parts.follow_marks(&tenure).await;
                Event::Other
            });
        }
        tenure.relist.notify_one();
        self.push(async move {
            parts.list(&tenure).await;
            Event::Other
        });
    }

    fn keep(&mut self, sent: Instant) {
        let (parts, session) = (self.parts, self.session);
        self.push(async move {
            let kept = parts.config.engine.keep(&session.id);
            Event::Kept(sent, in_time(kept, parts.patience()).await)
        });
    }

    fn claim(&mut self, shard: Shard) {
        let (parts, session) = (self.parts, self.session);
        self.push(async move {
            let claimed = parts.config.engine.claim(&session.id, shard);
            Event::Claimed(shard, in_time(claimed, parts.patience()).await)
        });
    }

    fn release(&mut self, shard: Shard, fence: Fence) {
        let (parts, session) = (self.parts, self.session);
        self.push(async move {
            let release = || parts.config.engine.release(&session.id, shard, fence);
            until_done(&parts.config, release, parts.patience()).await;
            Event::Released(shard)
        });
    }

    fn retire(&mut self) {
        let (parts, session) = (self.parts, self.session);
        self.push(async move {
            let retire = || parts.config.engine.retire(&session.id);
            until_done(&parts.config, retire, parts.patience()).await;
            Event::Other
        });
    }

    fn push(&mut self, work: impl Future<Output = Event> + Send + 'p) {
        self.work.push(Box::pin(work));
    }
}

/// Whether this error says that a session has ended.
fn ends(error: &EngineError) -> bool {
    matches!(error, EngineError::SessionEnded | EngineError::StateLost(_))
}

/// Limits an operation of the engine to `patience`.
pub(super) async fn in_time<T>(
    operation: impl Future<Output = Result<T, EngineError>>,
    patience: Duration,
) -> Result<T, EngineError> {
    let late = |_| Err(EngineError::Unreachable(late("given no reply", patience)));
    timeout(patience, operation).await.unwrap_or_else(late)
}

/// Repeats an operation until it succeeds, or the session has ended. Dropped with the session.
async fn until_done<E, F>(config: &Config<E>, operation: impl Fn() -> F, patience: Duration)
where
    F: Future<Output = Result<(), EngineError>>,
{
    let mut backoff = Backoff::new(patience, config.seed);
    loop {
        match in_time(operation(), patience).await {
            Ok(()) | Err(EngineError::SessionEnded) => return,
            Err(error) => {
                warn!(set = config.set, %error, "the engine failed; tries again");
                config.report(&error);
            }
        }
        sleep(backoff.next()).await;
    }
}
