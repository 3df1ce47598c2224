//! Replays what the real client-go, apimachinery and controller-runtime were recorded doing.
//!
//! A recording is one JSON object: a list of operations, and everything that could be seen after
//! each of them, in nanoseconds. A file holds one recording per line, all of one kind;
//! `proptest/traces/FORMAT.md` describes them. The replay does the same to one of our queues,
//! records it as the upstream queue was recorded, and compares the two recordings. Where requeue
//! differs from the upstream queue on purpose, the [reference model](requeue_proptest::Model) and a
//! model of the upstream queue predict how, and the [difference](differences) is counted under its
//! name.
//!
//! ```text
//!                  recorded ─────────────┐ must be what the model says
//!   operation ──▶  model of upstream ────┘
//!            ├──▶  the queue ────────────┐ must do what the model says
//!            └──▶  model of requeue ─────┘
//! ```

#![forbid(unsafe_code)]

pub mod backoff;
pub mod differences;
mod engine;
mod recorder;
mod recording;
mod report;
mod runtime;
mod upstream;

use recording::Recording;
use report::replay_lines;

pub use recording::Kind;
pub use report::Report;
pub use runtime::Runtime;

/// Replays a file of recordings of this kind on one of our queues.
///
/// # Errors
///
/// The first line that is no such recording, and why.
///
/// # Examples
///
/// ```
/// use requeue_replay::{Kind, Runtime, replay};
///
/// let recorded = r#"{"id":"a","keys":2,"ops":[{"op":"add_after","k":2,"d":5,"len":0},
///     {"op":"advance","d":5,"t":5,"len":1},
///     {"op":"drain_all","groups":[[2]],"go_order":[2],"len":0}]}"#;
/// let report = replay(&recorded.replace('\n', ""), Kind::Ties, Runtime::Tokio)?;
/// assert_eq!((report.steps, report.mismatches), (3, 0));
/// # Ok::<(), String>(())
/// ```
pub fn replay(jsonl: &str, kind: Kind, runtime: Runtime) -> Result<Report, String> {
    replay_lines(jsonl, |recording: &Recording, report| {
        let subject = runtime.subject(kind, recording.keys);
        engine::replay(kind, recording, subject, report)
    })
}
