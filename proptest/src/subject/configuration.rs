//! How a queue under test is made, as a value.

use std::time::Duration;

use requeue_core::{GroupLimits, Policy};

use super::{Key, LimiterSpec};
use crate::limiter::FloatBits;

/// How a queue under test is made, and the model of it: each option is a value.
///
/// A queue whose type says how many keys fit, which levels there are, whether keys age and whether
/// there are groups has what its type says.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// How many keys fit into a queue of a fixed size; `None` if it grows.
    pub storage: Option<usize>,
    /// How many priority levels there are.
    pub levels: u8,
    /// How long keys may wait at their levels, in a queue whose keys [age](super::Abilities::ages).
    pub age_limit: Option<Duration>,
    /// The limits of groups, in a queue that [has groups](super::Abilities::groups).
    pub groups: Option<Cap>,
    /// What decides how long a failed key waits.
    pub limiter: LimiterSpec,
    /// What else keys wait for, in a queue that [can have a policy](super::Abilities::governs).
    pub policy: PolicySpec,
    /// How many keys fit into a queue that [can be limited](super::Abilities::limits_keys).
    pub max_keys: usize,
    /// How many keys may be kept for their failures alone, by a queue without a capacity of its
    /// own.
    pub failure_records_max: usize,
    /// How many due keys one operation makes ready, if the subject does one operation a step.
    pub due_keys_max: u8,
    /// Whether there are [metrics](super::Subject::figures), if the type of the queue leaves that open.
    pub metrics: bool,
}

impl Configuration {
    /// Describes a queue that grows, with this limiter, and without all else.
    pub fn new(limiter: LimiterSpec) -> Self {
        Self {
            storage: None,
            levels: 1,
            age_limit: None,
            groups: None,
            limiter,
            policy: PolicySpec::default(),
            max_keys: usize::MAX,
            failure_records_max: usize::MAX,
            due_keys_max: 16,
            metrics: true,
        }
    }

    /// The same, but for no more keys than this.
    pub(super) fn for_at_most(&self, max_keys: usize) -> Self {
        Self {
            max_keys: self.max_keys.min(max_keys),
            ..self.clone()
        }
    }

    /// Describes a queue whose failed keys wait 1 ns, 2 ns, 4 ns and so on.
    pub fn exponential() -> Self {
        let max_ns = 1_000_000_000_000;
        Self::new(LimiterSpec::Exponential { base_ns: 1, max_ns })
    }
}

/// What keys wait for in addition to their delays. By default, nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicySpec {
    /// How long a key is held after each run, in nanoseconds.
    pub cool_down_ns: u64,
    /// Whether a key that failed is held.
    pub hold_failures: bool,
    /// How many runs may begin.
    pub run_rate: Option<Rate>,
}

impl PolicySpec {
    /// Creates the policy that this describes, in its first state.
    pub fn build(&self) -> Policy {
        let mut policy = Policy::new().cool_down(Duration::from_nanos(self.cool_down_ns));
        if self.hold_failures {
            policy = policy.hold_failures();
        }
        match self.run_rate {
            Some(rate) => policy.run_rate(rate.per_second.0, rate.burst),
            None => policy,
        }
    }

    /// Whether keys may be held.
    pub fn holds(&self) -> bool {
        self.hold_failures || self.cool_down_ns > 0
    }
}

/// Returns the group of a key, in queues that have groups.
pub fn group_of(key: &Key) -> u8 {
    (key % 3) as u8
}

/// What is changed about groups.
#[derive(Clone, Debug, PartialEq)]
pub enum GroupOrder {
    /// The limits of groups that have none of their own.
    LimitAll(Cap),
    /// The limits of a group.
    Limit(u8, Option<Cap>),
    /// A group is paused.
    Pause(u8),
    /// It is paused no longer.
    Unpause(u8),
}

/// The limits of a group, as a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cap {
    /// How many keys are active at most.
    pub max_active: Option<usize>,
    /// How many keys it gives in a turn.
    pub weight: u16,
    /// How many keys a second.
    pub rate: Option<Rate>,
}

/// The rate of a group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Keys per second.
    pub per_second: FloatBits,
    /// How many at once.
    pub burst: u32,
}

/// What is known of a group that has keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFigures {
    /// How many of its keys are ready.
    pub ready: usize,
    /// How many are active.
    pub active: usize,
    /// How many the queue holds.
    pub held: usize,
    /// It may not start a run at present.
    pub blocked: bool,
    /// It is paused.
    pub paused: bool,
}

impl Default for Cap {
    fn default() -> Self {
        Self {
            max_active: None,
            weight: 1,
            rate: None,
        }
    }
}

impl Cap {
    /// How many keys are active at most, as the queue understands it.
    pub(crate) fn most_active(&self) -> usize {
        match (self.rate, self.max_active) {
            (Some(rate), _) if !rate.is_valid() => 0,
            (_, max) => max.unwrap_or(usize::MAX),
        }
    }

    pub(super) fn limits(&self) -> GroupLimits {
        let mut limits = GroupLimits::new().weight(self.weight);
        if let Some(keys) = self.max_active {
            limits = limits.max_active(keys);
        }
        match self.rate {
            Some(rate) => limits.rate(rate.per_second.0, rate.burst),
            None => limits,
        }
    }
}

impl Rate {
    pub(crate) fn is_valid(&self) -> bool {
        self.per_second.0 > 0.0 && self.burst > 0
    }
}
