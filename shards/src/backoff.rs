//! Pauses between attempts.

use std::time::Duration;

use crate::placement::mix;

/// Pauses that double from 50 ms, each between half and all of that, so that replicas that failed
/// together do not try again together.
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
    random: u64,
}

impl Backoff {
    /// Different seeds give different pauses.
    pub(crate) fn new(most: Duration, seed: u64) -> Self {
        let next = Duration::from_millis(50).min(most);
        Self {
            next,
            most,
            random: mix(seed),
        }
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.random = mix(self.random.wrapping_add(1));
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.most);
        let share = u32::try_from(self.random % 512).unwrap_or_default();
        whole * (512 + share) / 1024
    }
}
