//! A retry loop as a state machine: it says what to do, and the caller does it.

use core::time::Duration;

use super::Backoff;

/// What a retry loop does next; [`Attempts`] has a whole loop.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{Attempt, Backoff, no_jitter};
///
/// let second = Duration::from_secs(1);
/// let backoff = Backoff { duration: second, factor: 2.0, steps: 2, ..Backoff::default() };
/// let mut attempts = backoff.attempts();
/// let mut next = || attempts.next(&mut no_jitter);
/// assert_eq!([next(), next()], [Attempt::Call, Attempt::Pause(second)]);
/// assert_eq!([next(), next()], [Attempt::Call, Attempt::GiveUp]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "the attempts have moved on: this step is not returned again"]
#[non_exhaustive]
pub enum Attempt {
    /// Make the call. Leave the loop if it succeeds, or fails for good.
    Call,
    /// Wait this long.
    Pause(Duration),
    /// The attempts are used up: apimachinery's `ErrWaitTimeout`. Later calls return the same.
    GiveUp,
}

/// The calls and pauses of apimachinery's `wait.ExponentialBackoff`.
///
/// The first call is made immediately, and there are at most [`steps`](Backoff::steps) calls. A
/// backoff that hits its cap ends the attempts early, but only after its last pause: like
/// apimachinery, this waits there and then does not call.
///
/// # Cost
///
/// O(1): that of [`Backoff::step`].
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::backoff::{Attempt, Backoff, no_jitter};
///
/// /// Calls until `call` succeeds. Only `sleep` depends on the runtime.
/// fn retry(
///     backoff: Backoff,
///     mut call: impl FnMut() -> bool,
///     mut sleep: impl FnMut(Duration),
/// ) -> Result<(), &'static str> {
///     let mut attempts = backoff.attempts();
///     loop {
///         match attempts.next(&mut no_jitter) {
///             Attempt::Call if call() => return Ok(()),
///             Attempt::Call => {}
///             Attempt::Pause(pause) => sleep(pause),
///             _ => return Err("timed out"),
///         }
///     }
/// }
///
/// let backoff = Backoff {
///     duration: Duration::from_millis(10),
///     factor: 2.0,
///     steps: 4,
///     ..Backoff::default()
/// };
/// let mut slept = vec![];
/// let result = retry(backoff, || false, |pause| slept.push(pause.as_millis()));
/// assert_eq!(slept, [10, 20, 40]);
/// assert!(result.is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Attempts {
    backoff: Backoff,
    /// Whether the call of the current step has been handed out.
    called: bool,
}

impl Attempts {
    /// Creates the attempts that `backoff` allows: [`Backoff::attempts`]. O(1).
    pub const fn new(backoff: Backoff) -> Self {
        Self {
            backoff,
            called: false,
        }
    }

    /// Returns what to do next. Costs as [`Backoff::step`].
    ///
    /// `rng` returns 64 random bits. It is called only if the backoff has jitter. Without jitter
    /// pass [`no_jitter`](crate::backoff::no_jitter).
    pub fn next<R: FnMut() -> u64 + ?Sized>(&mut self, rng: &mut R) -> Attempt {
        match (self.backoff.steps, self.called) {
            (0, _) => Attempt::GiveUp,
            (_, false) => {
                self.called = true;
                Attempt::Call
            }
            (1, true) => {
                // After the last call there is nothing left to wait for.
                self.backoff.steps = 0;
                Attempt::GiveUp
            }
            (_, true) => {
                self.called = false;
                Attempt::Pause(self.backoff.step(rng))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backoff::no_jitter;

    const BACKOFF: Backoff = Backoff {
        duration: Duration::from_secs(1),
        factor: 2.0,
        jitter: 0.0,
        steps: 3,
        cap: Duration::ZERO,
    };

    fn next<const N: usize>(backoff: Backoff) -> [Attempt; N] {
        let mut attempts = backoff.attempts();
        core::array::from_fn(|_| attempts.next(&mut no_jitter))
    }

    fn pause(seconds: u64) -> Attempt {
        Attempt::Pause(Duration::from_secs(seconds))
    }

    #[test]
    fn calls_as_often_as_there_are_steps() {
        use Attempt::{Call, GiveUp};
        let expected = [Call, pause(1), Call, pause(2), Call, GiveUp, GiveUp];
        assert_eq!(next(BACKOFF), expected);
    }

    #[test]
    fn without_steps_there_is_no_call() {
        let backoff = Backoff {
            steps: 0,
            ..BACKOFF
        };
        assert_eq!(next(backoff), [Attempt::GiveUp; 2]);
    }

    #[test]
    fn hitting_the_cap_is_a_pause_without_a_call() {
        use Attempt::{Call, GiveUp};
        let backoff = Backoff {
            cap: Duration::from_secs(3),
            steps: 9,
            ..BACKOFF
        };
        let expected = [Call, pause(1), Call, pause(2), GiveUp, GiveUp];
        assert_eq!(next(backoff), expected);
    }
}
