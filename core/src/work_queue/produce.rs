//! What producers do: adding keys, now or later, and forgetting their failures.

use core::borrow::Borrow;
use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Added, Rejected, Scheduled};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

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
    /// Marks a key as having work to do. O(1). Waits for nothing except the lock.
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key: the queue is shutting down, or the key is new and there is no
    /// room. Nothing has changed then.
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
    #[doc(alias = "Add")]
    pub fn add(&self, key: K) -> Result<Added, Rejected<K>> {
        let mut spare = None;
        self.with(|queue, now| queue.add_or_spare(key, now, |key| spare = Some(key)))
    }

    /// Adds a key after a delay. Of two delays the one that ends first counts. O(log n).
    ///
    /// As in client-go this changes nothing for a key that is ready or active until the delay is
    /// over, and an [`add`](Self::add) meanwhile does not end it. [`Duration::MAX`] means never.
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
    #[doc(alias = "AddAfter")]
    pub fn add_after(&self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        let mut spare = None;
        self.with_now(|queue, now| {
            queue.add_at_or_spare(key, now + delay, now, |key| spare = Some(key))
        })
    }

    /// Adds a key at a point in time of this queue's clock, or now if that has passed. O(log n).
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
    /// assert_eq!(queue.state("report").unwrap().due, Some(full_hour));
    /// ```
    pub fn add_at(&self, key: K, due: Instant) -> Result<Added, Rejected<K>> {
        let mut spare = None;
        self.with_now(|queue, now| queue.add_at_or_spare(key, due, now, |key| spare = Some(key)))
    }

    /// Counts a failure of a key, and adds the key when its limiter says so. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add). The limiter is not charged then.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let first = queue.add_rate_limited("node-7").unwrap().delay;
    /// let second = queue.add_rate_limited("node-7").unwrap().delay;
    /// assert_eq!((first.as_millis(), second.as_millis()), (1, 2));
    /// ```
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&self, key: K) -> Result<Scheduled, Rejected<K>> {
        let mut spare = None;
        self.with_now(|queue, now| {
            queue.add_rate_limited_or_spare(key, now, |key| spare = Some(key))
        })
    }

    /// Adds a key as the options say: [`Queue::add_with`]. O(log n).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and if the queue has no such priority level.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let once = AddOptions { merge: Merge::Once, ..AddOptions::new() };
    /// let _ = queue.add_after("node-7", core::time::Duration::from_secs(60));
    /// queue.add_with("node-7", once).unwrap();
    /// assert_eq!(queue.state("node-7").unwrap().due, None, "it runs now, and only now");
    /// ```
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>> {
        let mut spare = None;
        let add = |queue: &mut Queue<K, S, L, M>, now| {
            queue.add_with_or_spare(key, options, now, |key| spare = Some(key))
        };
        if options.needs_time() {
            self.with_now(add)
        } else {
            self.with(add)
        }
    }

    /// Forgets the failures of a key, and returns how many there were. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add_rate_limited("node-7");
    /// assert_eq!(queue.num_requeues("node-7"), 1);
    /// assert_eq!(queue.forget("node-7"), 1);
    /// assert_eq!(queue.num_requeues("node-7"), 0);
    /// ```
    #[doc(alias = "Forget")]
    pub fn forget<B>(&self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.forget(key))
    }

    /// Returns how many failures of a key are on record. O(1). [`forget`](Self::forget) has an
    /// example.
    #[doc(alias = "NumRequeues")]
    pub fn num_requeues<B>(&self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.num_requeues(key))
    }
}

#[cfg(feature = "alloc")]
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
    /// Makes room for `additional` more keys, so that adding them does not grow the queue. O(n)
    /// under the lock. See [`Queue::reserve`].
    ///
    /// # Panics
    ///
    /// If memory for so many keys cannot be addressed, as with any collection.
    pub fn reserve(&self, additional: usize) {
        self.lock.with(|state| state.queue.reserve(additional));
    }
}
