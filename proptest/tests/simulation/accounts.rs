//! What a tenant may do, and what it has done, kept apart from the queue.

use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use requeue_core::Instant;

/// How many keys of a tenant are active at most, at first.
const MOST: usize = 2;

/// What a tenant may do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(crate) most: usize,
    pub(crate) weight: u16,
    /// How many keys per second, and at once.
    pub(crate) rate: Option<(u8, u8)>,
}

impl Plan {
    pub(crate) const FIRST: Self = Self {
        most: MOST,
        weight: 1,
        rate: None,
    };
}

/// What a tenant may do and does.
#[derive(Debug)]
pub(crate) struct Account {
    pub(crate) plan: Plan,
    pub(crate) paused: bool,
    pub(crate) active: usize,
    /// How many tokens it had, and when.
    tokens: (f64, Instant),
    /// It has had a key to hand out since, and how many keys other tenants have handed out.
    pub(crate) waits: Option<BTreeMap<u8, u16>>,
}

/// Tokens are computed in another way than the queue does, and a bit differently.
const ROUNDING_NANOS: u64 = 1_000;

impl Account {
    pub(crate) const NEW: Self = Self {
        plan: Plan::FIRST,
        paused: false,
        active: 0,
        tokens: (0.0, Instant::EPOCH),
        waits: None,
    };

    pub(crate) fn may_start(&self, closed: bool) -> bool {
        self.active < self.plan.most.max(usize::from(closed)) && (closed || !self.paused)
    }

    fn tokens(&self, now: Instant) -> f64 {
        let Some((per_second, burst)) = self.plan.rate else {
            return f64::MAX;
        };
        let (tokens, at) = self.tokens;
        let earned = now.saturating_since(at).as_secs_f64() * f64::from(per_second);
        f64::from(burst).min(tokens + earned)
    }

    /// Whether it has a token, or has one in no time.
    pub(crate) fn has_token(&self, now: Instant) -> bool {
        self.tokens(now + Duration::from_nanos(ROUNDING_NANOS)) >= 1.0
    }

    /// Whether it surely has a token before then.
    pub(crate) fn has_token_before(&self, until: Instant) -> bool {
        let before = until.as_nanos().saturating_sub(ROUNDING_NANOS);
        self.tokens(Instant::from_nanos(before)) >= 1.0
    }

    /// A key is handed out.
    pub(crate) fn start(&mut self, now: Instant) {
        self.active += 1;
        self.tokens = (self.tokens(now) - 1.0, now);
        self.waits = None;
    }

    pub(crate) fn set_plan(&mut self, plan: Plan, now: Instant) {
        if let Some((_, burst)) = plan.rate.filter(|rate| self.plan.rate != Some(*rate)) {
            self.tokens = (f64::from(burst), now);
        }
        self.plan = plan;
    }
}

/// Any plan.
pub(crate) fn plan() -> impl Strategy<Value = Plan> {
    let rate = prop_oneof![2 => Just(None), 1 => (1..20u8, 1..4u8).prop_map(Some)];
    (0..4usize, 1..4u16, rate).prop_map(|(most, weight, rate)| Plan { most, weight, rate })
}
