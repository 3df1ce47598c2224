//! Hooks that panic, which cannot be caught without the feature `std`.

/// Calls a hook.
pub(super) fn contain(hook: impl FnOnce()) {
    hook();
}
