//! Taking work back.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::KeyState;
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
    /// Takes back the work of a key: it is no longer ready, dirty or delayed. O(log n).
    ///
    /// Returns what the key was, `None` if it was neither ready, active nor delayed: then nothing
    /// changes. A present run goes on. The failures of the key stay on record, until
    /// [`forget`](Self::forget). The other keys keep their order.
    ///
    /// After shutdown this works as before, and a drain ends if nothing is left.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add("node-7").unwrap();
    /// queue.add_after("node-7", core::time::Duration::from_secs(60)).unwrap();
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
}
