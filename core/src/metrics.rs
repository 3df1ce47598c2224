//! The metrics of client-go's queues, as a trait. A queue without metrics keeps nothing for them.

use core::time::Duration;

use crate::Instant;
use crate::lists::Link;

use running::{KeepRunning, Running};
use times::Timestamps;

#[cfg(feature = "metrics")]
mod named;
#[cfg(feature = "alloc")]
pub(crate) mod reporter;
pub(crate) mod running;
pub(crate) mod times;

#[cfg(feature = "metrics")]
pub use named::{DURATION_BUCKETS, NamedMetrics};
pub use times::Times;

/// Receives the metrics of one queue: client-go's seven, under its names, and six more.
///
/// The methods are called while the queue is locked, after the state has changed: they MUST be
/// quick, MUST NOT touch the queue and MUST NOT panic. By default each does nothing.
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

    /// Counts a key that became ready or dirty. An action that asks for a run at once counts as an
    /// add during the run. A dirty key that is held or suspended when its run ends is counted again
    /// when it becomes ready.
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

    /// Receives how long a key took to succeed: from when it first becomes ready to the end of a
    /// run with [`Success`](crate::Action::Success) or
    /// [`RequeueAfter`](crate::Action::RequeueAfter).
    ///
    /// The delay of the first add does not count. The time goes on through failed runs, backoff,
    /// [`Snooze`](crate::Action::Snooze), [`poll`](crate::Action::poll) and suspensions, and while
    /// the key is ready, delayed or active for whatever reason. An add during the run that succeeds
    /// begins the next time.
    ///
    /// A key whose failures are forgotten without a success
    /// ([`GiveUp`](crate::Action::GiveUp)), for which nothing asks any more (its run ended with
    /// [`Release`](crate::Action::Release), it was cancelled while no run was active), or that leaves
    /// the queue is not reported: its next add is a first one.
    /// [`forget`](crate::Session::forget) changes nothing.
    /// A key that was first added before the queue had its metrics is not reported for its first
    /// success. Called only if [`Times`] are kept.
    fn time_to_success(&mut self, time: Duration) {
        let _ = time;
    }

    /// Receives, with each [`time_to_success`](Self::time_to_success), which attempt succeeded:
    /// one more than the key's [failures](crate::Queue::failures), as in
    /// [`RunContext::attempt`](crate::RunContext). Runs that end with
    /// [`Snooze`](crate::Action::Snooze), [`poll`](crate::Action::poll) or
    /// [`Suspend`](crate::Action::Suspend) are no attempts.
    fn attempts_at_success(&mut self, attempts: u32) {
        let _ = attempts;
    }

    /// Receives how long all active keys together have been running: a gauge, set by
    /// [`Queue::report_running`](crate::Session::report_running).
    fn unfinished_work(&mut self, sum: Duration) {
        let _ = sum;
    }

    /// Receives how long the present run that began first has lasted: a gauge, set likewise. No run
    /// has lasted longer, unless the clock went back.
    fn longest_running(&mut self, longest: Duration) {
        let _ = longest;
    }

    /// Receives how long the key that is next has been ready, zero if there is none: a gauge, set
    /// likewise. With [`Levels`](crate::priority::Levels) the next key of each level counts, and
    /// the longest time is received. Keys behind have been ready for less time, except for those
    /// whose deadline passed before they were made ready or that were raised.
    fn oldest_ready(&mut self, waited: Duration) {
        let _ = waited;
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

    /// Records when the key in a slot was added.
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

    /// Records when the run of the key in a slot began.
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

    /// Records that the run of the key in a slot has ended. Returns when it began, and when the key
    /// was first added.
    #[doc(hidden)]
    #[inline]
    fn ended(
        &mut self,
        kept: &mut <Self::Timestamps as Timestamps>::Kept,
        slot: usize,
        forgets: bool,
        was_dirty: bool,
    ) -> (Instant, Instant) {
        let _ = slot;
        Self::Timestamps::ended(kept, forgets, was_dirty)
    }

    /// Records that nothing asks for a run of the key in a slot.
    #[doc(hidden)]
    #[inline]
    fn rest(&mut self, kept: &mut <Self::Timestamps as Timestamps>::Kept, slot: usize) {
        let _ = slot;
        Self::Timestamps::rest(kept);
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
