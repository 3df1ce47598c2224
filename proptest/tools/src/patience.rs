//! An end to waiting for nothing.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// How long a test may take before a call waits in vain.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does `work` on a thread of its own.
///
/// # Panics
///
/// If the work does, or if it has not ended after a minute.
///
/// # Examples
///
/// ```
/// assert_eq!(requeue_test_tools::in_time(|| 6 * 7), 42);
/// ```
#[track_caller]
pub fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let worker = thread::spawn(move || {
        let value = work();
        let _ = done.send(());
        value
    });
    match ended.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("a call waits in vain"),
        _ => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
    }
}
