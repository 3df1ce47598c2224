//! Ready keys that wait for their turn, which client-go does not have: [`WithRunRate`].
//!
//! [`WithRunRate`]: requeue_core::WithRunRate

use requeue_core::{Instant, RateLimiter};

use super::Model;
use crate::subject::Subject;

impl Model {
    /// From when on the first ready key may be handed out, if it may not be at any time.
    pub(crate) fn start_due(&self) -> Option<Instant> {
        let start = self.limiter.next_start();
        (start > Instant::EPOCH && !self.queue.is_empty()).then_some(start)
    }

    /// Whether there is no key for a call that waits, and will be none.
    pub(crate) fn is_over(&self) -> bool {
        self.shutting_down && self.start_due().is_none()
    }

    /// Whether a call would get a key now.
    pub(crate) fn has_a_key_now(&self) -> bool {
        self.clone().try_get().is_some()
    }
}
