//! What is logged, if the feature `log` is on. Owns the words; never decides anything.

#[cfg(feature = "log")]
const TARGET: &str = "requeue";

/// A call has to wait and finds no place.
pub(crate) fn no_place(waiters: usize) {
    #[cfg(feature = "log")]
    log::error!(target: TARGET, "more than {waiters} calls wait for one queue");
    let _ = waiters;
}

/// A run failed, and is retried.
pub(crate) fn run_failed(attempt: u32) {
    #[cfg(feature = "log")]
    log::debug!(target: TARGET, "attempt {attempt} failed");
    let _ = attempt;
}

/// A run failed, and its key is given up.
pub(crate) fn gave_up(attempt: u32) {
    #[cfg(feature = "log")]
    log::warn!(target: TARGET, "attempt {attempt} failed: the key is given up");
    let _ = attempt;
}
