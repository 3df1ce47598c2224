//! Who owns what, as one member believes: a plain state machine. Times are arguments, and what is to
//! be done is returned.
//!
//! ```text
//!            claim                 owned
//!  Foreign ─────────▶ Claiming ─────────▶ Owned ──────────▶ Draining ──────────▶ Releasing
//!     ▲                  │ not owned        │  belongs elsewhere     │ no run is left,  │
//!     │◀─────────────────┘                  │                        │ or the limit     │
//!     │◀────────────────────────────────────┴────────────────────────┘                  │
//!     │            overtaken, or the session has ended                                  │
//!     └─────────────────────────────────────────────────────────────────────────────────┘
//! ```

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::held::{Expiry, Tenure};
use crate::placement::place;
use crate::shard::{Fence, Shard};
use crate::view::View;

/// The shards of one member.
pub(crate) struct Table<K, N> {
    member: String,
    slots: Vec<Slot<K, N>>,
    /// The members that `places` was computed for.
    placed: Vec<String>,
    /// Whether each shard belongs here.
    places: Vec<bool>,
    drain_limit: Duration,
    moves_max: usize,
    /// Whether everything is to be released.
    pub(crate) is_leaving: bool,
    pub(crate) counters: Counters,
}

/// What a member has done since it was made.
///
/// # Examples
///
/// ```
/// use requeue_shards::Counters;
///
/// let is_sound = |counters: &Counters| counters.lost == 0 && counters.given_up == 0;
/// assert!(is_sound(&Counters::default()));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counters {
    /// Shards that were taken.
    pub taken: u64,
    /// Shards that were released after their last run had ended.
    pub released: u64,
    /// Shards that were released while a run went on, because the limit had passed.
    pub given_up: u64,
    /// Shards that were lost: the session had ended, or the engine showed another owner.
    pub lost: u64,
    /// Re-lists that were complete.
    pub relisted: u64,
    /// Re-lists that failed or took too long. They are repeated.
    pub relists_failed: u64,
    /// Keys that did not run because their shard was not owned.
    pub skipped: u64,
    /// Marks that are no key of their shard. They stay.
    pub marks_unreadable: u64,
    /// Sessions that ended without being left.
    pub sessions_lost: u64,
}

enum Slot<K, N> {
    /// Not owned, and not to be claimed before this time.
    Foreign(Option<Instant>),
    Claiming,
    Owned(Ownership<K, N>),
    Releasing,
}

struct Ownership<K, N> {
    tenure: Arc<Tenure<K, N>>,
    /// Whether a view has shown it.
    is_seen: bool,
    /// When a shard that is to move is given up.
    draining: Option<Instant>,
}

/// What is to be done at the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Claim(Shard),
    Release(Shard, Fence),
}

impl<K: Eq + Hash, N> Table<K, N> {
    pub(crate) fn new(
        member: &str,
        count: NonZeroU32,
        drain_limit: Duration,
        moves_max: usize,
    ) -> Self {
        Self {
            member: member.to_owned(),
            slots: (0..count.get()).map(|_| Slot::Foreign(None)).collect(),
            placed: Vec::new(),
            places: Vec::new(),
            drain_limit,
            moves_max,
            is_leaving: false,
            counters: Counters::default(),
        }
    }

    /// Returns the tenure of a shard whose keys may begin to run. O(1).
    pub(crate) fn tenure(&self, shard: Shard, now: Instant) -> Option<&Arc<Tenure<K, N>>> {
        match self.slots.get(index(shard))? {
            Slot::Owned(owned) => Some(&owned.tenure).filter(|tenure| tenure.is_open(now)),
            _ => None,
        }
    }

    /// Returns the tenures of all shards whose keys may begin to run. O(S).
    pub(crate) fn tenures(&self) -> Vec<Arc<Tenure<K, N>>> {
        let owned = self.slots.iter().filter_map(|slot| match slot {
            Slot::Owned(owned) if owned.draining.is_none() => Some(Arc::clone(&owned.tenure)),
            _ => None,
        });
        owned.collect()
    }

    /// Compares what is owned with what should be, and returns what has to be done. The slots count
    /// it as begun. O(S), and [`place`] if the members have changed.
    pub(crate) fn plan(&mut self, view: &View, now: Instant) -> Vec<Step> {
        if !view.is_complete {
            return Vec::new();
        }
        self.place(view);
        let limit = now + self.drain_limit;
        let mut moves = self.moves();
        let mut steps = Vec::new();
        for (number, slot) in (0..).zip(&mut self.slots) {
            let shard = Shard(number);
            let belongs = !self.is_leaving && self.places.get(index(shard)) == Some(&true);
            let owner = view.owners.get(&shard);
            let step = match slot {
                Slot::Foreign(retry_at) => {
                    *retry_at = retry_at.filter(|at| now < *at);
                    let is_free = owner.is_none_or(|owner| owner.member == self.member);
                    let may = belongs && is_free && retry_at.is_none();
                    may.then_some(Step::Claim(shard))
                }
                Slot::Owned(owned) => {
                    if owned.is_overtaken(
                        owner.map(|owner| (&*owner.member, owner.fence)),
                        &self.member,
                    ) {
                        owned.tenure.lose();
                        self.counters.lost += 1;
                        *slot = Slot::Foreign(None);
                        continue;
                    }
                    let is_blocked = !self.is_leaving && moves >= self.moves_max;
                    if !belongs && owned.draining.is_none() && !is_blocked {
                        owned.draining = Some(limit);
                        owned.tenure.closed.cancel();
                        moves += 1;
                    }
                    owned
                        .release(now, &mut self.counters)
                        .then_some(Step::Release(shard, owned.tenure.fence()))
                }
                Slot::Claiming | Slot::Releasing => None,
            };
            match step {
                Some(Step::Claim(_)) => *slot = Slot::Claiming,
                Some(Step::Release(..)) => *slot = Slot::Releasing,
                None => {}
            }
            steps.extend(step);
        }
        steps
    }

    /// Computes the places if the members that work have changed.
    fn place(&mut self, view: &View) {
        let members = view
            .members
            .iter()
            .filter(|(_, member)| !member.is_retiring);
        let members: Vec<&str> = members.map(|(name, _)| &**name).collect();
        if self
            .placed
            .iter()
            .map(|name| &**name)
            .eq(members.iter().copied())
        {
            return;
        }
        let count = u32::try_from(self.slots.len()).unwrap_or(u32::MAX);
        let own = members.iter().position(|name| *name == self.member);
        let places = place(count, &members).into_iter();
        self.places = places.map(|place| Some(place) == own).collect();
        self.placed = members.into_iter().map(str::to_owned).collect();
    }

    /// How many shards are on their way to other members.
    fn moves(&self) -> usize {
        let is_moving = |slot: &&Slot<K, N>| match slot {
            Slot::Owned(owned) => owned.draining.is_some(),
            Slot::Releasing => true,
            Slot::Foreign(_) | Slot::Claiming => false,
        };
        self.slots.iter().filter(is_moving).count()
    }

    /// A claim has succeeded: returns the tenure that begins.
    pub(crate) fn claimed(
        &mut self,
        shard: Shard,
        fence: Fence,
        session: &Arc<N>,
        until: &Expiry,
    ) -> Option<Arc<Tenure<K, N>>> {
        let slot = self.slots.get_mut(index(shard))?;
        let tenure = Arc::new(Tenure::new(
            Arc::clone(session),
            shard,
            fence,
            until.clone(),
        ));
        let owned = Ownership {
            tenure: Arc::clone(&tenure),
            is_seen: false,
            draining: None,
        };
        *slot = Slot::Owned(owned);
        self.counters.taken += 1;
        Some(tenure)
    }

    /// Another member owns the shard, or nothing is known: it is not claimed before `retry_at`.
    pub(crate) fn not_claimed(&mut self, shard: Shard, retry_at: Option<Instant>) {
        if let Some(slot) = self.slots.get_mut(index(shard)) {
            *slot = Slot::Foreign(retry_at);
        }
    }

    /// A release has succeeded.
    pub(crate) fn released(&mut self, shard: Shard) {
        self.not_claimed(shard, None);
    }

    /// The session has ended: nothing is owned.
    pub(crate) fn lose_all(&mut self) {
        for slot in &mut self.slots {
            if let Slot::Owned(owned) = slot {
                owned.tenure.lose();
                self.counters.lost += 1;
            }
            *slot = Slot::Foreign(None);
        }
        self.placed.clear();
        self.places.clear();
    }

    /// Whether nothing is owned, claimed or released.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots
            .iter()
            .all(|slot| matches!(slot, Slot::Foreign(_)))
    }

    /// Returns when [`plan`](Self::plan) has something to do although nothing has changed. O(S).
    pub(crate) fn next(&self) -> Option<Instant> {
        let times = self.slots.iter().filter_map(|slot| match slot {
            Slot::Foreign(retry_at) => *retry_at,
            Slot::Owned(owned) => owned.draining,
            Slot::Claiming | Slot::Releasing => None,
        });
        times.min()
    }
}

impl<K: Eq + Hash, N> Ownership<K, N> {
    /// Whether the engine shows that this ownership has ended. A view that has not shown it yet is
    /// behind, unless it shows an owner that came later.
    fn is_overtaken(&mut self, owner: Option<(&str, Fence)>, member: &str) -> bool {
        let fence = self.tenure.fence();
        if owner == Some((member, fence)) {
            self.is_seen = true;
            return false;
        }
        self.is_seen || owner.is_some_and(|(_, other)| other > fence)
    }

    /// Whether a shard that is to move is ready to.
    fn release(&self, now: Instant, counters: &mut Counters) -> bool {
        let Some(limit) = self.draining else {
            return false;
        };
        if !self.tenure.is_active() {
            counters.released += 1;
            return true;
        }
        if now >= limit {
            self.tenure.lose();
            counters.given_up += 1;
            return true;
        }
        false
    }
}

fn index(shard: Shard) -> usize {
    usize::try_from(shard.0).unwrap_or(usize::MAX)
}
