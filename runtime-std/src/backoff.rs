//! A loop that runs something again and again, with pauses.

use std::sync::Arc;

use requeue_core::rand_core::Rng;
use requeue_core::{BackoffManager, BackoffUntil, Instant};

use crate::clock::Timer;
use crate::sync::{Condvar, Mutex};

/// Stops loops. Clones stop the same loops.
///
/// # Examples
///
/// A loop with a pause of an hour ends at once:
///
/// ```
/// use std::time::Duration;
/// use requeue_std::core::{Backoff, BackoffUntil, NoJitter};
/// use requeue_std::{Stop, SystemClock, backoff_until};
///
/// let stop = Stop::new();
/// let hourly = Backoff { duration: Duration::from_secs(3600), ..Backoff::default() };
/// let backoff = BackoffUntil::sliding(hourly, NoJitter);
/// let poller = std::thread::spawn({
///     let stop = stop.clone();
///     move || backoff_until(backoff, &SystemClock::new(), &stop, || { /* poll sensor 17 */ })
/// });
/// stop.stop();
/// poller.join().unwrap();
/// assert!(stop.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Signal>,
}

#[derive(Debug, Default)]
struct Signal {
    stopped: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// A signal that has not been given, as in the example of the [type](Self).
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal. Giving it twice is as giving it once.
    pub fn stop(&self) {
        *self.shared.stopped.lock() = true;
        self.shared.changed.notify_all();
    }

    /// Whether the signal has been given.
    pub fn is_stopped(&self) -> bool {
        *self.shared.stopped.lock()
    }

    /// Makes every waiting loop look at its clock again: after a
    /// [`ManualClock`](crate::ManualClock) was moved.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::mpsc;
    /// use std::time::Duration;
    /// use requeue_std::core::{Backoff, BackoffUntil, NoJitter};
    /// use requeue_std::{ManualClock, Stop, backoff_until};
    ///
    /// let (clock, stop) = (ManualClock::new(), Stop::new());
    /// let hour = Duration::from_secs(3600);
    /// let hourly = Backoff { duration: hour, ..Backoff::default() };
    /// let backoff = BackoffUntil::non_sliding(hourly, NoJitter);
    /// let (polled, polls) = mpsc::channel();
    /// std::thread::scope(|scope| {
    ///     scope.spawn(|| backoff_until(backoff, &clock, &stop, || polled.send(17).unwrap()));
    ///     polls.recv().unwrap();
    ///     clock.advance(hour);
    ///     stop.clock_moved();
    ///     polls.recv().unwrap();
    ///     stop.stop();
    /// });
    /// ```
    pub fn clock_moved(&self) {
        drop(self.shared.stopped.lock());
        self.shared.changed.notify_all();
    }

    /// Waits until `due` or until stopped. Answers whether it was stopped.
    fn wait_until(&self, due: Instant, clock: &impl Timer) -> bool {
        let mut stopped = self.shared.stopped.lock();
        while !*stopped && clock.now() < due {
            let until = (!due.is_never()).then_some(due);
            clock.wait(&self.shared.changed, &mut stopped, until);
        }
        *stopped
    }
}

/// Runs `work` until it is stopped, and pauses in between: apimachinery's `wait.BackoffUntil`.
///
/// How long the pauses are, and whether the time that `work` takes is part of them, is said by
/// `backoff`: [`BackoffUntil::sliding`] or [`BackoffUntil::non_sliding`]. `work` runs at once the
/// first time, and not at all if the signal has been given before.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::core::{Backoff, BackoffUntil, NoJitter};
/// use requeue_std::{Stop, SystemClock, backoff_until};
///
/// let backoff = Backoff {
///     duration: Duration::from_micros(1),
///     factor: 2.0,
///     steps: 5,
///     ..Backoff::default()
/// };
/// let stop = Stop::new();
/// let mut runs = 0;
/// backoff_until(BackoffUntil::sliding(backoff, NoJitter), &SystemClock::new(), &stop, || {
///     runs += 1;
///     if runs == 3 {
///         stop.stop();
///     }
/// });
/// assert_eq!(runs, 3);
/// ```
pub fn backoff_until<M: BackoffManager, R: Rng>(
    mut backoff: BackoffUntil<M, R>,
    clock: &impl Timer,
    stop: &Stop,
    mut work: impl FnMut(),
) {
    while !stop.is_stopped() {
        backoff.start(clock.now());
        work();
        let due = backoff.finish(clock.now());
        if stop.wait_until(due, clock) {
            return;
        }
    }
}
