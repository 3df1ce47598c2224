//! What producers do: adding keys, at once or later, and forgetting their failures.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Added, AddedMany, Limited, Rejected};
use crate::queue::Queue;
use crate::slots::Storage;
use crate::time::Clock;
use crate::waker::Waker;

use super::WorkQueue;

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// Marks a key as having work to do. O(1). Never waits but for the lock.
    ///
    /// # Errors
    ///
    /// [`Rejected`] hands the key back: the queue is shutting down, or the key is new and there is
    /// no room. Nothing has changed then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// assert_eq!(queue.add("node-7"), Ok(Added::Ready));
    /// assert_eq!(queue.add("node-7"), Ok(Added::Coalesced));
    /// queue.shut_down();
    /// assert_eq!(queue.add("node-7"), Err(Rejected::Closed("node-7")));
    /// ```
    pub fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        self.act(|queue, now| queue.add(key, now))
    }

    /// Adds a key after a delay; of two delays the one that ends first counts. O(log n).
    ///
    /// As in client-go this changes nothing for a key that is ready or in work until the delay is
    /// over, and an [`add`](Self::add) meanwhile does not end it. [`Duration::MAX`] is never.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let minute = Duration::from_secs(60);
    /// assert_eq!(queue.add_after("lease-3", minute), Ok(Added::Delayed));
    /// assert_eq!(queue.add_after("lease-3", minute / 2), Ok(Added::Sooner));
    /// assert_eq!(queue.add("lease-3"), Ok(Added::Ready), "it runs now, and once more in 30 s");
    /// ```
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_after(key, delay, now))
    }

    /// Adds a key at a point in time of this queue's clock, at once if that has come. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
    /// assert_eq!(queue.add_at("report", full_hour), Ok(Added::Delayed));
    /// assert_eq!(queue.state(&"report").unwrap().due, Some(full_hour));
    /// ```
    pub fn add_at(&self, key: K, due: Instant) -> Result<Added, Rejected<K>> {
        self.act_now(|queue, now| queue.add_at(key, due, now))
    }

    /// Counts a failure of a key and adds it once its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); the limiter is then not charged.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let first = queue.add_rate_limited("node-7").unwrap().delay;
    /// let second = queue.add_rate_limited("node-7").unwrap().delay;
    /// assert_eq!((first.as_millis(), second.as_millis()), (1, 2));
    /// ```
    pub fn add_rate_limited(&self, key: K) -> Result<Limited, Rejected<K>> {
        self.act_now(|queue, now| queue.add_rate_limited(key, now))
    }

    /// [`Queue::add_with`].
    ///
    /// # Errors
    ///
    /// [`Rejected`] hands the key back; nothing has changed.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let once = AddOptions { expedite: true, ..AddOptions::new() };
    /// queue.add_after("node-7", core::time::Duration::from_secs(60)).unwrap();
    /// queue.add_with("node-7", once).unwrap();
    /// assert_eq!(queue.state(&"node-7").unwrap().due, None, "it is worked on now, and only now");
    /// ```
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Limited, Rejected<K>> {
        let add = |queue: &mut Queue<K, S, L, M>, now| queue.add_with(key, options, now);
        if options.needs_time() {
            self.act_now(add)
        } else {
            self.act(add)
        }
    }

    /// Adds many keys under one lock. O(1) per key.
    ///
    /// Every key that is not taken is given to `rejected`. Both the iterator and `rejected` run
    /// while the queue is locked: they must not touch it.
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
        rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        self.act(|queue, now| queue.add_many(keys, now, rejected))
    }

    /// Forgets the failures of a key and answers how many there were. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_rate_limited("node-7").unwrap();
    /// assert_eq!(queue.num_requeues(&"node-7"), 1);
    /// assert_eq!(queue.forget(&"node-7"), 1);
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// ```
    pub fn forget(&self, key: &K) -> u32 {
        self.lock.with(|queue| queue.forget(key))
    }

    /// How many failures the limiter remembers of a key; [`forget`](Self::forget) has an example.
    /// O(1).
    pub fn num_requeues(&self, key: &K) -> u32 {
        self.lock.with(|queue| queue.num_requeues(key))
    }
}
