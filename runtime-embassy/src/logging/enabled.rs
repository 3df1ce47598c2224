//! Logs through the `log` facade.

const TARGET: &str = "requeue";

/// A call has to wait and finds no place.
pub(crate) fn no_place(waiters: usize) {
    log::error!(target: TARGET, "more than {waiters} calls wait for one queue");
}

/// A run failed, and is retried.
pub(crate) fn run_failed(attempt: u32) {
    log::debug!(target: TARGET, "attempt {attempt} failed");
}

/// A run failed, and its key is given up.
pub(crate) fn gave_up(attempt: u32) {
    log::warn!(target: TARGET, "attempt {attempt} failed: the key is given up");
}
