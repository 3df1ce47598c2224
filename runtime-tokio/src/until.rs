//! Repeats work in a task, with pauses. Owns the sleep between two rounds, and what stops it; the
//! length of a pause is core's.

use std::time::Duration;

use requeue_core::Instant;
use requeue_core::backoff::BackoffUntil;
use requeue_core::binding::sleep_until;
use tokio_util::sync::CancellationToken;

use crate::clock::QueueClock;

/// Runs `work` until stopped, and pauses between runs: apimachinery's `wait.BackoffUntil`.
///
/// `backoff` sets the pauses, and whether the time that `work` takes counts as part of them:
/// [`BackoffUntil::sliding`] or [`BackoffUntil::non_sliding`]. The first run begins immediately.
/// There is none if `stop` was cancelled before. Cancelling `stop` does not interrupt a run.
///
/// # Cancel safety
///
/// Dropping the future drops the run of `work` that is under way, and ends the loop. The backoff is
/// lost with it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue::tokio::backoff::{Backoff, BackoffUntil, no_jitter};
/// use requeue::tokio::{CancellationToken, backoff_until};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let backoff = Backoff {
///     duration: Duration::from_secs(1),
///     factor: 2.0,
///     steps: 5,
///     ..Backoff::default()
/// };
/// let stop = CancellationToken::new();
/// let mut runs = 0;
/// backoff_until(BackoffUntil::sliding(backoff.delay_func(no_jitter)), stop.clone(), || {
///     runs += 1;
///     if runs == 3 {
///         stop.cancel();
///     }
///     async { /* poll sensor 17 */ }
/// })
/// .await;
/// assert_eq!(runs, 3);
/// # }
/// ```
pub async fn backoff_until<W: Future<Output = ()>>(
    mut backoff: BackoffUntil<impl FnMut(Instant) -> Duration>,
    stop: CancellationToken,
    mut work: impl FnMut() -> W,
) {
    // Not core's, whose future can not be spawned: the compiler can not show that what an
    // `AsyncFnMut` returns is `Send` for every lifetime.
    let clock = QueueClock::new();
    while !stop.is_cancelled() {
        backoff.start(clock.now());
        work().await;
        let due = backoff.finish(clock.now());
        let pause = sleep_until(&clock, due);
        if stop.run_until_cancelled(pause).await.is_none() {
            return;
        }
    }
}
