//! Recordings of client-go's rate-limiting queue, as they are read.

use std::fmt;

use serde::Deserialize;

use super::limiter::LimiterSpec;
use crate::subject::Key;

/// One recording.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawTrace")]
pub struct Trace {
    /// Its name.
    pub id: String,
    /// Its keys are `1..=keys`.
    pub keys: Key,
    /// The limiter of its queue.
    pub limiter: LimiterSpec,
    /// What was done, and what came of it.
    pub steps: Vec<Step>,
    /// How things stood in the end.
    pub end: End,
}

/// One operation, and what was seen after it.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RawStep")]
pub struct Step {
    /// The operation and its own result.
    pub op: Op,
    /// How many keys were ready then.
    pub len: usize,
    /// Which calls of `ShutDownWithDrain` had returned then.
    pub drained: Vec<bool>,
}

/// An operation and its result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// `Add`.
    Add(Key),
    /// `AddAfter`, in nanoseconds that may be negative.
    AddAfter(Key, i64),
    /// `AddRateLimited`, and what the limiter said.
    AddRateLimited(Key, i64),
    /// `Get`.
    Get(Got),
    /// `Done`.
    Done(Key),
    /// `Forget`.
    Forget(Key),
    /// `NumRequeues`.
    NumRequeues(Key, u32),
    /// `Len`, which every operation tells.
    Len,
    /// `ShuttingDown`.
    ShuttingDown(bool),
    /// `ShutDown`.
    ShutDown,
    /// `ShutDownWithDrain`, by a caller that may wait.
    ShutDownWithDrain,
    /// Time passes.
    Advance {
        /// How much, in nanoseconds.
        by: u64,
        /// What time it is then.
        until: u64,
        /// The gauge of unfinished work then.
        unfinished: u64,
        /// The gauge of the longest run then.
        longest: u64,
    },
}

/// What `Get` answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Got {
    /// A key.
    Key(Key),
    /// That the queue is shut down.
    ShutDown,
    /// Nothing: it would have waited.
    WouldBlock,
}

/// How things stood in the end.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    /// How many keys were ready.
    pub len: usize,
    /// Whether the queue was shutting down.
    pub shutting_down: bool,
    /// What time it was.
    pub t: u64,
    /// The gauge of dirty keys.
    pub depth: i64,
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
    /// The failures of keys `1..=keys`.
    pub num_requeues: Vec<u32>,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Add(key) => write!(f, "add {key}"),
            Self::AddAfter(key, nanos) => write!(f, "add_after {key}, {nanos} ns"),
            Self::AddRateLimited(key, nanos) => {
                write!(f, "add_rate_limited {key} -> {nanos} ns")
            }
            Self::Get(Got::Key(key)) => write!(f, "get -> {key}"),
            Self::Get(Got::ShutDown) => write!(f, "get -> shut down"),
            Self::Get(Got::WouldBlock) => write!(f, "get -> would wait"),
            Self::Done(key) => write!(f, "done {key}"),
            Self::Forget(key) => write!(f, "forget {key}"),
            Self::NumRequeues(key, count) => write!(f, "num_requeues {key} -> {count}"),
            Self::Len => write!(f, "len"),
            Self::ShuttingDown(answer) => write!(f, "shutting_down -> {answer}"),
            Self::ShutDown => write!(f, "shut_down"),
            Self::ShutDownWithDrain => write!(f, "shut_down_with_drain"),
            Self::Advance {
                by,
                unfinished,
                longest,
                ..
            } => write!(
                f,
                "advance {by} ns -> unfinished {unfinished} ns, longest {longest} ns"
            ),
        }
    }
}

#[derive(Deserialize)]
struct RawTrace {
    id: String,
    keys: Key,
    limiter: LimiterSpec,
    ops: Vec<Step>,
    #[serde(rename = "final")]
    end: End,
}

impl TryFrom<RawTrace> for Trace {
    type Error = String;

    fn try_from(raw: RawTrace) -> Result<Self, String> {
        let RawTrace {
            id,
            keys,
            limiter,
            ops: steps,
            end,
        } = raw;
        for step in &steps {
            if let Some(key) = step.op.key().filter(|key| !(1..=keys).contains(key)) {
                return Err(format!("{id}: key {key} is not one of 1..={keys}"));
            }
        }
        if end.num_requeues.len() != usize::from(keys) {
            return Err(format!("{id}: num_requeues does not tell of {keys} keys"));
        }
        Ok(Self {
            id,
            keys,
            limiter,
            steps,
            end,
        })
    }
}

impl Op {
    fn key(&self) -> Option<Key> {
        match *self {
            Self::Add(key)
            | Self::AddAfter(key, _)
            | Self::AddRateLimited(key, _)
            | Self::Get(Got::Key(key))
            | Self::Done(key)
            | Self::Forget(key)
            | Self::NumRequeues(key, _) => Some(key),
            _ => None,
        }
    }
}

/// A step as it is written: which members there are depends on the operation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    op: String,
    len: usize,
    #[serde(default)]
    drained: Vec<bool>,
    k: Option<Key>,
    d: Option<i64>,
    delay: Option<i64>,
    n: Option<u32>,
    v: Option<bool>,
    t: Option<u64>,
    unfinished_ns: Option<u64>,
    longest_ns: Option<u64>,
    #[serde(default)]
    shutdown: bool,
    #[serde(default)]
    would_block: bool,
    /// Follows from the rest.
    #[serde(default, rename = "unpaired")]
    _unpaired: bool,
}

impl TryFrom<RawStep> for Step {
    type Error = String;

    fn try_from(raw: RawStep) -> Result<Self, String> {
        let op = raw.op()?;
        let (len, drained) = (raw.len, raw.drained);
        Ok(Self { op, len, drained })
    }
}

impl RawStep {
    fn op(&self) -> Result<Op, String> {
        Ok(match self.op.as_str() {
            "add" => Op::Add(self.member("k", self.k)?),
            "add_after" => Op::AddAfter(self.member("k", self.k)?, self.member("d", self.d)?),
            "add_rate_limited" => {
                Op::AddRateLimited(self.member("k", self.k)?, self.member("delay", self.delay)?)
            }
            "get" if self.shutdown => Op::Get(Got::ShutDown),
            "get" if self.would_block => Op::Get(Got::WouldBlock),
            "get" => Op::Get(Got::Key(self.member("k", self.k)?)),
            "done" => Op::Done(self.member("k", self.k)?),
            "forget" => Op::Forget(self.member("k", self.k)?),
            "num_requeues" => Op::NumRequeues(self.member("k", self.k)?, self.member("n", self.n)?),
            "len" => Op::Len,
            "shutting_down" => Op::ShuttingDown(self.member("v", self.v)?),
            "shut_down" => Op::ShutDown,
            "shut_down_with_drain" => Op::ShutDownWithDrain,
            "advance" => Op::Advance {
                by: self
                    .member("d", self.d)?
                    .try_into()
                    .map_err(|_| String::from("advance: time does not go backwards"))?,
                until: self.member("t", self.t)?,
                unfinished: self.member("unfinished_ns", self.unfinished_ns)?,
                longest: self.member("longest_ns", self.longest_ns)?,
            },
            unknown => return Err(format!("unknown operation {unknown:?}")),
        })
    }

    fn member<T>(&self, name: &str, value: Option<T>) -> Result<T, String> {
        value.ok_or_else(|| format!("{} without {name:?}", self.op))
    }
}
