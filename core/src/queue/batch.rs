//! Many keys in one operation, for runtimes that pay for each lock.

use core::hash::Hash;

use crate::action::Action;
use crate::limiter::RateLimiter;
use crate::metrics::Metrics;
use crate::outcome::{AddedMany, Next, NotActive, Rejected};
use crate::sleepers::Getter;
use crate::storage::Storage;
use crate::work::{Ticket, Work};

use super::Session;

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
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
    ///     .at(Instant::EPOCH).add_many(1..=6, |rejected| refused.push(rejected.into_key()));
    /// assert_eq!((many.ready, many.rejected), (4, 2));
    /// assert_eq!(refused, [5, 6]);
    /// ```
    pub fn add_many(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        mut rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        let mut many = AddedMany::default();
        for key in keys {
            many.count(self.add(key).map_err(&mut rejected).ok());
        }
        many
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
    /// let _ = queue.at(now).add_many([17, 18], |_| {});
    /// let mut tickets = Vec::new();
    /// let _ = queue.at(now).poll_get_many(2, &mut Getter::new(), |work| tickets.push(work.ticket));
    ///
    /// queue.at(now).finish_many(tickets, Action::Success).unwrap();
    /// assert_eq!(queue.active_len(), 0);
    /// ```
    pub fn finish_many(
        &mut self,
        tickets: impl IntoIterator<Item = Ticket>,
        action: Action,
    ) -> Result<(), NotActive> {
        let mut outcome = Ok(());
        for ticket in tickets {
            outcome = outcome.and(self.finish(ticket, action).map(drop));
        }
        outcome
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Takes up to `max` ready keys, as [`try_get`](Self::try_get) does, and returns how many there
    /// were.
    pub(crate) fn try_get_many(&mut self, max: usize, mut sink: impl FnMut(Work<K>)) -> usize {
        let mut taken = 0;
        while taken < max {
            match self.try_get() {
                Some(work) => sink(work),
                None => break,
            }
            taken += 1;
        }
        taken
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
    /// let _ = queue.at(now).add_many(1..=5, |_| {});
    ///
    /// let mut getter = Getter::new();
    /// let mut batch = Vec::new();
    /// let next = queue.at(now).poll_get_many(3, &mut getter, |work| batch.push(work));
    /// assert_eq!(next, Next::Work(3));
    /// assert!(batch.iter().map(|work| work.key).eq([1, 2, 3]));
    /// ```
    pub fn poll_get_many(
        &mut self,
        max: usize,
        getter: &mut Getter,
        sink: impl FnMut(Work<K>),
    ) -> Next<usize> {
        let taken = self.try_get_many(max.max(1), sink);
        self.queue.arrive(getter);
        if taken > 0 {
            Next::Work(taken)
        } else {
            self.queue.wait(getter)
        }
    }
}
