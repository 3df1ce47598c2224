//! Checks that `why` tells the truth. A key that is said to be ready is handed out, unless the keys
//! before it use up its token or its group's limit. No key is handed out before its `until`.

use std::time::Duration;

use requeue_core::{Instant, Why};

use super::pair::{Pair, same};
use super::{Failure, Looks, Operation};
use crate::operation::{Key, Operate};
use crate::subject::Subject;

/// How many times of keys are seen to come.
const TIMES_MAX: usize = 3;

type Reasons = Vec<(Key, Why)>;

impl Pair {
    /// Takes every key that there is, and again as the times come that the queue has named. Nothing
    /// is done if calls wait, which would take the keys.
    pub(super) fn see_reasons_hold(&mut self) -> Result<(), Failure> {
        if !self.calls.is_empty() {
            return Ok(());
        }
        self.take_what_is_ready()?;
        for _ in 0..TIMES_MAX {
            let before = self.reasons()?;
            // A key with slack may run once its window is open, and `why` is an operation on it.
            let opens = |(key, why): &(_, Why)| match why {
                Why::NoToken { until } | Why::GroupNoToken { until } => Some(*until),
                why => Some(self.model.opens(*key, why.until()?)),
            };
            let times: Vec<Option<Instant>> = before.iter().map(opens).collect();
            let come = times.iter().flatten().filter(|until| !until.is_never());
            let Some(until) = come.min().copied() else {
                return Ok(());
            };
            let (most, step) = self.time_before(until);
            let steps = [
                (Operation::Advance(most), "a reason changes"),
                (Operation::TryGet, "a key is handed out"),
            ];
            for (step, what) in steps {
                self.compare(&step, Looks::Never)?;
                let now = self.reasons()?;
                self.expect(are_same(&now, &before), || {
                    format!("{what} before {until}: {before:?}")
                })?;
            }
            self.compare(&Operation::Advance(step), Looks::Never)?;
            let after = self.reasons()?;
            for (((key, before), time), (_, after)) in before.iter().zip(times).zip(after) {
                let is_over = time != Some(until) || *before != after;
                self.expect(is_over, || format!("key {key} is still {after:?}"))?;
            }
            self.take_what_is_ready()?;
        }
        Ok(())
    }

    fn take_what_is_ready(&mut self) -> Result<(), Failure> {
        let before = self.reasons()?;
        for _ in &before {
            self.compare(&Operation::TryGet, Looks::Never)?;
        }
        let after = self.reasons()?;
        for ((key, before), (_, after)) in before.iter().zip(after) {
            let may_be = match before {
                Why::Running { .. } => matches!(after, Why::Running { .. }),
                Why::Ready => matches!(
                    after,
                    Why::Running { .. }
                        | Why::GroupAtLimit
                        | Why::GroupNoToken { .. }
                        | Why::NoToken { .. }
                ),
                _ => !matches!(after, Why::Running { .. } | Why::Ready),
            };
            self.expect(may_be, || {
                format!("all that is ready is taken: key {key} was {before:?}, and is {after:?}")
            })?;
        }
        Ok(())
    }

    /// Why each key does not run, for the queue as for the model.
    fn reasons(&mut self) -> Result<Reasons, Failure> {
        let mut reasons = Vec::new();
        for key in 1..=self.keys {
            let expected = (key, self.model.why(key));
            let why = (key, self.subject.why(key));
            same("why", why, expected).map_err(|wrong| self.failure(wrong))?;
            reasons.push(why);
        }
        Ok(reasons)
    }

    /// How long until the last time before this one that the clock can show, and on to the next.
    fn time_before(&self, until: Instant) -> (Duration, Duration) {
        // Instants are 64 bits of nanoseconds, and so is what is left until one of them.
        let nanos = |duration: Duration| (Instant::EPOCH + duration).as_nanos();
        let grain = self.abilities.grain;
        let left = nanos(until.saturating_since(self.model.now()));
        let most = left.saturating_sub(1) / nanos(grain).max(1) * nanos(grain);
        (Duration::from_nanos(most), grain)
    }

    fn expect(&self, holds: bool, wrong: impl FnOnce() -> String) -> Result<(), Failure> {
        if holds {
            return Ok(());
        }
        Err(self.failure(wrong()))
    }
}

/// Whether no reason has changed, but that a run or a suspension may be followed by a run: an active
/// or suspended key may also have a deadline.
fn are_same(now: &Reasons, before: &Reasons) -> bool {
    let mut both = now.iter().zip(before);
    both.all(|((_, now), (_, before))| match (now, before) {
        (Why::Running { .. }, Why::Running { .. }) => true,
        (Why::Suspended { .. }, Why::Suspended { .. }) => now.until() == before.until(),
        _ => now == before,
    })
}
