//! Ending a program in order, on ctrl-c.

use std::io;
use std::process;

/// Calls `stop` at the first ctrl-c, and ends the process at the second, with the code 130. On Unix
/// SIGTERM and SIGHUP count as well. Needs the feature `ctrlc` of `requeue-std`.
///
/// `stop` runs on a thread of its own, which is no signal handler: it may do anything. If the
/// second signal arrives while `stop` runs, the process ends when `stop` returns. To lose no key,
/// let `stop` shut the queues down: [`run`](crate::WorkQueue::run) drains them.
///
/// # Errors
///
/// If this was called before: there is one handler. It replaces what the signals did until then,
/// also if they were ignored, as SIGHUP is under `nohup`.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use requeue::std::{Action, WorkQueue, Workers, on_ctrl_c};
///
/// # fn main() -> std::io::Result<()> {
/// let queue = WorkQueue::new();
/// let _ = queue.add("node-7");
/// on_ctrl_c({
///     let queue = queue.clone();
///     move || {
///         eprintln!("stopping; once more to stop at once");
///         queue.shut_down();
///     }
/// })?;
/// let workers = Workers::new(4).drain_timeout(Duration::from_secs(10));
/// let leftovers = queue.run(workers, |node| {
///     println!("working on {node}");
///     Action::RequeueAfter(Duration::from_secs(60))
/// })?;
/// println!("{} keys are left", leftovers.len());
/// # Ok(())
/// # }
/// ```
pub fn on_ctrl_c(stop: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut stop = Some(stop);
    let handler = move || match stop.take() {
        Some(stop) => stop(),
        None => process::exit(EXIT_INTERRUPTED),
    };
    ctrlc::set_handler(handler).map_err(io::Error::other)
}

/// What shells report for a process that SIGINT has ended: 128 and its number.
const EXIT_INTERRUPTED: i32 = 130;
