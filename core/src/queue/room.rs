//! Waiting for room.

use core::hash::Hash;
use core::mem;
use core::time::Duration;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Added, Next, Rejected, Scheduled};
use crate::sleepers::Getter;
use crate::storage::Storage;

use super::{Queue, Session, Watched};

/// A key that is added once there is room: see [`Session::poll_add`](crate::Session::poll_add).
#[derive(Debug)]
pub struct Adding<K> {
    options: AddOptions,
    /// [`Rejected::Full`] until the key is added, or refused for another reason.
    result: Result<Scheduled, Rejected<K>>,
}

impl<K> Adding<K> {
    /// Creates an add that has not been tried. O(1).
    pub const fn new(key: K, options: AddOptions) -> Self {
        Self {
            options,
            result: Err(Rejected::Full(key)),
        }
    }

    /// Returns what has become of the key: [`Rejected::Full`] if there was never room for it. O(1).
    ///
    /// # Errors
    ///
    /// [`Rejected`] returns the key.
    pub fn into_result(self) -> Result<Scheduled, Rejected<K>> {
        self.result
    }

    /// Returns the deadline of a [`Wait`](crate::binding::Wait) that adds the key. O(1).
    ///
    /// That is `deadline`, or [`Instant::NEVER`] if there is none and the options need the time,
    /// which a call with a deadline reads.
    pub fn deadline(&self, deadline: Option<Instant>) -> Option<Instant> {
        let reads_clock = self.options.needs_time().then_some(Instant::NEVER);
        deadline.or(reads_clock)
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Session<'_, K, S, L, M> {
    /// Adds a key as [`add_with`](Self::add_with) does, or waits for room. Costs as
    /// [`add_with`](Self::add_with).
    ///
    /// If the result is [`Next::Wait`], the caller sleeps until it is woken. Then it calls this
    /// again with the same [`Getter`], or calls [`leave`](Self::leave). If it is [`Next::Work`],
    /// [`Adding::into_result`] says what has become of the key.
    ///
    /// Each place that becomes free wakes one call, the first that has not been woken. A key that
    /// is added otherwise meanwhile takes the place before it: the call waits again, and stays the
    /// first. A key that the queue holds needs no room.
    ///
    /// A fixed queue may have room for keys of its [groups](crate::Groups), but for no other group.
    /// Then every change that may bring room wakes every call.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::binding::{Adding, Getter, Next, Wake};
    /// use requeue_core::{AddOptions, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<1>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    ///
    /// let (mut adding, mut getter) = (Adding::new("node-8", AddOptions::new()), Getter::new());
    /// let look = queue.at(now).poll_add(&mut adding, &mut getter);
    /// assert_eq!(look, Next::Wait { until: None });
    ///
    /// let work = queue.at(now).try_get().unwrap();
    /// let _ = queue.at(now).release(work.ticket);
    /// assert_eq!(queue.at(now).close(), Wake::ROOM);
    /// assert_eq!(queue.at(now).poll_add(&mut adding, &mut getter), Next::Work(()));
    /// assert!(adding.into_result().is_ok());
    /// assert!(queue.contains(&"node-8"));
    /// ```
    pub fn poll_add(&mut self, adding: &mut Adding<K>, getter: &mut Getter) -> Next<()> {
        if let Err(Rejected::Full(key)) = mem::replace(&mut adding.result, Ok(NOT_TRIED)) {
            adding.result = self.add_with(key, adding.options);
        }
        if matches!(adding.result, Err(Rejected::Full(_))) {
            self.queue.want_room(getter);
            return Next::Wait { until: None };
        }
        self.queue.pass_room_on(getter);
        Next::Work(())
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    fn want_room(&mut self, getter: &mut Getter) {
        self.watched.add(Watched::ROOM);
        if S::Lists::FEW_GROUPS && getter.had_wanted_room() && self.sleepers.took_room_wake() {
            // What it was woken for may be room for a key of another group.
            self.note_change();
        }
        getter.want_room();
    }

    /// If a call has waited for room, another is woken in its place once there is room.
    pub(super) fn pass_room_on(&mut self, getter: &mut Getter) {
        if getter.had_wanted_room() {
            self.watched.add(Watched::ROOM);
            self.note_change();
        }
    }
}

/// The result while a key is tried, which is left behind only by a key that panics.
const NOT_TRIED: Scheduled = Scheduled {
    delay: Duration::ZERO,
    added: Added::Coalesced,
};
