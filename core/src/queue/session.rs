//! One access to the state machine. Owns the time of the access, and the only place that decides a
//! wake; never sends a wake.

use core::fmt;
use core::ops::Deref;

use crate::outcome::Wake;

use super::*;

/// One access to a [`Queue`] at a point in time: [`Queue::at`] begins it, and
/// [`close`](Self::close) says which waiting calls to wake.
///
/// A session may have any number of operations. They return plain values. A runtime begins one
/// under its lock, closes it before it unlocks, and wakes afterwards. A loop without calls that
/// wait needs no `close`: no call sleeps, so there is none to wake.
///
/// A session that is dropped unclosed loses no wake: the queue owes it until the next session that
/// is closed.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Action, Instant, Queue};
/// use requeue::binding::{Getter, Next, Wake};
///
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let mut worker = Getter::new();
/// let _ = queue.at(Instant::EPOCH).poll_get(&mut worker);
///
/// let mut session = queue.at(Instant::EPOCH);
/// session.add("node-7").unwrap();
/// session.add("node-8").unwrap();
/// // One worker sleeps, so one wake serves both keys.
/// assert_eq!(session.close(), Wake::ONE);
/// ```
#[must_use = "its operations do the work, and `close` names the calls to wake"]
pub struct Session<'q, K, P, L, S, M = ()>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    M: Metrics,
{
    pub(super) queue: &'q mut Queue<K, P, L, S, M>,
    pub(super) now: Instant,
    /// The duplicate of a key that the queue already has.
    pub(super) spare: Option<K>,
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Begins a session at the time `now`. O(1).
    ///
    /// `now` never goes backwards from one session to the next. It may be anything while
    /// [`needs_time`](Self::needs_time) is false, except for operations that always read it, as
    /// their documentation says.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(Instant::EPOCH).add("node-7"), Ok(Added::Ready));
    /// ```
    #[inline]
    pub fn at(&mut self, now: Instant) -> Session<'_, K, P, L, S, M> {
        Session {
            queue: self,
            now,
            spare: None,
        }
    }

    #[cold]
    #[inline(never)]
    fn owed_wake(&mut self) -> Wake {
        let mut wake = Wake::NONE;
        if self.watched.has_changed() {
            wake = self.wake_watchers();
        }
        if self.is_paused() || wake == Wake::ALL || !self.sleepers.may_be_woken() {
            return wake;
        }
        let needed = self.is_at_hand(self.lists.may_start())
            || self.sleepers.needs_timer(self.open_deadline());
        if needed {
            self.sleepers.note_wake();
            wake = wake | Wake::ONE;
        }
        wake
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Ends the session. Returns the calls to wake, once the queue is unlocked. O(1).
    #[inline]
    pub fn close(self) -> Wake {
        if self.queue.watched.may_owe() {
            return self.queue.owed_wake();
        }
        Wake::NONE
    }

    /// Returns the time of the session. O(1).
    #[inline]
    pub const fn now(&self) -> Instant {
        self.now
    }

    /// Moves the time of the session to a later one. O(1).
    pub(crate) fn move_to(&mut self, now: Instant) {
        self.now = now;
    }

    /// Makes some keys ready that are due at a time. Returns whether there may be more.
    pub(crate) fn make_some_due_ready(&mut self, at: Instant) -> bool {
        self.queue.make_due_ready(SlotId::NONE, at)
    }

    /// Returns the duplicate key that the last add did not store, so that it can be dropped outside
    /// the lock.
    #[inline]
    pub(crate) fn take_spare(&mut self) -> Option<K> {
        self.spare.take()
    }
}

/// A session can be asked everything that a queue can.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Deref
    for Session<'_, K, P, L, S, M>
{
    type Target = Queue<K, P, L, S, M>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.queue
    }
}

impl<K, P, L, S, M> fmt::Debug for Session<'_, K, P, L, S, M>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    M: Metrics,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("now", &self.now)
            .finish_non_exhaustive()
    }
}
