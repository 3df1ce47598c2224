//! From the watches into the queue.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::hash::Hash;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use futures::stream::{BoxStream, SelectAll};
use futures::{StreamExt, future};
use kube::Resource;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher;
use requeue::tokio::{CancellationToken, Rejected};
use tokio::sync::mpsc;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};

use super::{Parts, Watch};
use crate::error::Error;
use crate::health::Health;
use crate::keys::{CHANGED, KeyQueue, LISTED, bare};
use crate::metrics::{self, WriteMetrics};
use crate::reasons::{Cause, Pending, Reason};
use crate::tracker::Changes;
use crate::waiting::{Tasks, Waiting};

/// Everything that happens before the queue. It has no task of its own, and goes on while it is
/// polled.
pub(super) struct Feeder<K: Resource + 'static, Q>
where
    K::DynamicType: Eq + Hash,
{
    queue: Q,
    /// Keys for which the queue had no room.
    backlog: Backlog<K>,
    pending: Arc<Pending<K>>,
    debounce: Option<(Duration, Duration)>,
    store: Store<K>,
    dyntype: K::DynamicType,
    sources: SelectAll<BoxStream<'static, Said<K>>>,
    watches: Vec<Progress>,
    began: Instant,
    sync_timeout: Duration,
    /// Cancelled once every kind has been listed.
    synced: CancellationToken,
    health: Health,
    /// The number of the first watch there.
    first: usize,
    waiting: Arc<Waiting<K, Q>>,
    tasks: Tasks<K>,
    resync: Option<(Duration, Instant)>,
    reports: Option<Instant>,
    sweep: Instant,
}

/// What a source said. Streams of requests have no number.
type Said<K> = (Option<usize>, Result<Changes<K>, Arc<watcher::Error>>);

/// What a feeder hears next.
enum Next<K: Resource> {
    /// The queue has taken the first key of the backlog.
    Room,
    /// A key that the queue had no room for when it had written after its run.
    Late(Option<ObjectRef<K>>),
    Said(Result<Option<Said<K>>, Elapsed>),
}

/// Keys that wait for room, in order, and the level of each.
struct Backlog<K: Resource>
where
    K::DynamicType: Eq + Hash,
{
    order: VecDeque<ObjectRef<K>>,
    levels: HashMap<ObjectRef<K>, u8>,
}

/// How far a watch has come.
struct Progress {
    kind: Arc<str>,
    synced: bool,
    fails: bool,
    last: Option<Arc<watcher::Error>>,
}

/// How often client-go reports how long runs have lasted.
const REPORT_PERIOD: Duration = Duration::from_millis(500);
/// How often keys are forgotten that have left the queue while they waited.
const SWEEP_PERIOD: Duration = Duration::from_secs(60);
/// By how much the time between two resyncs varies.
const RESYNC_JITTER: f64 = 0.1;

impl<K, Q> Feeder<K, Q>
where
    K: Resource + Clone + Debug + Send + Sync + 'static,
    K::DynamicType: Debug + Eq + Hash + Clone + Send + Sync,
    Q: KeyQueue<K>,
{
    pub(super) fn new(controller: &mut Parts<K>, queue: Q, pending: Arc<Pending<K>>) -> Self {
        let now = Instant::now();
        let watches = std::mem::take(&mut controller.watches);
        let requests = std::mem::take(&mut controller.requests);
        let health = controller.health.clone();
        let name = controller.name.as_deref().filter(|_| controller.is_managed);
        let first = health.watches(name, watches.iter().map(|watch| &*watch.kind));

        let mut sources = SelectAll::new();
        for changes in requests {
            sources.push(changes.map(|changes| (None, Ok(changes))).boxed());
        }
        let (mut progress, mut caches) = (Vec::new(), Vec::new());
        for (index, watch) in watches.into_iter().enumerate() {
            let Watch {
                kind,
                changes,
                cache,
                ..
            } = watch;
            caches.push(cache);
            sources.push(changes.map(move |said| (Some(index), said)).boxed());
            progress.push(Progress {
                kind,
                synced: false,
                fails: false,
                last: None,
            });
        }
        let name = controller.name.as_deref();
        let reports = metrics::reports(name);
        let (waiting, tasks) = Waiting::new(
            queue.clone(),
            controller.client.clone(),
            controller.own_writes_timeout,
            caches,
            WriteMetrics::new(name),
        );
        Self {
            queue,
            backlog: Backlog {
                order: VecDeque::new(),
                levels: HashMap::new(),
            },
            pending,
            debounce: controller.debounce,
            store: controller.store.clone(),
            dyntype: controller.dyntype.clone(),
            sources,
            watches: progress,
            began: now,
            sync_timeout: controller.sync_timeout,
            synced: CancellationToken::new(),
            health,
            first,
            waiting: Arc::new(waiting),
            tasks,
            resync: controller
                .resync
                .map(|every| (every, later(now, jittered(every)))),
            reports: reports.then_some(now),
            sweep: later(now, SWEEP_PERIOD),
        }
    }

    pub(super) fn synced(&self) -> CancellationToken {
        self.synced.clone()
    }

    pub(super) fn waiting(&self) -> Arc<Waiting<K, Q>> {
        Arc::clone(&self.waiting)
    }

    /// Feeds the queue. Returns only if a kind cannot be listed in time.
    ///
    /// # Cancel safety
    ///
    /// Nothing that was taken from a watch is lost.
    pub(super) async fn feed(mut self) -> Error {
        let waiting = self.waiting();
        let (_, nothing) = mpsc::unbounded_channel();
        let reads = std::mem::replace(&mut self.tasks.reads, nothing);
        // In boxes, because the stack of a test in debug is small.
        let hear = Box::pin(async move { self.hear_all().await });
        let read = Box::pin(async move { waiting.read_all(reads).await });
        match select(hear, read).await {
            Either::Left((error, _)) => error,
            Either::Right(((), hear)) => hear.await,
        }
    }

    async fn hear_all(&mut self) -> Error {
        loop {
            let next = timeout_at(self.next_tick(), self.sources.next());
            let room = self.backlog.room(&self.queue);
            let late = self.tasks.late.recv();
            let next = match select(select(pin!(room), pin!(late)), pin!(next)).await {
                Either::Left((Either::Left(((), _)), _)) => Next::Room,
                Either::Left((Either::Right((key, _)), _)) => Next::Late(key),
                Either::Right((said, _)) => Next::Said(said),
            };
            match next {
                Next::Room => self.backlog.pop(),
                Next::Late(Some(key)) => self.backlog.push(key, LISTED),
                Next::Said(Ok(Some(said))) => self.hear(said),
                // Every stream has ended; those of kube-runtime do not.
                Next::Said(Ok(None)) => future::pending().await,
                // `waiting` has the other end of `late`.
                Next::Late(None) | Next::Said(Err(_)) => {}
            }
            if let Some(error) = self.tick(Instant::now()) {
                return error;
            }
        }
    }

    fn hear(&mut self, (watch, said): Said<K>) {
        match said {
            Ok(changes) => {
                let is_first = watch
                    .and_then(|watch| self.watches.get(watch))
                    .is_some_and(|watch| !watch.synced);
                if !changes.listed.is_empty() {
                    let cause = if is_first {
                        Cause::Listed
                    } else {
                        Cause::Resync
                    };
                    let reason = Reason::from(cause);
                    for key in changes.listed {
                        self.add(key, LISTED, reason.clone());
                    }
                }
                for (key, reason) in changes.changed {
                    self.add(key, CHANGED, reason);
                }
                if let Some(watch) = watch {
                    self.waiting.see(watch, &changes.news);
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

    fn add(&mut self, key: ObjectRef<K>, level: u8, reason: Reason) {
        self.pending.note(&key, reason, |key| {
            self.queue.holds(key) || self.backlog.holds(key)
        });
        let added = match self.debounce {
            Some(debounce) if level >= CHANGED => self.queue.add_debounced(key, level, debounce),
            _ => self.queue.add(key, level),
        };
        match added {
            // Once the queue is shut down nothing is left to do with a key.
            Ok(()) | Err(Rejected::Closed(_)) => {}
            Err(rejected) => self.backlog.push(rejected.into_key(), level),
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
            self.health.watch(self.first + index, None);
        }
        if synced && watch.synced {
            // What came and went between the two lists is in neither. Its owner can tell.
            self.add_all();
        } else if synced {
            watch.synced = true;
            tracing::debug!(target: "requeue", kind = &*watch.kind, "listed");
            self.health.synced(self.first + index);
            if self.watches.iter().all(|watch| watch.synced) {
                self.synced.cancel();
            }
        }
    }

    fn failed(&mut self, index: usize, error: Arc<watcher::Error>) {
        let Some(watch) = self.watches.get_mut(index) else {
            return;
        };
        let kind = &*watch.kind;
        // Once per outage: the watch is retried until it works.
        if watch.fails {
            tracing::debug!(target: "requeue", kind, %error, "a watch failed again");
        } else {
            tracing::warn!(target: "requeue", kind, %error, "a watch failed");
        }
        watch.fails = true;
        self.health
            .watch(self.first + index, Some(error.to_string()));
        watch.last = Some(error);
    }

    /// Adds every object that is known, behind those that changed.
    fn add_all(&mut self) {
        let key = |object: &Arc<K>| ObjectRef::from_obj_with(&**object, self.dyntype.clone());
        let mut keys: Vec<_> = self.store.state().iter().map(key).map(bare).collect();
        // By name: a map has another order in each process.
        keys.sort_unstable_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        let reason = Reason::from(Cause::Resync);
        for key in keys {
            self.add(key, LISTED, reason.clone());
        }
    }

    fn next_tick(&self) -> Instant {
        let sync = (!self.synced.is_cancelled()).then(|| later(self.began, self.sync_timeout));
        let resync = self.resync.map(|(_, at)| at);
        let ticks = [sync, resync, self.reports].into_iter().flatten();
        ticks.fold(self.sweep, Instant::min)
    }

    fn tick(&mut self, now: Instant) -> Option<Error> {
        if let Some(at) = self.reports.filter(|&at| at <= now) {
            self.queue.report_running();
            self.reports = Some(later(at.max(now), REPORT_PERIOD));
        }
        if self.sweep <= now {
            self.waiting.sweep();
            self.sweep = later(now, SWEEP_PERIOD);
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
            kind: watch.kind.to_string(),
            waited: self.sync_timeout,
            last: watch.last.take(),
        })
    }
}

impl<K: Resource<DynamicType: Eq + Hash + Clone>> Backlog<K> {
    fn push(&mut self, key: ObjectRef<K>, level: u8) {
        if let Some(known) = self.levels.get_mut(&key) {
            *known = level.max(*known);
        } else {
            self.order.push_back(key.clone());
            self.levels.insert(key, level);
        }
    }

    fn pop(&mut self) {
        if let Some(key) = self.order.pop_front() {
            self.levels.remove(&key);
        }
    }

    fn holds(&self, key: &ObjectRef<K>) -> bool {
        self.levels.contains_key(key)
    }

    /// Waits until the queue has taken the first key, or is shut down.
    ///
    /// # Cancel safety
    ///
    /// The key stays the first until it is removed. If it was added, it is added once more, which
    /// is merged.
    async fn room(&self, queue: &impl KeyQueue<K>) {
        let Some(key) = self.order.front() else {
            return future::pending().await;
        };
        let level = self.levels.get(key).copied().unwrap_or(LISTED);
        queue.add_wait(key.clone(), level).await;
    }
}

fn jittered(every: Duration) -> Duration {
    every.saturating_add(every.mul_f64(RESYNC_JITTER * fastrand::f64()))
}

/// An instant that far in the future that it does not matter, if the sum is none.
pub(crate) fn later(instant: Instant, delay: Duration) -> Instant {
    const FAR: Duration = Duration::from_secs(86_400 * 365 * 30);
    instant.checked_add(delay).unwrap_or_else(|| instant + FAR)
}
