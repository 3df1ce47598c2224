//! Through the `log` facade.

const TARGET: &str = "requeue";

/// A call would have had to wait and found no place.
pub(crate) fn no_place(waiters: usize) {
    log::error!(target: TARGET, "more than {waiters} calls wait for one queue");
}

/// A run has failed and will be repeated.
pub(crate) fn run_failed(attempt: u32) {
    log::debug!(target: TARGET, "attempt {attempt} failed");
}

/// A key has failed too often.
pub(crate) fn gave_up(attempt: u32) {
    log::warn!(target: TARGET, "attempt {attempt} failed: the key is given up");
}
