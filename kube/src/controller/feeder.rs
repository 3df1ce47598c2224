//! From the watches into the queue.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, future};
use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use requeue::tokio::CancellationToken;
use tokio::time::{Instant, timeout_at};

use super::{Controller, Watch};
use crate::error::Error;
use crate::health::Health;
use crate::keys::{CHANGED, Keys, LISTED, add, bare};
use crate::metrics;
use crate::tracker::Changes;

/// Everything that happens before the queue. It has no task of its own, and goes on while it is
/// polled.
pub(super) struct Feeder<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    queue: Keys<K>,
    store: Store<K>,
    dyntype: K::DynamicType,
    sources: SelectAll<BoxStream<'static, Said<K>>>,
    watches: Vec<Progress>,
    began: Instant,
    sync_timeout: Duration,
    /// Cancelled once every kind has been listed.
    synced: CancellationToken,
    health: Health,
    resync: Option<(Duration, Instant)>,
    reports: Option<Instant>,
}

/// What a source said. Streams of requests have no number.
type Said<K> = (Option<usize>, Result<Changes<K>, watcher::Error>);

/// How far a watch has come.
struct Progress {
    kind: String,
    synced: bool,
    fails: bool,
    last: Option<watcher::Error>,
}

/// How often client-go reports the ages of what is running.
const REPORT_PERIOD: Duration = Duration::from_millis(500);
/// By how much the time between two resyncs varies.
const RESYNC_JITTER: f64 = 0.1;

impl<K> Feeder<K>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
{
    pub(super) fn new(controller: &mut Controller<K>, queue: Keys<K>) -> Self {
        let now = Instant::now();
        let watches = std::mem::take(&mut controller.watches);
        let requests = std::mem::take(&mut controller.requests);
        let health = controller.health.clone();
        health.watches(watches.iter().map(|watch| watch.kind.clone()));

        let mut sources = SelectAll::new();
        for changes in requests {
            sources.push(changes.map(|changes| (None, Ok(changes))).boxed());
        }
        let mut progress = Vec::new();
        for (index, Watch { kind, changes }) in watches.into_iter().enumerate() {
            sources.push(changes.map(move |said| (Some(index), said)).boxed());
            progress.push(Progress {
                kind,
                synced: false,
                fails: false,
                last: None,
            });
        }
        let reports = metrics::reports(controller.name.as_deref());
        Self {
            queue,
            store: controller.store.clone(),
            dyntype: controller.dyntype.clone(),
            sources,
            watches: progress,
            began: now,
            sync_timeout: controller.sync_timeout,
            synced: CancellationToken::new(),
            health,
            resync: controller
                .resync
                .map(|every| (every, later(now, jittered(every)))),
            reports: reports.then_some(now),
        }
    }

    pub(super) fn synced(&self) -> CancellationToken {
        self.synced.clone()
    }

    /// Feeds the queue. Returns only if a kind cannot be listed in time.
    ///
    /// # Cancel safety
    ///
    /// Nothing that was taken from a watch is lost.
    pub(super) async fn feed(mut self) -> Error {
        loop {
            match timeout_at(self.next_tick(), self.sources.next()).await {
                Ok(Some(said)) => self.hear(said),
                // Every stream has ended; those of kube-runtime do not.
                Ok(None) => future::pending().await,
                Err(_) => {}
            }
            if let Some(error) = self.tick(Instant::now()) {
                return error;
            }
        }
    }

    fn hear(&mut self, (watch, said): Said<K>) {
        match said {
            Ok(changes) => {
                // Once the queue is shut down nothing is left to do with a key.
                for key in changes.listed {
                    add(&self.queue, key, LISTED);
                }
                for key in changes.changed {
                    add(&self.queue, key, CHANGED);
                }
                if let Some(watch) = watch {
                    self.succeeded(watch, changes.synced);
                }
            }
            Err(error) => {
                if let Some(watch) = watch {
                    self.failed(watch, error);
                }
            }
        }
    }

    fn succeeded(&mut self, index: usize, synced: bool) {
        let Some(watch) = self.watches.get_mut(index) else {
            return;
        };
        // Of the first list only the end is a success.
        if synced || (watch.fails && watch.synced) {
            watch.fails = false;
            watch.last = None;
            self.health.watch(index, None);
        }
        if synced && watch.synced {
            // What came and went between the two lists is in neither. Its owner can tell.
            self.add_all();
        } else if synced {
            watch.synced = true;
            tracing::debug!(target: "requeue", kind = watch.kind, "listed");
            self.health.synced(index);
            if self.watches.iter().all(|watch| watch.synced) {
                self.synced.cancel();
            }
        }
    }

    fn failed(&mut self, index: usize, error: watcher::Error) {
        let Some(watch) = self.watches.get_mut(index) else {
            return;
        };
        let kind = &watch.kind;
        // Once per outage: the watch is retried until it works.
        if watch.fails {
            tracing::debug!(target: "requeue", kind, %error, "a watch failed again");
        } else {
            tracing::warn!(target: "requeue", kind, %error, "a watch failed");
        }
        watch.fails = true;
        self.health.watch(index, Some(error.to_string()));
        watch.last = Some(error);
    }

    /// Adds every object that is known, behind those that changed.
    fn add_all(&self) {
        let key = |object: &Arc<K>| ObjectRef::from_obj_with(&**object, self.dyntype.clone());
        let mut keys: Vec<_> = self.store.state().iter().map(key).map(bare).collect();
        // By name: a map has another order in each process.
        keys.sort_unstable_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        for key in keys {
            add(&self.queue, key, LISTED);
        }
    }

    fn next_tick(&self) -> Instant {
        let sync = (!self.synced.is_cancelled()).then(|| later(self.began, self.sync_timeout));
        let resync = self.resync.map(|(_, at)| at);
        let ticks = [sync, resync, self.reports];
        let never = later(Instant::now(), Duration::MAX);
        ticks.into_iter().flatten().min().unwrap_or(never)
    }

    fn tick(&mut self, now: Instant) -> Option<Error> {
        if let Some(at) = self.reports.filter(|&at| at <= now) {
            self.queue.report_running();
            self.reports = Some(later(at.max(now), REPORT_PERIOD));
        }
        if let Some((every, _)) = self.resync.filter(|&(_, at)| at <= now) {
            self.resync = Some((every, later(now, jittered(every))));
            self.add_all();
        }
        if self.synced.is_cancelled() || later(self.began, self.sync_timeout) > now {
            return None;
        }
        let watch = self.watches.iter_mut().find(|watch| !watch.synced)?;
        Some(Error::NotSynced {
            kind: watch.kind.clone(),
            waited: self.sync_timeout,
            last: watch.last.take(),
        })
    }
}

fn jittered(every: Duration) -> Duration {
    every.saturating_add(every.mul_f64(RESYNC_JITTER * fastrand::f64()))
}

/// An instant that far in the future that it does not matter, if the sum is none.
fn later(instant: Instant, delay: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    instant.checked_add(delay).unwrap_or_else(|| instant + FAR)
}
