//! The queues that were recorded, as a handful of lists.
//!
//! A reader can hold them against client-go's `util/workqueue` by eye: the queue, the dirty set and
//! the processing set of `queue.go`, the waiting entries of `delaying_queue.go`, the failures of
//! `default_rate_limiters.go` and the figures of `metrics.go`; and against controller-runtime's
//! `priorityqueue.go`.

use std::time::Duration;

use requeue_core::binding::{Drained, Next, Wake};
use requeue_core::limiter::RateLimiter;
use requeue_core::{AddOptions, Added, Finished, Instant, Rejected, Stats};
use requeue_proptest::Figures;
use requeue_proptest::limiter::{AnyLimiter, AnyRecord};
use requeue_proptest::subject::{
    Answer, Configuration, Drain, Handed, Key, Operation, Scheduled, Subject, Ticket,
};

use crate::kind::Kind;

/// client-go's rate-limiting queue, or controller-runtime's priority queue, faults included.
#[derive(Debug)]
pub(crate) struct Upstream {
    kind: Kind,
    limiter: AnyLimiter,
    failures: Vec<(Key, AnyRecord)>,
    now: Instant,
    /// Keys in the order in which they will be handed out, but for their levels.
    queue: Vec<Key>,
    /// Keys that have to be worked on, the level of each, and when it was added.
    dirty: Vec<(Key, u8, Instant)>,
    /// Keys that are being worked on, and since when.
    processing: Vec<(Key, Instant)>,
    /// Keys that will be added later, each at most once.
    waiting: Vec<Waiting>,
    /// controller-runtime's AddedCounter of each key: by its first add, its last raise or release.
    counters: Vec<(Key, u64)>,
    /// Numbers the waiting entries, and the counters.
    next: u64,
    is_shutting_down: bool,
    /// ShutDown was called.
    has_stopped: bool,
    /// Waits for the drain, and whether each has returned.
    drains: Vec<bool>,
    figures: Figures,
    /// A key was queued that was queued already: client-go's histories are no longer those of a
    /// queue.
    pub(crate) has_duplicates: bool,
    /// A key was queued while it was active.
    pub(crate) has_added_active: bool,
    /// A key whose delay was ended by an add has kept its place before another key.
    pub(crate) has_kept_place: bool,
    /// Two deadlines that have come were the same.
    pub(crate) has_tied: bool,
}

#[derive(Clone, Copy, Debug)]
struct Waiting {
    key: Key,
    due: Instant,
    level: u8,
    number: u64,
}

/// Takes the entry of a key out of a list.
fn remove<T>(list: &mut Vec<T>, is: impl Fn(&T) -> bool) -> Option<T> {
    let index = list.iter().position(is)?;
    Some(list.remove(index))
}

impl Upstream {
    pub(crate) fn new(kind: Kind, setup: &Configuration) -> Self {
        Self {
            kind,
            limiter: setup.limiter.build(),
            failures: Vec::new(),
            now: Instant::EPOCH,
            queue: Vec::new(),
            dirty: Vec::new(),
            processing: Vec::new(),
            waiting: Vec::new(),
            counters: Vec::new(),
            next: 0,
            is_shutting_down: false,
            has_stopped: false,
            drains: Vec::new(),
            figures: Figures::default(),
            has_duplicates: false,
            has_added_active: false,
            has_kept_place: false,
            has_tied: false,
        }
    }

    fn is_prioritised(&self) -> bool {
        self.kind == Kind::Priority
    }

    fn is_active(&self, key: Key) -> bool {
        self.processing.iter().any(|(active, _)| *active == key)
    }

    fn level(&self, key: Key) -> u8 {
        let dirty = self.dirty.iter().find(|(dirty, ..)| *dirty == key);
        dirty.map_or(0, |(_, level, _)| *level)
    }

    /// queue.go, Add.
    fn add(&mut self, key: Key, at: Instant, level: u8) -> Added {
        if let Some(dirty) = self.dirty.iter_mut().find(|(dirty, ..)| *dirty == key) {
            if level <= dirty.1 {
                return Added::Coalesced;
            }
            // priorityqueue.go: a key goes to the end of a higher level.
            dirty.1 = level;
            if remove(&mut self.queue, |other| *other == key).is_some() {
                self.queue.push(key);
            }
            self.count(key);
            return Added::Raised;
        }
        self.figures.adds += 1;
        self.figures.depth += 1;
        self.dirty.push((key, level, at));
        self.count(key);
        let is_active = self.is_active(key);
        self.has_added_active |= is_active && self.is_prioritised();
        if !is_active || self.is_prioritised() {
            self.queue.push(key);
        }
        if is_active {
            Added::Dirty
        } else {
            Added::Ready
        }
    }

    /// delaying_queue.go, AddAfter.
    fn add_after(&mut self, key: Key, delay: Duration, level: u8) -> Added {
        self.figures.retries += 1;
        match delay.is_zero() {
            true => self.add(key, self.now, level),
            false => self.insert(key, self.now + delay, level),
        }
    }

    /// delaying_queue.go, insert.
    fn insert(&mut self, key: Key, due: Instant, level: u8) -> Added {
        self.next += 1;
        let number = self.next;
        let known = self.waiting.iter_mut().find(|entry| entry.key == key);
        let (added, is_counted) = match known {
            Some(known) if known.due <= due => {
                let raises = level > known.level;
                known.level = level.max(known.level);
                (Added::Coalesced, raises)
            }
            Some(known) => {
                let raises = level > known.level;
                let level = level.max(known.level);
                *known = Waiting {
                    key,
                    due,
                    level,
                    number,
                };
                (Added::Sooner, raises)
            }
            None => {
                self.waiting.push(Waiting {
                    key,
                    due,
                    level,
                    number,
                });
                (Added::Delayed, true)
            }
        };
        if is_counted {
            self.count(key);
        }
        added
    }

    /// A key takes a new place among the others.
    fn count(&mut self, key: Key) {
        self.next += 1;
        self.counters.retain(|(counted, _)| *counted != key);
        self.counters.push((key, self.next));
    }

    fn counter(&self, key: Key) -> u64 {
        let counter = self.counters.iter().find(|(counted, _)| *counted == key);
        counter.map_or(0, |(_, counter)| *counter)
    }

    /// default_rate_limiters.go, When.
    fn when(&mut self, key: Key) -> Duration {
        let known = remove(&mut self.failures, |(failed, _)| *failed == key);
        let mut record = known.map(|(_, record)| record).unwrap_or_default();
        let delay = self.limiter.when(&mut record, self.now);
        self.failures.push((key, record));
        delay
    }

    /// priorityqueue.go, AddWithOpts: there is one place for a key, at the sooner of two times and
    /// the higher of two levels.
    fn add_with(&mut self, key: Key, options: AddOptions) -> Scheduled {
        let limit = options.rate_limited.then(|| self.when(key));
        let delay = match (options.after, limit) {
            (Some(after), Some(limit)) => Some(after.min(limit)),
            (after, limit) => after.or(limit),
        };
        let level = options.priority.unwrap_or(0);
        self.figures.retries += u64::from(delay.is_some());
        let is_dirty = self.dirty.iter().any(|(dirty, ..)| *dirty == key);
        let delay = delay.unwrap_or_default();
        let added = if !delay.is_zero() && !is_dirty {
            self.insert(key, self.now + delay, level)
        } else {
            let pending = remove(&mut self.waiting, |entry| entry.key == key);
            let place = pending.filter(|entry| entry.level >= level);
            let place = place.map(|_| self.counter(key));
            let level = pending.map_or(level, |entry| level.max(entry.level));
            let added = self.add(key, self.now, level);
            if let Some(counter) = place {
                self.keep_place(key, counter);
            }
            added
        };
        Scheduled { delay, added }
    }

    /// An add that ends a delay and does not raise the key: the key stands among the ready keys as
    /// if it had been ready since its first add.
    fn keep_place(&mut self, key: Key, counter: u64) {
        self.counters.retain(|(counted, _)| *counted != key);
        self.counters.push((key, counter));
        self.queue.retain(|other| *other != key);
        let place = self
            .queue
            .iter()
            .position(|other| self.counter(*other) > counter);
        self.has_kept_place |= place.is_some();
        self.queue.insert(place.unwrap_or(self.queue.len()), key);
    }

    /// queue.go, Get, once there is a key. priorityqueue.go hands out the highest level first, and
    /// nothing after shutdown.
    fn get(&mut self) -> Option<Handed> {
        let may_go = |key: &&Key| !self.is_prioritised() || !self.is_active(**key);
        let free = self.queue.iter().filter(may_go);
        let highest = free.clone().map(|key| self.level(*key)).max()?;
        let mut first = free.filter(|key| self.level(**key) == highest);
        let key = *first
            .next()
            .filter(|_| !self.is_prioritised() || !self.is_shutting_down)?;
        remove(&mut self.queue, |other| *other == key);
        self.figures.depth -= 1;
        if let Some((_, _, added)) = remove(&mut self.dirty, |(dirty, ..)| *dirty == key) {
            self.figures
                .latencies
                .push(self.now.saturating_since(added));
        }
        self.processing.retain(|(active, _)| *active != key);
        self.processing.push((key, self.now));
        Some(Handed {
            key,
            ticket: Ticket { key, run: 0 },
            failures: 0,
            priority: highest,
            timed_out: false,
        })
    }

    /// queue.go, Done. client-go does not ask whether the key is active. Done of a key that is
    /// queued then queues it twice.
    fn done(&mut self, key: Key) -> Finished {
        if self.is_prioritised() && !self.is_active(key) {
            return Finished::Stale;
        }
        if let Some((_, began)) = remove(&mut self.processing, |(active, _)| *active == key) {
            let lasted = self.now.saturating_since(began);
            self.figures.work_durations.push(lasted);
        }
        let again = self.dirty.iter().any(|(dirty, ..)| *dirty == key);
        if again && !self.is_prioritised() {
            self.has_duplicates |= self.queue.contains(&key);
            self.queue.push(key);
        }
        // cond.Signal: the first that waits looks whether anything is active, and returns if
        // nothing is.
        if self.processing.is_empty()
            && let Some(first) = self.drains.iter_mut().find(|returned| !**returned)
        {
            *first = true;
        }
        if again {
            Finished::Ready
        } else {
            Finished::Idle
        }
    }

    /// delaying_queue.go lets only the first ShutDown through: cond.Broadcast.
    fn shut_down(&mut self) {
        self.is_shutting_down = true;
        if !std::mem::replace(&mut self.has_stopped, true) {
            self.drains.fill(true);
        }
    }

    fn refused(&self, key: Key) -> Result<Added, Rejected<Key>> {
        match self.is_prioritised() {
            true => Err(Rejected::Closed(key)),
            // Its caller cannot tell.
            false => Ok(Added::Coalesced),
        }
    }

    /// metrics.go, updateUnfinishedWork: not while shutting down.
    fn report(&mut self) {
        if !self.is_shutting_down {
            let began = self.processing.iter();
            let lasted = began.map(|(_, began)| self.now.saturating_since(*began));
            self.figures.unfinished = lasted.clone().sum();
            self.figures.longest = lasted.max().unwrap_or_default();
            self.figures.reports += 1;
        }
    }
}

impl Subject for Upstream {
    fn new(setup: &Configuration) -> Self {
        Self::new(Kind::Queue, setup)
    }

    fn capacity(&self) -> Option<usize> {
        None
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        let closed = self.is_shutting_down;
        match *operation {
            Operation::Add(key) | Operation::AddAfter(key, _) if closed => {
                Answer::Added(self.refused(key))
            }
            Operation::Add(key) => Answer::Added(Ok(self.add(key, self.now, 0))),
            Operation::AddAfter(key, delay) => Answer::Added(Ok(self.add_after(key, delay, 0))),
            Operation::AddRateLimited(key) => {
                // It charges its limiter even when nothing can come of it.
                let delay = self.when(key);
                let added = match closed {
                    true => Added::Coalesced,
                    false => self.add_after(key, delay, 0),
                };
                Answer::Scheduled(Ok(Scheduled { delay, added }))
            }
            Operation::AddWith(key, options) => Answer::Scheduled(match closed {
                true => Err(Rejected::Closed(key)),
                false => Ok(self.add_with(key, options)),
            }),
            Operation::TryGet => Answer::Work(self.get()),
            Operation::Get(_) => Answer::Next(match self.get() {
                Some(handed) => Next::Work(handed),
                None => Next::Wait { until: None },
            }),
            Operation::DoneKey(key) => Answer::Finished(self.done(key)),
            Operation::Forget(key) => {
                self.failures.retain(|(failed, _)| *failed != key);
                Answer::Count(0)
            }
            Operation::Failures(key) => {
                let record = self.failures.iter().find(|(failed, _)| *failed == key);
                let failures = record.map_or(0, |(_, record)| self.limiter.failures(record));
                Answer::Count(failures as usize)
            }
            Operation::ShutDown => {
                self.shut_down();
                Answer::Done
            }
            Operation::BeginDrain => {
                self.is_shutting_down = true;
                self.drains.push(false);
                if self.processing.is_empty() {
                    self.drains.fill(true);
                }
                Answer::Drain(Drain(self.drains.len() - 1))
            }
            Operation::Drained(Drain(number)) => Answer::Drained(match self.drains.get(number) {
                Some(true) => Drained::Complete,
                _ => Drained::Pending,
            }),
            Operation::IsShuttingDown => Answer::Is(closed),
            Operation::Len => Answer::Count(self.queue.len()),
            Operation::ReportRunning => {
                self.report();
                Answer::Done
            }
            // For the report of a mismatch.
            Operation::Stats => Answer::Stats(Stats::default()),
            Operation::State(_) => Answer::State(None),
            Operation::Leave(_) => Answer::Done,
            _ => Answer::Lacking,
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        let mut figures = self.figures.clone();
        for (_, level, _) in self.dirty.iter().filter(|_| self.is_prioritised()) {
            *figures.depths.entry(*level).or_default() += 1;
        }
        Some(figures)
    }

    fn now(&self) -> Instant {
        self.now
    }

    /// delaying_queue.go, waitingLoop: adds what is due, in the order of the deadlines, each at its
    /// own. Of equal ones priorityqueue.go's lessWaiting prefers the higher level.
    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        let order = |entry: &Waiting| match self.kind {
            Kind::Priority => (entry.due, u8::MAX - entry.level, self.counter(entry.key)),
            _ => (entry.due, 0, entry.number),
        };
        let mut due = self.waiting.clone();
        due.retain(|entry| entry.due <= self.now && !self.is_shutting_down);
        due.sort_by_key(order);
        for entry in due {
            remove(&mut self.waiting, |other| other.key == entry.key);
            self.has_tied |= self.waiting.iter().any(|other| other.due == entry.due);
            self.add(entry.key, entry.due, entry.level);
        }
    }

    fn asleep(&mut self) -> Option<usize> {
        None
    }

    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    fn assert_valid(&mut self) {}
}
