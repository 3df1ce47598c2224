//! Adding a key in place of a less urgent one.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Leftover, Rejected, Scheduled};
use crate::queue::Queue;
use crate::storage::Storage;
use crate::time::Clock;
use crate::wait::WaitList;

use super::{State, WorkQueue};

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
    /// As [`add_with`](Self::add_with), but if there is no room, the newest ready key of the lowest
    /// level makes way, and is returned. O(log n).
    ///
    /// Only a key of a lower level than [`AddOptions::priority`] makes way, together with its
    /// deadline. It can be [restored](Self::restore).
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with). [`Rejected::Full`] if no key can make way: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// // There is room, so no key makes way.
    /// let added = queue.add_displacing("node-7", AddOptions::new()).unwrap();
    /// assert_eq!(added.1, None);
    /// ```
    pub fn add_displacing(
        &self,
        key: K,
        options: AddOptions,
    ) -> Result<(Scheduled, Option<Leftover<K>>), Rejected<K>> {
        let add = |queue: &mut Queue<K, S, L, M>, now| queue.add_displacing(key, options, now);
        if options.needs_time() {
            self.with_now(add)
        } else {
            self.with(add)
        }
    }
}
