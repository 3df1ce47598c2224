//! The reference model: slow, and obviously right.
//!
//! A reader can hold it against client-go's `util/workqueue` by eye: the queue, the dirty set and
//! the processing set of `queue.go`, the waiting entries of `delaying_queue.go`, the failures of
//! `default_rate_limiters.go` and the figures of `metrics.go`, each in a list that is searched from
//! its beginning. Where requeue differs on purpose, [`Rules`] says which way to go.

mod drains;
mod subject;

use std::time::Duration;

use requeue_core::{Added, Completion, Finished, Instant, NotActive, RateLimiter, Rejected};

use crate::Figures;
use crate::subject::{Handed, Key, Known, Left, Retried, Setup};
use crate::trace::limiter::{AnyLimiter, AnyMemory};

use drains::Drains;
pub use drains::ModelDrain;

/// Whose rules a [`Model`] follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Those of client-go, faults included.
    ClientGo,
    /// Those of requeue.
    Requeue,
}

/// A queue that is a handful of lists.
#[derive(Clone, Debug)]
pub struct Model {
    rules: Rules,
    limiter: AnyLimiter,
    capacity: Option<usize>,
    memories_max: usize,
    now: Instant,

    /// Keys in the order in which they will be handed out.
    queue: Vec<Key>,
    /// Keys that have to be worked on: those in `queue`, and some in `processing`.
    dirty: Vec<Key>,
    /// Keys that are being worked on.
    processing: Vec<Key>,
    /// Keys that will be added later, each at most once.
    waiting: Vec<Waiting>,
    /// What the limiter remembers of the keys that have failed.
    failures: Vec<(Key, AnyMemory)>,
    /// Keys of which nothing else is left, in the order in which they came to rest.
    memories: Vec<Key>,

    shutting_down: bool,
    drains: Drains,
    /// Numbers the runs.
    runs: u64,
    /// The last run of each key.
    last_run: Vec<(Key, u64)>,
    /// Numbers the waiting entries.
    entries: u64,

    figures: Figures,
    /// When each dirty key was added.
    added: Vec<(Key, Instant)>,
    /// When work on each key began.
    started: Vec<(Key, Instant)>,
    /// A key was queued that was queued already, which only client-go does.
    has_duplicates: bool,
}

/// A key that will be added later.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    due: Instant,
    number: u64,
    key: Key,
}

/// One run of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelTicket {
    key: Key,
    run: u64,
}

impl Model {
    /// An empty queue with room for `capacity` keys.
    pub fn new(rules: Rules, setup: &Setup, capacity: Option<usize>) -> Self {
        Self {
            rules,
            limiter: setup.limiter.build(),
            capacity,
            memories_max: match capacity {
                Some(_) => usize::MAX,
                None => setup.memories_max,
            },
            now: Instant::EPOCH,
            queue: Vec::new(),
            dirty: Vec::new(),
            processing: Vec::new(),
            waiting: Vec::new(),
            failures: Vec::new(),
            memories: Vec::new(),
            shutting_down: false,
            drains: Drains::default(),
            runs: 0,
            last_run: Vec::new(),
            entries: 0,
            figures: Figures::default(),
            added: Vec::new(),
            started: Vec::new(),
            has_duplicates: false,
        }
    }

    /// Whether a key was ever queued that was queued already: from then on client-go's histories
    /// are no longer those of a queue.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }

    /// queue.go, Add.
    fn add_key(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        if self.shutting_down {
            return self.refuse(key);
        }
        self.make_room(key)?;
        Ok(self.mark(key, self.now))
    }

    /// delaying_queue.go, AddAfter.
    fn add_later(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        if self.shutting_down {
            return self.refuse(key);
        }
        self.make_room(key)?;
        Ok(self.come_back(key, due))
    }

    /// rate_limiting_queue.go, AddRateLimited. client-go charges its limiter even when nothing can
    /// come of it.
    fn retry(&mut self, key: Key) -> Result<Retried, Rejected<Key>> {
        if self.shutting_down && self.rules == Rules::Requeue {
            return Err(Rejected::Closed(key));
        }
        self.make_room(key)?;
        let delay = self.charge(key);
        let added = self.add_later(key, self.now + delay)?;
        Ok(Retried { delay, added })
    }

    /// After shutdown requeue hands the key back. client-go drops it, and its caller cannot tell.
    fn refuse(&self, key: Key) -> Result<Added, Rejected<Key>> {
        match self.rules {
            Rules::ClientGo => Ok(Added::Coalesced),
            Rules::Requeue => Err(Rejected::Closed(key)),
        }
    }

    /// A new key takes the place of the oldest memory if there is no other.
    fn make_room(&mut self, key: Key) -> Result<(), Rejected<Key>> {
        if self.holds(key) || Some(self.held()) != self.capacity {
            return Ok(());
        }
        match self.memories.first() {
            Some(&oldest) => {
                self.forget_key(oldest);
                Ok(())
            }
            None => Err(Rejected::Full(key)),
        }
    }

    /// The part of Add that a due entry shares.
    fn mark(&mut self, key: Key, at: Instant) -> Added {
        if self.dirty.contains(&key) {
            return Added::Coalesced;
        }
        self.figures.adds += 1;
        self.figures.depth += 1;
        if !self.added.iter().any(|(added, _)| *added == key) {
            self.added.push((key, at));
        }
        self.dirty.push(key);
        if self.processing.contains(&key) {
            return Added::Dirty;
        }
        self.queue.push(key);
        self.settle();
        Added::Ready
    }

    fn come_back(&mut self, key: Key, due: Instant) -> Added {
        self.figures.retries += 1;
        if due <= self.now && !due.is_never() {
            return self.mark(key, self.now);
        }
        self.schedule(key, due)
    }

    /// delaying_queue.go, insert. An entry that moves is numbered anew, so that entries with equal
    /// deadlines leave in the order in which they got them.
    fn schedule(&mut self, key: Key, due: Instant) -> Added {
        let number = self.entries;
        self.entries += 1;
        let entry = Waiting { due, number, key };
        let known = self.waiting.iter_mut().find(|known| known.key == key);
        let added = match known {
            Some(known) if known.due <= due => Added::Coalesced,
            Some(known) => {
                *known = entry;
                Added::Sooner
            }
            None => {
                self.waiting.push(entry);
                Added::Delayed
            }
        };
        self.settle();
        added
    }

    /// delaying_queue.go, waitingLoop: adds what is due, in the order of the deadlines, each at its
    /// own.
    fn release(&mut self) {
        if self.shutting_down {
            return;
        }
        while let Some(first) = self.first_waiting() {
            if first.due > self.now || first.due.is_never() {
                return;
            }
            self.stop_waiting(first.key);
            self.mark(first.key, first.due);
        }
    }

    /// queue.go, Get, once there is a key.
    fn take(&mut self) -> Option<Handed<ModelTicket>> {
        if self.queue.is_empty() {
            return None;
        }
        let key = self.queue.remove(0);
        self.figures.depth -= 1;
        if let Some(added) = remove(&mut self.added, key) {
            let latency = self.now.saturating_since(added);
            self.figures.latencies.push(latency);
        }
        remove(&mut self.started, key);
        self.started.push((key, self.now));
        self.processing.retain(|other| *other != key);
        self.processing.push(key);
        self.dirty.retain(|other| *other != key);

        self.runs += 1;
        remove(&mut self.last_run, key);
        self.last_run.push((key, self.runs));
        Some(Handed {
            key,
            ticket: ModelTicket {
                key,
                run: self.runs,
            },
            requeues: self.failures_of(key),
        })
    }

    /// queue.go, Done. Answers whether the key is queued again.
    ///
    /// client-go does not ask whether the key is in work. Done of a key that is queued then queues
    /// it twice.
    fn finish(&mut self, key: Key) -> bool {
        if let Some(started) = remove(&mut self.started, key) {
            let duration = self.now.saturating_since(started);
            self.figures.work_durations.push(duration);
        }
        self.processing.retain(|other| *other != key);
        let again = self.dirty.contains(&key);
        if again {
            self.has_duplicates |= self.queue.contains(&key);
            self.queue.push(key);
        }
        if again || self.processing.is_empty() {
            self.drains.signal(self.processing.is_empty());
        }
        self.settle();
        again
    }

    fn done_by_name(&mut self, key: Key) -> Result<(), NotActive> {
        if self.processing.contains(&key) || self.rules == Rules::ClientGo {
            self.finish(key);
            Ok(())
        } else {
            Err(NotActive)
        }
    }

    fn is_current(&self, ticket: ModelTicket) -> bool {
        self.processing.contains(&ticket.key) && self.last_run.contains(&(ticket.key, ticket.run))
    }

    /// Done, and what a caller of client-go would write around it. A key that wants to come back
    /// after shutdown is kept among the waiting, unless it will be worked on in any case.
    fn complete_run(
        &mut self,
        ticket: ModelTicket,
        completion: Completion,
    ) -> Result<Finished, NotActive> {
        if !self.is_current(ticket) {
            return Err(NotActive);
        }
        let key = ticket.key;
        let delay = match completion {
            Completion::Succeeded => {
                self.forget_key(key);
                None
            }
            Completion::SucceededAgainAfter(delay) => {
                self.forget_key(key);
                Some(delay)
            }
            Completion::Retry => Some(self.charge(key)),
            Completion::RetryAfter(delay) => Some(delay),
            _ => None,
        };
        if let Some(delay) = delay {
            let due = self.now + delay;
            if !self.shutting_down {
                self.come_back(key, due);
            } else if !self.dirty.contains(&key) {
                self.schedule(key, due);
            }
        }
        let ready = self.finish(key);
        Ok(match delay {
            _ if ready => Finished::Ready,
            None => Finished::Idle,
            Some(delay) if self.shutting_down => Finished::Leftover(delay),
            Some(delay) => Finished::Delayed(delay),
        })
    }

    /// What is left over after shutdown: client-go drops it.
    fn pop_delayed(&mut self) -> Option<Left> {
        if !self.shutting_down {
            return None;
        }
        let Waiting { due, key, .. } = self.first_waiting()?;
        let requeues = self.failures_of(key);
        self.stop_waiting(key);
        self.settle();
        let left = if due.is_never() {
            Duration::MAX
        } else {
            due.saturating_since(self.now)
        };
        Some(Left {
            key,
            left,
            requeues,
        })
    }

    fn pop_ready(&mut self) -> Option<Left> {
        if !self.shutting_down || self.queue.is_empty() {
            return None;
        }
        let key = self.queue.remove(0);
        let requeues = self.failures_of(key);
        self.figures.depth -= 1;
        remove(&mut self.added, key);
        self.dirty.retain(|other| *other != key);
        self.stop_waiting(key);
        self.settle();
        Some(Left {
            key,
            left: Duration::ZERO,
            requeues,
        })
    }

    /// default_rate_limiters.go, When.
    fn charge(&mut self, key: Key) -> Duration {
        let mut memory = remove(&mut self.failures, key).unwrap_or_default();
        let delay = self.limiter.when(&mut memory, self.now);
        if memory != AnyMemory::default() {
            self.failures.push((key, memory));
        }
        delay
    }

    /// default_rate_limiters.go, Forget.
    fn forget_key(&mut self, key: Key) -> u32 {
        let count = self.failures_of(key);
        remove(&mut self.failures, key);
        self.settle();
        count
    }

    /// default_rate_limiters.go, NumRequeues.
    fn failures_of(&self, key: Key) -> u32 {
        let memory = self.failures.iter().find(|(failed, _)| *failed == key);
        memory.map_or(0, |(_, memory)| self.limiter.requeues(memory))
    }

    /// Keeps the list of mere memories up to date: at most one key comes to rest at a time.
    fn settle(&mut self) {
        let failed: Vec<Key> = self.failures.iter().map(|(key, _)| *key).collect();
        let at_rest = |key: &Key| failed.contains(key) && !self.has_work(*key);
        let mut memories = self.memories.clone();
        memories.retain(at_rest);
        for key in failed.iter().copied().filter(at_rest) {
            if !memories.contains(&key) {
                memories.push(key);
            }
        }
        self.memories = memories;
        if self.memories.len() > self.memories_max {
            let oldest = self.memories.remove(0);
            remove(&mut self.failures, oldest);
        }
    }

    fn has_work(&self, key: Key) -> bool {
        self.dirty.contains(&key)
            || self.processing.contains(&key)
            || self.waiting.iter().any(|entry| entry.key == key)
    }

    fn holds(&self, key: Key) -> bool {
        self.has_work(key) || self.failures.iter().any(|(failed, _)| *failed == key)
    }

    fn held(&self) -> usize {
        let mut keys = [&self.dirty[..], &self.processing[..]].concat();
        keys.extend(self.waiting.iter().map(|entry| entry.key));
        keys.extend(self.failures.iter().map(|(key, _)| *key));
        keys.sort_unstable();
        keys.dedup();
        keys.len()
    }

    fn know(&self, key: Key) -> Option<Known> {
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        let active = self.processing.contains(&key);
        self.holds(key).then(|| Known {
            ready: self.queue.contains(&key),
            active,
            dirty: active && self.dirty.contains(&key),
            due: entry.map(|entry| entry.due),
            requeues: self.failures_of(key),
        })
    }

    fn first_waiting(&self) -> Option<Waiting> {
        let order = |entry: &&Waiting| (entry.due, entry.number);
        self.waiting.iter().min_by_key(order).copied()
    }

    fn stop_waiting(&mut self, key: Key) {
        self.waiting.retain(|entry| entry.key != key);
    }
}

/// Takes the entry of a key out of a list.
fn remove<T>(list: &mut Vec<(Key, T)>, key: Key) -> Option<T> {
    let index = list.iter().position(|(other, _)| *other == key)?;
    Some(list.remove(index).1)
}
