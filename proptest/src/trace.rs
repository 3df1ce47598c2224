//! Replays what the real client-go was recorded doing.
//!
//! A recording is one JSON object: a list of operations on one queue, and everything that could be
//! seen after each of them. A file holds one recording per line, all of one [`Kind`]. The replay
//! does the same to a queue of ours and compares everything, to the nanosecond. Where requeue
//! differs from client-go on purpose, the [reference model](crate::Model) predicts exactly how, and
//! the [difference](differences) is counted under its name.

pub mod backoff;
pub mod differences;
pub mod file;
pub use crate::limiter;
pub mod limiter_replay;
mod player;
pub mod priority;
mod priority_replay;
pub mod queue;
mod queue_replay;
mod report;
mod runtime;
pub mod ties;

use serde_json::Value;

use crate::subject::Subject;
use report::{Progress, Stop, replay_lines};
use runtime::Visitor;

pub use report::{BadTrace, Report};
pub use runtime::{Runtime, UnknownRuntime};

/// What a file of recordings is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// client-go's rate-limiting queue, misuse included.
    Queue,
    /// client-go's delaying queue, with deadlines that tie.
    Ties,
    /// client-go's rate limiters, without a queue.
    Limiter,
    /// apimachinery's backoff.
    Backoff,
    /// controller-runtime's priority queue.
    Priority,
}

impl Kind {
    /// Tells the kind of a file by its first recording.
    ///
    /// # Errors
    ///
    /// [`BadTrace`] if there is none, or if it is of no kind we know.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_proptest::trace::Kind;
    ///
    /// let recorded = r#"{"id":"a","limiter":{"type":"default_item_based"},"ops":[]}"#;
    /// assert_eq!(Kind::detect(recorded), Ok(Kind::Limiter));
    /// assert!(Kind::detect("[1, 2, 3]").is_err());
    /// ```
    pub fn detect(jsonl: &str) -> Result<Self, BadTrace> {
        let lines = jsonl.lines().enumerate();
        let Some((index, first)) = lines
            .map(|(at, it)| (at, it.trim()))
            .find(|it| !it.1.is_empty())
        else {
            let reason = String::from("no recordings");
            return Err(BadTrace { line: 1, reason });
        };
        let bad = |reason: String| BadTrace {
            line: index + 1,
            reason,
        };
        let trace: Value = serde_json::from_str(first)
            .map_err(|error| bad(format!("not a recording: {error}")))?;
        let has = |member: &str| trace.get(member).is_some();
        let end = trace.get("final");
        if !has("id") || !has("ops") {
            Err(bad(String::from(
                "not a recording: no \"id\" or no \"ops\"",
            )))
        } else if end.is_some_and(|end| end.get("depth_by_priority").is_some()) {
            Ok(Self::Priority)
        } else if end.is_some() {
            Ok(Self::Queue)
        } else if has("kind") {
            Ok(Self::Backoff)
        } else if has("limiter") {
            Ok(Self::Limiter)
        } else if has("keys") {
            Ok(Self::Ties)
        } else {
            Err(bad(String::from("a recording of no kind that is known")))
        }
    }
}

/// Replays a file of recordings of whatever kind on one of our queues.
///
/// # Errors
///
/// [`BadTrace`] if the file cannot be replayed.
pub fn replay(jsonl: &str, runtime: Runtime) -> Result<Report, BadTrace> {
    match Kind::detect(jsonl)? {
        Kind::Queue => replay_lines(jsonl, |trace: queue::Trace, progress| {
            let keys = trace.keys;
            runtime.visit(keys, PlayQueue(&trace, progress))
        }),
        Kind::Ties => replay_lines(jsonl, |trace: ties::Trace, progress| {
            let keys = trace.keys;
            runtime.visit(keys, PlayTies(&trace, progress))
        }),
        Kind::Limiter => limiter_replay::replay(jsonl),
        Kind::Backoff => backoff::replay(jsonl),
        Kind::Priority => replay_lines(jsonl, |trace: priority::Trace, progress| {
            let keys = trace.keys;
            runtime.visit_leveled(keys, PlayPriority(&trace, progress))
        }),
    }
}

/// Replays a file of recordings of queues on a [`Subject`] of one's own.
///
/// It must have room for every key of the file, and [`LEVELS`](priority::LEVELS) levels if these
/// are recordings of priorities.
///
/// # Errors
///
/// [`BadTrace`] if the file cannot be replayed.
///
/// # Examples
///
/// ```
/// use requeue_core::Growable;
/// use requeue_proptest::subject::Direct;
/// use requeue_proptest::trace::replay_on;
///
/// let recorded = r#"{"id":"a","keys":2,"ops":[{"op":"add_after","k":2,"d":5,"len":0},
///     {"op":"advance","d":5,"t":5,"len":1},
///     {"op":"drain_all","groups":[[2]],"go_order":[2],"len":0}]}"#;
/// let report = replay_on::<Direct<Growable>>(&recorded.replace('\n', ""))?;
/// assert_eq!((report.steps, report.mismatches), (3, 0));
/// # Ok::<(), requeue_proptest::trace::BadTrace>(())
/// ```
pub fn replay_on<S: Subject>(jsonl: &str) -> Result<Report, BadTrace> {
    match Kind::detect(jsonl)? {
        Kind::Queue => replay_lines(jsonl, |trace, progress| {
            queue_replay::replay::<S>(&trace, progress)
        }),
        Kind::Ties => replay_lines(jsonl, |trace, progress| ties::replay::<S>(&trace, progress)),
        Kind::Limiter => limiter_replay::replay(jsonl),
        Kind::Backoff => backoff::replay(jsonl),
        Kind::Priority => replay_lines(jsonl, |trace, progress| {
            priority_replay::replay::<S>(&trace, progress)
        }),
    }
}

struct PlayQueue<'t>(&'t queue::Trace, &'t mut Progress);

impl Visitor for PlayQueue<'_> {
    fn visit<S: Subject>(self) -> Result<(), Stop> {
        queue_replay::replay::<S>(self.0, self.1)
    }
}

struct PlayTies<'t>(&'t ties::Trace, &'t mut Progress);

impl Visitor for PlayTies<'_> {
    fn visit<S: Subject>(self) -> Result<(), Stop> {
        ties::replay::<S>(self.0, self.1)
    }
}

struct PlayPriority<'t>(&'t priority::Trace, &'t mut Progress);

impl Visitor for PlayPriority<'_> {
    fn visit<S: Subject>(self) -> Result<(), Stop> {
        priority_replay::replay::<S>(self.0, self.1)
    }
}
