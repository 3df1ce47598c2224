//! The figures that client-go's queues show, as a trait; nothing is kept where nobody looks.

use core::time::Duration;

use crate::Instant;

#[cfg(feature = "metrics")]
pub(crate) mod named;

/// Receives the figures of one queue: client-go's seven, under its names, and two of our own.
///
/// The methods are called while the queue is locked, after the state has changed: they MUST be
/// quick, MUST NOT touch the queue and MUST NOT panic. All do nothing unless they are written.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, Metrics, NoLimit, Queue, Times};
///
/// #[derive(Default)]
/// struct Slowest(Duration);
///
/// impl Metrics for Slowest {
///     type Stamps = Times;
///
///     fn queue_latency(&mut self, latency: Duration) {
///         self.0 = self.0.max(latency);
///     }
/// }
///
/// let mut queue: Queue<u8, Fixed<4>, NoLimit, Slowest> =
///     Queue::with_metrics(NoLimit, Slowest::default());
/// let _ = queue.add(1, Instant::from_nanos(10));
/// let _ = queue.try_get(Instant::from_nanos(25));
/// assert_eq!(queue.metrics().0, Duration::from_nanos(15));
/// ```
pub trait Metrics {
    /// What is kept of each key: [`Times`], or `()` if no method needs the time. With `()` the
    /// clock is read for delays only, and the four durations are zero.
    type Stamps: Stamps;

    /// How many keys are ready or dirty: a gauge.
    fn depth(&mut self, keys: usize) {
        let _ = keys;
    }

    /// How many keys of one priority level are ready or dirty: a gauge. Not reported by a queue
    /// without [`Levels`](crate::Levels).
    fn depth_at(&mut self, priority: u8, keys: usize) {
        let _ = (priority, keys);
    }

    /// A key has become ready or dirty: a counter.
    fn add(&mut self) {}

    /// How long a key that is now handed out has waited since it was added, its delay not counted.
    fn queue_latency(&mut self, latency: Duration) {
        let _ = latency;
    }

    /// How long a key that is now completed was worked on.
    fn work_duration(&mut self, duration: Duration) {
        let _ = duration;
    }

    /// How long all keys that are in work have been so, in sum: a gauge, set by
    /// [`Queue::report_running`](crate::Queue::report_running).
    fn unfinished_work(&mut self, sum: Duration) {
        let _ = sum;
    }

    /// How long the longest run has lasted: a gauge, set likewise.
    fn longest_running(&mut self, longest: Duration) {
        let _ = longest;
    }

    /// A key was asked to come back later, delay zero included: a counter. Not counted while the
    /// queue shuts down.
    fn retry(&mut self) {}

    /// An add changed nothing but the key's priority, if that, since the key was going to be worked
    /// on anyway: a counter.
    fn coalesced(&mut self) {}

    /// How many keys wait for a deadline: a gauge.
    fn delayed(&mut self, keys: usize) {
        let _ = keys;
    }
}

/// No metrics: no room, no clock, no code.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, NoLimit, NoMetrics, Queue};
///
/// // What a queue has unless it is told otherwise.
/// let queue: Queue<u16, Fixed<8>, NoLimit, NoMetrics> = Queue::new(NoLimit);
/// assert!(!queue.needs_time());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct NoMetrics;

impl Metrics for NoMetrics {
    type Stamps = ();
}

/// Metrics that go nowhere, of a queue that keeps times all the same: for those who ask each
/// [`Guard`](crate::Guard::waited) how long its key has waited.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, Timed};
///
/// let mut queue: Queue<&str, Fixed<4>, NoLimit, Timed> = Queue::with_metrics(NoLimit, Timed);
/// queue.add("node-7", Instant::from_nanos(10)).value.unwrap();
/// let work = queue.try_get(Instant::from_nanos(25)).value.unwrap();
/// assert_eq!(work.waited(), Duration::from_nanos(15));
/// # queue.done(work.ticket, Instant::from_nanos(25)).value.unwrap();
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Timed;

impl Metrics for Timed {
    type Stamps = Times;
}

/// The times a queue with metrics keeps of a key: [`Times`], or `()` for none. The trait is sealed.
///
/// # Examples
///
/// A sink that only counts keeps no times, so the clock is not read for it:
///
/// ```
/// use requeue_core::{Fixed, Metrics, NoLimit, Queue};
///
/// struct Counts;
///
/// impl Metrics for Counts {
///     type Stamps = ();
/// }
///
/// let queue: Queue<u16, Fixed<8>, NoLimit, Counts> = Queue::with_metrics(NoLimit, Counts);
/// assert!(!queue.needs_time());
/// ```
pub trait Stamps: Default + sealed::Sealed {
    /// Whether every operation needs the time.
    #[doc(hidden)]
    const NEED_TIME: bool;
    /// How long a key has waited: a duration if that is known.
    #[doc(hidden)]
    type Waited: Waited;
    #[doc(hidden)]
    fn waited(&self, now: Instant) -> Self::Waited;
    #[doc(hidden)]
    fn stamp_added(&mut self, at: Instant);
    #[doc(hidden)]
    fn stamp_started(&mut self, at: Instant);
    #[doc(hidden)]
    fn started(&self) -> Instant;
}

impl Stamps for () {
    const NEED_TIME: bool = false;

    type Waited = ();

    fn waited(&self, _: Instant) {}

    fn stamp_added(&mut self, _: Instant) {}

    fn stamp_started(&mut self, _: Instant) {}

    /// Nothing has lasted since a time that has not come: every duration is zero.
    fn started(&self) -> Instant {
        Instant::NEVER
    }
}

/// How long a key has waited, as work carries it: `()` where that is not known.
#[doc(hidden)]
pub trait Waited: Copy + core::fmt::Debug + PartialEq + Send + Sync + 'static {
    fn get(self) -> Duration;
}

impl Waited for () {
    #[inline]
    fn get(self) -> Duration {
        Duration::ZERO
    }
}

impl Waited for Duration {
    #[inline]
    fn get(self) -> Duration {
        self
    }
}

/// When a key was added and when its run began: 16 bytes per key.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, Metrics, NoLimit, Queue, Times};
///
/// #[derive(Default)]
/// struct Busy(Duration);
///
/// impl Metrics for Busy {
///     type Stamps = Times;
///
///     fn work_duration(&mut self, duration: Duration) {
///         self.0 += duration;
///     }
/// }
///
/// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
/// let mut queue: Queue<&str, Fixed<8>, NoLimit, Busy> =
///     Queue::with_metrics(NoLimit, Busy::default());
/// assert!(queue.needs_time());
/// let _ = queue.add("node-7", at(10));
/// let work = queue.try_get(at(25)).value.unwrap();
/// let _ = queue.done(work.ticket, at(28));
/// assert_eq!(queue.metrics().0, Duration::from_secs(3));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Times {
    added: Instant,
    started: Instant,
}

impl Stamps for Times {
    const NEED_TIME: bool = true;

    type Waited = Duration;

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

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for super::Times {}
}
