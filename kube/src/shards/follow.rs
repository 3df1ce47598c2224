//! Keeping a view up to date, and ending the sessions that are not kept.

use std::collections::HashSet;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::future::BoxFuture;
use futures::stream::{BoxStream, FuturesUnordered};
use k8s_openapi::api::coordination::v1::Lease;
use kube::runtime::watcher::{self, Event, watcher};
use requeue_shards::{EngineError, View};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout};

use crate::lease::Record;

use super::Leases;
use super::calls::{error_of, of_code};
use super::format::{self, Role};
use super::shown::Shown;

/// The pauses after failures of the watch, from the first to the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// How long a list may be silent.
const SILENCE: Duration = Duration::from_secs(10);
/// After how many seconds a watch is resumed, at the latest: it may be silent because it is dead.
const RESUMED: u32 = 60;
/// Which part of its duration a session is ended later, at least and at most: for clocks that do
/// not run alike, and so that of many members few try.
const MARGIN: (f64, f64) = (0.01, 0.05);

/// Never ends but by an error.
pub(super) async fn follow(
    leases: &Leases,
    set: &str,
    view: &watch::Sender<View>,
) -> Result<Infallible, EngineError> {
    let mut follow = Follow::new(leases, set, view);
    loop {
        let now = Instant::now();
        let wake = follow.advance(now);
        tokio::select! {
            biased;
            Some((member, ended)) = follow.ending.next() => follow.ended(&member, ended),
            Some(event) = follow.events.next(), if now >= follow.resume_at => follow.hear(event)?,
            () = sleep_until(wake) => {}
        }
    }
}

struct Follow<'e> {
    leases: &'e Leases,
    set: &'e str,
    view: &'e watch::Sender<View>,
    events: BoxStream<'static, watcher::Result<Event<Lease>>>,
    shown: Shown,
    /// What is being listed, until the list is complete.
    listed: Option<Shown>,
    /// The sessions that are being ended, by their members.
    ending: FuturesUnordered<BoxFuture<'e, (Ending, Result<bool, EngineError>)>>,
    /// When the next event comes at the latest, `None` if there may be none.
    hear_by: Option<Instant>,
    resume_at: Instant,
    pause: Duration,
}

/// A session that was not kept.
struct Ending {
    member: String,
    record: Record,
}

impl<'e> Follow<'e> {
    fn new(leases: &'e Leases, set: &'e str, view: &'e watch::Sender<View>) -> Self {
        let now = Instant::now();
        Self {
            leases,
            set,
            view,
            events: events(leases, set),
            shown: Shown::default(),
            listed: Some(Shown::default()),
            ending: FuturesUnordered::new(),
            hear_by: Some(now + SILENCE),
            resume_at: now,
            pause: PAUSES.0,
        }
    }

    /// Does what is due, and returns when there is more to do at the latest.
    fn advance(&mut self, now: Instant) -> Instant {
        for (member, record) in self.shown.expired(now) {
            let leases = self.leases;
            let limit = lasts(&record) / 3;
            self.ending.push(Box::pin(async move {
                let ended = timeout(limit, leases.end(&record)).await;
                let late = |_| Err(of_code(503, Arc::new(std::io::Error::other("no reply"))));
                (Ending { member, record }, ended.unwrap_or_else(late))
            }));
        }
        if self.hear_by.is_some_and(|by| now >= by) {
            self.begin_again(now);
        }
        let resume_at = Some(self.resume_at).filter(|at| *at > now);
        let times = [self.shown.next(), self.hear_by, resume_at];
        let far = now + Duration::from_secs(3600);
        times.into_iter().flatten().min().unwrap_or(far)
    }

    /// Lists everything again: what the watch has shown is old.
    fn begin_again(&mut self, now: Instant) {
        self.events = events(self.leases, self.set);
        self.listed = Some(Shown::default());
        self.hear_by = Some(now + SILENCE);
    }

    fn ended(&mut self, ending: &Ending, ended: Result<bool, EngineError>) {
        let now = Instant::now();
        let Ending { member, record } = ending;
        match ended {
            Ok(true) => {
                tracing::info!(target: "requeue", set = self.set, member, "not kept; has ended");
                // A view shows nothing that the watch has not shown, or it would go back and forth.
                if self.shown.has(member, record.lease()) {
                    let by = now + SILENCE.min(lasts(record) / 3);
                    self.hear_by = self.hear_by.or(Some(by));
                }
            }
            // It was kept, and the watch has not shown it for as long as a session lasts.
            Ok(false) => {
                tracing::warn!(target: "requeue", set = self.set, "the watch is late; lists again");
                if self.listed.is_none() {
                    self.begin_again(now);
                }
                self.shown.try_again_at(member, now + lasts(record));
            }
            Err(error) => {
                tracing::warn!(target: "requeue", set = self.set, member, %error, "cannot end");
                self.shown.try_again_at(member, now + lasts(record) / 4);
            }
        }
    }

    fn hear(&mut self, event: watcher::Result<Event<Lease>>) -> Result<(), EngineError> {
        let now = Instant::now();
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                let error = watch_error(error);
                if matches!(error, EngineError::Denied(_)) {
                    return Err(error);
                }
                tracing::debug!(target: "requeue", set = self.set, %error, "the watch failed");
                self.hear_by = self.hear_by.map(|_| now + SILENCE);
                self.resume_at = now + self.pause.mul_f64(1.0 - 0.5 * fastrand::f64());
                self.pause = (self.pause * 2).min(PAUSES.1);
                return Ok(());
            }
        };
        if !matches!(event, Event::Init) {
            self.pause = PAUSES.0;
        }
        let is_listing = matches!(event, Event::Init | Event::InitApply(_));
        self.hear_by = is_listing.then_some(now + SILENCE);
        let differs = match event {
            Event::Init => {
                self.listed = Some(Shown::default());
                false
            }
            Event::InitApply(lease) => {
                let mut listed = self.listed.take().unwrap_or_default();
                self.apply(&mut listed, lease);
                self.listed = Some(listed);
                false
            }
            Event::InitDone => self.replace(),
            Event::Apply(lease) => {
                let mut shown = std::mem::take(&mut self.shown);
                let differs = self.apply(&mut shown, lease);
                self.shown = shown;
                differs
            }
            Event::Delete(lease) => self.remove(&lease),
        };
        if differs {
            self.publish();
        }
        Ok(())
    }

    /// What was listed is what there is.
    fn replace(&mut self) -> bool {
        let Some(listed) = self.listed.take() else {
            return false;
        };
        let old = std::mem::replace(&mut self.shown, listed);
        let there: HashSet<&str> = self.shown.leases().collect();
        for gone in old.leases().filter(|name| !there.contains(name)) {
            self.leases.forget(gone);
        }
        true
    }

    /// Returns whether a view differs.
    fn apply(&self, shown: &mut Shown, lease: Lease) -> bool {
        let name = lease.metadata.name.clone().unwrap_or_default();
        match format::role(self.set, &name) {
            Some(Role::Member(member)) => {
                let record = self.leases.observe(lease);
                let margin = MARGIN.0 + (MARGIN.1 - MARGIN.0) * fastrand::f64();
                let due = record.expires() + lasts(&record).mul_f64(margin);
                shown.member(member, record, due)
            }
            Some(Role::Shard(shard)) => {
                let role = Role::Shard(shard);
                shown.shard(shard, &format::record(Some(lease), self.set, &role))
            }
            Some(Role::Set) | None => false,
        }
    }

    /// Returns whether a view differs.
    fn remove(&mut self, lease: &Lease) -> bool {
        let name = lease.metadata.name.as_deref().unwrap_or_default();
        match format::role(self.set, name) {
            Some(Role::Member(member)) => {
                self.leases.forget(name);
                self.shown.member_is_gone(member, lease)
            }
            Some(Role::Shard(shard)) => self.shown.shard_is_gone(shard, name),
            Some(Role::Set) | None => false,
        }
    }

    fn publish(&self) {
        let shown = self.shown.view();
        self.view.send_if_modified(|view| {
            let differs = *view != shown;
            *view = shown;
            differs
        });
    }
}

fn events(leases: &Leases, set: &str) -> BoxStream<'static, watcher::Result<Event<Lease>>> {
    let config = watcher::Config::default()
        .labels(&format::selector(set))
        .timeout(RESUMED);
    watcher(leases.api.clone(), config).boxed()
}

/// How long a session lasts: a second at least, which is what the API knows.
fn lasts(record: &Record) -> Duration {
    let lasts = record.expires().duration_since(record.observed());
    lasts.max(Duration::from_secs(1))
}

fn watch_error(error: watcher::Error) -> EngineError {
    match error {
        watcher::Error::InitialListFailed(error)
        | watcher::Error::WatchStartFailed(error)
        | watcher::Error::WatchFailed(error) => error_of(error),
        watcher::Error::WatchError(status) => of_code(status.code, Arc::new(status)),
        watcher::Error::NoResourceVersion => EngineError::Unreadable(error.to_string()),
    }
}
