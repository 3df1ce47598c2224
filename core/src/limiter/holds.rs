//! Keys that may not run for a while, however they are added.

use core::time::Duration;

use crate::{Instant, RateLimiter};

/// Holds keys back: after each run ([`cool_down`](Self::cool_down)), after a failure until its
/// backoff is over ([`hold_failures`](Self::hold_failures)), or both. The delays are those of
/// another limiter.
///
/// client-go holds no key: its backoff is one more add, and any other add starts a run at once. A
/// reconciler that adds its own key, or whose key is added by what it changes, then fails without
/// any pause.
///
/// No run of a held key starts before the hold is over:
///
/// | what happens to a held key | what becomes of it |
/// |---|---|
/// | it is added, or its deadline would be sooner | delayed until the hold is over |
/// | it is added again | the adds coalesce |
/// | its deadline is later | stays as it is |
/// | its run ends, and it was added meanwhile | delayed until the hold is over |
/// | it fails while it is ready | delayed until the hold is over |
/// | [`expedite`](crate::Session::expedite) | delayed until the hold is over |
/// | [`forget`](crate::Session::forget), or a success | holds and failures are forgotten |
/// | shutdown | a leftover, with the time that is left of the hold |
///
/// So `forget` and then `add` start a run now. Both holds are forgotten: a cool-down begins when a
/// run ends, after its failures are forgotten, and so `Action::Success` does not shorten the one
/// that follows it. A hold of [`Duration::MAX`] lasts until the key is forgotten. An active key is
/// not held: its run goes on.
///
/// # Room
///
/// A key that is held and otherwise idle takes a slot, as one that has failed does, and counts as a
/// failure record. Of such records the oldest is discarded if room is short: that key may then run
/// too soon. Each run that ends drops up to two records whose holds are over, so the queue keeps
/// about as many as there are runs in a cool-down. To find them it moves up to two records of
/// failures to the end of the list: which failures are discarded first is no longer exactly the
/// order in which they came.
///
/// # Cost
///
/// That of the inner limiter, and O(log n) for a hold that moves a deadline. 8 bytes per key. The
/// queue reads the clock in every operation if there is anything to hold.
///
/// # Examples
///
/// A reconciler writes to the object that it watches, so that its own key is added in each run:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{
///     Action, Added, Fixed, Instant, Queue, RateLimiter, WithHolds, default_item_based,
/// };
///
/// let limiter = WithHolds::new(default_item_based()).hold_failures();
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(limiter);
/// let now = Instant::EPOCH;
///
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Ready));
/// let work = queue.at(now).try_get().unwrap();
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Dirty));
/// let _ = queue.at(now).finish(work.ticket, Action::Retry);
///
/// // It failed, and runs in a millisecond: neither the add nor another one changes that.
/// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Coalesced));
/// assert!(queue.at(now).try_get().is_none());
/// assert!(queue.at(now + Duration::from_millis(1)).try_get().is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WithHolds<L> {
    inner: L,
    cool_down: Duration,
    holds_failures: bool,
}

/// What [`WithHolds`] keeps for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Held<R> {
    inner: R,
    until: Instant,
}

impl<R> Held<R> {
    /// Returns until when the key may not run: a time that has passed if it may.
    pub const fn until(&self) -> Instant {
        self.until
    }

    /// Moves the end of the hold, for tests that compare times from different starts.
    #[doc(hidden)]
    #[must_use]
    pub fn map(self, inner: impl FnOnce(R) -> R, until: impl FnOnce(Instant) -> Instant) -> Self {
        Self {
            inner: inner(self.inner),
            until: until(self.until),
        }
    }
}

impl<L> WithHolds<L> {
    /// Creates a limiter with the delays of `inner`, which holds nothing yet.
    pub const fn new(inner: L) -> Self {
        Self {
            inner,
            cool_down: Duration::ZERO,
            holds_failures: false,
        }
    }

    /// Holds each key for so long after each of its runs. Zero, the default, is not at all.
    ///
    /// # Examples
    ///
    /// A display is redrawn at most every 100 ms, and 100 ms after it began to change:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Action, Added, Fixed, Instant, NoLimit, Queue, WithHolds};
    ///
    /// let pause = Duration::from_millis(100);
    /// let limiter = WithHolds::new(NoLimit).cool_down(pause);
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(limiter);
    /// let now = Instant::EPOCH;
    ///
    /// let _ = queue.at(now).add("display");
    /// let work = queue.at(now).try_get().unwrap();
    /// let _ = queue.at(now).finish(work.ticket, Action::Success);
    /// assert_eq!(queue.at(now).add("display"), Ok(Added::Delayed));
    /// assert!(queue.at(now).try_get().is_none());
    /// assert!(queue.at(now + pause).try_get().is_some());
    /// ```
    #[must_use]
    pub const fn cool_down(mut self, pause: Duration) -> Self {
        self.cool_down = pause;
        self
    }

    /// Holds each key that fails until the delay of that failure is over. The [type](Self) has an
    /// example.
    #[must_use]
    pub const fn hold_failures(mut self) -> Self {
        self.holds_failures = true;
        self
    }
}

delegate_debounce!(WithHolds<L>, record => &mut record.inner);

impl<L: RateLimiter> RateLimiter for WithHolds<L> {
    type Record = Held<L::Record>;

    fn when(&mut self, record: &mut Self::Record, now: Instant) -> Duration {
        let delay = self.inner.when(&mut record.inner, now);
        if self.holds_failures {
            record.until = record.until.max(now + delay);
        }
        delay
    }

    fn requeues(&self, record: &Self::Record) -> u32 {
        self.inner.requeues(&record.inner)
    }

    fn set_requeues(&self, record: &mut Self::Record, requeues: u32) {
        self.inner.set_requeues(&mut record.inner, requeues);
    }

    const HOLDS: bool = true;

    #[inline]
    fn needs_time(&self) -> bool {
        self.holds_failures || !self.cool_down.is_zero() || self.inner.needs_time()
    }

    #[inline]
    fn held_until(&self, record: &Self::Record) -> Instant {
        record.until.max(self.inner.held_until(&record.inner))
    }

    fn ended(&mut self, record: &mut Self::Record, now: Instant) {
        self.inner.ended(&mut record.inner, now);
        if !self.cool_down.is_zero() {
            record.until = record.until.max(now + self.cool_down);
        }
    }

    fn forget(&self, record: &mut Self::Record) {
        self.inner.forget(&mut record.inner);
        record.until = Instant::EPOCH;
    }

    fn is_blank(&self, record: &Self::Record, now: Instant) -> bool {
        !record.until.is_after(now) && self.inner.is_blank(&record.inner, now)
    }

    #[inline]
    fn note_deadline(&self, record: &mut Self::Record, due: Instant) {
        self.inner.note_deadline(&mut record.inner, due);
    }

    delegate_pace!(L, self, self.inner);
}
