//! Setting the limits of groups.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::group::{GroupLimits, GroupState};
use crate::id::SlotId;
use crate::storage::{Located, Slots};

use super::{Backing, GroupedLists};

/// What a queue with groups can do with them.
#[diagnostic::on_unimplemented(
    message = "the keys of this queue belong to no groups",
    label = "this queue has no groups",
    note = "call `.build_with_groups(group_of)` on the builder, or choose `Groups` as priorities"
)]
#[doc(hidden)]
pub trait GroupControl {
    type Name;

    /// Sets the limits of groups that have none of their own.
    fn limit_all(&mut self, limits: GroupLimits);
    /// Sets the limits of a group, or removes them. Returns the name if there is no room.
    fn limit(&mut self, name: Self::Name, limits: Option<GroupLimits>) -> Result<(), Self::Name>;
    /// Pauses a group. Returns the name if there is no room.
    fn pause(&mut self, name: Self::Name) -> Result<(), Self::Name>;
    fn resume<N>(&mut self, name: &N)
    where
        Self::Name: Borrow<N>,
        N: Eq + Hash + ?Sized;
    fn state<N>(&self, name: &N) -> Option<GroupState>
    where
        Self::Name: Borrow<N>,
        N: Eq + Hash + ?Sized;
    fn len(&self) -> usize;
    /// One more than the highest slot of a group.
    fn bound(&self) -> usize;
    fn group_at(&self, group: SlotId) -> Option<(&Self::Name, GroupState)>;
}

#[diagnostic::do_not_recommend]
impl<B: Backing> GroupControl for GroupedLists<B> {
    type Name = B::Name;

    fn limit_all(&mut self, limits: GroupLimits) {
        self.limits = limits;
        self.generation = self.generation.wrapping_add(1);
        self.outdated = self.groups.len();
        self.review_turns();
        self.review_all();
    }

    fn limit(&mut self, name: B::Name, limits: Option<GroupLimits>) -> Result<(), B::Name> {
        self.change(name, limits.is_none(), |lists, group| {
            let share = limits.as_ref().map(GroupLimits::share);
            let bucket = limits.and_then(GroupLimits::into_bucket);
            lists.rated += usize::from(bucket.is_some());
            if let Some(own) = lists.group_mut(group) {
                own.own = share;
                let owned = core::mem::replace(&mut own.owns_rate, bucket.is_some());
                lists.rated -= usize::from(owned);
            }
            if share.is_some() {
                lists.set_rate(group, bucket);
            } else {
                lists.see_limits(group);
            }
        })
    }

    fn pause(&mut self, name: B::Name) -> Result<(), B::Name> {
        if self.closed {
            return Ok(());
        }
        self.change(name, false, |lists, group| {
            if let Some(own) = lists.group_mut(group) {
                own.paused = true;
            }
        })
    }

    fn resume<N>(&mut self, name: &N)
    where
        B::Name: Borrow<N>,
        N: Eq + Hash + ?Sized,
    {
        let Located::Found(group) = self.groups.locate(name) else {
            return;
        };
        // One that is not paused may be leaving, and must not come back for this.
        if let Some(own) = self.group_mut(group).filter(|own| own.paused) {
            own.paused = false;
            self.refresh(group);
            self.retire(group);
        }
    }

    fn state<N>(&self, name: &N) -> Option<GroupState>
    where
        B::Name: Borrow<N>,
        N: Eq + Hash + ?Sized,
    {
        let Located::Found(group) = self.groups.locate(name) else {
            return None;
        };
        Some(self.group_at(group)?.1)
    }

    fn len(&self) -> usize {
        self.groups.len()
    }

    fn bound(&self) -> usize {
        self.groups.bound()
    }

    fn group_at(&self, group: SlotId) -> Option<(&B::Name, GroupState)> {
        let slot = self.groups.slot(group)?;
        let own = &slot.meta;
        // Without ready keys there is no deadline at which it would be noticed that it has one.
        let waits_for_token = own.is_resting && own.ready > 0;
        let state = GroupState {
            ready: own.ready as usize,
            active: own.active as usize,
            held: own.members as usize,
            blocked: waits_for_token || !own.is_within(&self.limits, self.closed),
            paused: own.paused && !self.closed,
        };
        Some((&slot.key, state))
    }
}

impl<B: Backing> GroupedLists<B> {
    /// Changes a group. One that is not there is added, unless the change only removes something.
    fn change(
        &mut self,
        name: B::Name,
        only_removes: bool,
        change: impl FnOnce(&mut Self, SlotId),
    ) -> Result<(), B::Name> {
        let seat = self.groups.locate(&name);
        if let Located::Absent(_) = seat {
            if only_removes {
                return Ok(());
            }
            if self.groups.vacancy().is_none() {
                return Err(name);
            }
        }
        let Some(group) = self.enter(name, seat) else {
            return Ok(());
        };
        change(self, group);
        self.refresh(group);
        self.retire(group);
        Ok(())
    }
}
