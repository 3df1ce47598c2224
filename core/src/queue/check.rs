//! All numbered invariants in one check, for tests. Owns the definition of a valid queue; changes
//! nothing.

use crate::policy::Suspension;
use crate::store::Slot;

use super::*;

type LiveSlot<K, P, L, S, M> = Slot<
    K,
    Meta<P, L, S, M>,
    <<S as Storage>::Slots<K, Meta<P, L, S, M>> as Slots<K, Meta<P, L, S, M>>>::Tag,
>;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Checks every invariant of the queue. O(slots² log slots) at worst.
    ///
    /// # Panics
    ///
    /// If an invariant does not hold, naming it.
    #[doc(hidden)]
    pub fn assert_valid(&self) {
        let (mut live, mut active, mut dirty, mut ready, mut records) = (0, 0, 0, 0, 0);
        let mut suspended = 0;
        for (id, slot) in self.live_slots() {
            live += 1;
            match self.slots.locate(&slot.key) {
                Located::Found(found) => assert_eq!(found, id, "Q1: one slot per key"),
                Located::Absent(_) => unreachable!("Q1: a stored key is found"),
            }
            ready += usize::from(slot.phase == Phase::Ready);
            active += usize::from(slot.phase.is_active());
            dirty += usize::from(slot.phase.is_active() && slot.phase.is_queued());
            let held = self.held_until(id);
            let blank = held == Instant::EPOCH && !has_failed::<L>(&slot.meta.record);
            let at_rest = slot.phase == Phase::Idle && !self.delays.has(id);
            assert!(!(at_rest && blank), "Q4: a slot is live for a reason");
            records += usize::from(at_rest);
            let window = self.delays.window(id);
            let waits = window.is_none_or(|window| window.opens() >= held);
            assert!(
                waits || self.is_suspended(id),
                "Q8: no deadline passes before the end of a hold"
            );
            suspended += usize::from(self.is_suspended(id));
            self.assert_suspension(id, slot.phase);
        }
        self.assert_no_hold_is_left();
        assert_eq!(live, self.slots.len(), "Q1: the number of keys is right");
        if let Some(capacity) = self.max_keys() {
            let was_lowered = self.slots.is_over_full();
            assert!(live <= capacity || was_lowered, "Q1: no more keys than fit");
        }
        assert_eq!(active, self.active, "Q3: active slots are counted");
        assert_eq!(dirty, self.dirty, "Q3: dirty slots are counted");
        let counted = self.policy.suspended();
        assert_eq!(suspended, counted, "Q9: suspended slots are counted");
        self.assert_ready_list(ready);
        self.assert_depths();
        self.assert_records(records);
        self.assert_running();
        self.delays
            .assert_valid(|id| self.slots.slot(id).is_some(), self.slots.bound());
        let at_rest = self.active == 0 && self.lists.ready_len() == 0;
        let backlog = self.closed && self.delays.is_due(self.delays.stopped_at());
        assert!(!(at_rest && backlog), "Q6: a drain ends with the backlog");
        let ready = self.lists.may_start();
        let awake = self.sleepers.is_valid(
            self.is_at_hand(ready) && !self.is_paused(),
            self.next_deadline(),
        );
        assert!(awake, "W1, W2: {:?}", self.sleepers);
        assert!(!(self.closed && self.is_paused()), "shutdown ends a pause");
        assert!(self.has_reported_what_came(), "W3: {:?}", self.watched);
    }

    /// The next key that gets a slot would be held, too.
    fn assert_no_hold_is_left(&self) {
        for id in (0..self.slots.bound()).map(SlotId::from_index) {
            if self.slots.slot(id).is_none() {
                let kept = self.policy.kept(&Default::default(), id);
                assert_eq!(kept.held_until, Instant::EPOCH, "Q8: only keys are held");
                let suspension = self.policy.suspension(&Default::default(), id);
                assert_eq!(suspension, Suspension::NONE, "Q9: only keys are suspended");
            }
        }
    }

    fn assert_suspension(&self, id: SlotId, phase: Phase) {
        let suspension = self.suspension(id);
        let is_suspended = suspension.has(Suspension::SUSPENDED);
        let at_rest = phase == Phase::Idle && self.delays.has(id);
        assert!(!is_suspended || at_rest, "Q9: a suspended slot has an end");
        let waits = suspension.has(Suspension::QUEUED | Suspension::DELAYED);
        assert!(
            is_suspended || !waits,
            "Q9: others have their own deadlines"
        );
        let of_run = Suspension::PENDING | Suspension::ASKS | Suspension::RESUMED;
        let is_active = phase.is_active() || !suspension.has(of_run);
        assert!(is_active, "Q9: only a run will be suspended");
        let may_pause = !is_suspended && (phase != Phase::Idle || at_rest);
        assert!(
            may_pause || suspension.pauses == 0,
            "Q9: a pause is a deadline"
        );
    }

    fn assert_ready_list(&self, ready: usize) {
        assert_eq!(ready, self.lists.ready_len(), "Q2: ready slots are listed");
        let (mut level, mut marks) = (u8::MAX, 0u64);
        for place in 0..ready {
            let listed = self.lists.ready_at(place);
            let slot = listed.and_then(|id| self.slots.slot(id));
            let phase = slot.map(|slot| slot.phase);
            assert_eq!(phase, Some(Phase::Ready), "Q2: listed slots are ready");
            let own = slot.map_or(LOWEST, |slot| slot.meta.levels.get().queued);
            assert!(own <= level, "Q2: a slot is listed at its level");
            level = own;
            marks = marks.wrapping_add(listed.map_or(0, mark));
        }
        let slots = self.live_slots();
        let ready = slots.filter(|(_, slot)| slot.phase == Phase::Ready);
        let expected = ready.fold(0, |sum: u64, (id, _)| sum.wrapping_add(mark(id)));
        assert_eq!(marks, expected, "Q2: each ready slot is listed once");
    }

    /// The depth of each level, as reported to the metrics.
    fn assert_depths(&self) {
        for level in 0..P::LEVELS {
            let queued = self
                .live_slots()
                .filter(|(id, slot)| self.is_queued(*id) && slot.meta.levels.get().queued == level);
            let counted = self.lists.depth_at(level);
            let single = P::LEVELS == 1;
            assert!(
                single || counted == queued.count(),
                "Q3: levels are counted"
            );
        }
    }

    fn assert_records(&self, records: usize) {
        assert_eq!(records, self.lists.records_len(), "Q5: all are listed");
        assert!(
            records <= self.failure_records_max,
            "Q5: no more than allowed"
        );
        let fits = records == 0 || !self.slots.is_over_full();
        assert!(fits, "Q5: none in a queue that has more keys than fit");
        let mut next = self.lists.oldest_record();
        for _ in 0..records {
            assert!(
                next.is_some_and(|id| self.is_record_only(id)),
                "Q5: a listed slot has no other reason"
            );
            next = next.and_then(|id| self.lists.record_after(id));
        }
        assert_eq!(next, None, "Q5: the list ends");
    }

    fn assert_running(&self) {
        let Some(running) = self.metrics.running(&self.running) else {
            return;
        };
        let (mut next, mut run, mut starts) = (running.oldest(), None, 0);
        for _ in 0..self.active {
            let id = next.filter(|id| self.is_active(*id));
            let slot = id.and_then(|id| self.slots.slot(id));
            assert!(slot.is_some(), "Q7: every active slot is listed");
            let own = slot.map(|slot| slot.run.wrapping_sub(self.runs).wrapping_sub(1));
            assert!(own > run, "Q7: in the order of the runs, once");
            run = own;
            starts += id
                .and_then(|id| self.started(id))
                .map_or(0, |at| u128::from(at.as_nanos()));
            next = id.and_then(|id| self.began_after(id));
        }
        assert_eq!(
            running.len(),
            self.active,
            "Q7: only active slots are listed"
        );
        assert_eq!(next, None, "Q7: the list ends");
        assert_eq!(starts, running.starts(), "Q7: the sum is right");
    }

    fn began_after(&self, id: SlotId) -> Option<SlotId> {
        let own = self.metrics.running_link(id.index());
        own.unwrap_or_else(|| self.lists.link(id)).next.get()
    }

    fn live_slots(&self) -> impl Iterator<Item = (SlotId, &LiveSlot<K, P, L, S, M>)> {
        (0..self.slots.bound())
            .map(SlotId::from_index)
            .filter_map(|id| Some((id, self.slots.slot(id)?)))
    }
}

/// A pseudorandom number, so that sums over different slots differ. Source: splitmix64.
fn mark(id: SlotId) -> u64 {
    let mut bits = (id.index() as u64).wrapping_add(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
