//! Pauses between attempts.

use std::time::Duration;

use crate::placement::mix;

/// Pauses that double from 50 ms, each between half and all of that, so that replicas that failed
/// together do not try again together.
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

    /// As [`next`](Self::next), after what has failed had lasted so long: the pauses begin again if
    /// that is longer than the longest of them.
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
