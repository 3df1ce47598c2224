//! The clock that tasks wait on: Tokio's. Owns the conversion between Tokio's instants and the
//! queue's, and how an alarm is set; never decides for when.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};
use tokio::task::coop;
use tokio::time::Sleep;

/// Tokio's monotonic clock, which `tokio::time::pause` and `advance` control. Its epoch is the
/// moment at which it was created.
///
/// A paused clock belongs to one runtime. Create a queue that follows it inside that runtime: a
/// queue that was created outside starts at the system's time, and waits until the paused clock has
/// reached it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue::tokio::QueueClock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = QueueClock::new();
/// let earlier = clock.now();
/// tokio::time::advance(Duration::from_secs(3600)).await;
/// assert_eq!(clock.now(), earlier + Duration::from_secs(3600));
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct QueueClock {
    epoch: tokio::time::Instant,
}

/// Longer waits are split: Tokio's timer holds about two years.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl QueueClock {
    /// Creates a clock whose epoch is now. Needs no runtime.
    pub fn new() -> Self {
        Self {
            epoch: tokio::time::Instant::now(),
        }
    }

    /// Converts one of Tokio's instants. One before the clock's epoch becomes the epoch.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::time::Duration;
    /// use requeue::tokio::{Added, WorkQueue};
    /// use tokio::time::Instant;
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let lease_ends = Instant::now() + Duration::from_secs(15);
    ///
    /// let due = queue.clock().at(lease_ends);
    /// assert_eq!(queue.add_at("lease-3", due), Ok(Added::Delayed));
    /// assert_eq!(queue.clock().to_tokio(due), Some(lease_ends));
    /// # }
    /// ```
    pub fn at(&self, instant: tokio::time::Instant) -> Instant {
        Instant::EPOCH + instant.saturating_duration_since(self.epoch)
    }

    /// Converts an instant of this clock to one of Tokio's, for `tokio::time::timeout_at` and the
    /// like. `None` for [`Instant::NEVER`], and for an instant that Tokio cannot represent.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::tokio::{Instant, QueueClock};
    ///
    /// let clock = QueueClock::new();
    /// assert!(clock.to_tokio(clock.now()).unwrap() <= tokio::time::Instant::now());
    /// assert_eq!(clock.to_tokio(Instant::NEVER), None);
    /// ```
    pub fn to_tokio(&self, instant: Instant) -> Option<tokio::time::Instant> {
        if instant.is_never() {
            return None;
        }
        self.epoch.checked_add(instant - Instant::EPOCH)
    }

    /// Returns the time that has passed since the clock's epoch.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::tokio::QueueClock;
    ///
    /// let clock = QueueClock::new();
    /// let earlier = clock.now();
    /// assert!(clock.now() >= earlier);
    /// ```
    pub fn now(&self) -> Instant {
        self.at(tokio::time::Instant::now())
    }

    fn alarm(&self, due: Instant) -> Option<tokio::time::Instant> {
        if due.is_never() {
            return None;
        }
        let now = self.now();
        let until = now + due.saturating_since(now).min(WAIT_MAX);
        self.to_tokio(until)
    }
}

impl Default for QueueClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for QueueClock {
    fn now(&self) -> Instant {
        self.now()
    }
}

impl Timer for QueueClock {
    type Alarm = Sleep;

    /// Fires at `until`, or earlier if that is too far away.
    fn set_alarm(&self, mut alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        let at = until.and_then(|due| self.alarm(due));
        match (alarm.as_mut().as_pin_mut(), at) {
            (Some(sleep), Some(at)) if sleep.deadline() == at => {}
            (Some(sleep), Some(at)) => sleep.reset(at),
            (None, Some(at)) => alarm.set(Some(tokio::time::sleep_until(at))),
            (_, None) => alarm.set(None),
        }
    }

    /// Takes from Tokio's cooperative budget.
    fn in_turn<T>(
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        let budget = ready!(coop::poll_proceed(context));
        let polled = poll(context);
        if polled.is_ready() {
            budget.made_progress();
        }
        polled
    }
}
