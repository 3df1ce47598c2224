//! Many keys in one operation, for runtimes that pay for each lock.

use core::hash::Hash;

use crate::Instant;
use crate::action::Action;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{Added, AddedMany, Effect, Next, NotActive, Rejected};
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::work::{Ticket, Work};

use super::Queue;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Adds keys in order, each as [`add`](Self::add) does. O(1) per key.
    ///
    /// Passes every key that is not taken to `rejected`, and continues with the others.
    ///
    /// # Examples
    ///
    /// There is not room for every sensor:
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
        rejected: impl FnMut(Rejected<K>),
    ) -> Effect<AddedMany> {
        self.add_many_or_spare(keys, now, rejected, drop)
    }

    /// [`add_many`](Self::add_many), which passes what it does not store to `spared`.
    pub(crate) fn add_many_or_spare(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        now: Instant,
        mut rejected: impl FnMut(Rejected<K>),
        mut spared: impl FnMut(K),
    ) -> Effect<AddedMany> {
        let mut many = AddedMany::default();
        for key in keys {
            if self.closed {
                many.rejected += 1;
                rejected(Rejected::Closed(key));
                continue;
            }
            match self.add_quietly(key, now, &mut spared) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(Added::Delayed | Added::Sooner) => many.delayed += 1,
                Ok(_) => many.coalesced += 1,
                Err(key) => {
                    many.rejected += 1;
                    rejected(Rejected::Full(key));
                }
            }
        }
        self.effect(many)
    }

    /// Ends runs in order, each as [`finish`](Self::finish) does, and at its cost.
    ///
    /// Reads `now` as [`finish`](Self::finish) does.
    ///
    /// If a key's `Drop` panics, its own run is over. The tickets after it are lost with the
    /// iterator, and their keys stay active unless [`release_key`](Self::release_key) ends their
    /// runs.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was ended otherwise. The others end all the same.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Action, Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::Getter;
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many([17, 18], now, |_| {});
    /// let mut tickets = Vec::new();
    /// let _ = queue.poll_get_many(2, now, &mut Getter::new(), |work| tickets.push(work.ticket));
    ///
    /// queue.finish_many(tickets, Action::Success, now).value.unwrap();
    /// assert_eq!(queue.active_len(), 0);
    /// ```
    pub fn finish_many(
        &mut self,
        tickets: impl IntoIterator<Item = Ticket>,
        action: Action,
        now: Instant,
    ) -> Effect<Result<(), NotActive>> {
        let mut outcome = Ok(());
        for ticket in tickets {
            let finished = self.finish_quietly(ticket, action, now);
            outcome = outcome.and(finished.map(|_| ()));
        }
        self.effect(outcome)
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes up to `max` ready keys, as [`try_get`](Self::try_get) does, and returns how many there
    /// were.
    #[cfg(feature = "alloc")]
    pub(crate) fn try_get_many(
        &mut self,
        max: usize,
        now: Instant,
        sink: impl FnMut(Work<K>),
    ) -> Effect<usize> {
        let taken = self.take_many(max, now, sink);
        self.effect(taken)
    }

    /// Takes up to `max` ready keys in order, each as [`poll_get`](Self::poll_get) does. O(1) per
    /// key.
    ///
    /// Passes the keys to `sink`, and returns how many there were, at least one. A `max` of zero
    /// counts as one. If a key's `Clone` or `sink` panics, the keys that `sink` has received stay
    /// active, and the caller has their tickets.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::{Getter, Next};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<8>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many(1..=5, now, |_| {});
    ///
    /// let mut getter = Getter::new();
    /// let mut batch = Vec::new();
    /// let next = queue.poll_get_many(3, now, &mut getter, |work| batch.push(work)).value;
    /// assert_eq!(next, Next::Work(3));
    /// assert!(batch.iter().map(|work| work.key).eq([1, 2, 3]));
    /// ```
    pub fn poll_get_many(
        &mut self,
        max: usize,
        now: Instant,
        getter: &mut Getter,
        sink: impl FnMut(Work<K>),
    ) -> Effect<Next<usize>> {
        let taken = self.take_many(max.max(1), now, sink);
        self.sleepers.arrive(getter);
        let next = if taken > 0 {
            Next::Work(taken)
        } else {
            self.wait(getter)
        };
        self.effect(next)
    }

    fn take_many(&mut self, max: usize, now: Instant, mut sink: impl FnMut(Work<K>)) -> usize {
        let mut taken = 0;
        while taken < max {
            match self.take(now) {
                Some(work) => sink(work),
                None => break,
            }
            taken += 1;
        }
        taken
    }
}
