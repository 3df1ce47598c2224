//! A queue that panics is a finding like any other.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs `work`, and answers the message if it panics, for a test to put into its own. What it
/// worked on must not be used any more then, but to be looked at.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let message = payload.downcast_ref::<String>().map(String::as_str);
        let message = message.or_else(|| payload.downcast_ref().copied());
        String::from(message.unwrap_or("it does not tell why"))
    })
}
