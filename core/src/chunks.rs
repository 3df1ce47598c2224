//! Operations that take the lock several times, each time for a bounded time: batches, walks over
//! all keys, and operations that first have to make many due keys ready. Owns the amount of work
//! under one lock; never changes the meaning of an operation.

use core::iter;

use crate::action::Action;
use crate::group::Grouped;
use crate::lists::grouped::GroupState;
use crate::outcome::{AddedMany, KeyState, Leftover, Rejected, Stats};
use crate::queue::Sweep;
use crate::shared::{Access, Host, Shared};
use crate::storage::{Bounded, Storage};
use crate::time::{Clock, Instant};
use crate::work::Ticket;

type Chunk<H, T> = <<H as Host>::Storage as Storage>::Chunk<T>;

type Page<H, T> = <<H as Host>::Storage as Storage>::Page<T>;

/// The next items of an iterator, at most as many as one lock may take, and whether there may be
/// more.
fn next_chunk<H: Host, T>(items: &mut impl Iterator<Item = T>) -> (Chunk<H, T>, bool) {
    let most = H::Storage::KEYS_PER_LOCK;
    let chunk: Chunk<H, T> = items.take(most).collect();
    let has_more = chunk.len() == most;
    (chunk, has_more)
}

/// For runtimes: many runs by their tickets, and leftovers.
impl<H: Host> Shared<H> {
    /// Ends many runs, up to [`KEYS_PER_LOCK`](Storage::KEYS_PER_LOCK) under one lock. Costs
    /// per run as [`finish`](Self::finish). The iterator runs while the queue is not locked.
    ///
    /// If a key's `Drop` panics, its own run is over. The tickets after it are lost with the
    /// iterator, and their keys stay active unless [`release_key`](Self::release_key) ends their
    /// runs. A `Batch` ends all of its runs.
    ///
    /// Returns how many of the runs had ended before.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// queue.add_many(["node-7", "node-8"], |_| {});
    /// let mut tickets = Vec::new();
    /// while let Some(guard) = queue.try_get() {
    ///     tickets.extend(guard.into_ticket());
    /// }
    /// assert_eq!(queue.finish_many(tickets, Action::Success), 0, "no run was stale");
    /// assert!(!queue.contains("node-7"));
    /// ```
    pub fn finish_many(&self, tickets: impl IntoIterator<Item = Ticket>, action: Action) -> usize {
        let mut tickets = tickets.into_iter();
        let mut stale = 0;
        loop {
            let (chunk, has_more) = next_chunk::<H, _>(&mut tickets);
            if chunk.is_empty() {
                return stale;
            }
            stale += self.timed(action.needs_time(), |session| {
                session.finish_many(chunk, action)
            });
            if !has_more {
                return stale;
            }
        }
    }

    /// Takes out the delayed key with the earliest deadline, after shutdown. `None` before, and if
    /// no key is delayed. O(log n).
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// use core::time::Duration;
    ///
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60));
    /// assert_eq!(queue.take_delayed(), None, "not before shutdown");
    /// queue.shut_down();
    /// let leftover = queue.take_delayed().unwrap();
    /// assert_eq!((leftover.key, leftover.left.as_secs()), ("lease-3", 60));
    /// ```
    pub fn take_delayed(&self) -> Option<Leftover<H::Key>>
    where
        H::Key: Clone,
    {
        let closed_at = self.look(|queue| queue.closed_at())?;
        when_due_are_ready(self, Some(closed_at), |session| {
            // The clock is read under the lock, so that this time is after all earlier operations.
            session.move_to(self.clock().now());
            session.take_delayed()
        })
    }
}

/// Adds many keys. The iterator and `rejected` run while the queue is not locked.
pub fn add_many<H: Host>(
    queue: &Shared<H>,
    keys: impl IntoIterator<Item = H::Key>,
    mut rejected: impl FnMut(Rejected<H::Key>),
) -> AddedMany {
    let mut keys = keys.into_iter();
    let mut all = AddedMany::default();
    loop {
        let (chunk, has_more) = next_chunk::<H, _>(&mut keys);
        if chunk.is_empty() {
            return all;
        }
        let mut refused = Chunk::<H, _>::default();
        let mut spares = Chunk::<H, _>::default();
        queue.with(|session| {
            for key in chunk {
                // This cannot fail, because there is room for a whole chunk.
                let added = session.add(key).map_err(|key| drop(refused.push(key)));
                all.count(added.ok());
                let _ = session.take_spare().map(|key| spares.push(key));
            }
        });
        refused.into_iter().for_each(&mut rejected);
        if !has_more {
            return all;
        }
    }
}

/// As [`add_many`], but returns the keys that were not taken.
#[cfg(feature = "alloc")]
pub fn add_all<H: Host>(
    queue: &Shared<H>,
    keys: impl IntoIterator<Item = H::Key>,
) -> AddedMany<alloc::vec::Vec<Rejected<H::Key>>> {
    let mut rejected = alloc::vec::Vec::new();
    let many = add_many(queue, keys, |key| rejected.push(key));
    AddedMany {
        ready: many.ready,
        dirty: many.dirty,
        delayed: many.delayed,
        coalesced: many.coalesced,
        rejected,
    }
}

/// Returns the number of ready keys.
pub fn len<H: Host>(queue: &Shared<H>) -> usize {
    when_due_are_ready(queue, None, |session| session.len())
}

/// Returns the counts of the queue.
pub fn stats<H: Host>(queue: &Shared<H>) -> Stats {
    when_due_are_ready(queue, None, |session| session.stats())
}

/// Returns all keys, a page under each lock.
pub fn snapshot<H: Host<Key: Clone>>(
    queue: &Shared<H>,
) -> impl Iterator<Item = (H::Key, KeyState)> {
    pages(|sweep, page: &mut Page<H, _>| {
        // There is room for as many as a call looks at.
        let visit = |key: &H::Key, state| drop(page.push((key.clone(), state)));
        queue.with(|session| session.snapshot_some(sweep, visit))
    })
}

/// Returns all groups, a page under each lock.
pub fn groups<H, G>(queue: &Shared<H>) -> impl Iterator<Item = (G, GroupState)>
where
    H: Host<Priorities: Grouped<Group = G>>,
    G: Clone,
{
    pages(|sweep, page: &mut Page<H, _>| {
        // There is room for as many as a call looks at.
        let visit = |name: &G, group| drop(page.push((name.clone(), group)));
        queue.look(|queue| queue.groups_some(sweep, visit))
    })
}

/// Cancels the keys that `keep` returns `false` for.
pub fn retain<H: Host>(queue: &Shared<H>, mut keep: impl FnMut(&H::Key) -> bool) -> usize {
    let mut sweep = Sweep::new();
    while queue.with(|session| session.retain_some(&mut sweep, &mut keep)) {}
    sweep.cancelled()
}

/// Ends as many delays as there are when it begins.
pub fn expedite_all<H: Host>(queue: &Shared<H>) {
    // Each call ends a delay, unblocks a group whose time has come, or is the last one.
    let mut left = queue.look(|queue| queue.delayed_len());
    let mut sweep = Sweep::new();
    while left > 0 {
        let more = queue.with(|session| {
            let before = session.delayed_len();
            let more = session.expedite_some(&mut sweep);
            left = left.saturating_sub(before - session.delayed_len());
            more
        });
        if !more {
            break;
        }
    }
}

/// Takes out every key that is ready, delayed or suspended, after shutdown.
pub fn leftovers<H: Host<Key: Clone>>(queue: &Shared<H>) -> impl Iterator<Item = Leftover<H::Key>> {
    let ready = iter::from_fn(|| queue.take_ready());
    let delayed = iter::from_fn(|| queue.take_delayed());
    ready.chain(delayed)
}

/// Makes every due key ready, a few under each lock, and then does `work`. Groups get the tokens
/// that they have earned until a time, or until now.
fn when_due_are_ready<H: Host, T>(
    queue: &Shared<H>,
    until: Option<Instant>,
    mut work: impl FnMut(&mut Access<'_, H>) -> T,
) -> T {
    // One lock for some of the due keys, and one more.
    loop {
        let done = queue.with(|session| {
            let until = until.unwrap_or(session.now());
            (!session.make_some_due_ready(until)).then(|| work(session))
        });
        if let Some(done) = done {
            return done;
        }
    }
}

/// The items of each chunk of a sweep, outside the lock. `look` returns whether there are more.
fn pages<T, P: Bounded<T>>(
    mut look: impl FnMut(&mut Sweep, &mut P) -> bool,
) -> impl Iterator<Item = T> {
    let mut sweep = Some(Sweep::new());
    let page = move || {
        let mut page = P::default();
        if !look(sweep.as_mut()?, &mut page) {
            sweep = None;
        }
        Some(page)
    };
    iter::from_fn(page).flatten()
}
