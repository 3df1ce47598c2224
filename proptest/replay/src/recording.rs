//! Recordings of queues, as they are read: `proptest/traces/FORMAT.md` describes the files.

use std::collections::BTreeSet;
use std::time::Duration;

use requeue_proptest::Figures;
use requeue_proptest::subject::{Key, LimiterSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

/// How many levels a queue has on which priorities are replayed.
pub(crate) const LEVELS: usize = 16;

/// One recording of a queue.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    pub(crate) id: String,
    /// Its keys are `1..=keys`.
    pub(crate) keys: Key,
    #[serde(default = "no_limiter")]
    pub(crate) limiter: LimiterSpec,
    #[serde(rename = "ops")]
    pub(crate) steps: Vec<Step>,
    /// Missing if only ties were recorded.
    #[serde(rename = "final")]
    pub(crate) end: Option<End>,
}

/// One operation, and what was seen after it.
#[derive(Debug, Deserialize)]
#[serde(try_from = "Map<String, Value>")]
pub(crate) struct Step {
    pub(crate) op: Op,
    /// How many keys were ready.
    pub(crate) len: usize,
    /// Which calls of `ShutDownWithDrain` had returned.
    pub(crate) drained: Vec<bool>,
    /// The step as it stands in the file.
    pub(crate) text: String,
}

/// An operation and its own result. Durations are nanoseconds, those of delays may be negative.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Op {
    Add {
        k: Key,
    },
    AddAfter {
        k: Key,
        d: i64,
    },
    AddRateLimited {
        k: Key,
        delay: i64,
    },
    AddWithOpts(AddWithOpts),
    Get(Get),
    Done {
        k: Key,
        #[serde(default)]
        unpaired: bool,
    },
    Forget {
        k: Key,
    },
    NumRequeues {
        k: Key,
        n: u32,
    },
    Len {},
    ShuttingDown {
        v: bool,
    },
    ShutDown {},
    ShutDownWithDrain {},
    Advance {
        d: u64,
        t: Option<u64>,
        unfinished_ns: Option<u64>,
        longest_ns: Option<u64>,
    },
    /// `Get` and `Done` until no key is ready.
    DrainAll {
        /// The keys by deadline. Within one deadline any order is right.
        groups: Vec<Vec<Key>>,
        go_order: Vec<Key>,
    },
}

/// controller-runtime's `AddWithOpts`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddWithOpts {
    /// The keys, in order.
    pub(crate) ks: Vec<Key>,
    /// 0 for none.
    pub(crate) after: i64,
    pub(crate) rate_limited: bool,
    pub(crate) priority: Option<i64>,
    /// What the limiter returned for each key.
    #[serde(default)]
    pub(crate) delays: Vec<i64>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Get {
    pub(crate) k: Option<Key>,
    #[serde(default)]
    pub(crate) priority: i64,
    #[serde(default)]
    pub(crate) shutdown: bool,
    #[serde(default, rename = "would_block")]
    _would_block: bool,
}

/// The end of a recording. Which members there are depends on its kind.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct End {
    pub(crate) len: usize,
    pub(crate) shutting_down: Option<bool>,
    pub(crate) t: u64,
    /// The gauge of dirty keys.
    depth: Option<i64>,
    /// How many keys of each priority were ready, for priorities that had any.
    depth_by_priority: Option<Vec<(i64, usize)>>,
    adds: u64,
    retries: u64,
    latency_ns: Vec<u64>,
    work_duration_ns: Vec<u64>,
    unfinished_work_ns: u64,
    longest_running_ns: u64,
    /// How many times the last two were set.
    metric_ticks: u64,
    /// The failures of keys `1..=keys`.
    #[serde(default, rename = "num_requeues")]
    pub(crate) failures: Vec<u32>,
}

const fn no_limiter() -> LimiterSpec {
    LimiterSpec::MaxOf {
        limiters: Vec::new(),
    }
}

impl Recording {
    /// The priorities that occur, the lowest first. The index of each is its level.
    pub(crate) fn priorities(&self) -> Vec<i64> {
        let mut priorities = BTreeSet::from([0]);
        for step in &self.steps {
            if let Op::AddWithOpts(add) = &step.op {
                priorities.extend(add.priority);
            }
        }
        priorities.into_iter().collect()
    }
}

impl TryFrom<Map<String, Value>> for Step {
    type Error = String;

    fn try_from(mut members: Map<String, Value>) -> Result<Self, String> {
        let text = Value::Object(members.clone()).to_string();
        let len = members.remove("len").as_ref().and_then(Value::as_u64);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let drained = members.remove("drained").unwrap_or(Value::Array(vec![]));
        // controller-runtime's adds have the name of client-go's.
        if members.contains_key("ks") {
            members.insert(String::from("op"), Value::from("add_with_opts"));
        }
        let bad = |error: serde_json::Error| format!("{error}: {text}");
        Ok(Self {
            op: serde_json::from_value(Value::Object(members)).map_err(bad)?,
            len: len.ok_or_else(|| format!("no \"len\": {text}"))?,
            drained: serde_json::from_value(drained).map_err(bad)?,
            text,
        })
    }
}

impl End {
    /// The figures, with priorities as levels, and with this many retries that were not counted.
    pub(crate) fn figures(&self, priorities: &[i64], retries_uncounted: u64) -> Figures {
        let len = i64::try_from(self.len).unwrap_or(i64::MAX);
        let depths = self.depth_by_priority.iter().flatten();
        let depths = depths.map(|(priority, keys)| (level(priorities, *priority), *keys));
        Figures {
            depth: self.depth.unwrap_or(len),
            adds: self.adds,
            retries: self.retries + retries_uncounted,
            latencies: durations(&self.latency_ns),
            work_durations: durations(&self.work_duration_ns),
            // client-go has no such figure, and none is compared.
            times_to_success: Vec::new(),
            attempts_at_success: Vec::new(),
            unfinished: Duration::from_nanos(self.unfinished_work_ns),
            longest: Duration::from_nanos(self.longest_running_ns),
            reports: self.metric_ticks,
            depths: depths.collect(),
        }
    }
}

/// The level of a priority, one that no queue has if the priority is unknown.
pub(crate) fn level(priorities: &[i64], priority: i64) -> u8 {
    let level = priorities.iter().position(|other| *other == priority);
    level
        .and_then(|level| u8::try_from(level).ok())
        .unwrap_or(u8::MAX)
}

/// A recorded delay. Below zero it is none.
pub(crate) fn delay(nanos: i64) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(0))
}

fn durations(nanos: &[u64]) -> Vec<Duration> {
    nanos.iter().copied().map(Duration::from_nanos).collect()
}
