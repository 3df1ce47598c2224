//! Replays what the real client-go, apimachinery and controller-runtime were recorded doing.
//!
//! A recording is one JSON object: a list of operations, and everything that could be seen after
//! each of them, in nanoseconds. A file holds one recording per line, all of one [`Kind`];
//! `proptest/traces/FORMAT.md` describes them. The replay does the same to one of our queues and
//! compares everything. Where requeue differs from the upstream queue on purpose, the
//! [reference model](requeue_proptest::Model) predicts how, and the [difference](differences) is
//! counted under its name.
//!
//! ```text
//!                  recorded ────────────────┐ must be what the upstream's rules say
//!   operation ──▶  model, upstream's rules ─┘
//!            ├──▶  the queue ───────────────┐ must do what requeue's rules say
//!            └──▶  model, requeue's rules ──┘
//! ```
//!
//! ```text
//! cargo run --release -p requeue-replay --bin replay -- --runtime RUNTIME PATH…
//! ```
//!
//! A runtime is `core-fixed`, `core-growable`, `std`, `tokio` or `embassy`, a path a file or a
//! folder. The program prints a line for each file and for each documented difference. It exits
//! with 1 if a result differs otherwise, and prints the history of the first one.

#![forbid(unsafe_code)]

pub mod backoff;
pub mod differences;
mod engine;
pub mod file;
mod kind;
pub mod limiters;
mod player;
mod recording;
mod report;
mod runtime;

use recording::Recording;
use report::{Stop, replay_lines};

pub use kind::Kind;
pub use report::{BadTrace, Report};
pub use runtime::{Runtime, UnknownRuntime};

/// Replays a file of recordings of any kind on one of our queues. Recordings without a queue are
/// replayed on core's limiters and backoffs.
///
/// # Errors
///
/// [`BadTrace`] if the file cannot be replayed.
///
/// # Examples
///
/// ```
/// use requeue_replay::{Runtime, replay};
///
/// let recorded = r#"{"id":"a","keys":2,"ops":[{"op":"add_after","k":2,"d":5,"len":0},
///     {"op":"advance","d":5,"t":5,"len":1},
///     {"op":"drain_all","groups":[[2]],"go_order":[2],"len":0}]}"#;
/// let report = replay(&recorded.replace('\n', ""), Runtime::Tokio)?;
/// assert_eq!((report.steps, report.mismatches), (3, 0));
/// # Ok::<(), requeue_replay::BadTrace>(())
/// ```
pub fn replay(jsonl: &str, runtime: Runtime) -> Result<Report, BadTrace> {
    match Kind::detect(jsonl)? {
        Kind::Limiter => limiters::replay(jsonl),
        Kind::Backoff => backoff::replay(jsonl),
        kind => replay_lines(jsonl, |recording: Recording, progress| {
            recording.check(kind).map_err(Stop::Bad)?;
            let subject = runtime.subject(kind, recording.keys)?;
            engine::replay(kind, &recording, subject, progress)
        }),
    }
}
