//! Repeats work on a thread, with pauses. Owns the sleep between two rounds, and what stops it; the
//! length of a pause is core's.

use std::fmt;
use std::time::Duration;

use requeue_core::backoff::BackoffUntil;
use requeue_core::{Concurrency, Instant};

use crate::clock::QueueClock;
use crate::sync::Parker;

/// Stops loops. Clones stop the same loops.
///
/// # Examples
///
/// A loop with a pause of an hour ends immediately:
///
/// ```
/// use std::time::Duration;
/// use requeue::std::backoff::{Backoff, BackoffUntil, no_jitter};
/// use requeue::std::{QueueClock, Stop, backoff_until};
///
/// let stop = Stop::new();
/// let hourly = Backoff { duration: Duration::from_secs(3600), ..Backoff::default() };
/// let backoff = BackoffUntil::sliding(hourly.delay_func(no_jitter));
/// let poller = std::thread::spawn({
///     let stop = stop.clone();
///     move || backoff_until(backoff, QueueClock::new(), &stop, || { /* poll sensor 17 */ })
/// });
/// stop.stop();
/// poller.join().unwrap();
/// assert!(stop.is_stopped());
/// ```
#[derive(Clone)]
pub struct Stop {
    /// One, and zero once stopped: a number that loops can wait for.
    wanted: Concurrency,
}

impl Stop {
    /// Creates a signal that is not stopped. The [type](Self) has an example.
    pub fn new() -> Self {
        let wanted = Concurrency::new(1);
        Self { wanted }
    }

    /// Stops the loops, also those that begin later. A second call changes nothing.
    pub fn stop(&self) {
        self.wanted.set(0);
    }

    /// Returns whether [`stop`](Self::stop) was called.
    pub fn is_stopped(&self) -> bool {
        self.wanted.get() == 0
    }

    /// Wakes every loop that pauses, so that it reads its clock again. A
    /// [`ManualClock`](crate::ManualClock) that moves does so itself: this is for clocks that move
    /// otherwise.
    pub fn wake_all(&self) {
        self.wanted.wake_all();
    }

    /// Waits until `due` or until stopped. Returns whether it was stopped.
    fn wait_until(&self, due: Instant, clock: &QueueClock) -> bool {
        Parker::with(|parker| {
            let mut changes = self.wanted.changes();
            loop {
                // Registered first, so that no `stop` is missed.
                let _ = changes.poll_set(parker.waker());
                let is_stopped = self.is_stopped();
                if is_stopped || clock.now() >= due {
                    return is_stopped;
                }
                clock.park(parker, Some(due));
            }
        })
    }
}

impl Default for Stop {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stop")
            .field("is_stopped", &self.is_stopped())
            .finish()
    }
}

/// Runs `work` until stopped, and pauses between runs: apimachinery's `wait.BackoffUntil`.
///
/// `backoff` sets the pauses, and whether the time that `work` takes counts as part of them:
/// [`BackoffUntil::sliding`] or [`BackoffUntil::non_sliding`]. The first run begins immediately.
/// There is none if `stop` was stopped before.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue::std::backoff::{Backoff, BackoffUntil, no_jitter};
/// use requeue::std::{QueueClock, Stop, backoff_until};
///
/// let backoff = Backoff {
///     duration: Duration::from_micros(1),
///     factor: 2.0,
///     steps: 5,
///     ..Backoff::default()
/// };
/// let stop = Stop::new();
/// let mut runs = 0;
/// backoff_until(BackoffUntil::sliding(backoff.delay_func(no_jitter)), QueueClock::new(), &stop, || {
///     runs += 1;
///     if runs == 3 {
///         stop.stop();
///     }
/// });
/// assert_eq!(runs, 3);
/// ```
pub fn backoff_until(
    mut backoff: BackoffUntil<impl FnMut(Instant) -> Duration>,
    clock: impl Into<QueueClock>,
    stop: &Stop,
    mut work: impl FnMut(),
) {
    let clock = clock.into();
    while !stop.is_stopped() {
        backoff.start(clock.now());
        work();
        let due = backoff.finish(clock.now());
        if stop.wait_until(due, &clock) {
            return;
        }
    }
}
