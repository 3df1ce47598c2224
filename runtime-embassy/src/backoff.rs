//! Repeats work, with pauses.

use core::future::poll_fn;
use core::pin::pin;
use core::task::Poll;

use requeue_core::binding::{Timer, sleep_until};
use requeue_core::rand_core::Rng;
use requeue_core::{BackoffManager, BackoffUntil, Instant};

/// Runs `work` until stopped, and pauses between runs: apimachinery's `wait.BackoffUntil`.
///
/// `backoff` sets the pauses, and whether the time that `work` takes counts as part of them:
/// [`BackoffUntil::sliding`] or [`BackoffUntil::non_sliding`]. The first run begins at once. There
/// is none if `stop` is ready before. `stop` is any future: the `wait` of an embassy-sync `Signal`,
/// or a queue's [`drained`](requeue_core::binding::WorkQueue::drained). It does not interrupt a run.
///
/// # Cancel safety
///
/// Dropping the future drops the run of `work` that is under way, and ends the loop. The backoff is
/// lost with it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use embassy_futures::block_on;
/// use embassy_sync::signal::Signal;
/// use requeue_embassy::core::{Backoff, BackoffUntil, NoJitter};
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{EmbassyClock, backoff_until};
///
/// let backoff = Backoff {
///     duration: Duration::ZERO,
///     ..Backoff::default()
/// };
/// let stop: Signal<NoopRawMutex, ()> = Signal::new();
/// let mut runs = 0;
/// let poller = backoff_until(
///     BackoffUntil::sliding(backoff, NoJitter),
///     &EmbassyClock,
///     stop.wait(),
///     async || {
///         runs += 1;
///         if runs == 3 {
///             stop.signal(());
///         }
///     },
/// );
/// block_on(poller);
/// assert_eq!(runs, 3);
/// ```
pub async fn backoff_until<M: BackoffManager, R: Rng, X>(
    mut backoff: BackoffUntil<M, R>,
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
