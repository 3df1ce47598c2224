//! Taking work back.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::KeyState;
use crate::queue::Sweep;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;
use crate::work::Ticket;

use super::{State, WorkQueue};

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
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on, and can ask by
    /// [`Guard::is_cancelled`](crate::Guard::is_cancelled) or [`state`](Self::state). The failures
    /// of the key stay on record, until [`forget`](Self::forget). The other keys keep their order.
    ///
    /// After shutdown this works as before, and a drain ends if nothing is left.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// let was = queue.cancel("node-7").unwrap();
    /// assert!(was.ready && was.due.is_some());
    /// assert!(queue.try_get().is_none());
    /// assert_eq!(queue.cancel("node-7"), None);
    /// ```
    pub fn cancel<B>(&self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.cancel(key, now))
    }

    /// Returns whether the key of a run was cancelled since the run began. O(1). A guard does this
    /// by itself. [`Queue::is_cancelled`](crate::Queue::is_cancelled) has an example.
    pub fn is_cancelled(&self, ticket: &Ticket) -> bool {
        self.lock.with(|state| state.queue.is_cancelled(ticket))
    }

    /// Takes back the deadline of a key. Returns it, `None` if the key is not delayed. O(log n).
    ///
    /// A key that is also ready or active stays so. A deadline that has passed is an add that has
    /// happened: there is nothing left to take back but with [`cancel`](Self::cancel).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// assert!(queue.cancel_delay("lease-3").is_some());
    /// assert!(!queue.contains("lease-3"));
    /// ```
    pub fn cancel_delay<B>(&self, key: &B) -> Option<Instant>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.cancel_delay(key, now))
    }

    /// [Cancels](Self::cancel) the keys that `keep` returns `false` for. Returns how many.
    /// O(slots), and O(log n) for each key that is cancelled, a few of them under each lock.
    ///
    /// Asks about each key that is ready, active or delayed, in no order; the order of those that
    /// stay does not change. A key that is added meanwhile may or may not be asked about. `keep`
    /// runs while the queue is locked: it must not touch it.
    ///
    /// # Examples
    ///
    /// A site is closed, and its nodes need no more runs:
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["ulm/node-1", "bonn/node-1", "ulm/node-2"], |_| {});
    /// assert_eq!(queue.retain(|node| !node.starts_with("ulm/")), 2);
    /// assert_eq!(*queue.try_get().unwrap(), "bonn/node-1");
    /// ```
    pub fn retain(&self, mut keep: impl FnMut(&K) -> bool) -> usize {
        let mut sweep = Sweep::new();
        while self.with(|queue, now| queue.retain_some(&mut sweep, now, &mut keep)) {}
        sweep.cancelled()
    }

    /// [Cancels](Self::cancel) all keys. Returns how many. Costs as [`retain`](Self::retain).
    ///
    /// Present runs go on, and failures stay on record. A key that is added meanwhile may stay.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// assert_eq!(queue.clear(), 2);
    /// assert!(queue.is_empty());
    /// ```
    pub fn clear(&self) -> usize {
        self.retain(|_| false)
    }
}
