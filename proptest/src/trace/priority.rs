//! Recordings of controller-runtime's priority queue, as they are read.

use std::collections::BTreeSet;
use std::fmt;

use serde::Deserialize;

use super::limiter::LimiterSpec;
use crate::subject::Key;

/// How many levels a queue has that recordings are replayed on.
pub const LEVELS: usize = 16;

/// One recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trace {
    /// Its name.
    pub id: String,
    /// Its keys are `1..=keys`.
    pub keys: Key,
    /// The limiter of its queue.
    pub limiter: LimiterSpec,
    /// What was done, and what came of it.
    #[serde(rename = "ops")]
    pub steps: Vec<Step>,
    /// How things stood in the end.
    #[serde(rename = "final")]
    pub end: End,
}

/// One operation, and what was seen after it.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    /// The operation and its own result.
    #[serde(flatten)]
    pub op: Op,
    /// How many keys were ready then. Keys that were added while they were in work are among them.
    pub len: usize,
}

/// An operation and its result.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case")]
pub enum Op {
    /// `AddWithOpts`.
    Add(Add),
    /// `GetWithPriority`.
    Get {
        /// The key that was handed out.
        k: Option<Key>,
        /// Its priority.
        priority: Option<i64>,
        /// The queue was shut down.
        #[serde(default)]
        shutdown: bool,
        /// It would have waited.
        #[serde(default)]
        would_block: bool,
    },
    /// `Done`.
    Done {
        /// The key.
        k: Key,
        /// The key was not in work.
        #[serde(default)]
        unpaired: bool,
    },
    /// `Forget`.
    Forget {
        /// The key.
        k: Key,
    },
    /// `NumRequeues`.
    NumRequeues {
        /// The key.
        k: Key,
        /// How many.
        n: u32,
    },
    /// `Len`, which every operation tells.
    Len,
    /// `ShutDown`.
    ShutDown,
    /// Time passes.
    Advance {
        /// How much, in nanoseconds.
        d: u64,
        /// What time it is then.
        t: u64,
        /// The gauge of unfinished work then.
        unfinished_ns: u64,
        /// The gauge of the longest run then.
        longest_ns: u64,
    },
}

/// The arguments of `AddWithOpts`, and what the limiter said.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Add {
    /// The keys, one after the other.
    pub ks: Vec<Key>,
    /// In nanoseconds, which may be negative; 0 for none.
    pub after: i64,
    /// Whether the limiter is asked.
    pub rate_limited: bool,
    /// Nothing stands for 0.
    pub priority: Option<i64>,
    /// What the limiter said of each key.
    #[serde(default)]
    pub delays: Vec<i64>,
}

/// How things stood in the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How many keys were ready.
    pub len: usize,
    /// What time it was.
    pub t: u64,
    /// How many keys of each priority were ready, where that was any.
    pub depth_by_priority: Vec<(i64, usize)>,
    /// How many adds were counted.
    pub adds: u64,
    /// How many retries were counted.
    pub retries: u64,
    /// Each observation of the queue latency.
    pub latency_ns: Vec<u64>,
    /// Each observation of the work duration.
    pub work_duration_ns: Vec<u64>,
    /// The gauge of unfinished work.
    pub unfinished_work_ns: u64,
    /// The gauge of the longest run.
    pub longest_running_ns: u64,
    /// How many times the two gauges were set.
    pub metric_ticks: u64,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Get {
                k: Some(key),
                priority,
                ..
            } => {
                write!(f, "get -> {key} of priority {}", priority.unwrap_or(0))
            }
            Self::Get { shutdown: true, .. } => f.write_str("get -> shut down"),
            Self::Get { .. } => f.write_str("get -> would wait"),
            other => write!(f, "{other:?}"),
        }
    }
}

impl Trace {
    /// The priorities that occur, the lowest first: the place of each is its level.
    pub fn priorities(&self) -> Vec<i64> {
        let mut priorities = BTreeSet::from([0]);
        for step in &self.steps {
            if let Op::Add(add) = &step.op {
                priorities.extend(add.priority);
            }
        }
        priorities.into_iter().collect()
    }

    /// What is wrong with the recording, if anything is.
    ///
    /// # Errors
    ///
    /// A sentence for a key that is none of its keys, or for more priorities than there are levels.
    pub fn check(&self) -> Result<(), String> {
        let named = self.steps.iter().flat_map(|step| step.op.keys());
        if let Some(key) = named.into_iter().find(|key| !(1..=self.keys).contains(key)) {
            return Err(format!(
                "{}: key {key} is not one of 1..={}",
                self.id, self.keys
            ));
        }
        let priorities = self.priorities().len();
        if priorities > LEVELS {
            return Err(format!(
                "{}: {priorities} priorities, of {LEVELS} at most",
                self.id
            ));
        }
        Ok(())
    }
}

impl Op {
    fn keys(&self) -> Vec<Key> {
        match self {
            Self::Add(add) => add.ks.clone(),
            Self::Get { k, .. } => k.iter().copied().collect(),
            Self::Done { k, .. } | Self::Forget { k } | Self::NumRequeues { k, .. } => vec![*k],
            Self::Len | Self::ShutDown | Self::Advance { .. } => Vec::new(),
        }
    }
}
