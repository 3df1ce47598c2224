//! Adding a key in place of a less urgent one.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Effect, Leftover, Rejected, Scheduled};
use crate::priority::Naming;
use crate::storage::{Slots, Storage};

use super::{LOWEST, Queue};

/// What became of the key, and the key that made way for it.
type Displacing<K> = Result<(Scheduled, Option<Leftover<K>>), Rejected<K>>;

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
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
    /// let _ = queue.add_many(["report", "log"], now, |_| {});
    ///
    /// let alarm = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// let (_, displaced) = queue.add_displacing("alarm", alarm, now).value.unwrap();
    /// assert_eq!(displaced.unwrap().key, "log");
    /// assert_eq!(queue.try_get(now).value.unwrap().key, "alarm");
    /// ```
    pub fn add_displacing(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Effect<Displacing<K>> {
        let Effect { value: first, wake } = self.add_with(key, options, now);
        let key = match first {
            Err(Rejected::Full(key)) => key,
            other => {
                let value = other.map(|scheduled| (scheduled, None));
                return Effect { value, wake };
            }
        };
        // A key that made way would make room neither for a group nor in a queue that holds more
        // keys than fit.
        let seat = self.lists.seat(&self.naming.group_of(&key), now);
        let displaced = if seat.is_some() && !self.slots.is_over_full() {
            self.displace_below(options.priority.unwrap_or(LOWEST))
        } else {
            None
        };
        if displaced.is_none() {
            let value = Err(Rejected::Full(key));
            return Effect { value, wake };
        }
        let second = self.add_with(key, options, now);
        Effect {
            value: second.value.map(|scheduled| (scheduled, displaced)),
            wake: wake | second.wake,
        }
    }

    /// Takes out the newest ready key of the lowest level, if that is below another.
    fn displace_below(&mut self, level: u8) -> Option<Leftover<K>> {
        let id = self.lists.newest_below(level)?;
        self.take_out_ready(id)
    }
}
