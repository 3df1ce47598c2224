//! Recordings of queues and limiters: `proptest/traces/FORMAT.md` describes the files.

use std::collections::BTreeSet;

use requeue_proptest::subject::{Key, LimiterSpec};
use serde::Deserialize;
use serde_json::{Map, Value};

/// What a file of recordings is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kind {
    /// client-go's rate-limiting queue, misuse included.
    #[default]
    Queue,
    /// client-go's delaying queue, with deadlines that tie.
    Ties,
    /// controller-runtime's priority queue.
    Priority,
    /// client-go's limiters. The queue charges its limiter as a recorded call did.
    Limiter,
}

/// How many levels a queue has on which priorities are replayed.
pub(crate) const LEVELS: usize = 16;

/// One recording.
#[derive(Debug, Deserialize)]
pub(crate) struct Recording {
    pub(crate) id: String,
    /// Its keys are `1..=keys`. `None` in a recording of a limiter.
    pub(crate) keys: Option<Key>,
    #[serde(default = "no_limiter")]
    pub(crate) limiter: LimiterSpec,
    pub(crate) ops: Vec<Step>,
    /// Empty if nothing was recorded at the end.
    #[serde(rename = "final", default)]
    pub(crate) end: End,
}

/// One operation, and what was seen after it.
#[derive(Debug, Deserialize)]
pub(crate) struct Step {
    #[serde(flatten)]
    pub(crate) op: Op,
    /// How many keys were ready.
    pub(crate) len: Option<usize>,
    /// Which calls of `ShutDownWithDrain` had returned.
    #[serde(default)]
    pub(crate) drained: Vec<bool>,
}

/// An operation and its results. Durations are nanoseconds.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Op {
    Add(Add),
    AddAfter {
        k: Key,
        /// Below zero it is no delay.
        d: i64,
        /// Go's adds do not tell.
        #[serde(skip)]
        refused: bool,
    },
    /// Also the call of a limiter alone.
    #[serde(alias = "when")]
    AddRateLimited {
        k: Key,
        /// `None` if the add was refused.
        delay: Option<i64>,
        /// Go leaves the delay to the processor.
        #[serde(default)]
        impl_defined: bool,
    },
    Get(Get),
    Done {
        k: Key,
        /// The key was not active.
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
    /// A look: how many keys are ready.
    #[serde(skip)]
    Ready(usize),
    /// A look at the end: a member of `final`.
    #[serde(skip)]
    Final {
        name: String,
        value: Value,
    },
}

/// A key and its priority, or why there is none.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Get {
    pub(crate) k: Option<Key>,
    pub(crate) priority: i64,
    pub(crate) shutdown: bool,
    pub(crate) would_block: bool,
}

/// An add at once, or controller-runtime's add.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub(crate) enum Add {
    One {
        k: Key,
        /// Go's adds do not tell.
        #[serde(skip)]
        refused: bool,
    },
    WithOpts(AddWithOpts),
}

/// controller-runtime's `AddWithOpts`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AddWithOpts {
    pub(crate) ks: Vec<Key>,
    /// 0 for none. Below zero it has passed.
    pub(crate) after: i64,
    pub(crate) rate_limited: bool,
    pub(crate) priority: Option<i64>,
    /// What the limiter returned for each key.
    #[serde(default)]
    pub(crate) delays: Vec<i64>,
}

/// What was seen at the end of a recording.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct End {
    /// The failures of keys `1..=keys`.
    #[serde(default)]
    pub(crate) num_requeues: Vec<u32>,
    /// The time, the counts and the figures.
    #[serde(flatten)]
    pub(crate) members: Map<String, Value>,
}

const fn no_limiter() -> LimiterSpec {
    LimiterSpec::MaxOf {
        limiters: Vec::new(),
    }
}

impl Recording {
    /// The priorities that occur, the lowest first. The index of each is its level.
    pub(crate) fn priorities(&self) -> Vec<i64> {
        let priorities = self.ops.iter().filter_map(|step| match &step.op {
            Op::Add(Add::WithOpts(add)) => add.priority,
            _ => None,
        });
        BTreeSet::from_iter(priorities.chain([0]))
            .into_iter()
            .collect()
    }
}

impl Op {
    /// The operation with the results that a queue of ours can tell.
    pub(crate) fn told(mut self, kind: Kind) -> Self {
        match &mut self {
            // Each key waits for the shorter of two delays.
            Self::Add(Add::WithOpts(add)) => {
                let longest = if add.after == 0 { i64::MAX } else { add.after };
                for delay in &mut add.delays {
                    *delay = (*delay).min(longest).max(0);
                }
            }
            // client-go's Done returns nothing.
            Self::Done { unpaired, .. } => *unpaired &= kind == Kind::Priority,
            _ => {}
        }
        self
    }

    /// Whether Go leaves open which of the two results is right: an impossible delay, or the order
    /// of equal deadlines.
    pub(crate) fn leaves_open(&self, seen: &Self) -> bool {
        match (self, seen) {
            (Self::AddRateLimited { impl_defined, .. }, _) => *impl_defined,
            (
                Self::DrainAll { groups, go_order },
                Self::DrainAll {
                    go_order: other, ..
                },
            ) => in_groups(go_order, groups) && in_groups(other, groups),
            _ => false,
        }
    }
}

/// Whether `taken` has the keys of each group, one group after the other.
fn in_groups(taken: &[Key], groups: &[Vec<Key>]) -> bool {
    let [mut all, mut seen] = [groups.concat(), taken.to_vec()];
    all.sort_unstable();
    seen.sort_unstable();
    let group = |key: &Key| groups.iter().position(|group| group.contains(key));
    all == seen && taken.is_sorted_by_key(group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_one_after_the_other_in_any_order_within() {
        let groups = [vec![1], vec![2, 4], vec![3]];
        assert!(in_groups(&[1, 4, 2, 3], &groups));
        assert!(!in_groups(&[4, 1, 2, 3], &groups));
        assert!(!in_groups(&[1, 4, 2], &groups));
        assert!(!in_groups(&[1, 4, 2, 3, 5], &groups));
        assert!(!in_groups(&[1, 4, 4, 3], &groups));
    }
}
