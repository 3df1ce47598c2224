//! The metrics of client-go's queues, as a trait. A queue without metrics keeps nothing for them.

use core::time::Duration;

use crate::Instant;
use crate::lists::Link;

use running::{KeepRunning, Running};

#[cfg(feature = "metrics")]
mod named;
#[cfg(feature = "alloc")]
pub(crate) mod reporter;
pub(crate) mod running;

#[cfg(feature = "metrics")]
pub use named::{DURATION_BUCKETS, NamedMetrics};

/// Receives the metrics of one queue: client-go's seven, under its names, and four more.
///
/// The methods are called while the queue is locked, after the state has changed: they MUST be
/// quick, MUST NOT touch the queue and MUST NOT panic. By default each does nothing.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::metrics::{Metrics, Times};
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_core::{Instant, Queue};
///
/// #[derive(Default)]
/// struct Slowest(Duration);
///
/// impl Metrics for Slowest {
///     type Timestamps = Times;
///
///     fn queue_latency(&mut self, latency: Duration) {
///         self.0 = self.0.max(latency);
///     }
/// }
///
/// let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>, Slowest> =
///     Queue::with_metrics(NoLimit, Slowest::default());
/// let _ = queue.at(Instant::from_nanos(10)).add(1);
/// let _ = queue.at(Instant::from_nanos(25)).try_get();
/// assert_eq!(queue.metrics().0, Duration::from_nanos(15));
/// ```
pub trait Metrics {
    /// [`Times`], or `()` if no method needs the time. With `()` the clock is read for delays only,
    /// and all durations are zero.
    type Timestamps: Timestamps;

    /// Receives the number of keys that are ready or dirty: a gauge.
    fn depth(&mut self, keys: usize) {
        let _ = keys;
    }

    /// Receives the number of keys of one priority level that are ready or dirty: a gauge. Not
    /// called by a queue without [`Levels`](crate::priority::Levels).
    fn depth_at(&mut self, priority: u8, keys: usize) {
        let _ = (priority, keys);
    }

    /// Counts a key that became ready or dirty.
    fn added(&mut self) {}

    /// Receives how long a key was ready or dirty before it was handed out. Its delay does not
    /// count.
    fn queue_latency(&mut self, latency: Duration) {
        let _ = latency;
    }

    /// Receives how long a run took that has ended.
    fn work_duration(&mut self, duration: Duration) {
        let _ = duration;
    }

    /// Receives how long all active keys together have been running: a gauge, set by
    /// [`Queue::report_running`](crate::Session::report_running).
    fn unfinished_work(&mut self, sum: Duration) {
        let _ = sum;
    }

    /// Receives how long the longest present run has lasted: a gauge, set likewise.
    fn longest_running(&mut self, longest: Duration) {
        let _ = longest;
    }

    /// Receives how long the key that is next has been ready, zero if there is none: a gauge, set
    /// likewise. With [`Levels`](crate::priority::Levels) the next key of each level counts, and
    /// the oldest of them is received. Keys behind are younger, except for those whose deadline
    /// passed before they were made ready or that were raised.
    fn oldest_ready(&mut self, age: Duration) {
        let _ = age;
    }

    /// Counts a key that was added with a delay, including a delay of zero. Not called while the
    /// queue shuts down.
    fn retry(&mut self) {}

    /// Counts an add that changed at most the key's priority, because the key would run anyway. A
    /// deadline that passes is an add, and so is an action that asks for another run.
    fn coalesced(&mut self) {}

    /// Receives the number of keys that wait for a deadline: a gauge.
    fn delayed(&mut self, keys: usize) {
        let _ = keys;
    }

    /// Receives, from a `Builder`, how many priority levels the queue has.
    #[doc(hidden)]
    fn attach(&mut self, levels: u8) {
        let _ = levels;
    }

    /// Whether every operation needs the time.
    #[doc(hidden)]
    #[inline]
    fn needs_time(&self) -> bool {
        Self::Timestamps::NEED_TIME
    }

    /// Notes when the key in a slot was added.
    #[doc(hidden)]
    #[inline]
    fn stamp_added(
        &mut self,
        kept: &mut <Self::Timestamps as Timestamps>::Kept,
        slot: usize,
        at: Instant,
    ) {
        let _ = slot;
        Self::Timestamps::stamp_added(kept, at);
    }

    /// Notes when the run of the key in a slot began.
    #[doc(hidden)]
    #[inline]
    fn stamp_started(
        &mut self,
        kept: &mut <Self::Timestamps as Timestamps>::Kept,
        slot: usize,
        at: Instant,
    ) {
        let _ = slot;
        Self::Timestamps::stamp_started(kept, at);
    }

    /// How long the key in a slot has waited.
    #[doc(hidden)]
    #[inline]
    fn waited(
        &self,
        kept: &<Self::Timestamps as Timestamps>::Kept,
        slot: usize,
        now: Instant,
    ) -> Duration {
        let _ = slot;
        Self::Timestamps::waited(kept, now)
    }

    /// Notes that the run of the key in a slot has ended. Returns when it began.
    #[doc(hidden)]
    #[inline]
    fn ended(&mut self, kept: &<Self::Timestamps as Timestamps>::Kept, slot: usize) -> Instant {
        self.started(kept, slot)
    }

    /// The runs that have not ended: by default those that the queue keeps. `None` if no times are
    /// kept.
    #[doc(hidden)]
    #[inline]
    fn running<'a>(
        &'a self,
        kept: &'a <Self::Timestamps as Timestamps>::Running,
    ) -> Option<&'a Running> {
        kept.get()
    }

    /// The link of an active slot, if the metrics have links of their own. For checks.
    #[doc(hidden)]
    fn running_link(&self, slot: usize) -> Option<Link<u32>> {
        let _ = slot;
        None
    }

    /// When the run of the key in a slot began.
    #[doc(hidden)]
    #[inline]
    fn started(&self, kept: &<Self::Timestamps as Timestamps>::Kept, slot: usize) -> Instant {
        let _ = slot;
        Self::Timestamps::started(kept)
    }
}

/// No metrics: no room, no clock, no code. The default of a queue.
impl Metrics for () {
    type Timestamps = ();
}

/// Keeps for each key when it was added and when its run began.
///
/// As [`Metrics::Timestamps`] it is the choice of metrics that need times. As metrics of its own it
/// reports nothing, but a [`Guard`](crate::Guard::waited) knows how long its key has waited.
///
/// # Cost
///
/// 16 bytes per key, and 8 more in `Growable` storage for its place among the active keys, which
/// takes no room in [`Fixed`](crate::storage::Fixed) storage.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::metrics::{Metrics, Times};
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_core::{Instant, Queue};
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
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::metrics::Times;
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_core::{Instant, Queue};
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
pub trait Timestamps: sealed::Sealed {
    /// Whether every operation needs the time.
    #[doc(hidden)]
    const NEED_TIME: bool;
    /// What is kept for each key.
    #[doc(hidden)]
    type Kept: Copy + Default;
    /// What is kept for all active keys together.
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
}

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
}

/// When a key was added, and when its run began.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct KeyTimes {
    added: Instant,
    started: Instant,
}

impl KeyTimes {
    fn waited(&self, now: Instant) -> Duration {
        now.saturating_since(self.added)
    }

    fn stamp_added(&mut self, at: Instant) {
        self.added = at;
    }

    fn stamp_started(&mut self, at: Instant) {
        self.started = at;
    }

    fn started(&self) -> Instant {
        self.started
    }
}

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
}

/// What the metrics `M` keep for each key.
pub(crate) type Kept<M> = <<M as Metrics>::Timestamps as Timestamps>::Kept;

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Times {}
}
