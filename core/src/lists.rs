//! The two first-in-first-out lists of slots: ready keys, and failure records (keys that are kept
//! only for their failures). Owns the order of the ready keys; never looks at a key, its phase or
//! its deadline.
//!
//! A slot is in at most one of the lists, so the fixed storage threads both through one array of
//! links. An active slot is in neither, so metrics that list the active slots use the same links.
//! The growable storage has the ready keys in a ring. The ring is dense, so the slots of the next
//! keys can be fetched ahead.

use crate::Instant;
use crate::id::{Index, SlotId};
use crate::outcome::Why;

pub(crate) mod fixed;
pub(crate) mod grouped;
#[cfg(feature = "alloc")]
pub(crate) mod growable;
pub(crate) mod leveled;
mod linked;

use grouped::rates::GroupRates;
use grouped::{Backing, GroupedLists};
pub(crate) use linked::{Link, Linked, Links, List};

/// The lists of a queue. All operations are O(1) unless they say otherwise.
///
/// Each priority level has a list of ready keys, first in, first out. The highest level is first.
/// With a single level, the methods for levels do nothing.
#[doc(hidden)]
pub trait Lists {
    /// The name of a group, `()` without groups. Then the methods for groups do nothing.
    type Group;
    /// Whether groups may have rates.
    type Rates: GroupRates;
    /// The storage of the groups, `()` without groups, which is never made.
    type Backing: Backing<Name = Self::Group, Limit = Self::Rates>;
    /// Where a group is.
    type Seat: Copy;
    /// The type of slot numbers in the links.
    type Index: Index;
    /// The links of the failure records, which other lists may share.
    type Links: Links<Self::Index>;

    /// Whether a ready key may have to wait, because of its group.
    const BLOCKS: bool = false;
    /// Whether the number of groups is limited.
    const FEW_GROUPS: bool = false;

    /// The groups, if there are any.
    #[inline]
    fn groups(&self) -> Option<&GroupedLists<Self::Backing>> {
        None
    }
    #[inline]
    fn groups_mut(&mut self) -> Option<&mut GroupedLists<Self::Backing>> {
        None
    }
    /// Where the group of a key is, or would be. `None` if there is no room for another group.
    fn seat(&mut self, group: &Self::Group, now: Instant) -> Option<Self::Seat>;
    /// Whether there is room for a key of a new group.
    fn has_seat(&self) -> bool {
        true
    }
    /// The group of a key, if only failure records keep it alive.
    fn group_of_records(&self, _id: SlotId) -> Option<SlotId> {
        None
    }
    /// Adds a key to its group, before it gets this slot.
    fn admit(&mut self, _id: SlotId, _group: Self::Group, _seat: Self::Seat) {}
    /// Removes a key from its group, before it loses its slot.
    fn dismiss(&mut self, _id: SlotId) {}
    /// Records that the run of a key has ended.
    fn end_run(&mut self, _id: SlotId) {}
    /// Whether a ready key may be handed out, now or after [`catch_up`](Self::catch_up).
    fn may_start(&self) -> bool {
        self.ready_len() > 0
    }
    /// The first ready slot, even if its group may not start a run.
    fn first_held(&self) -> Option<SlotId> {
        self.first_ready()
    }
    /// Why the group of a ready key may not start a run. `None` if it may.
    fn why_blocked(&self, _id: SlotId, _now: Instant) -> Option<Why> {
        None
    }
    /// When a group may start its next run.
    fn earliest(&self) -> Option<Instant> {
        None
    }
    /// Whether that time has passed.
    fn is_due(&self, _now: Instant) -> bool {
        false
    }
    /// Lets the group with the earliest time start runs, if that time has passed.
    fn come_due(&mut self, _now: Instant) {}
    /// Checks at most so many groups whose limits have changed. Returns whether more have to be
    /// checked before a key is handed out.
    fn catch_up(&mut self, _most: u8) -> bool {
        false
    }
    /// Whether handing out a key needs the time.
    fn needs_time(&self) -> bool {
        false
    }
    /// Lifts limits that would prevent the end of a drain.
    fn close(&mut self) {}

    /// Makes room for `additional` more ready keys.
    fn reserve(&mut self, _additional: usize) {}

    /// Adds a slot to the end of a level. It is then ready.
    fn push_ready(&mut self, id: SlotId, level: u8, at: Instant);
    /// The next slot to hand out. Without groups, the oldest one of the highest level.
    fn first_ready(&self) -> Option<SlotId>;
    /// The first ready key of a level. With groups, the first key of the first group in the turn.
    fn first_ready_at(&self, _level: u8) -> Option<SlotId> {
        self.first_ready()
    }
    /// The newest slot of the lowest level with ready keys, if that level is below this one. With
    /// groups, it is of the group that is last in the turn, among the groups that may start a run.
    fn newest_below(&self, _level: u8) -> Option<SlotId> {
        None
    }
    /// Removes the first ready slot of a level, to hand it out.
    fn pop_ready(&mut self, level: u8, now: Instant) -> Option<SlotId>;
    /// Removes a slot from any place of its level.
    fn remove_ready(&mut self, id: SlotId, level: u8);
    fn ready_len(&self) -> usize;

    /// Counts an active slot that will be ready at this level when its run ends.
    fn note_dirty(&mut self, _level: u8) {}
    /// Undoes [`note_dirty`](Self::note_dirty).
    fn note_clean(&mut self, _level: u8) {}
    /// How many slots are ready or dirty at this level. Not counted with a single level.
    fn depth_at(&self, _level: u8) -> usize {
        0
    }

    /// The failure records, oldest first, and their links.
    fn records(&self) -> (&List<Self::Index>, &Self::Links);
    fn records_mut(&mut self) -> (&mut List<Self::Index>, &mut Self::Links);
    /// Adds a slot to the failure records, as the newest.
    fn retain_record(&mut self, id: SlotId) {
        let (records, links) = self.records_mut();
        records.push_back(links, id);
    }
    /// Removes a slot from the failure records. No effect if it is in no list. It must not be
    /// ready.
    fn discard_record(&mut self, id: SlotId) {
        let (records, links) = self.records_mut();
        records.remove(links, id);
    }
    fn oldest_record(&self) -> Option<SlotId> {
        self.records().0.first()
    }
    fn records_len(&self) -> usize {
        self.records().0.len()
    }
    /// The next newer record.
    fn record_after(&self, id: SlotId) -> Option<SlotId> {
        let (records, links) = self.records();
        records.after(links, id)
    }
    /// The link of an active slot in a list of the metrics. The slot is in neither of these lists.
    fn link(&self, id: SlotId) -> Link<u32> {
        self.records().1.link(id).convert()
    }
    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        self.records_mut().1.set_link(id, link.convert());
    }
    /// The ready slot at a place of the list, for checks. O(n).
    fn ready_at(&self, place: usize) -> Option<SlotId>;
}
