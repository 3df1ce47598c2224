//! Many keys in steps of a bounded size, each under a lock of its own.

use core::hash::Hash;

use crate::action::Action;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{AddedMany, NotActive, Rejected};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;
use crate::work::Ticket;

use super::{State, WorkQueue};

/// How many keys of a batch are added, taken or ended under one lock, so that no call waits for a
/// whole batch of another: 64, or 8 without the feature `alloc`.
///
/// A batch of at most this many keys is one step. A larger one is several: other calls may come in
/// between, and each step sends its own wake. While keys are added they need room on the stack,
/// about three times the size of a key for each of a step.
///
/// # Examples
///
/// ```
/// use requeue_core::binding::KEYS_PER_LOCK;
///
/// let locks = 1_000_usize.div_ceil(KEYS_PER_LOCK);
/// assert!(locks > 1, "a batch of 1,000 keys is added in {locks} steps");
/// ```
pub const KEYS_PER_LOCK: usize = if cfg!(feature = "alloc") { 64 } else { 8 };

/// As many keys as one lock is taken for, outside of the lock.
type Step<T> = heapless::Vec<T, KEYS_PER_LOCK>;

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Adds many keys, up to [`KEYS_PER_LOCK`] under one lock. O(1) per key.
    ///
    /// Passes every key that is not taken to `rejected`. The iterator and `rejected` run while the
    /// queue is not locked. If one of them panics, the keys of the steps before stay added.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let nodes = ["node-1", "node-2", "node-3", "node-4", "node-5"];
    /// let mut refused = Vec::new();
    /// let many = queue.add_many(nodes, |rejected| refused.push(rejected.into_key()));
    /// assert_eq!(many.ready, 4);
    /// assert_eq!(refused, ["node-5"]);
    /// ```
    pub fn add_many(
        &self,
        keys: impl IntoIterator<Item = K>,
        mut rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        let mut keys = keys.into_iter();
        let mut all = AddedMany::default();
        loop {
            let step: Step<K> = keys.by_ref().take(KEYS_PER_LOCK).collect();
            let is_last = !step.is_full();
            if step.is_empty() {
                return all;
            }
            let many = self.add_step(step, &mut rejected);
            all.ready += many.ready;
            all.dirty += many.dirty;
            all.delayed += many.delayed;
            all.coalesced += many.coalesced;
            all.rejected += many.rejected;
            if is_last {
                return all;
            }
        }
    }

    /// Adds keys under one lock. What is not stored is passed on or dropped after it.
    fn add_step(&self, step: Step<K>, rejected: &mut impl FnMut(Rejected<K>)) -> AddedMany {
        let (mut refused, mut spares) = (Step::new(), Step::new());
        let many = self.with(|queue, now| {
            let refuse = |key| drop(refused.push(key));
            queue.add_many_or_spare(step, now, refuse, |key| drop(spares.push(key)))
        });
        refused.into_iter().for_each(rejected);
        many
    }

    /// Ends many runs, up to [`KEYS_PER_LOCK`] under one lock. Costs per run as
    /// [`finish`](Self::finish). The iterator runs while the queue is not locked.
    ///
    /// If a key's `Drop` panics, its own run is over. The tickets after it are lost with the
    /// iterator, and their keys stay active unless [`release_key`](Self::release_key) ends their
    /// runs. A `Batch` ends all of its runs.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if any run was ended otherwise. The others end all the same.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut tickets = Vec::new();
    /// while let Some(guard) = queue.try_get() {
    ///     tickets.extend(guard.into_ticket());
    /// }
    /// assert_eq!(queue.finish_many(tickets, Action::Success), Ok(()));
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn finish_many(
        &self,
        tickets: impl IntoIterator<Item = Ticket>,
        action: Action,
    ) -> Result<(), NotActive> {
        let mut tickets = tickets.into_iter();
        let mut outcome = Ok(());
        loop {
            let step: Step<Ticket> = tickets.by_ref().take(KEYS_PER_LOCK).collect();
            let is_last = !step.is_full();
            if step.is_empty() {
                return outcome;
            }
            let finish = |queue: &mut Queue<K, S, L, M>, now| queue.finish_many(step, action, now);
            let finished = if action.needs_time() {
                self.with_now(finish)
            } else {
                self.with(finish)
            };
            outcome = outcome.and(finished);
            if is_last {
                return outcome;
            }
        }
    }
}
