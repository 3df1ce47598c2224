//! A queue in a web page. JavaScript has the clock and the timer: it passes the time to each call, in
//! milliseconds as `performance.now()` counts them, and looks again when `next_look` says.
//! `page.mjs` is the other half.

#![allow(
    unsafe_code,
    reason = "`no_mangle` counts as unsafe, because two functions of one name could meet"
)]

use std::cell::RefCell;
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Work};
use requeue_core::limiter::Exponential;
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant, Queue};

/// The rows of a table that have to be fetched, by their numbers.
struct Rows {
    queue: Queue<u32, Plain, Exponential, Growable>,
    getter: Getter,
    /// The row that is fetched now.
    run: Option<Work<u32>>,
    next_look: Instant,
}

/// The first pause after a failure, and the longest.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(60);

thread_local! {
    static ROWS: RefCell<Rows> = RefCell::new(Rows {
        queue: Queue::growable(Exponential::new(PAUSE, PAUSE_MAX)),
        getter: Getter::new(),
        run: None,
        next_look: Instant::NEVER,
    });
}

fn with<T>(work: impl FnOnce(&mut Rows) -> T) -> T {
    ROWS.with_borrow_mut(work)
}

/// A length of time from JavaScript: less than zero and no number are zero.
fn duration(millis: f64) -> Duration {
    Duration::try_from_secs_f64(millis.max(0.0) / 1e3).unwrap_or(Duration::MAX)
}

fn instant(millis: f64) -> Instant {
    Instant::EPOCH + duration(millis)
}

/// Adds a row.
#[unsafe(no_mangle)]
pub extern "C" fn add(row: u32, now: f64) {
    with(|rows| {
        let _ = rows.queue.at(instant(now)).add(row);
    });
}

/// Adds a row after `delay` milliseconds.
#[unsafe(no_mangle)]
pub extern "C" fn add_after(row: u32, delay: f64, now: f64) {
    with(|rows| {
        let _ = rows.queue.at(instant(now)).add_after(row, duration(delay));
    });
}

/// Begins a run: returns its row, or -1 if there is none, or if the run before has not ended.
#[unsafe(no_mangle)]
pub extern "C" fn begin(now: f64) -> f64 {
    with(|rows| {
        if rows.run.is_some() {
            return -1.0;
        }
        match rows.queue.at(instant(now)).poll_get(&mut rows.getter) {
            Next::Work(work) => {
                let row = work.key;
                rows.run = Some(work);
                row.into()
            }
            Next::Wait { until } => {
                rows.next_look = until.unwrap_or(Instant::NEVER);
                -1.0
            }
            Next::Closed => -1.0,
        }
    })
}

/// Ends the run. A row that has failed is fetched again, after a pause that doubles.
#[unsafe(no_mangle)]
pub extern "C" fn end(has_failed: bool, now: f64) {
    with(|rows| {
        if let Some(work) = rows.run.take() {
            let action = if has_failed {
                Action::Retry
            } else {
                Action::Success
            };
            rows.queue.at(instant(now)).finish(work.ticket, action);
        }
    });
}

/// When to look again if nothing is added before: infinity if only an add can bring work.
#[unsafe(no_mangle)]
pub extern "C" fn next_look() -> f64 {
    with(|rows| match rows.next_look {
        Instant::NEVER => f64::INFINITY,
        at => (at - Instant::EPOCH).as_secs_f64() * 1e3,
    })
}
