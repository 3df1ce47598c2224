//! How often a subscription is delivered to, and how many workers call a host at once.
//!
//! The queue's own limiter spaces out what *failed*. A subscription may also ask for a rate, and a
//! slow receiver must not hold every worker. Neither makes a worker wait here: a key that may not
//! pass goes back into the queue, or is parked next to it.
//!
//! A rate belongs to a subscription. Workers are shared by [host], however many subscriptions
//! it has, and calls for deleted subscriptions count until they end.

mod host;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue::{Bucket, Instant, ItemExponentialFailure, RateLimiter};

use crate::key::Key;
use host::{Host, Room};

pub(crate) use host::Answer;

/// The gates of all subscriptions, and the hosts behind them.
#[derive(Debug)]
pub(crate) struct Gates {
    workers: usize,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    gates: HashMap<Arc<str>, Gate>,
    hosts: HashMap<Arc<str>, Host>,
    /// Hosts that have parked keys, each once, in the order of their turns.
    waiting: VecDeque<Arc<str>>,
    /// Workers that are calling a host.
    in_flight: usize,
    /// Those that are calling a host whose last delivery failed, or that was never called.
    doubtful: usize,
    /// How long a host that does not answer rests before the next call.
    rest: ItemExponentialFailure,
}

/// A subscription.
#[derive(Debug)]
struct Gate {
    host: Arc<str>,
    rate: Option<f64>,
    bucket: Bucket,
    /// When each delayed object may pass. Its token is taken already, so that it comes back once.
    due: HashMap<Arc<str>, Instant>,
}

/// A key that passed. It has to [leave](Gates::leave), however its delivery ends.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pass {
    pub(crate) host: Arc<str>,
    is_doubtful: bool,
}

/// Whether a key may be delivered.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Now(Pass),
    /// Not before this long.
    Later(Duration),
    /// When there is room. A key that [leaves](Gates::leave) makes room and returns this one.
    Parked,
    /// There is no such subscription.
    Unknown,
}

/// A parked key that may come back, after this long. It has to be added to the queue, and asks
/// again.
pub(crate) type Called = (Key, Duration);

impl Gates {
    /// Creates gates for this many workers. A host that does not answer rests for `pause`, then for
    /// twice as long, and so on up to `pause_max`.
    pub(crate) fn new(workers: usize, pause: Duration, pause_max: Duration) -> Self {
        let state = State {
            gates: HashMap::new(),
            hosts: HashMap::new(),
            waiting: VecDeque::new(),
            in_flight: 0,
            doubtful: 0,
            rest: ItemExponentialFailure::new(pause, pause_max),
        };
        Self {
            workers: workers.max(1),
            state: Mutex::new(state),
        }
    }

    /// Sets a subscription's host and its rate, in deliveries per second; `None` is no limit.
    /// Removes its parked keys, which have to be added again. So have those that are returned,
    /// which there is room for now.
    pub(crate) fn set(
        &self,
        subscription: &Arc<str>,
        host: &Arc<str>,
        rate: Option<f64>,
        now: Instant,
    ) -> Vec<Called> {
        let mut state = self.locked();
        state.remove(subscription);
        let gate = Gate {
            host: Arc::clone(host),
            rate,
            bucket: rate.map_or(Bucket::unlimited(), |rate| Bucket::new(rate, burst(rate))),
            due: HashMap::new(),
        };
        state.gates.insert(Arc::clone(subscription), gate);
        state
            .hosts
            .entry(Arc::clone(host))
            .or_default()
            .subscriptions += 1;
        state.call(self.workers, now)
    }

    /// Returns whether a subscription is set to this host and rate.
    pub(crate) fn is_set(&self, subscription: &str, host: &str, rate: Option<f64>) -> bool {
        let state = self.locked();
        let gate = state.gates.get(subscription);
        gate.is_some_and(|gate| *gate.host == *host && gate.rate == rate)
    }

    /// Removes a subscription and its parked keys. Calls that have begun count until they end.
    /// Returns the parked keys that there is room for now.
    pub(crate) fn remove(&self, subscription: &str, now: Instant) -> Vec<Called> {
        let mut state = self.locked();
        state.remove(subscription);
        state.call(self.workers, now)
    }

    /// Asks for a key to pass.
    pub(crate) fn enter(&self, key: &Key, now: Instant) -> Admission {
        let state = &mut *self.locked();
        let Some(gate) = state.gates.get_mut(&key.subscription) else {
            return Admission::Unknown;
        };
        let bucket = &mut gate.bucket;
        let object = Arc::clone(&key.object);
        let due = gate.due.entry(object);
        let due = *due.or_insert_with(|| now + bucket.when(&mut (), now));
        if due > now {
            return Admission::Later(due.saturating_since(now));
        }
        // Each gate has a host.
        let Some(host) = state.hosts.get_mut(&gate.host) else {
            return Admission::Unknown;
        };
        host.called.remove(key);
        let room = host.room(self.workers, state.in_flight, state.doubtful, now);
        let is_doubtful = !host.is_good();
        match room {
            Room::For(1..) => {
                gate.due.remove(&key.object);
                host.in_flight += 1;
                state.in_flight += 1;
                state.doubtful += usize::from(is_doubtful);
                let host = Arc::clone(&gate.host);
                Admission::Now(Pass { host, is_doubtful })
            }
            // This key makes the next call.
            Room::After(rest) if host.called.is_empty() => {
                host.called.insert(key.clone());
                Admission::Later(rest)
            }
            Room::For(_) | Room::After(_) => {
                if host.park(key) {
                    state.waiting.push_back(Arc::clone(&gate.host));
                }
                Admission::Parked
            }
        }
    }

    /// Ends the call of a key that passed, given how its host answered. Returns the parked keys
    /// that there is room for now. O(hosts that have parked keys).
    pub(crate) fn leave(&self, pass: &Pass, answer: Answer, now: Instant) -> Vec<Called> {
        let state = &mut *self.locked();
        state.in_flight = state.in_flight.saturating_sub(1);
        let doubtful = usize::from(pass.is_doubtful);
        state.doubtful = state.doubtful.saturating_sub(doubtful);
        if let Some(host) = state.hosts.get_mut(&pass.host) {
            host.in_flight = host.in_flight.saturating_sub(1);
            host.hear(answer, &mut state.rest, now);
            state.drop_unused(&pass.host);
        }
        state.call(self.workers, now)
    }

    /// Returns how many keys are parked.
    pub(crate) fn parked_len(&self) -> usize {
        self.locked().hosts.values().map(Host::parked_len).sum()
    }

    /// Ignores poisoning: no code under the lock panics.
    fn locked(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn remove(&mut self, subscription: &str) {
        let Some(gate) = self.gates.remove(subscription) else {
            return;
        };
        if let Some(host) = self.hosts.get_mut(&gate.host) {
            host.subscriptions = host.subscriptions.saturating_sub(1);
            host.forget(subscription);
            self.drop_unused(&gate.host);
        }
    }

    fn drop_unused(&mut self, name: &str) {
        if self.hosts.get(name).is_some_and(Host::is_unused) {
            self.hosts.remove(name);
        }
    }

    /// Removes and returns parked keys that there is room for, of one host after the other.
    fn call(&mut self, workers: usize, now: Instant) -> Vec<Called> {
        let mut called = Vec::new();
        // Counts the returned keys as if they had passed already.
        let (mut in_flight, mut doubtful) = (self.in_flight, self.doubtful);
        for _ in 0..self.waiting.len() {
            let Some(name) = self.waiting.pop_front() else {
                break;
            };
            let Some(host) = self.hosts.get_mut(&name) else {
                continue;
            };
            let (room, rest) = match host.room(workers, in_flight, doubtful, now) {
                Room::For(room) => (room, Duration::ZERO),
                Room::After(rest) => (1, rest),
            };
            let before = called.len();
            called.extend(host.call(room).map(|key| (key, rest)));
            if rest.is_zero() {
                let count = called.len() - before;
                in_flight += count;
                doubtful += if host.is_good() { 0 } else { count };
            }
            if host.parked_len() > 0 {
                self.waiting.push_back(name);
            }
        }
        called
    }
}

/// A second's worth, one at least.
fn burst(rate: f64) -> u32 {
    // The conversion saturates; rates are checked to be small.
    rate.max(1.0) as u32
}
