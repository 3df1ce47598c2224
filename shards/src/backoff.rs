//! Pauses between attempts.

use std::time::Duration;

use crate::placement::mix;

/// Pauses that double from 50 ms. Each is a random share of that, from half to all, so that
/// replicas do not retry in lockstep.
pub(crate) struct Backoff {
    first: Duration,
    next: Duration,
    most: Duration,
    random: u64,
}

impl Backoff {
    /// Different seeds give different pauses.
    pub(crate) fn new(most: Duration, seed: u64) -> Self {
        let first = Duration::from_millis(50).min(most);
        Self {
            first,
            next: first,
            most,
            random: mix(seed),
        }
    }

    /// As [`next`](Self::next), after a failure of something that `lasted` so long. If it lasted
    /// longer than the longest pause, the pauses start again.
    pub(crate) fn next_after(&mut self, lasted: Duration) -> Duration {
        if lasted > self.most {
            self.next = self.first;
        }
        self.next()
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.random = mix(self.random.wrapping_add(1));
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.most);
        let share = u32::try_from(self.random % 512).unwrap_or_default();
        whole * (512 + share) / 1024
    }
}
