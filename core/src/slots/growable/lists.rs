//! A ring for the ready keys, links for the memories.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::id::SlotId;
use crate::lists::{Link, Links, List, Lists};

/// Ready keys in a ring, memories in a list whose links exist only once there is a memory.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableLists {
    ready: VecDeque<u32>,
    links: Vec<Link<u32>>,
    memories: List<u32>,
}

impl Links<u32> for Vec<Link<u32>> {
    const EMPTY: Self = Self::new();

    fn link(&self, id: SlotId) -> Link<u32> {
        self.get(id.index()).copied().unwrap_or(Link::UNLINKED)
    }

    fn set_link(&mut self, id: SlotId, link: Link<u32>) {
        if self.len() <= id.index() {
            self.resize(id.index() + 1, Link::UNLINKED);
        }
        if let Some(to) = self.get_mut(id.index()) {
            *to = link;
        }
    }
}

impl Lists for GrowableLists {
    const EMPTY: Self = Self {
        ready: VecDeque::new(),
        links: Links::EMPTY,
        memories: List::new(),
    };

    fn reserve(&mut self, additional: usize) {
        self.ready.reserve(additional);
    }

    #[inline]
    fn push_ready(&mut self, id: SlotId, _: u8) {
        self.ready.push_back(id.0);
    }

    #[inline]
    fn first_ready(&self) -> Option<SlotId> {
        self.ready.front().map(|&id| SlotId(id))
    }

    #[inline]
    fn pop_ready(&mut self) -> Option<SlotId> {
        self.ready.pop_front().map(SlotId)
    }

    #[inline]
    fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn remember(&mut self, id: SlotId) {
        self.memories.push_back(&mut self.links, id);
    }

    #[inline]
    fn unremember(&mut self, id: SlotId) {
        if self.memories.len() > 0 {
            self.memories.remove(&mut self.links, id);
        }
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

    fn ready_at(&self, place: usize) -> Option<SlotId> {
        self.ready.get(place).map(|&id| SlotId(id))
    }
}
