//! Delays that may become a little longer, so that one wake serves several keys.

use std::time::Duration;

use requeue_core::Instant;

use super::Model;

impl Model {
    /// Lets delays become longer, or not: then slack changes nothing.
    pub(crate) fn with_slack(mut self, slackens: bool) -> Self {
        self.may_slacken = slackens;
        self
    }

    /// "Lets the next run begin a little later, up to so many percent of its delay"
    /// ([`with_slack`](requeue_core::Action::with_slack)).
    pub(super) fn slackened(&self, delay: Duration, percent: u8) -> Duration {
        let earliest = self.now + delay;
        if !self.may_slacken || earliest.is_never() {
            return delay;
        }
        let nanos = delay.as_nanos() * u128::from(percent) / 100;
        let slack = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX));
        roundest(earliest, slack) - self.now
    }
}

/// "The one that is divisible by the largest power of two nanoseconds"
/// ([`within`](Instant::within)).
pub(super) fn roundest(earliest: Instant, slack: Duration) -> Instant {
    // Zero is divisible by every power.
    if earliest == Instant::EPOCH || earliest.is_never() {
        return earliest;
    }
    // "No other instant becomes it."
    let latest = (earliest + slack).as_nanos().min(u64::MAX - 1);
    let rounded = (0..u64::BITS).rev().map(|zeros| latest >> zeros << zeros);
    let mut allowed = rounded
        .map(Instant::from_nanos)
        .filter(|at| *at >= earliest);
    allowed.next().unwrap_or(earliest)
}
