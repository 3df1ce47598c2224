//! The times that a queue keeps for its metrics. Owns the times of one slot, and the choice to keep
//! them; reads no clock.

use core::time::Duration;

use super::Metrics;
use super::running::{KeepRunning, Running};
use crate::Instant;
use crate::sealed::Sealed;

/// Keeps for each key when it was added, for the first time and since its last run, and when its
/// run began.
///
/// As [`Metrics::Timestamps`] it is the choice of metrics that need times. As metrics of its own it
/// reports nothing, but a [`Guard`](crate::Guard::waited) knows how long its key has waited.
///
/// # Cost
///
/// 24 bytes per key, and 8 more in `Growable` storage for its place among the active keys, which
/// takes no room in [`Fixed`](crate::storage::Fixed) storage.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::metrics::{Metrics, Times};
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// #[derive(Default)]
/// struct Busy(Duration);
///
/// impl Metrics for Busy {
///     type Timestamps = Times;
///
///     fn work_duration(&mut self, duration: Duration) {
///         self.0 += duration;
///     }
/// }
///
/// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<8>, Busy> =
///     Queue::with_metrics(NoLimit, Busy::default());
/// assert!(queue.needs_time());
/// let _ = queue.at(at(10)).add("node-7");
/// let work = queue.at(at(25)).try_get().unwrap();
/// queue.at(at(28)).release(work.ticket);
/// assert_eq!(queue.metrics().0, Duration::from_secs(3));
/// ```
///
/// Without metrics:
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::NoLimit;
/// use requeue::metrics::Times;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>, Times> =
///     Queue::with_metrics(NoLimit, Times);
/// queue.at(Instant::from_nanos(10)).add("node-7").unwrap();
/// let work = queue.at(Instant::from_nanos(25)).try_get().unwrap();
/// assert_eq!(work.waited, Duration::from_nanos(15));
/// # queue.at(Instant::from_nanos(25)).release(work.ticket);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Times;

impl Metrics for Times {
    type Timestamps = Self;
}

/// What a queue keeps of times: [`Times`], or `()` for none. The trait is sealed.
pub trait Timestamps: Sealed {
    /// Whether every operation needs the time.
    #[doc(hidden)]
    const NEED_TIME: bool;
    /// The data of each key.
    #[doc(hidden)]
    type Kept: Copy + Default;
    /// The data of all active keys together.
    #[doc(hidden)]
    type Running: KeepRunning;
    /// How long a key has waited since it was added. Zero if that is not kept.
    #[doc(hidden)]
    fn waited(kept: &Self::Kept, now: Instant) -> Duration;
    #[doc(hidden)]
    fn stamp_added(kept: &mut Self::Kept, at: Instant);
    #[doc(hidden)]
    fn stamp_started(kept: &mut Self::Kept, at: Instant);
    #[doc(hidden)]
    fn started(kept: &Self::Kept) -> Instant;
    /// Records that a run has ended. Returns when it began, and when the key was first added.
    #[doc(hidden)]
    fn ended(kept: &mut Self::Kept, forgets: bool, was_dirty: bool) -> (Instant, Instant);
    /// Records that nothing asks for a run of the key.
    #[doc(hidden)]
    fn rest(kept: &mut Self::Kept);
}

impl Sealed for () {}

impl Timestamps for () {
    const NEED_TIME: bool = false;
    type Kept = ();
    type Running = ();

    #[inline]
    fn waited((): &(), _: Instant) -> Duration {
        Duration::ZERO
    }

    fn stamp_added((): &mut (), _: Instant) {}

    fn stamp_started((): &mut (), _: Instant) {}

    /// Makes every duration zero, because the time from a later instant is zero.
    fn started((): &()) -> Instant {
        Instant::NEVER
    }

    fn ended((): &mut (), _: bool, _: bool) -> (Instant, Instant) {
        (Instant::NEVER, Instant::NEVER)
    }

    fn rest((): &mut ()) {}
}

/// When a key was added, and when its run began.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct KeyTimes {
    /// For the first time since it succeeded, was given up, or had nothing to do. Never if it was
    /// not added since.
    first_added: Instant,
    added: Instant,
    started: Instant,
}

impl Default for KeyTimes {
    fn default() -> Self {
        Self {
            first_added: Instant::NEVER,
            added: Instant::EPOCH,
            started: Instant::EPOCH,
        }
    }
}

impl KeyTimes {
    pub(crate) fn waited(&self, now: Instant) -> Duration {
        now.saturating_since(self.added)
    }

    pub(crate) fn stamp_added(&mut self, at: Instant) {
        self.added = at;
        if self.first_added.is_never() {
            self.first_added = at;
        }
    }

    pub(crate) fn stamp_started(&mut self, at: Instant) {
        self.started = at;
    }

    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    pub(crate) fn ended(&mut self, forgets: bool, was_dirty: bool) -> (Instant, Instant) {
        let first_added = self.first_added;
        if forgets {
            self.first_added = if was_dirty {
                self.added
            } else {
                Instant::NEVER
            };
        }
        (self.started, first_added)
    }

    pub(crate) fn rest(&mut self) {
        self.first_added = Instant::NEVER;
    }
}

impl Sealed for Times {}

impl Timestamps for Times {
    const NEED_TIME: bool = true;
    type Kept = KeyTimes;
    type Running = Running;

    fn waited(kept: &KeyTimes, now: Instant) -> Duration {
        kept.waited(now)
    }

    fn stamp_added(kept: &mut KeyTimes, at: Instant) {
        kept.stamp_added(at);
    }

    fn stamp_started(kept: &mut KeyTimes, at: Instant) {
        kept.stamp_started(at);
    }

    fn started(kept: &KeyTimes) -> Instant {
        kept.started()
    }

    fn ended(kept: &mut KeyTimes, forgets: bool, was_dirty: bool) -> (Instant, Instant) {
        kept.ended(forgets, was_dirty)
    }

    fn rest(kept: &mut KeyTimes) {
        kept.rest();
    }
}

/// The data of the metrics `M` for each key.
pub(crate) type Kept<M> = <<M as Metrics>::Timestamps as Timestamps>::Kept;
