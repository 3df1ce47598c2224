//! Looking at the queue.

use core::borrow::Borrow;
use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Effect, KeyState};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::time::Clock;
use crate::timer::{Timer, sleep_until};
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
    /// Returns the number of ready keys: client-go's `Len`. Active and delayed keys do not count.
    /// O(1), and O(log n) for each due key that is not ready yet, a few of them under each lock.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(queue.len(), 1, "an active key is not ready");
    /// assert!(queue.contains("node-7"), "but the queue has work for it");
    /// # guard.success().unwrap();
    /// ```
    #[doc(alias = "Len")]
    pub fn len(&self) -> usize {
        self.when_released(Queue::len)
    }

    /// Returns whether no key is ready. Active and delayed keys do not count. Costs as
    /// [`len`](Self::len).
    pub fn is_empty(&self) -> bool {
        self.with(|queue, now| queue.is_empty(now))
    }

    /// Returns whether no key is ready or active. Delayed keys do not count until they are due.
    /// O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// assert!(!queue.is_idle());
    /// guard.success().unwrap();
    /// assert!(queue.is_idle());
    /// ```
    pub fn is_idle(&self) -> bool {
        self.with(Queue::is_idle)
    }

    /// Returns whether no key is ready, active or delayed, so that nothing runs again unless it is
    /// added. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// assert!(queue.is_idle() && !queue.is_settled());
    /// ```
    pub fn is_settled(&self) -> bool {
        self.lock.with(|state| state.queue.is_settled())
    }

    /// Returns what the queue knows about a key, `None` if it does not hold the key. Costs as
    /// [`len`](Self::len).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let _ = queue.add("node-7");
    /// let state = queue.state("node-7").unwrap();
    /// assert!(state.active && state.dirty);
    /// # guard.success().unwrap();
    /// assert!(queue.state("node-8").is_none());
    /// ```
    pub fn state<B>(&self, key: &B) -> Option<KeyState>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.with(|queue, now| queue.state(key, now))
    }

    /// Returns whether a key is ready, active or delayed. Failures alone do not count. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// assert!(queue.contains("node-7"));
    /// queue.try_get().unwrap().success().unwrap();
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn contains<B>(&self, key: &B) -> bool
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.lock.with(|state| state.queue.contains(key))
    }

    /// Returns the number of active keys, including dirty ones. O(1).
    pub fn active_len(&self) -> usize {
        self.lock.with(|state| state.queue.active_len())
    }

    /// Returns the number of keys that wait for a deadline, including those that are also ready or
    /// active. O(1).
    pub fn delayed_len(&self) -> usize {
        self.lock.with(|state| state.queue.delayed_len())
    }

    /// Returns the number of keys that the queue holds: ready, active, delayed, or held for their
    /// failures alone. O(1).
    ///
    /// # Examples
    ///
    /// The four counts of a queue:
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let _ = queue.add_after("lease-3", core::time::Duration::from_secs(60));
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!((queue.len(), queue.active_len(), queue.delayed_len()), (1, 1, 1));
    /// assert_eq!(queue.held_len(), 3);
    /// # guard.success().unwrap();
    /// ```
    pub fn held_len(&self) -> usize {
        self.lock.with(|state| state.queue.held_len())
    }

    /// Returns how many keys fit, `None` if the queue grows without a limit. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// assert_eq!(queue.max_keys(), Some(4));
    /// ```
    pub fn max_keys(&self) -> Option<usize> {
        self.lock.with(|state| state.queue.max_keys())
    }

    /// Returns when the queue was first shut down, `None` if it was not. O(1).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// assert_eq!(queue.closed_at(), None);
    /// queue.shut_down();
    /// assert_eq!(queue.closed_at(), Some(Instant::EPOCH));
    /// ```
    pub fn closed_at(&self) -> Option<Instant> {
        self.lock.with(|state| state.queue.closed_at())
    }

    /// Returns whether the queue has been shut down. O(1). [`shut_down`](Self::shut_down) has an
    /// example.
    #[doc(alias = "ShuttingDown")]
    pub fn shutting_down(&self) -> bool {
        self.lock.with(|state| state.queue.shutting_down())
    }

    /// Reports how long the active keys have been running, as client-go does every 500 ms. O(1).
    /// [`Queue::report_running`] has an example.
    pub fn report_running(&self) {
        self.with_now(Queue::report_running);
    }

    /// Makes every due key ready, in steps that each hold the lock for a short time, and then does
    /// `work`.
    pub(super) fn when_released<T>(
        &self,
        mut work: impl FnMut(&mut Queue<K, S, L, M>, Instant) -> Effect<T>,
    ) -> T {
        let mut step = || {
            self.with(|queue, now| {
                if queue.release_due(SlotId::NONE, now) {
                    return queue.effect(None);
                }
                work(queue, now).map(Some)
            })
        };
        // One step for some of the due keys, and one more.
        loop {
            if let Some(done) = step() {
                return done;
            }
        }
    }

    /// Reports to the metrics how long the active keys have been active, at once and then every
    /// `period`, until the queue is shut down. client-go does so every 500 ms. A period of
    /// less than a millisecond counts as one, because a task that never waits lets no other run.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future ends the reports.
    pub async fn report_running_every(&self, period: Duration)
    where
        C: Timer,
    {
        let period = period.max(Duration::from_millis(1));
        while !self.shutting_down() {
            self.report_running();
            sleep_until(&self.clock, self.clock.now() + period).await;
        }
    }
}
