//! All shards as one member sees them. Times are arguments, and steps for the engine are returned.

use std::hash::Hash;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::ownership::{Expiry, Tenure};
use crate::placement::place;
use crate::shard::{Fence, Shard};
use crate::view::View;

use super::slot::{Facts, Slot, Step};

/// The shards of one member.
pub(crate) struct Table<K, N> {
    member: String,
    slots: Vec<Slot<K, N>>,
    /// The members that `places` was computed for.
    placed: Vec<String>,
    /// Whether each shard belongs here.
    places: Vec<bool>,
    drain_timeout: Duration,
    moves_max: usize,
    /// Whether all shards have to be released.
    pub(crate) is_leaving: bool,
    pub(crate) counters: Counters,
}

/// The counters of a member, since it joined.
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
    /// Shards that were released although a run continued, because the limit had passed.
    pub given_up: u64,
    /// Shards that were lost, by the end of a session or to another owner.
    pub lost: u64,
    /// Lists of a shard's keys that succeeded.
    pub relisted: u64,
    /// Lists of a shard's keys that failed or took too long. They are repeated.
    pub relists_failed: u64,
    /// Keys that did not run because their shard was not owned here.
    pub skipped: u64,
    /// Unreadable marks. If the time cannot be read, the key runs at once. If the mark is not a key
    /// of its shard, it stays.
    pub marks_unreadable: u64,
    /// Unreadable values of members and owners.
    pub values_unreadable: u64,
    /// Sessions that ended before the member left.
    pub sessions_lost: u64,
    /// How often the engine had lost acknowledged writes.
    pub states_lost: u64,
}

impl Counters {
    /// Returns the number of owned shards. O(1).
    pub fn owned(&self) -> u64 {
        self.taken - (self.released + self.given_up + self.lost).min(self.taken)
    }
}

impl<K: Eq + Hash, N> Table<K, N> {
    pub(crate) fn new(
        member: &str,
        count: NonZeroU32,
        drain_timeout: Duration,
        moves_max: usize,
    ) -> Self {
        Self {
            member: member.to_owned(),
            slots: (0..count.get()).map(|_| Slot::new()).collect(),
            placed: Vec::new(),
            places: Vec::new(),
            drain_timeout,
            moves_max,
            is_leaving: false,
            counters: Counters::default(),
        }
    }

    /// Returns the tenure of a shard if its keys may start. O(1).
    pub(crate) fn tenure(&self, shard: Shard, now: Instant) -> Option<&Arc<Tenure<K, N>>> {
        let tenure = self.slots.get(index(shard))?.tenure();
        tenure.filter(|tenure| tenure.is_open(now))
    }

    /// Returns the tenures of all shards whose keys may start. O(S).
    pub(crate) fn tenures(&self, now: Instant) -> Vec<Arc<Tenure<K, N>>> {
        let tenures = self.slots.iter().filter_map(Slot::tenure);
        tenures
            .filter(|tenure| tenure.is_open(now))
            .map(Arc::clone)
            .collect()
    }

    /// Compares the owned shards with the wanted ones. The returned steps count as begun. O(S), and
    /// the cost of [`place`] if the members have changed.
    pub(crate) fn plan(&mut self, view: &View, now: Instant) -> Vec<Step> {
        if view.is_complete {
            self.place(view);
        }
        let mut moves = self.slots.iter().filter(|slot| slot.is_moving()).count();
        let mut steps = Vec::new();
        for (number, slot) in (0..).zip(&mut self.slots) {
            let shard = Shard(number);
            let facts = Facts {
                member: &self.member,
                shard,
                belongs: !self.is_leaving && self.places.get(index(shard)) == Some(&true),
                may_move: self.is_leaving || moves < self.moves_max,
                is_known: view.is_complete,
                owner: view.owners.get(&shard),
                now,
                limit: now + self.drain_timeout,
            };
            let was_moving = slot.is_moving();
            steps.extend(slot.plan(&facts, &mut self.counters));
            moves += usize::from(slot.is_moving() && !was_moving);
        }
        steps
    }

    /// Computes the places again if the members have changed. Members that leave do not count.
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

    /// A claim has succeeded. Returns the new tenure.
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
        slot.own(Arc::clone(&tenure));
        self.counters.taken += 1;
        Some(tenure)
    }

    /// The shard was released, or not claimed. It is not claimed before `retry_at`.
    pub(crate) fn leave(&mut self, shard: Shard, retry_at: Option<Instant>) {
        if let Some(slot) = self.slots.get_mut(index(shard)) {
            slot.leave(retry_at);
        }
    }

    /// The session has ended. Nothing is owned.
    pub(crate) fn lose_all(&mut self) {
        for slot in &mut self.slots {
            self.counters.lost += u64::from(slot.lose());
        }
        self.placed.clear();
        self.places.clear();
    }

    /// Whether no shard is owned, being claimed or being released.
    pub(crate) fn is_empty(&self) -> bool {
        self.slots.iter().all(Slot::is_foreign)
    }

    /// Returns when to call [`plan`](Self::plan) again even if nothing changes. O(S).
    pub(crate) fn next(&self) -> Option<Instant> {
        self.slots.iter().filter_map(Slot::next).min()
    }
}

fn index(shard: Shard) -> usize {
    usize::try_from(shard.0).unwrap_or(usize::MAX)
}
