//! A list of ready keys for each priority level. Owns which level is served first; never looks at a
//! key's age or group.

use crate::Instant;
use crate::array::{Array, ConstDefault};
use crate::id::{Index, SlotId};
use crate::lists::{Link, List, Lists};

/// `P` lists of ready keys and the list of failure records, threaded through one array of links.
///
/// The ready keys of growable queues are linked here too, instead of in a ring, because a raised
/// key leaves its list from the middle.
#[doc(hidden)]
#[derive(Debug)]
pub struct LeveledLists<X, I, const P: usize> {
    links: X,
    ready: [List<I>; P],
    /// A bit for each level that has a ready key.
    occupied: u32,
    ready_len: usize,
    /// How many keys of each level are dirty.
    dirty: [usize; P],
    records: List<I>,
}

impl<X, I: Index, const P: usize> LeveledLists<X, I, P> {
    /// The highest level that has a ready key.
    fn highest(&self) -> Option<&List<I>> {
        self.ready.get(self.occupied.checked_ilog2()? as usize)
    }
}

impl<X: Array<Item = Link<I>>, I: Index, const P: usize> ConstDefault for LeveledLists<X, I, P> {
    const DEFAULT: Self = {
        assert!(P > 0, "a queue needs at least one level");
        assert!(P <= 32, "a queue has at most 32 levels");
        Self {
            links: X::DEFAULT,
            ready: [const { List::new() }; P],
            occupied: 0,
            ready_len: 0,
            dirty: [0; P],
            records: List::new(),
        }
    };
}

#[cfg(feature = "alloc")]
impl<X: Array<Item = Link<I>>, I: Index, const P: usize> Default for LeveledLists<X, I, P> {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl<X: Array<Item = Link<I>>, I: Index, const P: usize> Lists for LeveledLists<X, I, P> {
    type Group = ();
    type Rates = ();
    type Backing = ();
    type Seat = ();
    type Index = I;
    type Links = X;

    #[inline]
    fn seat(&mut self, (): &(), _: Instant) -> Option<()> {
        Some(())
    }

    fn push_ready(&mut self, id: SlotId, level: u8, _: Instant) {
        if let Some(list) = self.ready.get_mut(usize::from(level)) {
            list.push_back(&mut self.links, id);
            self.occupied |= 1 << level;
            self.ready_len += 1;
        }
    }

    fn first_ready(&self) -> Option<SlotId> {
        self.highest()?.first()
    }

    fn first_ready_at(&self, level: u8) -> Option<SlotId> {
        self.ready.get(usize::from(level))?.first()
    }

    fn pop_ready(&mut self, level: u8, _: Instant) -> Option<SlotId> {
        let id = self.first_ready_at(level)?;
        self.remove_ready(id, level);
        Some(id)
    }

    fn newest_below(&self, level: u8) -> Option<SlotId> {
        let lowest = self.occupied.trailing_zeros();
        if lowest >= u32::from(level) {
            return None;
        }
        self.ready.get(lowest as usize)?.last()
    }

    fn remove_ready(&mut self, id: SlotId, level: u8) {
        if let Some(list) = self.ready.get_mut(usize::from(level)) {
            let before = list.len();
            list.remove(&mut self.links, id);
            self.ready_len -= before - list.len();
            if list.len() == 0 {
                self.occupied &= !(1 << level);
            }
        }
    }

    fn ready_len(&self) -> usize {
        self.ready_len
    }

    fn note_dirty(&mut self, level: u8) {
        if let Some(dirty) = self.dirty.get_mut(usize::from(level)) {
            *dirty += 1;
        }
    }

    fn note_clean(&mut self, level: u8) {
        if let Some(dirty) = self.dirty.get_mut(usize::from(level)) {
            *dirty -= 1;
        }
    }

    fn depth_at(&self, level: u8) -> usize {
        let level = usize::from(level);
        let ready = self.ready.get(level).map_or(0, List::len);
        ready + self.dirty.get(level).copied().unwrap_or(0)
    }

    fn records(&self) -> (&List<I>, &X) {
        (&self.records, &self.links)
    }

    fn records_mut(&mut self) -> (&mut List<I>, &mut X) {
        (&mut self.records, &mut self.links)
    }

    fn ready_at(&self, mut place: usize) -> Option<SlotId> {
        for list in self.ready.iter().rev() {
            if place < list.len() {
                return list.nth(&self.links, place);
            }
            place -= list.len();
        }
        None
    }
}
