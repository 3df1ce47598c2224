//! What happened: the history of a run, and how it is printed.

use std::fmt::{self, Debug, Write};

use requeue_core::Instant;

/// One line of a history.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry<K> {
    pub(super) at: Instant,
    pub(super) who: Who,
    pub(super) key: Option<K>,
    pub(super) what: String,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The user's world, or the test.
    World,
    /// A worker, counted from zero.
    Worker(usize),
}

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::World => f.write_str("world"),
            Self::Worker(number) => write!(f, "worker {number}"),
        }
    }
}

/// The lines of a history: the virtual time, who, the key, and what.
pub(super) fn timeline<K: Debug>(entries: &[Entry<K>]) -> String {
    let columns = entries.iter().map(|entry| {
        let key = entry.key.as_ref();
        let key = key.map_or(String::new(), |key| format!("{key:?}"));
        [entry.at.to_string(), entry.who.to_string(), key]
    });
    let columns: Vec<[String; 3]> = columns.collect();
    let [times, whos, keys] = [0, 1, 2].map(|column| {
        let widths = columns.iter().map(|line| line[column].chars().count());
        widths.max().unwrap_or(0)
    });
    let mut text = String::new();
    for ([time, who, key], entry) in columns.iter().zip(entries) {
        let what = &entry.what;
        // Writing to a string does not fail.
        let _ = writeln!(text, "  {time:>times$}  {who:<whos$}  {key:<keys$}  {what}");
    }
    text
}

/// What does not hold.
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

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Always => "`always` does not hold",
            Self::Eventually => "`eventually` does not hold",
            Self::RunEnds => "a run does not end",
            Self::HistoryEnds => "there is no end to it",
            Self::WorldPanics => "the world panics",
            Self::SameSeedSameHistory => "the same seed gives another history",
        })
    }
}

/// The beginning and the end of what is too long to be read.
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

/// A property that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// What does not hold.
    pub property: Property,
    /// In words, with the virtual time and the key where there is one.
    pub reason: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.property, self.reason)
    }
}

impl std::error::Error for Breach {}
