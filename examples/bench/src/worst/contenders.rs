//! Queues that are measured here alone.

use core::hash::{BuildHasher, Hash};
use std::collections::HashMap;
use std::time::Duration;

use requeue_core::binding::Reporter;
use requeue_core::binding::{AsShared, Ticket};
use requeue_core::limiter::{Exponential, default_item_based};
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant, Queue};
use requeue_std::{ManualClock, WorkQueue};

use super::scenarios::{Ends, Reports};
use crate::subject::{Ours, Subject};

impl<K: Eq + Hash + Clone, H: BuildHasher> Ends<K> for Ours<K, H> {
    fn shut_down(&mut self, now: u64) {
        self.at(Instant::from_nanos(now)).shut_down();
    }

    fn take_delayed(&mut self, now: u64) -> Option<K> {
        let left = self.at(Instant::from_nanos(now)).take_delayed();
        left.map(|left| left.key)
    }

    fn take_ready(&mut self) -> Option<K> {
        let left = self.at(Instant::EPOCH).take_ready();
        left.map(|left| left.key)
    }
}

/// The queue for threads, on a clock that is set to the time of each operation.
#[derive(Debug)]
pub struct Shared<K: Eq + Hash, H: BuildHasher> {
    queue: WorkQueue<K, Plain, Exponential, Growable<H>>,
    clock: ManualClock,
    now: u64,
}

impl<K: Eq + Hash, H: BuildHasher + Default> Default for Shared<K, H> {
    fn default() -> Self {
        let queue = Queue::from_parts(default_item_based(), Reporter::NONE, H::default(), 0);
        let clock = ManualClock::new();
        Self {
            queue: WorkQueue::from_queue(queue, clock.clone()),
            clock,
            now: 0,
        }
    }
}

impl<K: Eq + Hash, H: BuildHasher> Shared<K, H> {
    fn set_clock(&mut self, now: u64) {
        if now > self.now {
            self.clock.advance(Duration::from_nanos(now - self.now));
            self.now = now;
        }
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Subject<K> for Shared<K, H> {
    type Run = Option<Ticket>;

    fn add(&mut self, key: K, now: u64) {
        self.set_clock(now);
        let _ = self.queue.add(key);
    }

    fn add_at(&mut self, key: K, due: u64, now: u64) {
        self.set_clock(now);
        let _ = self.queue.add_at(key, Instant::from_nanos(due));
    }

    fn add_rate_limited(&mut self, key: K, now: u64) -> u64 {
        self.set_clock(now);
        let scheduled = self.queue.add_rate_limited(key);
        scheduled.map_or(0, |scheduled| scheduled.delay.as_nanos() as u64)
    }

    fn get(&mut self, now: u64) -> Option<(K, Option<Ticket>)> {
        self.set_clock(now);
        let guard = self.queue.try_get()?;
        Some((guard.key().clone(), guard.into_ticket()))
    }

    fn done(&mut self, _: &K, run: Option<Ticket>, now: u64) {
        self.set_clock(now);
        if let Some(ticket) = run {
            self.queue.as_shared().finish(ticket, Action::Release);
        }
    }

    fn forget(&mut self, key: &K) {
        self.queue.forget(key);
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Ends<K> for Shared<K, H> {
    fn shut_down(&mut self, now: u64) {
        self.set_clock(now);
        self.queue.shut_down();
    }

    fn take_delayed(&mut self, now: u64) -> Option<K> {
        self.set_clock(now);
        self.queue.as_shared().take_delayed().map(|left| left.key)
    }

    fn take_ready(&mut self) -> Option<K> {
        self.queue.as_shared().take_ready().map(|left| left.key)
    }
}

/// The two gauges of active keys.
#[derive(Debug, Default)]
pub struct Gauges {
    sum: Duration,
    longest: Duration,
}

impl Metrics for Gauges {
    type Timestamps = Times;

    fn unfinished_work(&mut self, sum: Duration) {
        self.sum = sum;
    }

    fn longest_running(&mut self, longest: Duration) {
        self.longest = longest;
    }
}

/// Our queue, with gauges.
#[derive(Debug)]
pub struct Gauged<K: Eq + Hash, H: BuildHasher> {
    queue: Queue<K, Plain, Exponential, Growable<H>, Gauges>,
}

impl<K: Eq + Hash, H: BuildHasher + Default> Default for Gauged<K, H> {
    fn default() -> Self {
        let (limiter, metrics) = (default_item_based(), Gauges::default());
        Self {
            queue: Queue::from_parts(limiter, metrics, H::default(), 0),
        }
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Reports<K> for Gauged<K, H> {
    fn begin(&mut self, key: K) {
        let _ = self.queue.at(Instant::EPOCH).add(key);
        let _ = self.queue.at(Instant::EPOCH).try_get();
    }

    fn report_running(&mut self, now: u64) -> (Duration, Duration) {
        self.queue.at(Instant::from_nanos(now)).report_running();
        let Gauges { sum, longest } = *self.queue.metrics();
        (sum, longest)
    }
}

/// The map of client-go's metrics: when the run of each key began.
#[derive(Debug)]
pub struct Started<K, H>(HashMap<K, u64, H>);

impl<K, H: Default> Default for Started<K, H> {
    fn default() -> Self {
        Self(HashMap::default())
    }
}

impl<K: Eq + Hash, H: BuildHasher> Reports<K> for Started<K, H> {
    fn begin(&mut self, key: K) {
        self.0.insert(key, 0);
    }

    fn report_running(&mut self, now: u64) -> (Duration, Duration) {
        let ages = self.0.values().map(|started| now - started);
        let (sum, longest) = ages.fold((0, 0), |(sum, longest), age| (sum + age, age.max(longest)));
        (Duration::from_nanos(sum), Duration::from_nanos(longest))
    }
}
