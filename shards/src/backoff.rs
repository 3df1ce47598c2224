//! Pauses between attempts.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Pauses that double from 50 ms, each between half and all of that, so that replicas that failed
/// together do not try again together.
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
    random: RandomState,
    attempts: u32,
}

impl Backoff {
    pub(crate) fn new(most: Duration) -> Self {
        let next = Duration::from_millis(50).min(most);
        Self {
            next,
            most,
            random: RandomState::new(),
            attempts: 0,
        }
    }

    pub(crate) fn next(&mut self) -> Duration {
        self.attempts = self.attempts.wrapping_add(1);
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.most);
        let share = u32::try_from(self.random.hash_one(self.attempts) % 512).unwrap_or_default();
        whole * (512 + share) / 1024
    }
}
