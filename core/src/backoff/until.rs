//! An endless loop with pauses. Owns the time of the next round; never runs or waits itself, except
//! in the one loop that takes a timer.

use core::fmt;
use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;
use core::time::Duration;

use crate::Instant;
use crate::timer::{Timer, sleep_until};

/// When apimachinery's `wait.BackoffUntil` runs its function.
///
/// A loop calls [`start`](BackoffUntil::start) before each run and
/// [`finish`](BackoffUntil::finish) after it. Then it waits until the instant that `finish` has
/// returned, or until it is stopped. The constructor decides whether the time of the run is part of
/// the pause:
///
/// - [`sliding`](BackoffUntil::sliding): no. The pause begins when the run ends.
/// - [`non_sliding`](BackoffUntil::non_sliding): yes. The pause begins with the run, and a run that
///   takes longer is followed by the next immediately.
///
/// # Cost
///
/// O(1): that of the closure that computes the pauses.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::backoff::{Backoff, BackoffUntil, no_jitter};
/// use requeue::Instant;
///
/// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
/// let period = Backoff { duration: Duration::from_secs(10), ..Backoff::default() };
///
/// let mut sliding = BackoffUntil::sliding(period.delay_func(no_jitter));
/// sliding.start(at(0));
/// assert_eq!(sliding.finish(at(3)), at(13));
///
/// let mut non_sliding = BackoffUntil::non_sliding(period.delay_func(no_jitter));
/// non_sliding.start(at(0));
/// assert_eq!(non_sliding.finish(at(3)), at(10));
/// ```
#[derive(Clone)]
pub struct BackoffUntil<D> {
    /// Returns the pause to make from an instant on.
    delay: D,
    is_sliding: bool,
    /// When the next run is due. Known from `start` on if not sliding, from `finish` on if sliding.
    due: Instant,
}

impl<D> fmt::Debug for BackoffUntil<D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BackoffUntil")
            .field("is_sliding", &self.is_sliding)
            .field("due", &self.due)
            .finish_non_exhaustive()
    }
}

impl<D: FnMut(Instant) -> Duration> BackoffUntil<D> {
    /// Creates pauses that begin when a run ends. `delay` takes the present time, and returns how
    /// long to pause: [`Backoff::delay_func`](crate::backoff::Backoff::delay_func) makes one. The
    /// [type](Self) has an example.
    pub const fn sliding(delay: D) -> Self {
        Self::new(delay, true)
    }

    /// Creates pauses that begin when a run begins. `delay` is as in [`sliding`](Self::sliding).
    /// The [type](Self) has an example.
    pub const fn non_sliding(delay: D) -> Self {
        Self::new(delay, false)
    }

    const fn new(delay: D, is_sliding: bool) -> Self {
        Self {
            delay,
            is_sliding,
            // The first run is due at once.
            due: Instant::EPOCH,
        }
    }

    /// Records that a run begins at `now`.
    pub fn start(&mut self, now: Instant) {
        if !self.is_sliding {
            self.pause_from(now);
        }
    }

    /// Records that the run has ended at `now`. Returns when the next one is due.
    ///
    /// If that is in the past, the next run is due now. If it is [`Instant::NEVER`], there is no
    /// next run, and the loop only waits to be stopped.
    #[must_use = "the next run is due at this instant"]
    pub fn finish(&mut self, now: Instant) -> Instant {
        if self.is_sliding {
            self.pause_from(now);
        }
        self.due
    }

    fn pause_from(&mut self, now: Instant) {
        self.due = now + (self.delay)(now);
    }
}

/// Runs `work` until stopped, and pauses between runs: apimachinery's `wait.BackoffUntil`, for
/// tasks.
///
/// `backoff` sets the pauses, and whether the time that `work` takes counts as part of them:
/// [`BackoffUntil::sliding`] or [`BackoffUntil::non_sliding`]. The first run begins immediately.
/// There is none if `stop` is ready before. `stop` is any future, such as a queue's
/// [`wait_drained`](crate::binding::Shared::wait_drained). It does not interrupt a run.
///
/// # Cancel safety
///
/// Dropping the future drops the run of `work` that is under way, and ends the loop. The backoff is
/// lost with it.
///
/// # Examples
///
/// ```
#[doc = include_str!("../shared/example_tasks.txt")]
/// use core::cell::Cell;
/// use requeue::binding::backoff_until;
///
/// let runs = Cell::new(0);
/// let backoff = Backoff { duration: Duration::ZERO, ..Backoff::default() };
/// let stop = core::future::poll_fn(|_| match runs.get() {
///     3 => Poll::Ready(()),
///     _ => Poll::Pending,
/// });
/// let poller = backoff_until(
///     BackoffUntil::sliding(backoff.delay_func(no_jitter)),
///     queue.clock(),
///     stop,
///     async || runs.set(runs.get() + 1),
/// );
/// assert!(poll(pin!(poller)).is_ready());
/// assert_eq!(runs.get(), 3);
/// ```
pub async fn backoff_until<X>(
    mut backoff: BackoffUntil<impl FnMut(Instant) -> Duration>,
    clock: &impl Timer,
    stop: impl Future<Output = X>,
    mut work: impl AsyncFnMut(),
) {
    let mut stop = pin!(stop);
    let mut due = Instant::EPOCH;
    loop {
        let mut pause = pin!(sleep_until(clock, due));
        // `stop` is polled even if there is no pause.
        let is_stopped = poll_fn(|context| match stop.as_mut().poll(context) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => pause.as_mut().poll(context).map(|()| false),
        });
        if is_stopped.await {
            return;
        }
        backoff.start(clock.now());
        work().await;
        due = backoff.finish(clock.now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::{Backoff, no_jitter};

    const BACKOFF: Backoff = Backoff {
        duration: Duration::from_secs(1),
        factor: 2.0,
        jitter: 0.0,
        steps: 9,
        cap: Duration::ZERO,
    };

    /// When the second run and the two after it start, in seconds, if each run takes `run` seconds.
    fn starts(mut until: BackoffUntil<impl FnMut(Instant) -> Duration>, run: u64) -> [u64; 3] {
        let mut now = Instant::EPOCH;
        core::array::from_fn(|_| {
            until.start(now);
            let finished = now + Duration::from_secs(run);
            now = until.finish(finished).max(finished);
            now.saturating_since(Instant::EPOCH).as_secs()
        })
    }

    #[test]
    fn a_sliding_pause_follows_the_run() {
        let until = BackoffUntil::sliding(BACKOFF.delay_func(no_jitter));
        assert_eq!(starts(until, 3), [4, 9, 16]);
    }

    #[test]
    fn a_non_sliding_pause_includes_the_run() {
        let until = BackoffUntil::non_sliding(BACKOFF.delay_func(no_jitter));
        assert_eq!(starts(until, 3), [3, 6, 10]);
    }

    #[test]
    fn a_pause_without_end_has_no_deadline() {
        let backoff = Backoff {
            duration: Duration::MAX,
            ..BACKOFF
        };
        let mut until = BackoffUntil::sliding(backoff.delay_func(no_jitter));
        until.start(Instant::EPOCH);
        assert_eq!(until.finish(Instant::EPOCH), Instant::NEVER);
    }
}
