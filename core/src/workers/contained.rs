//! Hooks that panic, which is caught: only with the feature `std` it can be.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls a hook. A panic in it ends only the hook.
pub(super) fn contain(hook: impl FnOnce()) {
    // A hook answers for its own state, as after any panic on a thread.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
        // The payload's `Drop` is foreign code, too: a second one is leaked.
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
        core::mem::forget(dropped);
    }
}
