//! How many workers call a host at once, depending on how it answered before.
//!
//! Each subscription is a group of the queue, which serves the groups in turn and keeps each to its
//! rate and to a quarter of the workers. What the queue does not know is which subscriptions have
//! one host, and how that host answers:
//!
//! - A host gets a quarter of the workers, but never more than are free. The more hosts are slow,
//!   the fewer workers each holds, and some are always left.
//! - A host gets one worker at a time while no subscription of it is answered. After each timeout
//!   it rests, each time twice as long.
//! - Subscriptions of one host share its workers. Each gets at most as many as are left, so that a
//!   slow one leaves some to the others. A subscription that timed out, or was never called, gets
//!   one worker at a time, and rests.
//! - Subscriptions that do not take deliveries share half of the workers, over all hosts. The other
//!   half is left to those that do.
//!
//! A key whose host may not be called goes back into the queue, and its group is paused until the
//! host may be called. Calls for deleted subscriptions count until they end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue::limiter::{Exponential, RateLimiter};
use requeue::{GroupLimits, Instant};
use tokio::sync::Notify;

use crate::dispatch::Queue;

/// A host gets at most one in this many workers.
const SHARE: usize = 4;

/// All subscriptions that do not take deliveries share one in this many workers.
const DOUBTFUL_SHARE: usize = 2;

/// The subscriptions, the hosts behind them, and the workers of these.
#[derive(Debug)]
pub(crate) struct Shares {
    queue: Queue,
    state: Mutex<State>,
    /// Notified when another host may be the next that has rested.
    pub(crate) rests: Notify,
}

#[derive(Debug)]
struct State {
    workers: usize,
    subscriptions: HashMap<Arc<str>, Subscription>,
    hosts: HashMap<Arc<str>, Host>,
    /// Subscriptions whose groups are paused, each once, in the order in which they ask again.
    paused: VecDeque<Arc<str>>,
    /// Workers that are calling a host.
    in_flight: usize,
    /// Those that are calling for a subscription whose last delivery failed, or that has none yet.
    doubtful: usize,
    /// How long a host that does not answer rests before the next call.
    rest: Exponential,
}

#[derive(Debug)]
struct Subscription {
    host: Arc<str>,
    rate: Option<f64>,
}

#[derive(Debug, Default)]
struct Host {
    /// What its subscriptions have of it, also those that are gone but in flight.
    paths: HashMap<Arc<str>, Path>,
    in_flight: usize,
    /// How many of the paths were answered the last time.
    answering: usize,
    /// Of calls while none of the paths was answered.
    rest: Rest,
}

/// A subscription's part of a host.
#[derive(Debug, Default)]
struct Path {
    /// False if only calls are left of it.
    is_set: bool,
    in_flight: usize,
    /// How it was answered last.
    answer: Answer,
    rest: Rest,
}

#[derive(Debug, Default)]
struct Rest {
    /// Timeouts in a row.
    timeouts: u32,
    until: Instant,
}

/// How a host answered a delivery.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Answer {
    /// Success.
    Taken,
    /// It refused the delivery, or could not be reached.
    Refused,
    /// It did not answer in time, or was never called.
    #[default]
    None,
    /// This delivery did not get as far as a call.
    Unasked,
}

/// A call of a host. It has to [end](Shares::end), however the delivery ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) host: Arc<str>,
    subscription: Arc<str>,
    is_doubtful: bool,
}

/// Whether a host may be called.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Permission {
    Now(Call),
    /// Not now: the group of the subscription is paused until it may.
    Later,
    /// There is no such subscription.
    Unknown,
}

impl Shares {
    /// Shares out this many workers of the queue. A host that does not answer rests for `pause`,
    /// then for twice as long, and so on up to `pause_max`.
    pub(crate) fn new(queue: Queue, workers: usize, pause: Duration, pause_max: Duration) -> Self {
        let state = State {
            workers: workers.max(1),
            subscriptions: HashMap::new(),
            hosts: HashMap::new(),
            paused: VecDeque::new(),
            in_flight: 0,
            doubtful: 0,
            rest: Exponential::new(pause, pause_max),
        };
        queue.limit_groups(state.limits());
        Self {
            queue,
            state: Mutex::new(state),
            rests: Notify::new(),
        }
    }

    /// Sets a subscription's host and its rate, in deliveries per second; `None` is no limit.
    pub(crate) fn set(&self, id: &Arc<str>, host: &Arc<str>, rate: Option<f64>, now: Instant) {
        let state = &mut *self.locked();
        state.remove(id);
        let subscription = Subscription {
            host: Arc::clone(host),
            rate,
        };
        state.subscriptions.insert(Arc::clone(id), subscription);
        let shared = state.hosts.entry(Arc::clone(host)).or_default();
        shared.paths.entry(Arc::clone(id)).or_default().is_set = true;
        let limits = rate.map(|rate| state.limits().rate(rate, burst(rate)));
        // A growable queue has room for every group.
        let _ = self.queue.limit_group(Arc::clone(id), limits);
        self.queue.unpause_group(id);
        state.resume(&self.queue, now);
    }

    /// Returns whether a subscription is set to this host and rate.
    pub(crate) fn is_set(&self, id: &str, host: &str, rate: Option<f64>) -> bool {
        let state = self.locked();
        let set = state.subscriptions.get(id);
        set.is_some_and(|set| *set.host == *host && set.rate == rate)
    }

    /// Removes a subscription. Its keys are handed out, and find nothing to do.
    pub(crate) fn remove(&self, id: &Arc<str>, now: Instant) {
        let state = &mut *self.locked();
        state.remove(id);
        let _ = self.queue.limit_group(Arc::clone(id), None);
        self.queue.unpause_group(id);
        state.resume(&self.queue, now);
    }

    /// Begins a call of the host of a subscription, or pauses the group of the subscription.
    pub(crate) fn begin(&self, id: &Arc<str>, now: Instant) -> Permission {
        let state = &mut *self.locked();
        let Some(subscription) = state.subscriptions.get(id) else {
            return Permission::Unknown;
        };
        let host = Arc::clone(&subscription.host);
        let wait = state.wait(&host, id, now);
        if wait.is_zero() {
            return Permission::Now(state.begin(host, Arc::clone(id)));
        }
        // Keys that were handed out together may all be refused.
        if !self.queue.group(id).is_some_and(|group| group.paused) {
            state.paused.push_back(Arc::clone(id));
            let _ = self.queue.pause_group(Arc::clone(id));
        }
        if wait < Duration::MAX {
            self.rests.notify_one();
        }
        Permission::Later
    }

    /// Ends a call, given how the host answered. O(paused groups).
    pub(crate) fn end(&self, call: &Call, answer: Answer, now: Instant) {
        let state = &mut *self.locked();
        state.end(call);
        if let Some(host) = state.hosts.get_mut(&call.host) {
            host.hear(&call.subscription, answer, &mut state.rest, now);
        }
        state.drop_unused(&call.host, &call.subscription);
        if state.resume(&self.queue, now) < Duration::MAX {
            self.rests.notify_one();
        }
    }

    /// Resumes the groups that there are workers for. Returns how long to wait until the next one
    /// may be resumed, unless a call ends before. O(paused groups).
    pub(crate) fn resume(&self, now: Instant) -> Duration {
        self.locked().resume(&self.queue, now)
    }

    /// Returns the subscriptions.
    pub(crate) fn subscriptions(&self) -> Vec<Arc<str>> {
        self.locked().subscriptions.keys().cloned().collect()
    }

    /// Ignores poisoning: no code under the lock panics.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn share(&self) -> usize {
        (self.workers / SHARE).max(1)
    }

    /// The limits of the group of a subscription without a rate.
    fn limits(&self) -> GroupLimits {
        GroupLimits::new().max_active(self.share())
    }

    /// Returns for how long a host may not be called for a subscription: for ever if not before
    /// another call ends.
    fn wait(&self, host: &str, id: &str, now: Instant) -> Duration {
        let Some(host) = self.hosts.get(host) else {
            return Duration::ZERO;
        };
        let Some(path) = host.paths.get(id) else {
            return Duration::ZERO;
        };
        let share = match host.answering {
            0 => 1,
            _ => self.share(),
        };
        let free = self.workers.saturating_sub(self.in_flight);
        let left = share.min(free).saturating_sub(host.in_flight);
        let most = match path.answer {
            Answer::None => left.min(1),
            _ if host.paths.len() > 1 => left,
            _ => share,
        };
        let doubtful_max = (self.workers / DOUBTFUL_SHARE).max(1);
        let is_crowded = path.is_doubtful() && self.doubtful >= doubtful_max;
        if left == 0 || path.in_flight >= most || is_crowded {
            return Duration::MAX;
        }
        host.rest.until.max(path.rest.until).saturating_since(now)
    }

    fn begin(&mut self, name: Arc<str>, id: Arc<str>) -> Call {
        let host = self.hosts.entry(Arc::clone(&name)).or_default();
        let path = host.paths.entry(Arc::clone(&id)).or_default();
        let is_doubtful = path.is_doubtful();
        path.in_flight += 1;
        host.in_flight += 1;
        self.in_flight += 1;
        self.doubtful += usize::from(is_doubtful);
        Call {
            host: name,
            subscription: id,
            is_doubtful,
        }
    }

    fn end(&mut self, call: &Call) {
        if let Some(host) = self.hosts.get_mut(&call.host) {
            host.in_flight = host.in_flight.saturating_sub(1);
            if let Some(path) = host.paths.get_mut(&call.subscription) {
                path.in_flight = path.in_flight.saturating_sub(1);
            }
        }
        self.in_flight = self.in_flight.saturating_sub(1);
        let doubtful = usize::from(call.is_doubtful);
        self.doubtful = self.doubtful.saturating_sub(doubtful);
    }

    /// See [`Shares::resume`].
    fn resume(&mut self, queue: &Queue, now: Instant) -> Duration {
        let mut rest = Duration::MAX;
        // Counts a group that is resumed as if the call of its first key had begun.
        let mut expected = Vec::new();
        for id in std::mem::take(&mut self.paused) {
            let Some(subscription) = self.subscriptions.get(&id) else {
                continue;
            };
            let host = Arc::clone(&subscription.host);
            let wait = self.wait(&host, &id, now);
            if wait > Duration::ZERO {
                rest = rest.min(wait);
                self.paused.push_back(id);
                continue;
            }
            if queue.group(&id).is_some_and(|group| group.ready > 0) {
                expected.push(self.begin(host, Arc::clone(&id)));
            }
            queue.unpause_group(&id);
        }
        for call in expected {
            self.end(&call);
        }
        rest
    }

    fn remove(&mut self, id: &str) {
        let Some(subscription) = self.subscriptions.remove(id) else {
            return;
        };
        self.paused.retain(|paused| **paused != *id);
        let host = self.hosts.get_mut(&subscription.host);
        if let Some(path) = host.and_then(|host| host.paths.get_mut(id)) {
            path.is_set = false;
        }
        self.drop_unused(&subscription.host, id);
    }

    fn drop_unused(&mut self, name: &str, id: &str) {
        let Some(host) = self.hosts.get_mut(name) else {
            return;
        };
        let is_unused = |path: &Path| !path.is_set && path.in_flight == 0;
        if host.paths.get(id).is_some_and(is_unused)
            && let Some(path) = host.paths.remove(id)
        {
            host.answering = host.answering.saturating_sub(path.answered());
        }
        if host.paths.is_empty() {
            self.hosts.remove(name);
        }
    }
}

impl Host {
    fn hear(&mut self, id: &str, answer: Answer, rest: &mut Exponential, now: Instant) {
        let Some(path) = self.paths.get_mut(id) else {
            return;
        };
        if answer == Answer::Unasked {
            return;
        }
        let others = self.answering.saturating_sub(path.answered());
        path.answer = answer;
        self.answering = others + path.answered();
        if answer != Answer::None {
            path.rest = Rest::default();
            self.rest = Rest::default();
            return;
        }
        path.rest.extend(rest, now);
        if self.answering == 0 {
            self.rest.extend(rest, now);
        }
    }
}

impl Path {
    fn is_doubtful(&self) -> bool {
        self.answer != Answer::Taken
    }

    /// One if it was answered the last time, otherwise zero.
    fn answered(&self) -> usize {
        usize::from(self.answer != Answer::None)
    }
}

impl Rest {
    fn extend(&mut self, rest: &mut Exponential, now: Instant) {
        // Calls that began together time out together, and count once.
        if self.until <= now {
            self.until = now + rest.when(&mut self.timeouts, now);
        }
    }
}

/// A second's worth, one at least.
fn burst(rate: f64) -> u32 {
    // The conversion saturates; rates are checked to be small.
    rate.max(1.0) as u32
}

#[cfg(test)]
#[path = "../tests/unit/shares.rs"]
mod tests;
