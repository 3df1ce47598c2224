//! The queues that were recorded, as a handful of lists.
//!
//! A reader can hold them against client-go's `util/workqueue` by eye: the queue, the dirty set and
//! the processing set of `queue.go`, the waiting entries of `delaying_queue.go`, the failures of
//! `default_rate_limiters.go` and the figures of `metrics.go`; and against controller-runtime's
//! `priorityqueue.go`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::limiter::RateLimiter;
use requeue_core::{AddOptions, Added, Finished, Instant, Rejected};
use requeue_proptest::Figures;
use requeue_proptest::limiter::{AnyLimiter, AnyRecord};
use requeue_proptest::subject::{
    Answer, Configuration, Drain, Handed, Key, Operation, Run, Scheduled, Subject, Ticket,
};

use crate::recording::Kind;

/// client-go's rate-limiting queue, or controller-runtime's priority queue, faults included.
#[derive(Debug, Default)]
pub(crate) struct Upstream {
    kind: Kind,
    limiter: AnyLimiter,
    failures: BTreeMap<Key, AnyRecord>,
    now: Instant,
    /// client-go: keys in the order in which they will be handed out.
    queue: VecDeque<Key>,
    /// Keys that have to be worked on, and since when: the dirty set, or the ready keys.
    dirty: BTreeMap<Key, Instant>,
    /// client-go: when keys will be added, and the number of that entry.
    waiting: BTreeMap<Key, (Instant, u64)>,
    /// controller-runtime: ready and waiting keys.
    items: BTreeMap<Key, Item>,
    /// Numbers the waiting entries, or the items.
    counter: u64,
    /// Keys that are being worked on, and since when: the processing set, or the locked keys.
    processing: BTreeMap<Key, Instant>,
    is_shutting_down: bool,
    /// ShutDown was called.
    has_stopped: bool,
    /// Waits for the drain, and whether each has returned.
    drains: Vec<bool>,
    figures: Figures,
    /// client-go: a key was queued that was queued already. Its histories are no longer those of a
    /// queue.
    pub(crate) has_duplicates: bool,
    /// controller-runtime: a key became ready while it was active.
    pub(crate) has_added_active: bool,
    /// controller-runtime: a key whose delay was ended by an add has kept its place before another.
    pub(crate) has_kept_place: bool,
    /// controller-runtime: two deadlines that have come were the same.
    pub(crate) has_tied: bool,
    /// controller-runtime: a limited add had no delay.
    pub(crate) has_undelayed: bool,
}

/// controller-runtime's item of a key.
#[derive(Clone, Copy, Debug)]
struct Item {
    level: u8,
    counter: u64,
    /// `None` if it is ready.
    ready_at: Option<Instant>,
}

impl Upstream {
    pub(crate) fn of(kind: Kind, setup: &Configuration) -> Self {
        Self {
            kind,
            limiter: setup.limiter.build(),
            ..Self::default()
        }
    }

    fn is_prioritised(&self) -> bool {
        self.kind == Kind::Priority
    }

    /// default_rate_limiters.go, When.
    fn when(&mut self, key: Key) -> Duration {
        let record = self.failures.entry(key).or_default();
        self.limiter.when(record, self.now)
    }

    /// metrics.go, add.
    fn becomes_dirty(&mut self, key: Key, at: Instant) {
        self.figures.adds += 1;
        self.figures.depth += 1;
        self.dirty.insert(key, at);
    }

    /// queue.go, Add.
    fn add(&mut self, key: Key, at: Instant) {
        if self.is_shutting_down || self.dirty.contains_key(&key) {
            return;
        }
        self.becomes_dirty(key, at);
        if !self.processing.contains_key(&key) {
            self.queue.push_back(key);
        }
    }

    /// delaying_queue.go, AddAfter and insert.
    fn add_after(&mut self, key: Key, delay: Duration) {
        if self.is_shutting_down {
            return;
        }
        self.figures.retries += 1;
        let due = self.now + delay;
        if delay.is_zero() {
            self.add(key, self.now);
        } else if self.waiting.get(&key).is_none_or(|(known, _)| due < *known) {
            self.counter += 1;
            self.waiting.insert(key, (due, self.counter));
        }
    }

    /// priorityqueue.go, lockedAddWithOpts: there is one place for a key, at the sooner of two times
    /// and the higher of two levels.
    fn add_with(&mut self, key: Key, options: AddOptions) -> Duration {
        let limit = options.rate_limited.then(|| self.when(key));
        let delay = options.after.into_iter().chain(limit).min();
        self.has_undelayed |= delay == Some(Duration::ZERO);
        let delay = delay.unwrap_or_default();
        let ready_at = (!delay.is_zero()).then(|| self.now + delay);
        self.figures.retries += u64::from(ready_at.is_some());
        let new = Item {
            level: options.priority.unwrap_or(0),
            counter: self.counter,
            ready_at,
        };
        self.counter += 1;
        let known = self.items.get(&key).copied();
        let mut item = known.filter(|it| it.level >= new.level).unwrap_or(new);
        if let Some(known) = known {
            let times = known.ready_at.zip(ready_at);
            item.ready_at = times.map(|(one, other)| one.min(other));
        }
        self.items.insert(key, item);
        if item.ready_at.is_none() && !self.dirty.contains_key(&key) {
            let mut ready = self.items.values().filter(|it| it.ready_at.is_none());
            self.has_kept_place |= ready.any(|other| other.counter > item.counter);
            self.becomes_ready(key, self.now);
        }
        delay
    }

    fn becomes_ready(&mut self, key: Key, at: Instant) {
        self.has_added_active |= self.processing.contains_key(&key);
        self.becomes_dirty(key, at);
    }

    /// priorityqueue.go, handleReadyItems: the highest level first, and nothing after shutdown.
    fn get_with_priority(&mut self) -> Option<(Key, u8)> {
        let free = self.items.iter().filter(|(key, item)| {
            let is_locked = self.processing.contains_key(key);
            item.ready_at.is_none() && !is_locked && !self.is_shutting_down
        });
        let first = free.min_by_key(|(_, item)| (Reverse(item.level), item.counter));
        let (key, level) = first.map(|(key, item)| (*key, item.level))?;
        self.items.remove(&key);
        Some((key, level))
    }

    /// queue.go, Get, once there is a key, and metrics.go, get.
    fn get(&mut self) -> Option<Handed> {
        let (key, priority) = match self.is_prioritised() {
            true => self.get_with_priority()?,
            false => (self.queue.pop_front()?, 0),
        };
        self.figures.depth -= 1;
        let added = self.dirty.remove(&key);
        let latency = added.map(|added| self.now.saturating_since(added));
        self.figures.latencies.extend(latency);
        self.processing.insert(key, self.now);
        Some(Handed {
            key,
            ticket: Ticket { key, run: 0 },
            failures: 0,
            priority,
            timed_out: false,
        })
    }

    /// queue.go, Done, and metrics.go, done. client-go does not ask whether the key is active. Done
    /// of a key that is queued then queues it twice.
    fn done(&mut self, key: Key) -> Finished {
        let began = self.processing.remove(&key);
        let lasted = began.map(|began| self.now.saturating_since(began));
        self.figures.work_durations.extend(lasted);
        if self.is_prioritised() {
            return began.map_or(Finished::Stale, |_| Finished::Idle);
        }
        if self.dirty.contains_key(&key) {
            self.has_duplicates |= self.queue.contains(&key);
            self.queue.push_back(key);
        }
        // cond.Signal: the first that waits looks whether anything is active, and returns if
        // nothing is.
        if self.processing.is_empty()
            && let Some(first) = self.drains.iter_mut().find(|returned| !**returned)
        {
            *first = true;
        }
        Finished::Idle
    }

    /// delaying_queue.go lets only the first ShutDown through: cond.Broadcast.
    fn shut_down(&mut self) {
        self.is_shutting_down = true;
        if !std::mem::replace(&mut self.has_stopped, true) {
            self.drains.fill(true);
        }
    }

    /// queue.go, ShutDownWithDrain.
    fn begin_drain(&mut self) -> Drain {
        self.is_shutting_down = true;
        self.drains.push(false);
        if self.processing.is_empty() {
            self.drains.fill(true);
        }
        Drain(self.drains.len() - 1)
    }

    /// metrics.go, updateUnfinishedWork: not while shutting down.
    fn report(&mut self) {
        if !self.is_shutting_down {
            let began = self.processing.values();
            let lasted = began.map(|began| self.now.saturating_since(*began));
            self.figures.unfinished = lasted.clone().sum();
            self.figures.longest = lasted.max().unwrap_or_default();
            self.figures.reports += 1;
        }
    }
}

impl Subject for Upstream {
    fn new(setup: &Configuration) -> Self {
        Self::of(Kind::Queue, setup)
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        let added = Added::Ready;
        let scheduled = |delay| Answer::Scheduled(Ok(Scheduled { delay, added }));
        match *operation {
            Operation::Add(key) => {
                self.add(key, self.now);
                Answer::Added(Ok(added))
            }
            Operation::AddAfter(key, delay) => {
                self.add_after(key, delay);
                Answer::Added(Ok(added))
            }
            Operation::AddRateLimited(key) => {
                // It charges its limiter even when nothing can come of it.
                let delay = self.when(key);
                self.add_after(key, delay);
                scheduled(delay)
            }
            Operation::AddWith(key, _) if self.is_shutting_down => {
                Answer::Scheduled(Err(Rejected::Closed(key)))
            }
            Operation::AddWith(key, options) => scheduled(self.add_with(key, options)),
            Operation::TryGet => Answer::Work(self.get()),
            Operation::Get(_) => {
                let handed = self.get();
                Answer::Next(handed.map_or(Next::Wait { until: None }, Next::Work))
            }
            Operation::DoneKey(key) | Operation::Done(Run::Of(Ticket { key, .. })) => {
                Answer::Finished(self.done(key))
            }
            Operation::Forget(key) => {
                self.failures.remove(&key);
                Answer::Count(0)
            }
            Operation::Failures(key) => {
                let record = self.failures.get(&key);
                let failures = record.map_or(0, |record| self.limiter.failures(record));
                Answer::Count(failures as usize)
            }
            Operation::ShutDown => {
                self.shut_down();
                Answer::Done
            }
            Operation::BeginDrain => Answer::Drain(self.begin_drain()),
            Operation::Drained(Drain(number)) => Answer::Drained(match self.drains.get(number) {
                Some(true) => Drained::Complete,
                _ => Drained::Pending,
            }),
            Operation::IsShuttingDown => Answer::Is(self.is_shutting_down),
            Operation::Len if self.is_prioritised() => Answer::Count(self.dirty.len()),
            Operation::Len => Answer::Count(self.queue.len()),
            Operation::ReportRunning => {
                self.report();
                Answer::Done
            }
            Operation::Leave(_) => Answer::Done,
            _ => Answer::Lacking,
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        let mut figures = self.figures.clone();
        for item in self.items.values().filter(|item| item.ready_at.is_none()) {
            *figures.depths.entry(item.level).or_default() += 1;
        }
        Some(figures)
    }

    fn now(&self) -> Instant {
        self.now
    }

    /// Adds what is due in the order of the deadlines: delaying_queue.go's waitingLoop each at its
    /// own time, and priorityqueue.go's handleWaitingItems of equal ones the higher level first.
    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        if self.is_shutting_down {
            return;
        }
        let entries = self.waiting.iter();
        let entries = entries.map(|(key, (due, number))| (*due, Reverse(0), *number, *key));
        let items = self.items.iter().filter_map(|(key, item)| {
            Some((item.ready_at?, Reverse(item.level), item.counter, *key))
        });
        let mut due = Vec::from_iter(entries.chain(items));
        due.retain(|(at, ..)| *at <= self.now);
        due.sort_unstable();
        self.has_tied |= due.windows(2).any(|pair| pair[0].0 == pair[1].0);
        for (at, .., key) in due {
            match self.items.get_mut(&key) {
                Some(item) => {
                    (item.counter, item.ready_at) = (self.counter, None);
                    self.counter += 1;
                    self.becomes_ready(key, at);
                }
                None => {
                    self.waiting.remove(&key);
                    self.add(key, at);
                }
            }
        }
    }

    fn assert_valid(&mut self) {}
}
