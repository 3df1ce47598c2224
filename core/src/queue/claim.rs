//! The slot of a key that is added: found, or claimed for a new key.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::outcome::Added;
use crate::priority::{KeyLevels, Naming, Priorities};
use crate::storage::{Located, Phase, Slots, Storage};

use super::{LOWEST, Meta, Place, Queue};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// client-go's `Add`. Returns the key if there is no room.
    ///
    /// `spare` receives the key if the queue holds it already, so that a caller with a lock can
    /// drop it after that.
    // Always inlined, so that the result is never built in one place and copied to another: that
    // costs more than the rest of an add that is coalesced.
    #[inline(always)]
    pub(super) fn add_key(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<Added, K> {
        match self.locate(&key, now) {
            Located::Found(id) if S::Priorities::LEVELS == 1 && self.is_queued(id) => {
                self.metrics.coalesced();
                *spare = Some(key);
                Ok(Added::Coalesced)
            }
            Located::Found(id) => {
                let added = self.mark(id, now, LOWEST);
                *spare = Some(key);
                Ok(added)
            }
            Located::Absent(place) => match self.make_room(&key, now) {
                Some(room) => {
                    self.add_new(room, place, key, now);
                    Ok(Added::Ready)
                }
                None => Err(key),
            },
        }
    }

    /// A new key becomes ready without a second look at its slot.
    #[inline]
    fn add_new(&mut self, room: Room<S>, place: Place<K, S, L, M>, key: K, now: Instant) {
        let id = room.id;
        let mut meta = Meta::<S, L, M>::default();
        meta.levels.set_since(now);
        self.metrics
            .stamp_added(&mut meta.timestamps, id.index(), now);
        self.claim(room, place, key, meta, Phase::Ready);
        self.lists.push_ready(id, LOWEST, now);
        self.metrics.added();
        self.report_depth(LOWEST);
    }

    /// Finds the slot of a key, or claims one. Returns the key if there is no room.
    pub(super) fn slot_for(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<SlotId, K> {
        match self.locate(&key, now) {
            Located::Found(id) => {
                *spare = Some(key);
                Ok(id)
            }
            Located::Absent(place) => match self.make_room(&key, now) {
                Some(room) => {
                    let meta = Meta::<S, L, M>::default();
                    Ok(self.claim(room, place, key, meta, Phase::Idle))
                }
                None => Err(key),
            },
        }
    }

    /// Charges the limiter for a key, and returns its delay. A key without a slot gets one last, so
    /// that a limiter that panics leaves no slot behind.
    pub(super) fn charge(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<(SlotId, Duration), K> {
        match self.locate(&key, now) {
            Located::Found(id) => {
                *spare = Some(key);
                Ok((id, self.charge_slot(id, now)))
            }
            Located::Absent(place) => {
                let Some(room) = self.make_room(&key, now) else {
                    return Err(key);
                };
                let mut meta = Meta::<S, L, M>::default();
                let delay = self.limiter.when(&mut meta.record, now);
                Ok((self.claim(room, place, key, meta, Phase::Idle), delay))
            }
        }
    }

    /// Finds the slot of a key, or claims one, and lets it have at least so many failures. Returns
    /// the key if there is no room.
    pub(super) fn slot_with_failures(
        &mut self,
        key: K,
        requeues: u32,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<SlotId, K> {
        match self.locate(&key, now) {
            Located::Found(id) => {
                if self.requeues(id) < requeues
                    && let Some(slot) = self.slots.slot_mut(id)
                {
                    self.limiter.set_requeues(&mut slot.meta.record, requeues);
                }
                *spare = Some(key);
                Ok(id)
            }
            Located::Absent(place) => {
                let Some(room) = self.make_room(&key, now) else {
                    return Err(key);
                };
                let mut meta = Meta::<S, L, M>::default();
                self.limiter.set_requeues(&mut meta.record, requeues);
                Ok(self.claim(room, place, key, meta, Phase::Idle))
            }
        }
    }

    pub(super) fn charge_slot(&mut self, id: SlotId, now: Instant) -> Duration {
        match self.slots.slot_mut(id) {
            Some(slot) => self.limiter.when(&mut slot.meta.record, now),
            None => Duration::ZERO,
        }
    }

    /// Returns room for one more key, and discards the oldest failure record for it if needed.
    #[inline]
    pub(super) fn make_room(&mut self, key: &K, now: Instant) -> Option<Room<S>> {
        let group = self.naming.group_of(key);
        let seat = match self.lists.seat(&group, now) {
            Some(seat) => seat,
            None if S::Lists::FEW_GROUPS => self.seat_of_records(&group, now)?,
            None => return None,
        };
        let id = match self.slots.vacant_slot() {
            Some(id) => id,
            None => match self.slots.new_slot() {
                Some(id) => id,
                None => self.drop_oldest_record()?,
            },
        };
        Some(Room { id, group, seat })
    }

    /// Gives a key its slot.
    #[inline]
    fn claim(
        &mut self,
        room: Room<S>,
        place: Place<K, S, L, M>,
        key: K,
        meta: Meta<S, L, M>,
        phase: Phase,
    ) -> SlotId {
        self.lists.admit(room.id, room.group, room.seat);
        self.slots.claim(room.id, place, key, meta, phase);
        room.id
    }
}

/// Where a key will be: its slot, which is vacant, and its group.
pub(super) struct Room<S: Storage> {
    id: SlotId,
    group: <S::Priorities as Priorities>::Group,
    seat: <S::Lists as Lists>::Seat,
}
