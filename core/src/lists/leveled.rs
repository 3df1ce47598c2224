//! A list of ready keys per priority level.

use crate::id::{Index, SlotId};
use crate::lists::{Links, List, Lists};

/// `P` lists of ready keys and the memories, threaded through one array of links.
///
/// The ready keys of growable queues are in links here too, and not in a ring: a key that is raised
/// leaves its list from the middle.
#[doc(hidden)]
#[derive(Debug)]
pub struct LeveledLists<X, I, const P: usize> {
    links: X,
    ready: [List<I>; P],
    /// A bit for each level that has a ready key.
    occupied: u32,
    ready_len: usize,
    /// Keys of each level that are in work and will be ready again.
    dirty: [usize; P],
    memories: List<I>,
}

impl<X, I: Index, const P: usize> LeveledLists<X, I, P> {
    /// The highest level that has a ready key.
    fn highest(&self) -> Option<&List<I>> {
        self.ready.get(self.occupied.checked_ilog2()? as usize)
    }
}

impl<X: Links<I>, I: Index, const P: usize> Lists for LeveledLists<X, I, P> {
    const EMPTY: Self = {
        assert!(P > 0, "a queue has one level at least");
        assert!(P <= 32, "a queue has 32 levels at most");
        Self {
            links: X::EMPTY,
            ready: [const { List::new() }; P],
            occupied: 0,
            ready_len: 0,
            dirty: [0; P],
            memories: List::new(),
        }
    };

    fn push_ready(&mut self, id: SlotId, level: u8) {
        if let Some(list) = self.ready.get_mut(usize::from(level)) {
            list.push_back(&mut self.links, id);
            self.occupied |= 1 << level;
            self.ready_len += 1;
        }
    }

    fn first_ready(&self) -> Option<SlotId> {
        self.highest()?.first()
    }

    fn pop_ready(&mut self) -> Option<SlotId> {
        let level = self.occupied.checked_ilog2()? as u8;
        let id = self.first_ready()?;
        self.remove_ready(id, level);
        Some(id)
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

    fn remember(&mut self, id: SlotId) {
        self.memories.push_back(&mut self.links, id);
    }

    fn unremember(&mut self, id: SlotId) {
        self.memories.remove(&mut self.links, id);
    }

    fn oldest_memory(&self) -> Option<SlotId> {
        self.memories.first()
    }

    fn memories_len(&self) -> usize {
        self.memories.len()
    }

    fn younger_memory(&self, id: SlotId) -> Option<SlotId> {
        self.memories.after(&self.links, id)
    }

    fn ready_at(&self, mut place: usize) -> Option<SlotId> {
        for list in self.ready.iter().rev() {
            if place >= list.len() {
                place -= list.len();
                continue;
            }
            let mut id = list.first()?;
            for _ in 0..place {
                id = list.after(&self.links, id)?;
            }
            return Some(id);
        }
        None
    }
}
