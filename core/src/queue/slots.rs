//! How a key gets its slot, keeps it and loses it. Never decides whether a key is ready.

use crate::levels::{Naming, ThreeLevels};

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// client-go's `Add`. Returns the key if there is no room.
    ///
    /// `spare` receives the key if the queue already has it, so that the caller can drop it after
    /// the lock.
    // Always inlined, so that the result is built in place. Copying it costs more than the rest of
    // a coalesced add.
    #[inline(always)]
    pub(super) fn add_key(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<Added, Rejected<K>> {
        let located = if S::CAPACITY.is_none() {
            let (located, slot) = self.slots.find(&key);
            let is_queued = slot.is_some_and(|slot| slot.phase.is_queued());
            if P::LEVELS == 1 && is_queued && !self.has_deadlines() {
                self.metrics.coalesced();
                *spare = Some(key);
                return Ok(Added::Coalesced);
            }
            let own = located.found().unwrap_or(SlotId::NONE);
            let _ = self.make_due_ready(own, now);
            self.let_own_deadline_pass(own, now);
            located
        } else {
            // On a board this fast path for a ready key costs more than it saves.
            self.locate(&key, now)
        };
        match located {
            Located::Found(id) if P::LEVELS == 1 && self.is_queued(id) => {
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
                None => Err(Rejected::Full(key)),
            },
        }
    }

    /// Makes a new key ready without a second lookup of its slot.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    fn add_new(&mut self, room: Room<P, S>, place: Place<K, P, L, S, M>, key: K, now: Instant) {
        let id = room.id;
        let mut meta = Meta::<P, L, S, M>::default();
        meta.age.begin(now);
        let kept = &mut meta.timestamps;
        self.metrics.rest(kept, id.index());
        self.metrics.stamp_added(kept, id.index(), now);
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
        self.slot_with(key, now, spare, |_, _| {})
    }

    /// Charges the limiter for a key, and returns its delay.
    pub(super) fn charge(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<(SlotId, Duration), K> {
        let mut delay = Duration::ZERO;
        let charge = |limiter: &mut L, record: &mut _| delay = limiter.when(record, now);
        let id = self.slot_with(key, now, spare, charge)?;
        self.hold_failure(id, delay, now);
        Ok((id, delay))
    }

    /// Finds the slot of a key, or claims one, and changes the limiter's record of the key. Returns
    /// the key if there is no room. The slot is claimed last, so that a panic of the limiter leaves
    /// no slot behind.
    #[inline]
    pub(super) fn slot_with(
        &mut self,
        key: K,
        now: Instant,
        spare: &mut Option<K>,
        change: impl FnOnce(&mut L, &mut L::Record),
    ) -> Result<SlotId, K> {
        match self.locate(&key, now) {
            Located::Found(id) => {
                if let Some(slot) = self.slots.slot_mut(id) {
                    change(&mut self.limiter, &mut slot.meta.record);
                }
                *spare = Some(key);
                Ok(id)
            }
            Located::Absent(place) => {
                let Some(room) = self.make_room(&key, now) else {
                    return Err(key);
                };
                let mut meta = Meta::<P, L, S, M>::default();
                change(&mut self.limiter, &mut meta.record);
                self.metrics.rest(&mut meta.timestamps, room.id.index());
                Ok(self.claim(room, place, key, meta, Phase::Idle))
            }
        }
    }

    pub(super) fn charge_slot(&mut self, id: SlotId, now: Instant) -> Duration {
        let delay = match self.slots.slot_mut(id) {
            Some(slot) => self.limiter.when(&mut slot.meta.record, now),
            None => Duration::ZERO,
        };
        self.hold_failure(id, delay, now);
        delay
    }

    /// Returns room for one more key, and discards the oldest failure record for it if needed.
    #[inline]
    pub(super) fn make_room(&mut self, key: &K, now: Instant) -> Option<Room<P, S>> {
        if S::Lists::<P>::FEW_GROUPS && !self.has_room() {
            // Before another group loses its place for this one.
            return None;
        }
        let group = self.naming.group_of(key);
        let seat = match self.lists.seat(&group, now) {
            Some(seat) => seat,
            None if S::Lists::<P>::FEW_GROUPS => self.seat_of_records(&group, now)?,
            None => return None,
        };
        let (id, seat) = match self.slots.vacant_slot() {
            Some(id) => (id, seat),
            None => match self.slots.new_slot() {
                Some(id) => (id, seat),
                None => {
                    let id = self.drop_oldest_record()?;
                    // The group may have been forgotten with that key.
                    (id, self.seat_again(&group, now)?)
                }
            },
        };
        Some(Room { id, group, seat })
    }

    /// Gives a key its slot.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    fn claim(
        &mut self,
        room: Room<P, S>,
        place: Place<K, P, L, S, M>,
        key: K,
        meta: Meta<P, L, S, M>,
        phase: Phase,
    ) -> SlotId {
        self.lists.admit(room.id, room.group, room.seat);
        self.slots.claim(room.id, place, key, meta, phase);
        room.id
    }

    pub(super) fn levels(&self, id: SlotId) -> ThreeLevels {
        let slot = self.slots.slot(id);
        slot.map_or_else(ThreeLevels::default, |slot| slot.meta.levels.get())
    }

    pub(super) fn is_active(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_active())
    }

    pub(super) fn is_idle_slot(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Idle)
    }

    /// Whether the key will be handed out without another add or deadline.
    pub(super) fn is_queued(&self, id: SlotId) -> bool {
        self.slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_queued())
    }

    pub(super) fn is_record_only(&self, id: SlotId) -> bool {
        self.is_idle_slot(id) && !self.delays.has(id)
    }

    pub(super) fn failures_of(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.failures(&slot.meta.record))
    }

    /// Discards the oldest failure record. Returns the freed slot.
    #[cold]
    pub(super) fn drop_oldest_record(&mut self) -> Option<SlotId> {
        let id = self.lists.oldest_record()?;
        self.drop_record(id);
        Some(id)
    }

    /// Makes room for a group that gets limits or a pause of its own, as for one that gets a key.
    pub(super) fn make_group_room(&mut self, group: &P::Group, now: Instant) {
        if S::Lists::<P>::FEW_GROUPS && self.lists.seat(group, now).is_none() {
            let _ = self.seat_of_records(group, now);
        }
    }

    #[cold]
    #[inline(never)]
    fn seat_again(&mut self, group: &P::Group, now: Instant) -> Option<Seat<P, S>> {
        self.lists.seat(group, now)
    }

    /// Discards the failure records of a group that has nothing else, if there is such a group. New
    /// work matters more than records. Returns the place of the new key's group. O(n) in the
    /// records.
    #[cold]
    #[inline(never)]
    pub(super) fn seat_of_records(&mut self, group: &P::Group, now: Instant) -> Option<Seat<P, S>> {
        let mut leaving = None;
        let mut next = self.lists.oldest_record();
        while let Some(id) = next {
            next = self.lists.record_after(id);
            let own = self.lists.group_of_records(id);
            if own.is_some_and(|own| *leaving.get_or_insert(own) == own) {
                self.drop_record(id);
            }
        }
        self.seat_again(group, now)
    }

    /// Frees the slot of a key that is kept only for its failures.
    pub(super) fn drop_record(&mut self, id: SlotId) {
        self.end_hold(id);
        self.lists.discard_record(id);
        self.release_slot(id);
    }

    /// Frees a slot that has become idle or lost its delay, unless it has another reason to be
    /// live. Call it last, because the key's `Drop` may run here.
    // On boards a copy at each call costs flash.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub(super) fn release_if_unused(&mut self, id: SlotId, is_kept: bool) {
        if self.delays.has(id) {
            return;
        }
        self.clear_suspension(id);
        if !is_kept {
            self.release_slot(id);
            return;
        }
        if let Some(slot) = self.slots.slot_mut(id) {
            self.metrics.rest(&mut slot.meta.timestamps, id.index());
        }
        self.lists.retain_record(id);
        if self.lists.records_len() > self.failure_records_max || self.slots.is_over_full() {
            let _ = self.drop_oldest_record();
        }
    }

    /// The key's `Drop` runs here, last.
    // Without a hint to inline it: a copy at each call would cost a board 80 bytes of flash.
    pub(super) fn release_slot(&mut self, id: SlotId) {
        self.lists.dismiss(id);
        self.slots.free(id);
    }

    /// [`release_if_unused`](Self::release_if_unused) for a slot that may still be ready or active.
    pub(super) fn release_if_idle(&mut self, id: SlotId) {
        let Some(slot) = self.slots.slot(id) else {
            return;
        };
        if slot.phase == Phase::Idle {
            let has_failed = has_failed::<L>(&slot.meta.record);
            // Even if the hold has expired, because later runs drop its record.
            let is_kept = has_failed || self.held_until(id) > Instant::EPOCH;
            self.release_if_unused(id, is_kept);
        }
    }
}

/// The place of a new key: a vacant slot, and its group.
pub(super) struct Room<P: Priorities, S: Storage> {
    id: SlotId,
    group: P::Group,
    seat: Seat<P, S>,
}

type Seat<P, S> = <<S as Storage>::Lists<P> as Lists>::Seat;
