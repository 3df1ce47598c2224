//! Ending the queue: shutdown, drain, and what is left behind.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::{Drain, Drained, Leftover};
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
    /// Takes no more keys, and tells getters that the queue is closed once nothing is ready. Ends
    /// every wait for a drain. O(1), beside waking everybody who waits.
    ///
    /// Keys that are delayed stay until they are [taken](Self::take_delayed) or the queue is
    /// dropped.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// assert!(queue.shutting_down());
    /// assert_eq!(*queue.try_get().unwrap(), "node-7", "what was ready is handed out");
    /// assert_eq!(queue.poll_get(&mut Getter::new()), Next::Closed);
    /// ```
    pub fn shut_down(&self) {
        self.act_now(Queue::shut_down);
    }

    /// As [`shut_down`](Self::shut_down), but lets drains wait: what a runtime's waiting form
    /// begins with. O(1), beside waking everybody who waits.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// let drain = queue.begin_drain();
    /// assert_eq!(queue.drained(&drain), Drained::Pending);
    /// queue.try_get().unwrap().forget().unwrap();
    /// assert_eq!(queue.drained(&drain), Drained::Complete);
    /// ```
    pub fn begin_drain(&self) -> Drain {
        self.act_now(Queue::shut_down_with_drain)
    }

    /// How a drain stands; [`begin_drain`](Self::begin_drain) has an example. O(1).
    pub fn drained(&self, drain: &Drain) -> Drained {
        self.lock.with(|queue| queue.drained(drain))
    }
}

impl<K, S, L, M, Q, C, W> WorkQueue<Q, C, W>
where
    K: Eq + Hash + Clone,
    S: Storage,
    L: RateLimiter,
    M: Metrics,
    Q: Lock<State = Queue<K, S, L, M>>,
    C: Clock,
    W: Waker,
{
    /// After shutdown: takes out the delayed key with the earliest deadline. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// assert_eq!(queue.take_delayed(), None, "not before shutdown");
    /// queue.shut_down();
    /// let leftover = queue.take_delayed().unwrap();
    /// assert_eq!((leftover.key, leftover.left.as_secs()), ("lease-3", 60));
    /// ```
    pub fn take_delayed(&self) -> Option<Leftover<K>> {
        self.lock.with(|queue| queue.take_delayed(self.clock.now()))
    }

    /// After shutdown: takes out every key that has not been worked on, ready keys first, then
    /// delayed ones in the order of their deadlines. Keys in work are not touched; nothing comes
    /// out before shutdown. O(log n) per key, each under a lock of its own.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// use core::time::Duration;
    ///
    /// queue.add_after("lease-3", Duration::from_secs(60)).unwrap();
    /// queue.add("node-7").unwrap();
    /// queue.shut_down();
    /// assert!(queue.leftovers().map(|left| left.key).eq(["node-7", "lease-3"]));
    /// ```
    pub fn leftovers(&self) -> impl Iterator<Item = Leftover<K>> {
        let ready = core::iter::from_fn(|| self.take_ready());
        let delayed = core::iter::from_fn(|| self.take_delayed());
        ready.chain(delayed)
    }

    /// After shutdown: takes out the first ready key before a worker gets it. O(log n).
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
        self.act(|queue, _| queue.take_ready())
    }
}
