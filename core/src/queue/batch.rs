//! Many keys in one step, for runtimes that pay for each lock.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Added, AddedMany, Completion, Effect, Next, NotActive, Rejected};
use crate::slots::Storage;
use crate::waiting::Getter;
use crate::work::{Ticket, WorkOf};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Adds keys in order, as [`add`](Self::add) does one by one. O(1) per key.
    ///
    /// Every key that is not taken is given to `rejected`, and the others are still tried.
    ///
    /// # Examples
    ///
    /// A first walk adds every sensor; those for which there is no room are told apart:
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let mut refused = Vec::new();
    /// let many = queue
    ///     .add_many(1..=6, Instant::EPOCH, |rejected| refused.push(rejected.into_key()))
    ///     .value;
    /// assert_eq!((many.ready, many.rejected), (4, 2));
    /// assert_eq!(refused, [5, 6]);
    /// ```
    pub fn add_many(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        now: Instant,
        mut rejected: impl FnMut(Rejected<K>),
    ) -> Effect<AddedMany> {
        let mut many = AddedMany::default();
        if !self.closed {
            self.release_due(now);
        }
        for key in keys {
            if self.closed {
                many.rejected += 1;
                rejected(Rejected::Closed(key));
                continue;
            }
            match self.add_quietly(key, now) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(_) => many.coalesced += 1,
                Err(refused) => {
                    many.rejected += 1;
                    rejected(refused);
                }
            }
        }
        self.effect(many)
    }

    /// Completes runs in order, as [`complete`](Self::complete) does one by one, and at its cost.
    ///
    /// Reads `now` as [`complete`](Self::complete) does.
    ///
    /// If a key's `Drop` panics, its own run is over; the tickets behind it are lost with the
    /// iterator, and their keys are completed [by name](Self::done_key) or stay in work.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was completed otherwise; the others are completed all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Completion, Fixed, Getter, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many([17, 18], now, |_| {});
    /// let mut tickets = Vec::new();
    /// let _ = queue.get_many(2, now, &mut Getter::new(), |work| tickets.push(work.ticket));
    ///
    /// queue.complete_many(tickets, Completion::Succeeded, now).value.unwrap();
    /// assert_eq!(queue.active_len(), 0);
    /// ```
    pub fn complete_many(
        &mut self,
        tickets: impl IntoIterator<Item = Ticket>,
        completion: Completion,
        now: Instant,
    ) -> Effect<Result<(), NotActive>> {
        let mut outcome = Ok(());
        for ticket in tickets {
            let finished = self.complete_quietly(ticket, completion, now);
            outcome = outcome.and(finished.map(|_| ()));
        }
        self.effect(outcome)
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Hands out up to `max` ready keys in order, as [`get`](Self::get) does one by one. O(1) per
    /// key.
    ///
    /// The work goes to `sink`; the answer says how many keys there were, one at least. A `max` of
    /// zero counts as one. Should a key's `Clone` or `sink` panic, the keys handed out before stay
    /// in work: their tickets are the caller's.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Getter, Instant, Next, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<8>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many(1..=5, now, |_| {});
    ///
    /// let mut getter = Getter::new();
    /// let mut batch = Vec::new();
    /// let next = queue.get_many(3, now, &mut getter, |work| batch.push(work)).value;
    /// assert_eq!(next, Next::Work(3));
    /// assert!(batch.iter().map(|work| work.key).eq([1, 2, 3]));
    /// ```
    pub fn get_many(
        &mut self,
        max: usize,
        now: Instant,
        getter: &mut Getter,
        mut sink: impl FnMut(WorkOf<K, S, M>),
    ) -> Effect<Next<usize>> {
        self.release_due(now);
        let mut taken = 0;
        while taken < max.max(1) {
            match self.take(now) {
                Some(work) => sink(work),
                None => break,
            }
            taken += 1;
        }
        self.sleepers.arrive(getter);
        let next = if taken > 0 {
            Next::Work(taken)
        } else {
            self.wait(getter)
        };
        self.effect(next)
    }
}
