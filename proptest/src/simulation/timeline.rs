//! What happened, how it is printed, and what does not hold.

use std::fmt::{self, Debug, Write};

use requeue_core::Instant;

/// One line of a history.
pub(super) struct Entry<K> {
    pub(super) at: Instant,
    /// `None` for the world, or the test.
    pub(super) worker: Option<usize>,
    pub(super) key: Option<K>,
    pub(super) what: String,
}

/// The lines of a history: the virtual time, who, the key, and what.
pub(super) fn timeline<K: Debug>(entries: &[Entry<K>]) -> String {
    let columns = entries.iter().map(
        |Entry {
             at, worker, key, ..
         }| {
            let who = worker.map_or(String::from("world"), |number| format!("worker {number}"));
            let key = key.as_ref().map_or(String::new(), |key| format!("{key:?}"));
            [at.to_string(), who, key]
        },
    );
    let columns: Vec<[String; 3]> = columns.collect();
    let [times, whos, keys] = [0, 1, 2].map(|column| {
        let widths = columns.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for ([time, who, key], Entry { what, .. }) in columns.iter().zip(entries) {
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {time:>times$}  {who:<whos$}  {key:<keys$}  {what}");
    }
    text
}

/// The beginning and the end of a history that is too long to be read.
pub(super) fn excerpt(timeline: &str) -> String {
    let lines: Vec<_> = timeline.split_inclusive('\n').collect();
    let left_out = lines.len().saturating_sub(2 * EXCERPT);
    if left_out == 0 {
        return String::from(timeline);
    }
    let (first, last) = (&lines[..EXCERPT], &lines[EXCERPT + left_out..]);
    let between = format!("  … {left_out} lines are left out …\n");
    [&first.concat(), &*between, &last.concat()].concat()
}

/// How many lines are shown at both ends of a history.
const EXCERPT: usize = 60;

/// A kind of promise that a history can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// [`World::always`](super::World::always), after some step.
    Always,
    /// [`World::eventually`](super::World::eventually), once all was quiet.
    Eventually,
    /// A run ends.
    RunEnds,
    /// A history ends: it does not take steps for ever.
    HistoryEnds,
    /// The world's own code does not panic.
    WorldPanics,
    /// The same seed gives the same history.
    SameSeedSameHistory,
}

/// A property that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// The property that does not hold.
    pub property: Property,
    /// The reason in words, with the virtual time, and the key if there is one.
    pub reason: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.property {
            Property::Always => "`always` does not hold",
            Property::Eventually => "`eventually` does not hold",
            Property::RunEnds => "a run does not end",
            Property::HistoryEnds => "there is no end to it",
            Property::WorldPanics => "the world panics",
            Property::SameSeedSameHistory => "the same seed gives another history",
        };
        write!(f, "{what}: {}", self.reason)
    }
}

impl std::error::Error for Breach {}
