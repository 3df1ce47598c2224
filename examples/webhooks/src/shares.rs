//! How many workers call a host at once, depending on how it answered before.
//!
//! Each subscription is a group of the queue, which serves the groups in turn and keeps each to its
//! rate and to a quarter of the workers. What the queue does not know is which subscriptions have
//! one host, and how that host answers:
//!
//! - A host that took its last delivery gets a quarter of the workers, but never more than are
//!   free. The more hosts are slow, the fewer workers each holds, and some are always left.
//! - A host that refused its last delivery gets at most as many. All of these and those below share
//!   half of the workers; the other half is left to hosts that take deliveries.
//! - A host that timed out, or was never called, gets one worker at a time. After each timeout it
//!   rests, each time twice as long.
//!
//! A key whose host may not be called goes back into the queue, and its group is paused until the
//! host may be called. Calls for deleted subscriptions count until they end.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue::{GroupLimits, Instant, ItemExponentialFailure, RateLimiter};
use tokio::sync::Notify;

use crate::dispatch::Queue;

/// A host gets at most one in this many workers.
const SHARE: usize = 4;

/// All hosts that do not take deliveries share one in this many workers.
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
    /// Those that are calling a host whose last delivery failed, or that was never called.
    doubtful: usize,
    /// How long a host that does not answer rests before the next call.
    rest: ItemExponentialFailure,
}

#[derive(Debug)]
struct Subscription {
    host: Arc<str>,
    rate: Option<f64>,
}

#[derive(Debug, Default)]
struct Host {
    subscriptions: usize,
    in_flight: usize,
    /// How it answered last.
    answer: Answer,
    /// Timeouts in a row.
    timeouts: u32,
    rests_until: Instant,
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
            rest: ItemExponentialFailure::new(pause, pause_max),
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
        shared.subscriptions += 1;
        let limits = rate.map(|rate| state.limits().rate(rate, burst(rate)));
        // A growable queue has room for every group.
        let _ = self.queue.limit_group(Arc::clone(id), limits);
        self.queue.resume_group(id);
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
        self.queue.resume_group(id);
        state.resume(&self.queue, now);
    }

    /// Begins a call of the host of a subscription, or pauses the group of the subscription.
    pub(crate) fn begin(&self, id: &Arc<str>, now: Instant) -> Permission {
        let state = &mut *self.locked();
        let Some(subscription) = state.subscriptions.get(id) else {
            return Permission::Unknown;
        };
        let host = Arc::clone(&subscription.host);
        let wait = state.wait(&host, now);
        if wait.is_zero() {
            return Permission::Now(state.begin(host));
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
            host.hear(answer, &mut state.rest, now);
        }
        state.drop_unused(&call.host);
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

    /// Returns for how long a host may not be called: for ever if not before another call ends.
    fn wait(&self, host: &str, now: Instant) -> Duration {
        let Some(host) = self.hosts.get(host) else {
            return Duration::ZERO;
        };
        let free = self.workers.saturating_sub(self.in_flight);
        let share = match host.answer {
            Answer::None => free.min(1),
            _ => free.min(self.share()),
        };
        let doubtful_max = (self.workers / DOUBTFUL_SHARE).max(1);
        let is_crowded = host.is_doubtful() && self.doubtful >= doubtful_max;
        if host.in_flight >= share || is_crowded {
            return Duration::MAX;
        }
        host.rests_until.saturating_since(now)
    }

    fn begin(&mut self, name: Arc<str>) -> Call {
        let host = self.hosts.entry(Arc::clone(&name)).or_default();
        let is_doubtful = host.is_doubtful();
        host.in_flight += 1;
        self.in_flight += 1;
        self.doubtful += usize::from(is_doubtful);
        Call {
            host: name,
            is_doubtful,
        }
    }

    fn end(&mut self, call: &Call) {
        if let Some(host) = self.hosts.get_mut(&call.host) {
            host.in_flight = host.in_flight.saturating_sub(1);
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
            let wait = self.wait(&host, now);
            if wait > Duration::ZERO {
                rest = rest.min(wait);
                self.paused.push_back(id);
                continue;
            }
            if queue.group(&id).is_some_and(|group| group.ready > 0) {
                expected.push(self.begin(host));
            }
            queue.resume_group(&id);
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
        if let Some(host) = self.hosts.get_mut(&subscription.host) {
            host.subscriptions = host.subscriptions.saturating_sub(1);
        }
        self.drop_unused(&subscription.host);
    }

    fn drop_unused(&mut self, name: &str) {
        let host = self.hosts.get(name);
        if host.is_some_and(|host| host.subscriptions == 0 && host.in_flight == 0) {
            self.hosts.remove(name);
        }
    }
}

impl Host {
    fn is_doubtful(&self) -> bool {
        self.answer != Answer::Taken
    }

    fn hear(&mut self, answer: Answer, rest: &mut ItemExponentialFailure, now: Instant) {
        if answer == Answer::Unasked {
            return;
        }
        self.answer = answer;
        if answer != Answer::None {
            self.timeouts = 0;
            self.rests_until = Instant::EPOCH;
        } else if self.rests_until <= now {
            // Calls that began together time out together, and count once.
            self.rests_until = now + rest.when(&mut self.timeouts, now);
        }
    }
}

/// A second's worth, one at least.
fn burst(rate: f64) -> u32 {
    // The conversion saturates; rates are checked to be small.
    rate.max(1.0) as u32
}

#[cfg(test)]
mod tests;
