//! Looking at all keys, some under each lock.

use core::hash::Hash;
use core::iter;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lock::Lock;
use crate::metrics::Metrics;
use crate::outcome::Entry;
use crate::queue::{Queue, Sweep, VISITS_MAX};
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
    /// Returns the keys that the queue holds, with what it knows about each: an iterator that looks
    /// at 32 slots (8 without the feature `alloc`) under each lock, O(1) each. `take` limits it,
    /// and what is not asked for is not looked at. Changes nothing.
    ///
    /// Keys come in no order. A key that the queue holds from the first step to the last comes
    /// exactly once; one that is added or removed meanwhile may or may not come. Each is shown as
    /// it is at its step, as [`state`](Self::state) shows it. Keys are cloned while the queue is
    /// locked.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let _ = queue.add_rate_limited("node-9");
    ///
    /// let mut waiting = Vec::new();
    /// for entry in queue.snapshot().take(1_000).filter(|entry| !entry.state.ready) {
    ///     waiting.push((entry.key, entry.state.due.is_some(), entry.state.requeues));
    /// }
    /// assert_eq!(waiting, [("node-9", true, 1)]);
    /// ```
    ///
    /// A snapshot that is saved now and then can be [restored](Self::restore) after a crash:
    ///
    /// ```
    #[doc = include_str!("example.txt")]
    /// let _ = queue.add("node-7");
    /// let now = queue.now();
    /// let saved: Vec<_> = queue.snapshot().filter_map(|entry| entry.leftover(now)).collect();
    /// # queue.clear();
    /// // In the next process.
    /// for leftover in saved {
    ///     queue.restore(leftover).unwrap();
    /// }
    /// # assert_eq!(queue.len(), 1);
    /// ```
    pub fn snapshot(&self) -> impl Iterator<Item = Entry<K>> {
        pages(|sweep, page| {
            // There is room for as many as a step looks at.
            let visit = |entry: Entry<&K>| drop(page.push(entry.cloned()));
            self.look(|queue, now| queue.snapshot_some(sweep, now, visit))
        })
    }

    /// As [`with`](Self::with), for what changes nothing.
    fn look<T>(&self, work: impl FnOnce(&Queue<K, S, L, M>, Instant) -> T) -> T {
        self.lock.with(|state| {
            let now = if state.queue.needs_time() {
                self.clock.now()
            } else {
                Instant::EPOCH
            };
            work(&state.queue, now)
        })
    }
}

/// What each step of a sweep has seen, outside of the lock. `step` returns whether there are more.
pub(super) fn pages<T>(
    mut step: impl FnMut(&mut Sweep, &mut Page<T>) -> bool,
) -> impl Iterator<Item = T> {
    let mut sweep = Some(Sweep::new());
    let page = move || {
        let mut page = Page::new();
        if !step(sweep.as_mut()?, &mut page) {
            sweep = None;
        }
        Some(page)
    };
    iter::from_fn(page).flatten()
}

type Page<T> = heapless::Vec<T, VISITS_MAX>;
