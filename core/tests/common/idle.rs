//! What the tests of workers end their runs in.

use requeue_core::Instant;
use requeue_core::binding::Runs;

/// A queue in which nothing happens.
pub(crate) struct Idle;

impl Runs<u8> for Idle {
    fn now(&self) -> Instant {
        Instant::EPOCH
    }

    fn contains(&self, _: &u8) -> bool {
        true
    }
}
