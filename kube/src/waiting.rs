//! Keys that wait until the stores show something: the writes of their last run, or an object.
//!
//! A key waits suspended in the queue. A run suspends its key at its first write, so that it may
//! panic or be stopped. Everything noted here belongs to a key whose run is under way, that is
//! suspended with a timeout, or that has no room in the queue yet. It is forgotten when the key's next
//! run begins, or soon after the key has left the queue without one.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap, HashSet, btree_map};
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{StreamExt, stream};
use kube::api::DynamicObject;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Client, Resource};
use requeue::tokio::{Action, Rejected};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout_at};

use crate::cache::{Cache, News, Number, Version};
use crate::controller::later;
use crate::keys::{KeyQueue, LISTED};
use crate::metrics::WriteMetrics;
use crate::tracker::Name;
use crate::writes::{NotCached, Record, Write, Written};

/// The keys of a controller that wait.
pub(crate) struct Waiting<K: Resource + 'static, Q>
where
    K::DynamicType: Eq + Hash,
{
    queue: Q,
    client: Option<Client>,
    /// How long a key waits for its writes.
    timeout: Duration,
    state: Mutex<State<K>>,
    reads: mpsc::UnboundedSender<Read<K>>,
    /// Keys that have written after their run, and for which the queue had no room.
    late: mpsc::UnboundedSender<ObjectRef<K>>,
    metrics: WriteMetrics,
}

/// What the controller has to do for the keys that wait.
pub(crate) struct Tasks<K: Resource> {
    pub(crate) reads: mpsc::UnboundedReceiver<Read<K>>,
    /// Keys to be added when the queue has room.
    pub(crate) late: mpsc::UnboundedReceiver<ObjectRef<K>>,
}

struct State<K: Resource + 'static>
where
    K::DynamicType: Eq + Hash,
{
    /// By the number of the watch.
    caches: Vec<Option<Cache>>,
    /// The keys whose runs are under way, and those that wait.
    waits: HashMap<ObjectRef<K>, Wait>,
    /// Who waits for an object.
    names: HashMap<(usize, Name), HashSet<ObjectRef<K>>>,
    /// Who waits until a watch has come to a version.
    versions: BTreeMap<(usize, Number), HashSet<ObjectRef<K>>>,
}

/// What one key waits for.
struct Wait {
    is_running: bool,
    /// Whether the key was suspended since its run began.
    is_suspended: bool,
    /// Whether the key waits for room in the queue.
    is_late: bool,
    since: Instant,
    /// Writes that a store does not show yet, in their order.
    writes: Vec<Pending>,
    /// When the key runs although a write has not come back.
    writes_until: Instant,
    /// Whether the end of the run left writes to wait for.
    waits_for_writes: bool,
    condition: Option<Condition>,
    /// Whether an event has made the condition true since it was set.
    is_met: bool,
    /// When the key runs whatever its condition says: the time of an [`Action::Suspend`].
    asked_until: Option<Instant>,
    /// Where the key stands in the state's `names` and `versions`, until it is forgotten.
    names: Vec<(usize, Name)>,
    versions: Vec<(usize, Number)>,
}

struct Pending {
    cache: usize,
    name: Name,
    written: Written,
}

/// What has to be true of objects before a key runs again.
#[derive(Clone)]
pub(crate) struct Condition {
    /// The objects, each with its kind.
    pub(crate) objects: Vec<(Arc<str>, Name)>,
    pub(crate) is_met: Arc<dyn Fn() -> bool + Send + Sync>,
}

/// A live read, which decides what has become of a write.
pub(crate) struct Read<K: Resource> {
    key: ObjectRef<K>,
    cache: usize,
    name: Name,
    until: Instant,
}

/// How a run begins.
#[derive(Default)]
pub(crate) struct Begin {
    pub(crate) maybe_stale: bool,
    pub(crate) timed_out: bool,
}

/// How many live reads there are at once.
const READS: usize = 8;
/// The pause after a live read that failed.
const READ_PAUSE: Duration = Duration::from_millis(500);

impl<K, Q> Waiting<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Q: KeyQueue<K>,
{
    pub(crate) fn new(
        queue: Q,
        client: Option<Client>,
        timeout: Duration,
        caches: Vec<Option<Cache>>,
        metrics: WriteMetrics,
    ) -> (Self, Tasks<K>) {
        let (reads, reads_receiver) = mpsc::unbounded_channel();
        let (late, late_receiver) = mpsc::unbounded_channel();
        let state = Mutex::new(State {
            caches,
            waits: HashMap::new(),
            names: HashMap::new(),
            versions: BTreeMap::new(),
        });
        let waiting = Self {
            queue,
            client,
            timeout,
            state,
            reads,
            late,
            metrics,
        };
        let tasks = Tasks {
            reads: reads_receiver,
            late: late_receiver,
        };
        (waiting, tasks)
    }

    /// Begins a run, or returns for how long its key still has to wait. A key may be here too early
    /// if a handle of an earlier run has recorded a write since the key was taken.
    pub(crate) fn begin(&self, key: &ObjectRef<K>, timed_out: bool) -> Result<Begin, Duration> {
        let now = Instant::now();
        let mut state = self.state();
        let mut begin = Begin::default();
        let wait = state.waits.get(key);
        if let Some((wait, until)) = wait.and_then(|wait| Some((wait, wait.until()?))) {
            if !timed_out && now < until {
                return Err(until - now);
            }
            begin.maybe_stale = !wait.writes.is_empty();
            begin.timed_out = wait.asked_until.is_some();
            if let Some(write) = wait.writes.first() {
                self.metrics.gave_up(wait.since.elapsed());
                let kind = state.caches.get(write.cache).and_then(Option::as_ref);
                let kind = kind.map_or("", |cache| &*cache.kind);
                let name = &write.name.name;
                tracing::warn!(
                    target: "requeue", %key, kind, %name,
                    "a write has not come back in time: runs on a store that may be older"
                );
            }
        }
        state.forget(key);
        state.waits.insert(key.clone(), Wait::new(now, true));
        Ok(begin)
    }

    /// Ends a run. `action` is how it ends, `None` if it has failed. Returns how it ends in truth.
    fn end(&self, key: &ObjectRef<K>, action: Option<Action>) -> Option<Action> {
        let now = Instant::now();
        let (plain, priority) = action.map(Action::into_parts).unzip();
        let asked = match plain {
            Some(Action::Suspend(timeout)) => Some(later(now, timeout)),
            _ => None,
        };
        let mut state = self.state();
        let wait = state.waits.get(key).filter(|_| asked.is_some());
        let condition = wait.and_then(|wait| wait.condition.clone());
        let mut is_met = false;
        if let Some(condition) = condition {
            // It is registered, so that no event is missed from here on. The code is the
            // reconciler's, and may record a write.
            drop(state);
            is_met = condition.is_met();
            state = self.state();
        }
        let Some(wait) = state.waits.get_mut(key) else {
            return action;
        };
        wait.is_running = false;
        wait.since = now;
        // Without a condition only its time ends it.
        let is_met = wait.condition.is_some() && (is_met || wait.is_met);
        wait.asked_until = asked.filter(|_| !is_met);
        let Some(until) = wait.until() else {
            // What it waits for is there already.
            if wait.is_suspended || asked.is_some() {
                self.queue.resume(key);
            }
            state.forget(key);
            return action;
        };
        wait.waits_for_writes = !wait.writes.is_empty();
        if wait.waits_for_writes {
            self.metrics.began();
            let writes = wait.writes.len();
            tracing::debug!(target: "requeue", %key, writes, "waits for its own writes");
        }
        let left = until.saturating_duration_since(now);
        if asked.is_some() {
            let suspend = Action::Suspend(left);
            let priority = priority.flatten();
            return Some(priority.map_or(suspend, |priority| suspend.with_priority(priority)));
        }
        self.queue.suspend(key, left);
        action
    }

    /// Notes what an event has changed in a store, and lets the keys run that waited for it.
    pub(crate) fn see(&self, cache: usize, news: &News) {
        let mut state = self.state();
        let keys = state.see(cache, news);
        if keys.is_empty() {
            return;
        }
        let condition = |key| state.waits.get(key)?.condition.clone();
        let mut met: Vec<_> = keys.iter().filter_map(condition).collect();
        if !met.is_empty() {
            // The code is the reconciler's, and may record a write.
            drop(state);
            met.retain(Condition::is_met);
            state = self.state();
        }
        for key in keys {
            state.drop_seen(&key, cache, news);
            state.drop_met(&key, &met);
            let wait = state.waits.get(&key);
            let writes = wait.into_iter().flat_map(|wait| &wait.writes);
            for write in writes.filter(|write| write.cache == cache) {
                // An object is not in a list because it has ended, or because the list is older.
                if let (News::Listed { .. }, Some(wait)) = (news, wait) {
                    self.read(&key, cache, &write.name, wait.writes_until);
                }
            }
            self.settle(&mut state, &key);
        }
    }

    /// Lets a key run that has nothing left to wait for.
    fn settle(&self, state: &mut State<K>, key: &ObjectRef<K>) {
        let Some(wait) = state.waits.get(key).filter(|wait| !wait.is_running) else {
            return;
        };
        if let Some(until) = wait.until() {
            let left = until.saturating_duration_since(Instant::now());
            self.queue.suspend(key, left);
            return;
        }
        let waited = wait.since.elapsed();
        tracing::debug!(target: "requeue", %key, ?waited, "has waited");
        if wait.waits_for_writes {
            self.metrics.came_back(waited);
        }
        state.forget(key);
        self.queue.resume(key);
    }

    /// Forgets keys that have left the queue without another run, such as those that were cancelled.
    /// O(n) for n keys that wait.
    pub(crate) fn sweep(&self) {
        let mut state = self.state();
        let is_gone = |key: &ObjectRef<K>, wait: &Wait| {
            !wait.is_running && !wait.is_late && !self.queue.holds(key)
        };
        let gone = state.waits.iter().filter(|(key, wait)| is_gone(key, wait));
        let gone: Vec<_> = gone.map(|(key, _)| key.clone()).collect();
        for key in gone {
            state.forget(&key);
        }
    }

    fn read(&self, key: &ObjectRef<K>, cache: usize, name: &Name, until: Instant) {
        // Nobody reads once the controller has ended.
        let _ = self.reads.send(Read {
            key: key.clone(),
            cache,
            name: name.clone(),
            until,
        });
    }

    /// Reads what has become of writes. Never returns.
    pub(crate) async fn read_all(&self, mut reads: mpsc::UnboundedReceiver<Read<K>>) {
        let reads = stream::poll_fn(move |context| reads.poll_recv(context));
        let read = |read| self.read_one(read);
        reads.for_each_concurrent(READS, read).await;
    }

    async fn read_one(&self, read: Read<K>) {
        let resource = match self.state().caches.get(read.cache) {
            Some(Some(cache)) => cache.resource.clone(),
            _ => return,
        };
        let Some(client) = self.client.clone() else {
            return;
        };
        let api: Api<DynamicObject> = match &read.name.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, &resource),
            None => Api::all_with(client, &resource),
        };
        let found = timeout_at(read.until, async {
            loop {
                match api.get_metadata_opt(&read.name.name).await {
                    Ok(found) => return found,
                    Err(error) => {
                        let key = &read.key;
                        tracing::debug!(target: "requeue", %key, %error, "a live read failed");
                    }
                }
                sleep(READ_PAUSE).await;
            }
        });
        // The key runs at that time in any case.
        let Ok(found) = found.await else {
            return;
        };
        let meta = found.map(|found| found.metadata);
        let is = meta.and_then(|meta| Some((meta.uid?, Version(meta.resource_version?))));
        let mut state = self.state();
        state.decide(&read, is);
        self.settle(&mut state, &read.key);
    }

    fn record(&self, key: &ObjectRef<K>, write: Write) -> Result<(), NotCached> {
        let Write {
            kind,
            name,
            written,
        } = write;
        let mut state = self.state();
        let caches = state.caching(&kind, &name);
        if caches.is_empty() {
            return Err(NotCached::new(&kind, name.namespace.as_deref()));
        }
        let now = Instant::now();
        let until = later(now, self.timeout);
        let mut waits = false;
        for cache in caches {
            let pending = Pending {
                cache,
                name: name.clone(),
                written: written.clone(),
            };
            let before = state.waits.get(key).map_or(&[][..], |wait| &wait.writes);
            let stored = state.caches.get(cache).and_then(Option::as_ref);
            if self.timeout.is_zero() || stored.is_none_or(|stored| stored.shows(&pending, before))
            {
                continue;
            }
            if written == Written::Unknown {
                self.read(key, cache, &name, until);
            }
            state.add(key, pending, now);
            waits = true;
        }
        let Some(wait) = state.waits.get_mut(key).filter(|_| waits) else {
            return Ok(());
        };
        wait.writes_until = until;
        wait.is_suspended = true;
        let left = wait.until().map_or(self.timeout, |until| until - now);
        if !self.queue.suspend(key, left) && !wait.is_running {
            // A write after the end of the run is worth another, for which it waits.
            let waits = match self.queue.add(key.clone(), LISTED) {
                Ok(()) => self.queue.suspend(key, left),
                // What it waits for is kept: a run that begins too early finds it.
                Err(Rejected::Full(key)) => {
                    wait.is_late = true;
                    self.late.send(key).is_ok()
                }
                // Nothing runs any more.
                Err(_) => false,
            };
            if !waits {
                state.forget(key);
            }
        }
        Ok(())
    }

    fn wait_for(&self, key: &ObjectRef<K>, condition: Condition) -> Result<(), NotCached> {
        let mut state = self.state();
        let mut places = Vec::new();
        for (kind, name) in &condition.objects {
            let caches = state.caching(kind, name);
            if caches.is_empty() {
                return Err(NotCached::new(kind, name.namespace.as_deref()));
            }
            places.extend(caches.into_iter().map(|cache| (cache, name.clone())));
        }
        let State { waits, names, .. } = &mut *state;
        let Some(wait) = waits.get_mut(key).filter(|wait| wait.is_running) else {
            return Ok(());
        };
        for place in places {
            wait.names.push(place.clone());
            names.entry(place).or_default().insert(key.clone());
        }
        wait.condition = Some(condition);
        wait.is_met = false;
        Ok(())
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
{
    /// Returns the stores of a kind that may have an object.
    fn caching(&self, kind: &str, name: &Name) -> Vec<usize> {
        let namespace = name.namespace.as_deref();
        let covers = |cache: &Cache| cache.covers(kind, namespace);
        let caches = self.caches.iter().enumerate();
        let caches = caches.filter(|(_, cache)| cache.as_ref().is_some_and(covers));
        caches.map(|(index, _)| index).collect()
    }

    /// Notes how far a watch has come. Returns the keys that may have waited for that.
    /// O(log n + k log k) if n wait and it returns k, at the end of a list O(n log n).
    fn see(&mut self, index: usize, news: &News) -> Vec<ObjectRef<K>> {
        let Some(Some(cache)) = self.caches.get_mut(index) else {
            return Vec::new();
        };
        let mut keys = HashSet::new();
        match news {
            News::Nothing => {}
            News::Object { name, version, .. } => {
                cache.newest = cache.newest.take().max(version.number());
                if let Some(newest) = &cache.newest {
                    let all = (index, Number::default())..=(index, newest.clone());
                    let come = self.versions.range(all);
                    keys.extend(come.flat_map(|(_, keys)| keys).cloned());
                }
                let named = self.names.get(&(index, name.clone()));
                keys.extend(named.into_iter().flatten().cloned());
            }
            News::Listed { newest } => {
                cache.newest.clone_from(newest);
                let names = self.names.iter().filter(|((of, _), _)| *of == index);
                keys.extend(names.flat_map(|(_, keys)| keys).cloned());
            }
        }
        let mut keys: Vec<_> = keys.into_iter().collect();
        // By name: a set has another order in each process.
        keys.sort_unstable_by(|one, other| {
            (&one.namespace, &one.name).cmp(&(&other.namespace, &other.name))
        });
        keys
    }

    /// Forgets the writes of a key that an event has brought.
    fn drop_seen(&mut self, key: &ObjectRef<K>, index: usize, news: &News) {
        let (Some(wait), Some(Some(cache))) = (self.waits.get_mut(key), self.caches.get(index))
        else {
            return;
        };
        let mut left = Vec::new();
        for write in std::mem::take(&mut wait.writes) {
            let has_come = match (news, &write.written) {
                _ if write.cache != index => false,
                (News::Object { name, ended, .. }, written) if *name == write.name => {
                    (ended.is_some() && ended.as_deref() == written.uid())
                        || cache.shows(&write, &left)
                }
                (News::Listed { .. }, _) => cache.shows(&write, &left),
                (_, Written::Version { version, .. }) => cache.is_at_least(version),
                _ => false,
            };
            if !has_come {
                left.push(write);
            }
        }
        wait.writes = left;
    }

    /// Forgets the condition of a key if it is among those that are met.
    fn drop_met(&mut self, key: &ObjectRef<K>, met: &[Condition]) {
        let Some(wait) = self.waits.get_mut(key) else {
            return;
        };
        let Some(condition) = &wait.condition else {
            return;
        };
        if met
            .iter()
            .any(|met| Arc::ptr_eq(&met.is_met, &condition.is_met))
        {
            wait.is_met = true;
            wait.asked_until = None;
        }
    }

    /// Notes what a live read has found of an object.
    fn decide(&mut self, read: &Read<K>, is: Option<(String, Version)>) {
        let (Some(wait), Some(Some(cache))) =
            (self.waits.get_mut(&read.key), self.caches.get(read.cache))
        else {
            return;
        };
        let mut left = Vec::new();
        for mut write in std::mem::take(&mut wait.writes) {
            if write.cache == read.cache && write.name == read.name {
                let was = write.written.uid().map(str::to_owned);
                write.written = match &is {
                    Some((uid, version)) if was.as_ref().is_none_or(|was| was == uid) => {
                        Written::Version {
                            uid: uid.clone(),
                            version: version.clone(),
                            may_end: false,
                        }
                    }
                    _ => match was.or_else(|| Some(cache.show(&write.name)?.uid)) {
                        Some(uid) => Written::Deleted { uid },
                        // It is neither there nor in the store.
                        None => continue,
                    },
                };
                if cache.shows(&write, &left) {
                    continue;
                }
                if let Some(number) = write.written.number() {
                    let place = (write.cache, number);
                    self.versions
                        .entry(place.clone())
                        .or_default()
                        .insert(read.key.clone());
                    wait.versions.push(place);
                }
            }
            left.push(write);
        }
        wait.writes = left;
    }

    /// Adds a write of a key, in place of an earlier one of the same object.
    fn add(&mut self, key: &ObjectRef<K>, write: Pending, now: Instant) {
        let wait = self.waits.entry(key.clone());
        let wait = wait.or_insert_with(|| Wait::new(now, false));
        let place = (write.cache, write.name.clone());
        wait.names.push(place.clone());
        self.names.entry(place).or_default().insert(key.clone());
        if let Some(number) = write.written.number() {
            let place = (write.cache, number);
            wait.versions.push(place.clone());
            self.versions.entry(place).or_default().insert(key.clone());
        }
        wait.writes.retain(|other| {
            let is_same = other.cache == write.cache && other.name == write.name;
            !(is_same && write.written.replaces(&other.written))
        });
        wait.writes.push(write);
    }

    fn forget(&mut self, key: &ObjectRef<K>) {
        let Some(wait) = self.waits.remove(key) else {
            return;
        };
        for place in wait.names {
            if let Entry::Occupied(mut keys) = self.names.entry(place) {
                keys.get_mut().remove(key);
                if keys.get().is_empty() {
                    keys.remove();
                }
            }
        }
        for place in wait.versions {
            if let btree_map::Entry::Occupied(mut keys) = self.versions.entry(place) {
                keys.get_mut().remove(key);
                if keys.get().is_empty() {
                    keys.remove();
                }
            }
        }
    }
}

impl Cache {
    /// Returns whether the store shows a write. `before` are the earlier writes of the key that it
    /// does not show.
    fn shows(&self, write: &Pending, before: &[Pending]) -> bool {
        let shown = || self.show(&write.name);
        match &write.written {
            Written::Unknown => false,
            Written::Version { version, .. } if self.is_at_least(version) => true,
            Written::Version {
                uid,
                version,
                may_end,
            } => match shown().filter(|shown| shown.uid == *uid) {
                Some(shown) => shown.version.is_at_least(version),
                None => *may_end,
            },
            Written::Deleted { uid } => {
                // An object that the same run has created may not have come yet.
                let mut before = before.iter().filter(|other| other.cache == write.cache);
                !before.any(|other| other.written.uid() == Some(uid))
                    && shown().is_none_or(|shown| shown.uid != *uid || shown.is_deleting)
            }
        }
    }
}

impl Wait {
    fn new(now: Instant, is_running: bool) -> Self {
        Self {
            is_running,
            is_suspended: false,
            is_late: false,
            since: now,
            writes: Vec::new(),
            writes_until: now,
            waits_for_writes: false,
            condition: None,
            is_met: false,
            asked_until: None,
            names: Vec::new(),
            versions: Vec::new(),
        }
    }

    /// When the key runs in any case, if it waits for anything.
    fn until(&self) -> Option<Instant> {
        let writes = (!self.writes.is_empty()).then_some(self.writes_until);
        writes.max(self.asked_until)
    }
}

impl Condition {
    /// A reconciler whose own code panics finds out why when it runs.
    fn is_met(&self) -> bool {
        catch_unwind(AssertUnwindSafe(|| (self.is_met)())).unwrap_or(true)
    }
}

/// A run that is under way. If it is dropped, it has failed.
pub(crate) struct KeyRun<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Q: KeyQueue<K>,
{
    waiting: Arc<Waiting<K, Q>>,
    key: ObjectRef<K>,
    has_ended: bool,
}

impl<K, Q> KeyRun<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Q: KeyQueue<K>,
{
    pub(crate) fn new(waiting: Arc<Waiting<K, Q>>, key: ObjectRef<K>) -> Self {
        Self {
            waiting,
            key,
            has_ended: false,
        }
    }

    pub(crate) fn end(mut self, action: Action) -> Action {
        self.has_ended = true;
        self.waiting.end(&self.key, Some(action)).unwrap_or(action)
    }
}

impl<K, Q> Drop for KeyRun<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone,
    Q: KeyQueue<K>,
{
    fn drop(&mut self) {
        if !self.has_ended {
            self.waiting.end(&self.key, None);
        }
    }
}

/// What a run records with.
pub(crate) struct Recorder<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash,
{
    pub(crate) waiting: Arc<Waiting<K, Q>>,
    pub(crate) key: ObjectRef<K>,
}

impl<K, Q> Record for Recorder<K, Q>
where
    K: Resource + 'static,
    K::DynamicType: Eq + Hash + Clone + Send + Sync,
    Q: KeyQueue<K>,
{
    fn record(&self, write: Write) -> Result<(), NotCached> {
        self.waiting.record(&self.key, write)
    }

    fn wait_for(&self, condition: Condition) -> Result<(), NotCached> {
        self.waiting.wait_for(&self.key, condition)
    }

    fn client(&self) -> Option<Client> {
        self.waiting.client.clone()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use k8s_openapi::api::core::v1::{ConfigMap, Secret};
    use kube::runtime::reflector::store::Writer;
    use kube::runtime::reflector::{ObjectRef, Store};
    use kube::runtime::watcher::Event;
    use requeue::tokio::{RunContext, WorkQueue, Workers};
    use tokio::time::sleep;

    use super::*;
    use crate::keys::{AnyQueue, Keys};

    type Keeper = Waiting<ConfigMap, Keys<ConfigMap>>;

    fn secret(name: &str, version: &str) -> Secret {
        let mut secret = Secret::default();
        secret.metadata.name = Some(name.to_owned());
        secret.metadata.uid = Some(name.to_owned());
        secret.metadata.resource_version = Some(version.to_owned());
        secret
    }

    fn key(name: &str) -> ObjectRef<ConfigMap> {
        ObjectRef::new(name)
    }

    fn record(waiting: &Keeper, name: &str, object: &str, written: Written) {
        let write = Write {
            kind: "secrets".into(),
            name: Name::new(object, None),
            written,
        };
        waiting.record(&key(name), write).unwrap();
    }

    fn version(of: &str, version: &str) -> Written {
        Written::Version {
            uid: of.to_owned(),
            version: Version(version.to_owned()),
            may_end: false,
        }
    }

    /// The first run of a key, which is named after what it does.
    fn first_run(waiting: &Keeper, secrets: &Store<Secret>, name: &str) -> Result<Action, ()> {
        let until = |present: bool| {
            let (secrets, object) = (secrets.clone(), ObjectRef::new(name));
            let condition = Condition {
                objects: vec![("secrets".into(), Name::new(name, None))],
                is_met: Arc::new(move || secrets.get(&object).is_some() == present),
            };
            waiting.wait_for(&key(name), condition).unwrap();
        };
        match name {
            "comes" | "fails" | "is listed" => {
                record(waiting, name, name, version(name, "30"));
            }
            "never" => record(waiting, name, name, version(name, "99")),
            "passes" => record(waiting, name, "excluded", version("excluded", "20")),
            "is no number" => record(waiting, name, name, version(name, "x")),
            "twice" => {
                record(waiting, name, name, version(name, "28"));
                record(waiting, name, name, version(name, "29"));
                record(waiting, name, "other", version("other", "27"));
            }
            "goes" => {
                let uid = name.to_owned();
                record(waiting, name, name, Written::Deleted { uid });
            }
            "unknown" | "is read" | "is read and not there" => {
                record(waiting, name, name, Written::Unknown);
            }
            "asks" | "asks in vain" => {
                until(true);
                return Ok(Action::Suspend(Duration::from_secs(20)));
            }
            "asks and writes" => {
                record(waiting, name, name, version(name, "30"));
                until(true);
                return Ok(Action::Suspend(Duration::from_secs(20)));
            }
            "asks for what is" => {
                until(false);
                return Ok(Action::Suspend(Duration::from_secs(20)));
            }
            "asks and ends" => until(true),
            _ => {}
        }
        if name == "fails" {
            Err(())
        } else {
            Ok(Action::Success)
        }
    }

    /// However a key waits and stops to.
    #[tokio::test(start_paused = true)]
    async fn nothing_is_kept_of_keys_that_no_longer_wait() {
        let ways = [
            "comes",
            "fails",
            "never",
            "is listed",
            "passes",
            "is no number",
            "twice",
            "goes",
            "unknown",
            "is read",
            "is read and not there",
            "asks",
            "asks in vain",
            "asks and writes",
            "asks for what is",
            "asks and ends",
            "is late",
            "is late in vain",
        ];
        let mut writer = Writer::<Secret>::new(());
        let secrets = writer.as_reader();
        for there in ["goes", "is read and not there"] {
            writer.apply_watcher_event(&Event::Apply(secret(there, "5")));
        }
        let kind: Arc<str> = "secrets".into();
        let cache = Cache::new(&kind, (), None, secrets.clone());
        // Room for all but one.
        let queue: Keys<ConfigMap> = WorkQueue::builder()
            .levels::<2>()
            .max_keys(ways.len())
            .build();
        let timeout = Duration::from_secs(30);
        let caches = vec![Some(cache)];
        let metrics = WriteMetrics::new(None);
        let (waiting, mut tasks) = Waiting::new(queue.clone(), None, timeout, caches, metrics);
        let waiting = Arc::new(waiting);
        let kept = || {
            let state = waiting.state();
            (state.waits.len(), state.names.len(), state.versions.len())
        };

        let again = Arc::new(Mutex::new(BTreeSet::new()));
        let running = tokio::spawn({
            let (waiting, again, secrets) = (waiting.clone(), again.clone(), secrets.clone());
            let seen = Mutex::new(BTreeSet::new());
            let run = move |key: ObjectRef<ConfigMap>, run: RunContext| {
                let ended = match waiting.begin(&key, run.timed_out) {
                    Err(left) => Ok(Action::Suspend(left)),
                    Ok(_) => {
                        let key_run = KeyRun::new(waiting.clone(), key.clone());
                        if seen.lock().unwrap().insert(key.name.clone()) {
                            let ended = first_run(&waiting, &secrets, &key.name);
                            ended.map(|action| key_run.end(action))
                        } else {
                            again.lock().unwrap().insert(key.name.clone());
                            Ok(key_run.end(Action::Success))
                        }
                    }
                };
                std::future::ready(ended)
            };
            let workers: Workers<'static, ObjectRef<ConfigMap>, ()> = Workers::new(2);
            AnyQueue::run(
                &queue,
                workers,
                requeue::tokio::CancellationToken::new(),
                run,
            )
        });
        for way in ways {
            queue.add(key(way)).unwrap();
        }
        sleep(Duration::from_secs(1)).await;
        // All but those that asked for nothing, and those that have not written yet.
        assert_eq!(kept().0, ways.len() - 4);

        // Those that are late find a full queue.
        let more = 4;
        for number in 0..more {
            queue
                .add_after(key(&format!("delayed {number}")), timeout)
                .unwrap();
        }
        record(&waiting, "is late", "is late", version("is late", "30"));
        record(&waiting, "is late in vain", "vain", version("vain", "99"));
        assert_eq!(kept().0, ways.len() - 2);
        assert!(kept().1 > 0 && kept().2 > 0);
        assert_eq!(tasks.late.len(), 2);
        for number in 0..more {
            queue.cancel(&key(&format!("delayed {number}")));
        }
        while let Ok(late) = tasks.late.try_recv() {
            queue.add(late).unwrap();
        }
        for (way, found) in [("is read", Some("26")), ("is read and not there", None)] {
            let read = Read {
                key: key(way),
                cache: 0,
                name: Name::new(way, None),
                until: Instant::now(),
            };
            let found = found.map(|found| (way.to_owned(), Version(found.to_owned())));
            let mut state = waiting.state();
            state.decide(&read, found);
            waiting.settle(&mut state, &read.key);
        }
        sleep(Duration::from_secs(1)).await;

        for gone in ["goes", "is read and not there"] {
            let gone = secret(gone, "15");
            writer.apply_watcher_event(&Event::Delete(gone.clone()));
            waiting.see(0, &News::of(&gone, true));
        }
        for (name, version) in [
            ("someone", "21"),
            ("is no number", "x"),
            ("asks", "26"),
            ("asks and writes", "30"),
        ] {
            let secret = secret(name, version);
            writer.apply_watcher_event(&Event::Apply(secret.clone()));
            waiting.see(0, &News::of(&secret, false));
        }
        let newest = Version("30".to_owned()).number();
        waiting.see(0, &News::Listed { newest });
        sleep(Duration::from_secs(1)).await;
        // Those that wait in vain.
        assert_eq!(kept().0, 4);

        sleep(Duration::from_secs(60)).await;
        assert_eq!(kept(), (0, 0, 0));
        assert_eq!(queue.stats().total, 0);
        let again = again.lock().unwrap();
        assert!(
            again.contains("never") && again.contains("is late in vain"),
            "{again:?}"
        );
        running.abort();
    }
}
