//! One shard, as one member sees it: a plain state machine.
//!
//! ```text
//!            claim            is the owner           belongs elsewhere
//!  Foreign ────────▶ Claiming ────────────▶ Owned ─────────────────────▶ Owned, draining
//!     ▲                 │ is not              │ overtaken                      │ no run is left,
//!     │◀────────────────┘                     │                                ▼ or the limit
//!     │◀──────────────────────────────────────┘                            Releasing
//!     └────────────────────────────────────────────────────────────────────────┘
//! ```

use std::hash::Hash;
use std::mem;
use std::sync::Arc;

use tokio::time::Instant;

use crate::ownership::Tenure;
use crate::shard::{Fence, Shard};
use crate::view::Owner;

use super::table::Counters;

pub(super) struct Slot<K, N> {
    phase: Phase<K, N>,
    /// The last fence of this member that has ended. A view that shows it is out of date.
    ended: Option<Fence>,
}

enum Phase<K, N> {
    /// Not known to be owned. Not claimed before this time.
    Foreign(Option<Instant>),
    Claiming,
    Owned(Ownership<K, N>),
    Releasing,
}

struct Ownership<K, N> {
    tenure: Arc<Tenure<K, N>>,
    /// Whether a view has shown it.
    is_seen: bool,
    /// When a moving shard is given up. `None` if it does not move.
    draining: Option<Instant>,
}

/// An operation for the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Claim(Shard),
    Release(Shard, Fence),
}

/// The facts that decide the next step of one shard.
pub(super) struct Facts<'f> {
    pub(super) member: &'f str,
    pub(super) shard: Shard,
    /// Whether the shard belongs to this member.
    pub(super) belongs: bool,
    /// Whether it may begin to move away.
    pub(super) may_move: bool,
    /// Whether the engine shows all owners.
    pub(super) is_known: bool,
    /// The owner that the engine shows.
    pub(super) owner: Option<&'f Owner>,
    pub(super) now: Instant,
    /// When to give up a shard that begins to move now.
    pub(super) limit: Instant,
}

impl<K: Eq + Hash, N> Slot<K, N> {
    pub(super) fn new() -> Self {
        Self {
            phase: Phase::Foreign(None),
            ended: None,
        }
    }

    /// Compares the present state with the wanted one. The returned step counts as begun.
    pub(super) fn plan(&mut self, facts: &Facts<'_>, counters: &mut Counters) -> Option<Step> {
        if facts.is_known && self.is_overtaken(facts) {
            self.lose();
            counters.lost += 1;
        }
        match &mut self.phase {
            Phase::Foreign(retry_at) => {
                *retry_at = retry_at.filter(|at| facts.now < *at);
                let is_quiet = retry_at.is_some();
                let may = facts.is_known && !is_quiet && self.may_claim(facts);
                may.then(|| {
                    self.phase = Phase::Claiming;
                    Step::Claim(facts.shard)
                })
            }
            Phase::Owned(owned) => {
                if !facts.belongs && facts.may_move && owned.draining.is_none() {
                    owned.draining = Some(facts.limit);
                    owned.tenure.closed.cancel();
                }
                let is_over = facts.now >= owned.draining?;
                if !owned.tenure.is_active() {
                    counters.released += 1;
                } else if is_over {
                    owned.tenure.lose();
                    counters.given_up += 1;
                } else {
                    return None;
                }
                let fence = owned.tenure.fence();
                self.ended = Some(fence);
                self.phase = Phase::Releasing;
                Some(Step::Release(facts.shard, fence))
            }
            Phase::Claiming | Phase::Releasing => None,
        }
    }

    /// A free shard that belongs here is claimed. So is a shard that this member owns unknowingly,
    /// because the reply to a claim was lost. The claim returns its fence, which is needed to
    /// release it, even if the shard belongs elsewhere.
    fn may_claim(&self, facts: &Facts<'_>) -> bool {
        match facts.owner {
            None => facts.belongs,
            Some(owner) => owner.member == facts.member && self.ended < Some(owner.fence),
        }
    }

    /// Whether the engine shows that the ownership has ended. A view that has not yet shown the
    /// ownership is out of date, unless it shows a later owner.
    fn is_overtaken(&mut self, facts: &Facts<'_>) -> bool {
        let Phase::Owned(owned) = &mut self.phase else {
            return false;
        };
        let fence = owned.tenure.fence();
        let shown = facts.owner.map(|owner| (&*owner.member, owner.fence));
        if shown == Some((facts.member, fence)) {
            owned.is_seen = true;
            return false;
        }
        owned.is_seen || shown.is_some_and(|(_, shown)| shown > fence)
    }

    /// A claim has succeeded.
    pub(super) fn own(&mut self, tenure: Arc<Tenure<K, N>>) {
        self.phase = Phase::Owned(Ownership {
            tenure,
            is_seen: false,
            draining: None,
        });
    }

    /// The shard was released or not claimed. It is not claimed before `retry_at`.
    pub(super) fn leave(&mut self, retry_at: Option<Instant>) {
        self.phase = Phase::Foreign(retry_at);
    }

    /// The shard is lost, and its runs are told. Returns whether it was owned.
    pub(super) fn lose(&mut self) -> bool {
        let Phase::Owned(owned) = mem::replace(&mut self.phase, Phase::Foreign(None)) else {
            return false;
        };
        self.ended = Some(owned.tenure.fence());
        owned.tenure.lose();
        true
    }

    pub(super) fn tenure(&self) -> Option<&Arc<Tenure<K, N>>> {
        match &self.phase {
            Phase::Owned(owned) => Some(&owned.tenure),
            _ => None,
        }
    }

    /// Whether the shard is on its way to another member.
    pub(super) fn is_moving(&self) -> bool {
        match &self.phase {
            Phase::Owned(owned) => owned.draining.is_some(),
            Phase::Releasing => true,
            Phase::Foreign(_) | Phase::Claiming => false,
        }
    }

    pub(super) fn is_foreign(&self) -> bool {
        matches!(self.phase, Phase::Foreign(_))
    }

    /// When to plan again even if nothing changes.
    pub(super) fn next(&self) -> Option<Instant> {
        match &self.phase {
            Phase::Foreign(retry_at) => *retry_at,
            Phase::Owned(owned) => owned.draining,
            Phase::Claiming | Phase::Releasing => None,
        }
    }
}
