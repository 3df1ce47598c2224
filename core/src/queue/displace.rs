//! Adding a key in place of a less urgent one.

use core::hash::Hash;

use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Leftover, Rejected, Scheduled};
use crate::priority::Naming;
use crate::storage::{Slots, Storage};

use super::{LOWEST, Queue, Session};

/// What became of the key, and the key that made way for it.
type Displacing<K> = Result<(Scheduled, Option<Leftover<K>>), Rejected<K>>;

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// As [`add_with`](Self::add_with), but if there is no room, the newest ready key of the lowest
    /// level makes way, and is returned. O(log n).
    ///
    /// For callers that cannot wait for room, in queues with [`Levels`](crate::Levels). Only a key
    /// of a lower level than [`AddOptions::priority`] makes way: active keys, and keys that are
    /// only delayed, stay. A failure record is dropped first, as by every add. The key that made
    /// way takes its deadline with it, and can be [restored](Self::restore) elsewhere or later.
    ///
    /// With [`Groups`](crate::Groups), it is a key of the group whose turn comes last, and the keys
    /// of groups that may not start a run stay.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with). [`Rejected::Full`] if no key can make way: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{AddOptions, Fixed, Instant, Levels, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<2, u8, Levels<2>>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(["report", "log"], |_| {});
    ///
    /// let alarm = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// let (_, displaced) = queue.at(now).add_displacing("alarm", alarm).unwrap();
    /// assert_eq!(displaced.unwrap().key, "log");
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "alarm");
    /// ```
    pub fn add_displacing(&mut self, key: K, options: AddOptions) -> Displacing<K> {
        let key = match self.add_with(key, options) {
            Err(Rejected::Full(key)) => key,
            other => return other.map(|scheduled| (scheduled, None)),
        };
        // A key that made way would make room neither for a group nor in a queue that holds more
        // keys than fit.
        let queue = &mut *self.queue;
        let seat = queue.lists.seat(&queue.naming.group_of(&key), self.now);
        let displaced = if seat.is_some() && !queue.slots.is_over_full() {
            queue.displace_below(options.priority.unwrap_or(LOWEST))
        } else {
            None
        };
        if displaced.is_none() {
            return Err(Rejected::Full(key));
        }
        let scheduled = self.add_with(key, options)?;
        Ok((scheduled, displaced))
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes out the newest ready key of the lowest level, if that is below another.
    fn displace_below(&mut self, level: u8) -> Option<Leftover<K>> {
        let id = self.lists.newest_below(level)?;
        self.take_out_ready(id)
    }
}
