//! The end: queue.go's ShutDown and ShutDownWithDrain, what is left over, and who waits for it.

use requeue_core::Instant;
use requeue_core::binding::Drained;

use super::{Entry, Model, left_until};
use crate::operation::{Drain, Key, Left, left_over};

/// A wait for the work of a key that was known when it began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Flush {
    key: Key,
    awaits: Awaits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Awaits {
    Nothing,
    /// The end of a run.
    Run(u64),
    /// The next run of the key, unless it is taken back before.
    NextRun,
}

impl Model {
    pub(super) fn shut_down(&mut self) {
        self.stop_time();
        self.drains.fill(true);
    }

    pub(super) fn begin_drain(&mut self) -> Drain {
        self.stop_time();
        self.drains.push(false);
        Drain(self.drains.len() - 1)
    }

    fn stop_time(&mut self) {
        self.arrive();
        if !self.is_closed() {
            self.closed = Some((self.now, self.numbers + 1));
            self.paused = false;
            self.review();
        }
    }

    /// The time of the shutdown. No later deadline is earlier, even if the clock goes back.
    pub(super) fn stopped_at(&self) -> Instant {
        self.closed.map_or(Instant::EPOCH, |closed| closed.0)
    }

    pub(super) fn drained(&self, drain: usize) -> Drained {
        let interrupted = self.drains.get(drain).copied().unwrap_or_default();
        match self.has_no_work() && !self.has_backlog() {
            true => Drained::Complete,
            false if interrupted => Drained::Interrupted,
            false => Drained::Pending,
        }
    }

    /// Whether there is no key for a call that waits, and will be none. In a drain, calls wait for
    /// dirty keys too.
    pub(crate) fn is_over(&self) -> bool {
        let paces = self.policy.next_start() > Instant::EPOCH;
        let is_ready = self.count(|entry| entry.ready.is_some()) > 0;
        let ready_keys_wait = (paces || self.abilities.groups > 0) && is_ready;
        let is_draining = self.drains.last() == Some(&false);
        let is_dirty = self.count(Entry::is_dirty) > 0;
        let comes_back = is_draining && is_dirty;
        self.is_closed() && !ready_keys_wait && !comes_back && !self.has_backlog()
    }

    /// What is left over after shutdown: client-go drops it.
    pub(super) fn take_delayed(&mut self) -> Option<Left> {
        self.closed?;
        if self.abilities.due_keys_max.is_none() {
            // Behind a lock, what is due is released first, and the time of groups goes on.
            self.groups_come_due();
        }
        self.without_time(Self::release_all);
        let (key, first) = self.first_deadline()?;
        let failures = self.failures_of(key);
        let entry = self.entry_mut(key);
        entry.deadline = None;
        if !entry.active && entry.ready.is_none() {
            (entry.suspended, entry.plan) = (None, None);
        }
        self.settle();
        let left = left_until(first.due, self.now);
        Some(left_over(key, left, failures, first.level))
    }

    pub(super) fn take_ready(&mut self) -> Option<Left> {
        self.closed?;
        self.without_time(|model| {
            model.arrive();
            model.arrive_at_first(Self::first_left);
            // None of those that are left is forgotten.
            while model.first_left().is_none() && model.has_backlog() {
                model.arrive();
            }
        });
        let key = self.first_left()?;
        Some(self.take_out_ready(key))
    }

    /// Taking leftovers needs no time: it is that of the shutdown.
    fn without_time(&mut self, work: impl FnOnce(&mut Self)) {
        let stopped = self.closed.map_or(self.now, |closed| closed.0);
        let now = std::mem::replace(&mut self.now, stopped);
        work(self);
        self.now = now;
    }

    /// Begins to wait for the work of a key, and returns the number of the wait.
    pub fn begin_flush(&mut self, key: Key) -> usize {
        self.arrive_at(key);
        let awaits = match self.entry(key).queued {
            Some(_) => Awaits::NextRun,
            None => self.present_run(key),
        };
        self.flushes.push(Flush { key, awaits });
        self.flushes.len() - 1
    }

    /// Whether the work of a wait is done, or taken back.
    pub fn is_flushed(&self, flush: usize) -> bool {
        let flush = self.flush(flush);
        flush.is_none_or(|flush| flush.awaits == Awaits::Nothing)
    }

    /// How a wait stands.
    pub fn flush(&self, flush: usize) -> Option<Flush> {
        self.flushes.get(flush).copied()
    }

    fn present_run(&self, key: Key) -> Awaits {
        let entry = self.entry(key);
        if entry.active {
            Awaits::Run(entry.run)
        } else {
            Awaits::Nothing
        }
    }

    /// A run of a key has begun, or its work was taken back.
    pub(super) fn note_flushes_of(&mut self, key: Key) {
        let awaits = self.present_run(key);
        self.change_flushes(key, Awaits::NextRun, awaits);
    }

    /// The present run of a key ends.
    pub(super) fn end_flushes_of(&mut self, key: Key) {
        let ended = self.present_run(key);
        self.change_flushes(key, ended, Awaits::Nothing);
    }

    fn change_flushes(&mut self, key: Key, from: Awaits, to: Awaits) {
        let flushes = self.flushes.iter_mut().filter(|flush| flush.key == key);
        for flush in flushes.filter(|flush| flush.awaits == from) {
            flush.awaits = to;
        }
    }
}
