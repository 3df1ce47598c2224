//! The pauses of a loop: apimachinery's `wait.Backoff` and its users, without a timer.
//!
//! A queue does not need this. It is for other loops of a controller, which retry a call or watch a
//! source, with the pauses of Kubernetes' loops. The time is an argument and the pauses are
//! results, so only the loop waits.

mod delays;
mod jitter;
pub(crate) mod until;

use core::time::Duration;

use crate::time::{duration_from_nanos, nanos};

pub use jitter::{jitter, no_jitter};
pub use until::BackoffUntil;

/// The pauses of a loop: a duration that grows by a factor, up to a cap, for a number of steps.
///
/// apimachinery's `wait.Backoff`: [`step`](Backoff::step) returns the next pause, and changes the
/// value to the backoff of the pauses after it. [`delay_func`](Backoff::delay_func) makes a closure
/// of it.
///
/// | to | use |
/// |---|---|
/// | compute pauses by hand | [`Backoff::step`] |
/// | start over after a while | [`Backoff::delay_with_reset`], [`Backoff::delay_with_idle_reset`] |
/// | retry a call until it succeeds | [`Backoff::retry_delay`] |
/// | run something for ever, with pauses | [`BackoffUntil`] |
///
/// The arithmetic is apimachinery's, in `f64`, truncated to whole nanoseconds. It saturates if the
/// result leaves the range of Go's `time.Duration`, or is below zero.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::backoff::{Backoff, no_jitter};
///
/// let mut backoff = Backoff {
///     duration: Duration::from_millis(10),
///     factor: 3.0,
///     steps: 4,
///     ..Backoff::default()
/// };
/// let mut step = || backoff.step(&mut no_jitter).as_millis();
/// assert_eq!([step(), step(), step(), step()], [10, 30, 90, 270]);
/// // The steps are used up: the pause no longer grows.
/// assert_eq!([step(), step()], [810, 810]);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Backoff {
    /// The next pause, before jitter.
    pub duration: Duration,
    /// The factor of the duration at each step. Zero leaves the duration as it is.
    ///
    /// Should not be negative: that makes the duration zero.
    pub factor: f64,
    /// How much a pause is lengthened at random: by up to `jitter * duration`. No jitter if zero or
    /// negative. Jitter does not add up, because the next duration is computed without it.
    pub jitter: f64,
    /// How many more times the duration may change.
    ///
    /// apimachinery's is signed, and below zero has the effect of zero.
    pub steps: u32,
    /// The longest duration, unless zero. A duration that would grow beyond the cap becomes the cap
    /// and sets the steps to zero. A duration that starts beyond the cap is used until then.
    pub cap: Duration,
}

impl Backoff {
    /// Returns the pause to make now, and moves on to the next one.
    ///
    /// `rng` returns 64 random bits. It is called only if [`jitter`](Backoff::jitter) is positive.
    /// Without jitter pass [`no_jitter`].
    ///
    /// # Cost
    ///
    /// O(1): one multiplication of `f64`, and those of [`jitter`] if there is any.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::backoff::{Backoff, no_jitter};
    ///
    /// let second = Duration::from_secs(1);
    /// let mut backoff =
    ///     Backoff { duration: second, factor: 2.0, jitter: 0.0, steps: 9, cap: second * 3 };
    /// let mut step = || backoff.step(&mut no_jitter).as_secs();
    /// assert_eq!([step(), step(), step()], [1, 2, 3]);
    /// // Hitting the cap has used up the steps.
    /// assert_eq!(backoff.steps, 0);
    /// ```
    #[must_use = "the backoff has moved on: this pause is not returned again"]
    pub fn step<R: FnMut() -> u64 + ?Sized>(&mut self, rng: &mut R) -> Duration {
        let duration = self.duration;
        if self.steps > 0 {
            self.steps -= 1;
            self.grow();
        }
        if self.jitter > 0.0 {
            jitter(duration, self.jitter, rng)
        } else {
            duration
        }
    }

    /// Returns the pause of a retry loop whose call has failed, or `None` if that was the last
    /// call: `wait.ExponentialBackoff`. Costs as [`step`](Self::step).
    ///
    /// There are at most [`steps`](Self::steps) calls, the first of them immediately. A backoff
    /// that hits its cap has no steps left, so it ends the loop early, but only after a last pause:
    /// like apimachinery, the loop waits there and then does not call.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::backoff::{Backoff, no_jitter};
    ///
    /// /// Calls until `call` succeeds. Only `sleep` depends on the runtime.
    /// fn retry(
    ///     mut backoff: Backoff,
    ///     mut call: impl FnMut() -> bool,
    ///     mut sleep: impl FnMut(Duration),
    /// ) -> Result<(), &'static str> {
    ///     while backoff.steps > 0 {
    ///         if call() {
    ///             return Ok(());
    ///         }
    ///         if let Some(pause) = backoff.retry_delay(&mut no_jitter) {
    ///             sleep(pause);
    ///         }
    ///     }
    ///     Err("timed out")
    /// }
    ///
    /// let ten = Duration::from_millis(10);
    /// let backoff = Backoff { duration: ten, factor: 2.0, steps: 4, ..Backoff::default() };
    /// let mut slept = vec![];
    /// let result = retry(backoff, || false, |pause| slept.push(pause.as_millis()));
    /// assert_eq!(slept, [10, 20, 40]);
    /// assert!(result.is_err());
    /// ```
    #[doc(alias = "ExponentialBackoff")]
    #[must_use = "the backoff has moved on: this pause is not returned again"]
    pub fn retry_delay<R: FnMut() -> u64 + ?Sized>(&mut self, rng: &mut R) -> Option<Duration> {
        if self.steps <= 1 {
            // After the last call there is nothing left to wait for.
            self.steps = 0;
            return None;
        }
        Some(self.step(rng))
    }

    /// Computes the next duration.
    fn grow(&mut self) {
        if self.factor == 0.0 {
            return;
        }
        // The conversion truncates toward zero and saturates; a NaN becomes zero.
        let grown = duration_from_nanos((nanos(self.duration) as f64 * self.factor) as u64);
        if !self.cap.is_zero() && grown > self.cap {
            self.duration = self.cap;
            self.steps = 0;
        } else {
            self.duration = grown;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::vec;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// The pauses of `backoff`, in nanoseconds, and what is left of it.
    fn steps<const N: usize>(mut backoff: Backoff) -> ([u64; N], Backoff) {
        let pauses = core::array::from_fn(|_| nanos(backoff.step(&mut no_jitter)));
        (pauses, backoff)
    }

    #[test]
    fn without_a_factor_the_duration_stays_and_steps_are_used_up() {
        let backoff = Backoff {
            duration: SECOND,
            steps: 2,
            ..Backoff::default()
        };
        let (pauses, after) = steps(backoff);
        assert_eq!(pauses, [1_000_000_000; 3]);
        assert_eq!(
            after,
            Backoff {
                steps: 0,
                ..backoff
            }
        );
    }

    #[test]
    fn without_steps_nothing_changes() {
        let backoff = Backoff {
            duration: SECOND,
            factor: 5.0,
            cap: SECOND / 2,
            ..Backoff::default()
        };
        let (pauses, after) = steps(backoff);
        assert_eq!(pauses, [1_000_000_000; 3]);
        assert_eq!(after, backoff);
    }

    #[test]
    fn a_duration_beyond_the_cap_is_used_once() {
        let backoff = Backoff {
            duration: SECOND,
            factor: 1.0,
            steps: 5,
            cap: SECOND / 4,
            ..Backoff::default()
        };
        let (pauses, after) = steps(backoff);
        assert_eq!(pauses, [1_000_000_000, 250_000_000, 250_000_000]);
        assert_eq!(after.steps, 0);
    }

    #[test]
    fn reaching_the_cap_is_not_hitting_it() {
        let backoff = Backoff {
            duration: SECOND,
            factor: 2.0,
            steps: 5,
            cap: SECOND * 4,
            ..Backoff::default()
        };
        let (_, after) = steps::<2>(backoff);
        assert_eq!((after.duration, after.steps), (SECOND * 4, 3));
        let (_, after) = steps::<3>(backoff);
        assert_eq!((after.duration, after.steps), (SECOND * 4, 0));
    }

    #[test]
    fn growth_truncates() {
        let backoff = Backoff {
            duration: Duration::from_nanos(7),
            factor: 1.1,
            steps: 3,
            ..Backoff::default()
        };
        assert_eq!(steps(backoff).0, [7, 7, 7]);
        let backoff = Backoff {
            factor: 3.7,
            ..backoff
        };
        assert_eq!(steps(backoff).0, [7, 25, 92, 340]);
    }

    #[test]
    fn growth_saturates_at_both_ends() {
        let backoff = Backoff {
            duration: Duration::from_secs(1 << 33),
            factor: 1e300,
            steps: 9,
            ..Backoff::default()
        };
        let mut never = backoff;
        let _ = never.step(&mut no_jitter);
        assert_eq!(never.step(&mut no_jitter), Duration::MAX);
        assert_eq!(never.step(&mut no_jitter), Duration::MAX);

        for factor in [-1.0, f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE] {
            let (pauses, _) = steps(Backoff { factor, ..backoff });
            assert_eq!(pauses, [nanos(backoff.duration), 0, 0]);
        }
    }

    #[test]
    fn a_pause_that_overflows_meets_the_cap() {
        let backoff = Backoff {
            duration: Duration::MAX,
            factor: f64::INFINITY,
            jitter: 0.0,
            steps: 2,
            cap: SECOND,
        };
        assert_eq!(steps(backoff).0, [u64::MAX, 1_000_000_000]);
    }

    #[test]
    fn jitter_lengthens_the_pause_and_not_the_next() {
        let mut backoff = Backoff {
            duration: SECOND,
            factor: 2.0,
            jitter: 0.5,
            steps: 3,
            ..Backoff::default()
        };
        let mut rng = || 1 << 63;
        assert_eq!(backoff.step(&mut rng), Duration::from_millis(1250));
        assert_eq!(backoff.step(&mut rng), Duration::from_millis(2500));
        assert_eq!(backoff.duration, SECOND * 4);
        backoff.steps = 0;
        assert_eq!(backoff.step(&mut rng), SECOND * 5);
    }

    #[test]
    fn without_jitter_nothing_is_drawn() {
        let mut rng = || u64::MAX;
        for jitter in [0.0, -1.0, f64::NAN] {
            let mut backoff = Backoff {
                duration: SECOND,
                jitter,
                ..Backoff::default()
            };
            assert_eq!(backoff.step(&mut rng), SECOND);
        }
    }

    /// The pauses between the calls of a retry loop, in seconds, and how many calls there are.
    fn retries(mut backoff: Backoff) -> (std::vec::Vec<u64>, u32) {
        let (mut pauses, mut calls) = (std::vec::Vec::new(), 0);
        while backoff.steps > 0 {
            calls += 1;
            pauses.extend(
                backoff
                    .retry_delay(&mut no_jitter)
                    .map(|pause| pause.as_secs()),
            );
        }
        assert_eq!(backoff.retry_delay(&mut no_jitter), None);
        (pauses, calls)
    }

    #[test]
    fn there_are_as_many_calls_as_steps() {
        let backoff = Backoff {
            duration: SECOND,
            factor: 2.0,
            steps: 3,
            ..Backoff::default()
        };
        assert_eq!(retries(backoff), (vec![1, 2], 3));
        assert_eq!(
            retries(Backoff {
                steps: 0,
                ..backoff
            }),
            (vec![], 0)
        );
        let capped = Backoff {
            cap: 3 * SECOND,
            steps: 9,
            ..backoff
        };
        assert_eq!(
            retries(capped),
            (vec![1, 2], 2),
            "a pause without a call after it"
        );
    }
}
