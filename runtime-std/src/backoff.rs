//! A loop that runs something again and again, with pauses.

use std::mem;
use std::sync::Arc;
use std::task::Waker;

use requeue_core::binding::Clock;
use requeue_core::rand_core::Rng;
use requeue_core::{BackoffManager, BackoffUntil, Instant};

use crate::clock::QueueClock;
use crate::sync::{Mutex, Parker};

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
///     move || backoff_until(backoff, SystemClock::new(), &stop, || { /* poll sensor 17 */ })
/// });
/// stop.stop();
/// poller.join().unwrap();
/// assert!(stop.is_stopped());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<Mutex<Signal>>,
}

#[derive(Debug, Default)]
struct Signal {
    is_stopped: bool,
    /// Of the loops that pause.
    wakers: Vec<Waker>,
}

impl Stop {
    /// A signal that has not been given, as in the example of the [type](Self).
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives the signal. Giving it twice is as giving it once.
    pub fn stop(&self) {
        self.shared.lock().is_stopped = true;
        self.wake_all();
    }

    /// Whether the signal has been given.
    pub fn is_stopped(&self) -> bool {
        self.shared.lock().is_stopped
    }

    /// Lets every waiting loop look at its clock again: after a
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
    ///     scope.spawn(|| backoff_until(backoff, clock.clone(), &stop, || polled.send(17).unwrap()));
    ///     polls.recv().unwrap();
    ///     clock.advance(hour);
    ///     stop.clock_moved();
    ///     polls.recv().unwrap();
    ///     stop.stop();
    /// });
    /// ```
    pub fn clock_moved(&self) {
        self.wake_all();
    }

    fn wake_all(&self) {
        let wakers = mem::take(&mut self.shared.lock().wakers);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Waits until `due` or until stopped. Returns whether it was stopped.
    fn wait_until(&self, due: Instant, clock: &QueueClock) -> bool {
        let parker = Parker::new();
        loop {
            let mut signal = self.shared.lock();
            signal
                .wakers
                .retain(|waker| !waker.will_wake(parker.waker()));
            if signal.is_stopped || clock.now() >= due {
                return signal.is_stopped;
            }
            signal.wakers.push(parker.waker().clone());
            drop(signal);
            clock.park(&parker, Some(due));
            return false;
        }
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
/// backoff_until(BackoffUntil::sliding(backoff, NoJitter), SystemClock::new(), &stop, || {
///     runs += 1;
///     if runs == 3 {
///         stop.stop();
///     }
/// });
/// assert_eq!(runs, 3);
/// ```
pub fn backoff_until<M: BackoffManager, R: Rng>(
    mut backoff: BackoffUntil<M, R>,
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
