//! Shutdown, drain, and the keys that are left over.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Drain, Drained, Leftover};
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
    /// Shuts the queue down: it takes no more keys, and getters find it closed once no key is
    /// ready. Ends every wait for a drain. O(1), and O(n) in the calls that wait, which are woken.
    ///
    /// An active key that is dirty is ready again after its run, and getters may have left by then.
    /// A drain waits for such keys, and so do getters meanwhile: [`Queue::begin_drain`] says the
    /// rule.
    ///
    /// Delayed keys stay until they are [taken](Self::take_delayed) or the queue is dropped.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// assert!(queue.shutting_down());
    /// let guard = queue.try_get().unwrap();
    /// assert_eq!(*guard, "node-7", "what was ready is handed out");
    /// # guard.success().unwrap();
    /// ```
    #[doc(alias = "ShutDown")]
    pub fn shut_down(&self) {
        self.with_now(Queue::shut_down);
    }

    /// As [`shut_down`](Self::shut_down), but does not end the waits for a drain: the first step of
    /// a runtime's `drain`, which then waits. O(1), and O(n) in the calls that wait, which are
    /// woken.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let drain = queue.begin_drain();
    /// assert_eq!(queue.drain_status(&drain), Drained::Pending);
    /// queue.try_get().unwrap().success().unwrap();
    /// assert_eq!(queue.drain_status(&drain), Drained::Complete);
    /// ```
    #[doc(alias = "ShutDownWithDrain")]
    pub fn begin_drain(&self) -> Drain {
        self.with_now(Queue::begin_drain)
    }

    /// Returns the status of a drain. O(1). [`begin_drain`](Self::begin_drain) has an example.
    pub fn drain_status(&self, drain: &Drain) -> Drained {
        self.lock.with(|state| state.queue.drain_status(drain))
    }
}

impl<K, S, L, M, W, Q, C> WorkQueue<Q, C>
where
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    W: WaitList,
    Q: Lock<State = State<K, S, L, M, W>>,
    C: Clock,
{
    /// Takes out the delayed key with the earliest deadline, after shutdown. `None` before, and if
    /// no key is delayed. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// assert_eq!(queue.take_delayed(), None, "not before shutdown");
    /// queue.shut_down();
    /// let leftover = queue.take_delayed().unwrap();
    /// assert_eq!((leftover.key, leftover.left.as_secs()), ("lease-3", 60));
    /// ```
    pub fn take_delayed(&self) -> Option<Leftover<K>> {
        if !self.shutting_down() {
            return None;
        }
        self.when_released(|queue, _| {
            // Read under the lock: what others do before this step happens before this time.
            let leftover = queue.take_delayed(self.clock.now());
            queue.effect(leftover)
        })
    }

    /// Takes out every key that is ready or delayed, after shutdown: ready keys first, then delayed
    /// ones in the order of their deadlines. Active keys are not touched. Empty before shutdown.
    /// O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// assert!(queue.leftovers().map(|left| left.key).eq(["node-7", "lease-3"]));
    /// ```
    pub fn leftovers(&self) -> impl Iterator<Item = Leftover<K>> {
        let ready = core::iter::from_fn(|| self.take_ready());
        let delayed = core::iter::from_fn(|| self.take_delayed());
        ready.chain(delayed)
    }

    /// Takes out the first ready key before a worker gets it, after shutdown. `None` before, and if
    /// no key is ready. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// queue.shut_down();
    /// assert_eq!(queue.take_ready().unwrap().key, "node-7");
    /// assert_eq!(queue.len(), 1);
    /// ```
    pub fn take_ready(&self) -> Option<Leftover<K>> {
        self.with(|queue, _| queue.take_ready())
    }
}
