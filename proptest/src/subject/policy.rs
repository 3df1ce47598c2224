//! A policy as a value.

use std::time::Duration;

use requeue_core::Policy;

use super::Rate;

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

    /// Whether it says nothing. A queue that grows keeps nothing of its keys then.
    pub(super) fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether keys may be held.
    pub fn holds(&self) -> bool {
        self.hold_failures || self.cool_down_ns > 0
    }
}
