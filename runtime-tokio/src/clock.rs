//! The clock that tasks wait on.

use std::pin::Pin;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};
use tokio::time::Sleep;

/// Tokio's monotonic clock, which `tokio::time::pause` and `advance` drive; its epoch is the moment
/// it was made.
///
/// A paused clock belongs to one runtime. A queue that is to follow it is made inside that runtime;
/// one that is made outside starts with the system's time and waits until the paused clock has
/// caught up with it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_tokio::TokioClock;
/// use requeue_tokio::core::binding::Clock;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let clock = TokioClock::new();
/// let earlier = clock.now();
/// tokio::time::advance(Duration::from_secs(3600)).await;
/// assert_eq!(clock.now(), earlier + Duration::from_secs(3600));
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct TokioClock {
    epoch: tokio::time::Instant,
}

/// A wait is cut into pieces of this length: Tokio's timer holds some two years.
const WAIT_MAX: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl TokioClock {
    /// A clock whose epoch is now. No runtime is needed for that.
    pub fn new() -> Self {
        Self {
            epoch: tokio::time::Instant::now(),
        }
    }

    /// One of Tokio's instants as this clock shows it; the epoch for any that lies before.
    pub fn at(&self, instant: tokio::time::Instant) -> Instant {
        Instant::EPOCH + instant.saturating_duration_since(self.epoch)
    }

    fn alarm(&self, due: Instant) -> Option<tokio::time::Instant> {
        if due.is_never() {
            return None;
        }
        let now = self.now();
        let ring = now + due.saturating_since(now).min(WAIT_MAX);
        self.epoch
            .checked_add(ring.saturating_since(Instant::EPOCH))
    }
}

impl Default for TokioClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        self.at(tokio::time::Instant::now())
    }
}

impl Timer for TokioClock {
    type Alarm = Sleep;

    /// Rings for `until`, or after a first piece of the way there.
    fn set_alarm(&self, mut alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        let at = until.and_then(|due| self.alarm(due));
        match (alarm.as_mut().as_pin_mut(), at) {
            (Some(sleep), Some(at)) if sleep.deadline() == at => {}
            (Some(sleep), Some(at)) => sleep.reset(at),
            (None, Some(at)) => alarm.set(Some(tokio::time::sleep_until(at))),
            (_, None) => alarm.set(None),
        }
    }
}
