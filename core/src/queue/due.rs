//! Passed deadlines, and the choice of the next key. Owns the only place where time makes keys
//! ready, and how many at once; never sets a deadline.

use crate::levels::Ages;

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// Moves due keys to the ready list, in the order of their deadlines: those whose deadline has
    /// passed, and before others those whose window is open. One operation moves at most as many
    /// keys as the storage allows. Returns whether it moved so many: then there may be more, the
    /// backlog.
    ///
    /// Groups whose rates allow a run again are unblocked in the same order, at most as many, and
    /// do not wait behind the backlog of keys. After suspensions that have ended, a few more keys
    /// may be moved, as [`must_go_on`](Self::must_go_on) says.
    ///
    /// Every operation whose result could depend on due keys calls this first. `own` is the slot of
    /// the operation's key, or [`SlotId::NONE`]. If it is due, it is always moved, as the last one
    /// at the latest. So the effects and results of an operation do not depend on the backlog.
    // Inlines only the check, to keep code small.
    #[inline(always)]
    pub(crate) fn make_due_ready(&mut self, own: SlotId, now: Instant) -> bool {
        self.has_deadlines() && self.make_some_ready(own, now)
    }

    #[inline(always)]
    pub(super) fn has_deadlines(&self) -> bool {
        !self.delays.is_empty() || self.lists.earliest().is_some()
    }

    #[inline(never)]
    pub(super) fn make_some_ready(&mut self, own: SlotId, now: Instant) -> bool {
        let (clock, now) = (now, self.time_at(now));
        let may_be_due = self.delays.may_be_due(own, now) || self.lists.is_due(clock);
        may_be_due && self.release_at_most(own, now, clock)
    }

    /// The time that decides whether a deadline has passed. Shutdown stops it.
    #[inline(always)]
    pub(super) fn time_at(&self, now: Instant) -> Instant {
        if self.closed { Instant::NEVER } else { now }
    }

    #[inline(never)]
    fn release_at_most(&mut self, own: SlotId, now: Instant, clock: Instant) -> bool {
        let most = self.due_keys_max.get();
        let (mut keys, mut groups) = (most, if S::Lists::<P>::BLOCKS { most } else { 0 });
        while keys > 0 || groups > 0 {
            if groups > 0 && self.is_group_first(keys, now, clock) {
                self.lists.come_due(clock);
                groups -= 1;
                continue;
            }
            if keys == 0 {
                break;
            }
            let preferred = if keys == 1 { own } else { SlotId::NONE };
            let id = match self.delays.take_due(preferred, now) {
                Some((id, due)) => {
                    self.come_due(id, due);
                    id
                }
                None => {
                    if self.delays.has_slack() {
                        self.make_own_open_ready(own, now);
                    }
                    return S::Lists::<P>::BLOCKS && groups == 0;
                }
            };
            if !(S::Policy::<P>::SUSPENDS && keys == 1 && self.must_go_on(id, own, now)) {
                keys -= 1;
            }
        }
        true
    }

    /// Makes a key ready whose window is open behind a closed one.
    #[cold]
    #[inline(never)]
    fn make_own_open_ready(&mut self, own: SlotId, now: Instant) {
        if let Some((id, due)) = self.delays.take_due(own, now) {
            self.come_due(id, due);
        }
    }

    /// Whether more deadlines have to end because of suspensions that have ended, after that of
    /// `id`. A suspended key may have its own passed deadline as well. And if holds delay such keys,
    /// so that none is ready, or that nothing takes the place of what a shut down queue hands out, a
    /// drain must not end before the backlog (Q6).
    fn must_go_on(&self, id: SlotId, own: SlotId, now: Instant) -> bool {
        let is_put_off = self.closed && self.delays.has(id) && !self.is_queued(id);
        let goes_on = self.has_no_work() || is_put_off;
        self.delays.has_passed(own, now) || (goes_on && self.delays.is_due(now))
    }

    /// Whether the next deadline is a group's, if so many more keys may become ready. Shutdown does
    /// not stop the time of groups.
    #[inline(always)]
    fn is_group_first(&self, keys: u8, now: Instant, clock: Instant) -> bool {
        let is_key_first = || {
            let is_due = keys > 0 && self.delays.is_due(now);
            is_due && self.delays.earliest() < self.lists.earliest()
        };
        self.lists.is_due(clock) && !is_key_first()
    }

    /// Finds the slot of a key that an operation may change.
    #[inline]
    pub(super) fn locate<B>(&mut self, key: &B, now: Instant) -> Located<Place<K, P, L, S, M>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let located = self.slots.locate(key);
        let own = located.found().unwrap_or(SlotId::NONE);
        let _ = self.make_due_ready(own, now);
        self.let_own_deadline_pass(own, now);
        located
    }

    /// Applies a passed deadline: an add at its time, or the end of a suspension.
    pub(super) fn come_due(&mut self, id: SlotId, due: Instant) {
        if self.is_suspended(id) {
            return self.end_suspension(id, due, true);
        }
        let level = self.levels(id).delayed;
        let pauses = self.pauses(id);
        let _ = self.mark(id, due, level);
        if pauses > 0 {
            // The suspension has timed out.
            self.set_pauses(id, pauses);
        }
        self.metrics.delayed(self.delays.len());
    }

    /// The first ready key, none of whose deadlines has passed. `None` while there is a backlog if
    /// the deadlines that it has applied were those of active keys.
    // On boards a copy at each call costs flash.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub(super) fn first_ready(&mut self, now: Instant) -> Option<SlotId> {
        let most = self.due_keys_max.get();
        while self.lists.catch_up(most) {}
        let first = self.first_now_ready(now, S::Lists::<P>::first_ready);
        if P::Age::after(self.age_limit).is_none() {
            return first;
        }
        // A deadline may have raised an aged key, which is then first.
        self.first_aged_now_ready(now)
            .or_else(|| self.lists.first_ready())
    }

    /// The key that is first because of its age, none of whose deadlines has passed. `None` if two
    /// keys in a row had a passed deadline. Then the first key of the highest level is handed out,
    /// so that a get is bounded.
    fn first_aged_now_ready(&mut self, now: Instant) -> Option<SlotId> {
        let aged = self.first_aged(now)?;
        if !self.make_own_ready(aged, now) {
            return Some(aged);
        }
        // The deadline may have raised the key, which is then behind others.
        let now_first = self.first_aged(now)?;
        let has_passed = self.delays.has_passed(now_first, self.time_at(now));
        (!has_passed).then_some(now_first)
    }

    /// Makes a key ready if its deadline has passed. Returns whether it has.
    fn make_own_ready(&mut self, own: SlotId, now: Instant) -> bool {
        let now = self.time_at(now);
        if !self.delays.has_passed(own, now) {
            return false;
        }
        if let Some((id, due)) = self.delays.take_due(own, now) {
            self.come_due(id, due);
        }
        true
    }

    /// [`first_ready`](Self::first_ready) without aging. The deadline of the returned key has not
    /// passed: it was first before, or its deadline has just made it ready or raised it, or its
    /// group has just got a token.
    #[cfg_attr(feature = "alloc", inline(always))]
    #[cfg_attr(not(feature = "alloc"), inline)]
    pub(super) fn first_now_ready(
        &mut self,
        now: Instant,
        first_of: impl Fn(&S::Lists<P>) -> Option<SlotId>,
    ) -> Option<SlotId> {
        if self.has_deadlines() {
            self.make_due_ready_before(now, &first_of);
        }
        first_of(&self.lists)
    }

    /// Applies deadlines before the first key is taken.
    // Out of line, because most gets have no deadline to check.
    #[cfg_attr(feature = "alloc", inline(never))]
    #[cfg_attr(not(feature = "alloc"), inline(always))]
    fn make_due_ready_before(
        &mut self,
        now: Instant,
        first_of: &impl Fn(&S::Lists<P>) -> Option<SlotId>,
    ) {
        let own = first_of(&self.lists).unwrap_or(SlotId::NONE);
        let _ = self.make_some_ready(own, now);
        // If it is raised, it is still first.
        if (S::Lists::<P>::BLOCKS || S::Policy::<P>::SUSPENDS)
            && let Some(first) = first_of(&self.lists)
        {
            let _ = self.make_own_ready(first, now);
        }
    }

    /// The first key that is ready or in the backlog, even if its group may not start a run. Goes on
    /// until it finds one, past each active key whose own deadline has passed.
    pub(super) fn first_left(&mut self, now: Instant) -> Option<SlotId> {
        loop {
            let first = self.first_now_ready(now, S::Lists::<P>::first_held);
            if first.is_some() || !self.has_backlog(now) {
                return first;
            }
        }
    }

    /// Whether deadlines have passed and have not been applied.
    pub(super) fn has_backlog(&self, now: Instant) -> bool {
        self.delays.is_due(self.time_at(now)) || self.lists.is_due(now)
    }

    /// Of the first keys of all levels, the one that has waited longest, if it has waited too long.
    /// Of two equal ones, the key of the higher level.
    #[inline]
    pub(super) fn first_aged(&self, now: Instant) -> Option<SlotId> {
        let after = P::Age::after(self.age_limit)?;
        let levels = (0..P::LEVELS).rev();
        let firsts = levels.filter_map(|level| self.lists.first_ready_at(level));
        let waits = firsts.map(|id| (id, self.ready_since(id)));
        let aged = waits.filter(|(_, since)| now.saturating_since(*since) > after);
        aged.min_by_key(|(_, since)| *since).map(|(id, _)| id)
    }

    fn ready_since(&self, id: SlotId) -> Instant {
        let slot = self.slots.slot(id);
        slot.map_or(Instant::EPOCH, |slot| slot.meta.age.since())
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Serves keys that have waited for longer than `after` before the younger keys of higher
    /// levels, from now on; with `None`, none of them. For queues with
    /// [`Aging`](crate::priority::Aging). O(1).
    ///
    /// With [`Duration::ZERO`], every key that became ready at an earlier time is older than that:
    /// keys are handed out by age, whatever their levels. [`Aging`](crate::priority::Aging) has an
    /// example.
    pub fn age_after(&mut self, after: impl Into<Option<Duration>>)
    where
        P: Ages,
    {
        self.queue.age_limit = after.into();
    }
}
