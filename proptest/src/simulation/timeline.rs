//! What happened: the history of a run, and how it is printed.

use std::borrow::Cow;
use std::fmt::{self, Debug, Write};
use std::time::Duration;

use requeue_core::Instant;

/// One line of a history.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Entry<K> {
    pub(super) at: Instant,
    pub(super) who: Who,
    pub(super) key: Option<K>,
    pub(super) what: What,
}

/// Who did something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    /// The user's world, or the test.
    World,
    /// A worker, counted from zero.
    Worker(usize),
}

/// What was done.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum What {
    Event(String),
    Added(&'static str, String),
    Refused,
    Suspend(Duration, bool),
    Resume(bool),
    Begins { run: u32, attempt: u32 },
    Request(Cow<'static, str>, Duration),
    RequestLost(Cow<'static, str>),
    Done(Cow<'static, str>, Duration),
    Answer(Cow<'static, str>),
    AnswerLost(Cow<'static, str>),
    TimedOut(Cow<'static, str>),
    Landed(Cow<'static, str>),
    Sleeps(Duration),
    Note(String),
    Ends(String),
    Panics(String),
    Aborted,
    Finished(String),
    TooLate,
    ShutsDown(&'static str),
    HandedBack(Duration),
    Successor,
}

impl fmt::Display for What {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Event(event) => f.write_str(event),
            Self::Added(how, outcome) => write!(f, "{how}: {outcome}"),
            Self::Refused => f.write_str("add: refused, the queue is shutting down"),
            Self::Suspend(timeout, true) => write!(f, "suspend: for {timeout:?} at most"),
            Self::Suspend(..) => f.write_str("suspend: the queue does not have the key"),
            Self::Resume(true) => f.write_str("resume: it was suspended"),
            Self::Resume(false) => f.write_str("resume: it was not suspended"),
            Self::Begins { run, attempt: 1 } => write!(f, "run {run} begins"),
            Self::Begins { run, attempt } => write!(f, "run {run} begins, attempt {attempt}"),
            Self::Request(call, Duration::ZERO) => write!(f, "{call}: sent"),
            Self::Request(call, delay) => write!(f, "{call}: sent, {delay:?} on its way"),
            Self::RequestLost(call) => write!(f, "{call}: fails, the request was LOST"),
            Self::Done(call, Duration::ZERO) => write!(f, "{call}: done"),
            Self::Done(call, delay) => write!(f, "{call}: done, the answer takes {delay:?}"),
            Self::Answer(call) => write!(f, "{call}: answered"),
            Self::AnswerLost(call) => write!(f, "{call}: fails, done but the answer was LOST"),
            Self::TimedOut(call) => write!(f, "{call}: fails, and may come LATE"),
            Self::Landed(call) => write!(f, "{call}: done LATE"),
            Self::Sleeps(delay) => write!(f, "sleeps {delay:?}"),
            Self::Note(note) => f.write_str(note),
            Self::Ends(answer) => write!(f, "run ends: {answer}"),
            Self::Panics(message) => write!(f, "run PANICS: {message}"),
            Self::Aborted => f.write_str("run is ABORTED, its future dropped"),
            Self::Finished(outcome) => write!(f, "the key is {outcome}"),
            Self::TooLate => f.write_str("too late to begin with a key: the worker goes"),
            Self::ShutsDown(how) => write!(f, "the queue is SHUT DOWN: {how}"),
            Self::HandedBack(Duration::ZERO) => f.write_str("handed back"),
            Self::HandedBack(left) => write!(f, "handed back, {left:?} too early"),
            Self::Successor => f.write_str("a successor starts with what was handed back"),
        }
    }
}

/// The lines of a history: the virtual time, who, the key, and what.
pub(super) fn timeline<K: Debug>(entries: &[Entry<K>]) -> String {
    let entries: Vec<_> = merged(entries).collect();
    let time = |entry: &Entry<K>| entry.at.to_string();
    let who = |entry: &Entry<K>| match entry.who {
        Who::World => String::from("world"),
        Who::Worker(number) => format!("worker {number}"),
    };
    let key = |entry: &Entry<K>| {
        entry
            .key
            .as_ref()
            .map_or(String::new(), |k| format!("{k:?}"))
    };
    let widest = |column: &dyn Fn(&Entry<K>) -> String| {
        let widths = entries.iter().map(|entry| column(entry).chars().count());
        widths.max().unwrap_or(0)
    };
    let (times, whos, keys) = (widest(&time), widest(&who), widest(&key));
    entries.iter().fold(String::new(), |mut text, entry| {
        let (time, who, key) = (time(entry), who(entry), key(entry));
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "  {time:>times$}  {who:<whos$}  {key:<keys$}  {}",
            entry.what
        );
        text
    })
}

/// What does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// [`World::always`](super::World::always), after some step.
    Always,
    /// [`World::eventually`](super::World::eventually), once all was quiet.
    Eventually,
    /// No key is run twice at once.
    OneRunPerKey,
    /// Every add is followed by a run that begins after it.
    EveryAddRuns,
    /// No key is run while it is suspended.
    SuspendedKeysWait,
    /// What was not worked on before a shutdown is handed back, once.
    HandedBack,
    /// A queue that is shut down drains, and its workers go.
    DrainEnds,
    /// A run ends.
    RunEnds,
    /// A history ends: it does not take steps for ever.
    HistoryEnds,
    /// The queue's own invariants.
    QueueIsValid,
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
            Self::OneRunPerKey => "a key is run twice at once",
            Self::SuspendedKeysWait => "a key is run while it is suspended",
            Self::EveryAddRuns => "an add is not followed by a run",
            Self::HandedBack => "what was left over is not what was handed back",
            Self::DrainEnds => "the drain does not end",
            Self::RunEnds => "a run does not end",
            Self::HistoryEnds => "there is no end to it",
            Self::QueueIsValid => "an invariant of the queue does not hold",
            Self::WorldPanics => "the world panics",
            Self::SameSeedSameHistory => "the same seed gives another history",
        })
    }
}

/// The beginning and the end of what is too long to be read.
pub(super) fn excerpt(timeline: &str) -> String {
    let lines: Vec<_> = timeline.split_inclusive('\n').collect();
    let Some(left_out) = lines
        .len()
        .checked_sub(2 * EXCERPT)
        .filter(|left_out| *left_out > 0)
    else {
        return String::from(timeline);
    };
    let (first, last) = (&lines[..EXCERPT], &lines[EXCERPT + left_out..]);
    let between = format!("  … {left_out} lines are left out …\n");
    [&first.concat(), &between, &last.concat()]
        .map(String::as_str)
        .concat()
}

/// How many lines are shown at both ends of a history.
const EXCERPT: usize = 60;

/// A call that is not interrupted is one line, not three.
fn merged<K>(entries: &[Entry<K>]) -> impl Iterator<Item = &Entry<K>> {
    let same = |entry: &Entry<K>, other: Option<&Entry<K>>, what: fn(&What) -> bool| {
        other.is_some_and(|other| {
            other.who == entry.who && other.at == entry.at && what(&other.what)
        })
    };
    entries
        .iter()
        .enumerate()
        .filter_map(move |(place, entry)| {
            let next = entries.get(place + 1);
            let last = place.checked_sub(1).and_then(|last| entries.get(last));
            let is_merged = match &entry.what {
                What::Request(..) => same(entry, next, |next| {
                    matches!(
                        next,
                        What::Done(..) | What::RequestLost(_) | What::TimedOut(_)
                    )
                }),
                What::Done(..) => same(entry, next, |next| matches!(next, What::AnswerLost(_))),
                What::Answer(_) => same(entry, last, |last| matches!(last, What::Done(..))),
                _ => false,
            };
            (!is_merged).then_some(entry)
        })
}

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
