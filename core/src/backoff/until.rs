//! A loop that runs something for ever, with pauses: all of it but the waiting.

use rand_core::Rng;

use super::BackoffManager;
use crate::Instant;

/// When apimachinery's `wait.BackoffUntil` runs its function.
///
/// A runtime's loop calls [`start`](BackoffUntil::start) before each run and
/// [`finish`](BackoffUntil::finish) after it, and waits for the instant that `finish` answers or
/// for being stopped, whichever comes first. Whether the run's own time is part of the pause is
/// decided here, at construction:
///
/// - [`sliding`](BackoffUntil::sliding): no. The pause begins when the run ends.
/// - [`non_sliding`](BackoffUntil::non_sliding): yes. The pause begins with the run, and a run that
///   takes longer is followed by the next at once.
///
/// # Cost
///
/// O(1): that of the manager.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Backoff, BackoffUntil, Instant, NoJitter};
///
/// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
/// let period = Backoff { duration: Duration::from_secs(10), ..Backoff::default() };
///
/// let mut sliding = BackoffUntil::sliding(period, NoJitter);
/// sliding.start(at(0));
/// assert_eq!(sliding.finish(at(3)), at(13));
///
/// let mut non_sliding = BackoffUntil::non_sliding(period, NoJitter);
/// non_sliding.start(at(0));
/// assert_eq!(non_sliding.finish(at(3)), at(10));
/// ```
#[derive(Clone, Debug)]
pub struct BackoffUntil<M, R> {
    manager: M,
    rng: R,
    is_sliding: bool,
    /// When the next run is due. Known from `start` on if not sliding, from `finish` on if sliding.
    due: Instant,
}

impl<M: BackoffManager, R: Rng> BackoffUntil<M, R> {
    /// Pauses that begin when a run ends, as in the example of the [type](Self).
    pub const fn sliding(manager: M, rng: R) -> Self {
        Self::new(manager, rng, true)
    }

    /// Pauses that begin when a run begins, as in the example of the [type](Self).
    pub const fn non_sliding(manager: M, rng: R) -> Self {
        Self::new(manager, rng, false)
    }

    const fn new(manager: M, rng: R, is_sliding: bool) -> Self {
        Self {
            manager,
            rng,
            is_sliding,
            // The first run is due at once.
            due: Instant::EPOCH,
        }
    }

    /// Notes that a run begins at `now`.
    pub fn start(&mut self, now: Instant) {
        if !self.is_sliding {
            self.pause_from(now);
        }
    }

    /// Notes that the run has ended at `now`, and answers when the next is due.
    ///
    /// That may be in the past: then it is due at once. [`Instant::NEVER`] is no deadline, and the
    /// loop only waits to be stopped.
    #[must_use = "nobody else knows when the next run is due"]
    pub fn finish(&mut self, now: Instant) -> Instant {
        if self.is_sliding {
            self.pause_from(now);
        }
        self.due
    }

    fn pause_from(&mut self, now: Instant) {
        self.due = now + self.manager.next_delay(now, &mut self.rng);
    }
}

#[cfg(test)]
mod tests {
    use core::time::Duration;

    use super::*;
    use crate::{Backoff, NoJitter};

    const BACKOFF: Backoff = Backoff {
        duration: Duration::from_secs(1),
        factor: 2.0,
        jitter: 0.0,
        steps: 9,
        cap: Duration::ZERO,
    };

    /// When the second run and the two after it start, in seconds, if each run takes `run` seconds.
    fn starts<M: BackoffManager, R: Rng>(mut until: BackoffUntil<M, R>, run: u64) -> [u64; 3] {
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
        let until = BackoffUntil::sliding(BACKOFF, NoJitter);
        assert_eq!(starts(until, 3), [4, 9, 16]);
    }

    #[test]
    fn a_non_sliding_pause_includes_the_run() {
        let until = BackoffUntil::non_sliding(BACKOFF, NoJitter);
        assert_eq!(starts(until, 3), [3, 6, 10]);
    }

    #[test]
    fn a_pause_without_end_has_no_deadline() {
        let backoff = Backoff {
            duration: Duration::MAX,
            ..BACKOFF
        };
        let mut rng = NoJitter;
        let mut until = BackoffUntil::sliding(backoff, &mut rng);
        until.start(Instant::EPOCH);
        assert_eq!(until.finish(Instant::EPOCH), Instant::NEVER);
    }
}
