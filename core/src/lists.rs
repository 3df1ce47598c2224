//! The two first-in-first-out lists of slots: ready keys, and failure records, which are keys that
//! are held for their failures alone, oldest first.
//!
//! A slot is in at most one of them, so the fixed storage threads both through one array of links.
//! An active slot is in neither: metrics that list the active slots use the same links. The
//! growable storage keeps the ready keys in a ring, which is dense, so that the slots of the next
//! keys can be fetched ahead.

use crate::id::{Index, SlotId};

pub(crate) mod leveled;

/// The lists of a queue. All operations are O(1) unless they say otherwise.
///
/// The ready keys are one list per priority level, each first in, first out, the highest level
/// first. With a single level, the methods that concern levels do nothing.
#[doc(hidden)]
pub trait Lists {
    const EMPTY: Self;

    /// Makes room for `additional` more ready keys.
    fn reserve(&mut self, additional: usize) {
        let _ = additional;
    }

    /// Puts a slot at the end of a level.
    fn push_ready(&mut self, id: SlotId, level: u8);
    /// The slot that has been longest in the highest level.
    fn first_ready(&self) -> Option<SlotId>;
    /// The first ready key of a level.
    fn first_ready_at(&self, level: u8) -> Option<SlotId> {
        let _ = level;
        self.first_ready()
    }
    fn pop_ready(&mut self) -> Option<SlotId>;
    /// The slot that came last to the lowest level that has any, if that level is below this one.
    fn newest_below(&self, level: u8) -> Option<SlotId> {
        let _ = level;
        None
    }
    /// Takes a slot out of any place of its level.
    fn remove_ready(&mut self, id: SlotId, level: u8);
    fn ready_len(&self) -> usize;

    /// Counts an active slot that will be ready at this level when its run ends.
    fn note_dirty(&mut self, level: u8) {
        let _ = level;
    }
    /// Undoes [`note_dirty`](Self::note_dirty).
    fn note_clean(&mut self, level: u8) {
        let _ = level;
    }
    /// How many slots are ready or dirty at this level. Not counted with a single level.
    fn depth_at(&self, level: u8) -> usize {
        let _ = level;
        0
    }

    /// Adds a slot to the failure records, as the youngest.
    fn retain_record(&mut self, id: SlotId);
    /// Takes a slot out of the failure records. No effect if it is in no list. It must not be
    /// ready.
    fn discard_record(&mut self, id: SlotId);
    fn oldest_record(&self) -> Option<SlotId>;
    fn records_len(&self) -> usize;
    /// The record that is next younger than this one.
    fn record_after(&self, id: SlotId) -> Option<SlotId>;
    /// The link of an active slot, which is in neither list, in a list of the metrics.
    fn link(&self, id: SlotId) -> Link<u32>;
    fn set_link(&mut self, id: SlotId, link: Link<u32>);
    /// The ready slot at a place of the list, for checks. O(n).
    fn ready_at(&self, place: usize) -> Option<SlotId>;
}

/// The neighbours of a slot in its list. A slot in no list has no `previous`; its `next` is stale.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Link<I> {
    pub(crate) next: I,
    pub(crate) previous: I,
}

impl<I: Index> Link<I> {
    pub(crate) const UNLINKED: Self = Self {
        next: I::NONE,
        previous: I::NONE,
    };
}

/// Links, one per slot.
pub(crate) trait Links<I: Index> {
    fn link(&self, id: SlotId) -> Link<I>;
    fn set_link(&mut self, id: SlotId, link: Link<I>);
}

/// An array of links that a queue owns.
pub(crate) trait LinkArray<I: Index>: Links<I> {
    const EMPTY: Self;
}

/// One doubly linked list, whose links are in an array that it may share with other lists.
#[derive(Debug)]
pub(crate) struct List<I> {
    head: I,
    tail: I,
    len: usize,
}

impl<I: Index> List<I> {
    pub(crate) const fn new() -> Self {
        Self {
            head: I::NONE,
            tail: I::NONE,
            len: 0,
        }
    }

    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<SlotId> {
        self.head.get()
    }

    pub(crate) fn last(&self) -> Option<SlotId> {
        self.tail.get()
    }

    pub(crate) fn push_back(&mut self, links: &mut impl Links<I>, id: SlotId) {
        let new = I::new(id);
        links.set_link(
            id,
            Link {
                next: I::NONE,
                previous: self.tail,
            },
        );
        match self.tail.get() {
            Some(tail) => {
                let link = links.link(tail);
                links.set_link(tail, Link { next: new, ..link });
            }
            None => self.head = new,
        }
        self.tail = new;
        self.len += 1;
    }

    pub(crate) fn pop_front(&mut self, links: &mut impl Links<I>) -> Option<SlotId> {
        let id = self.head.get()?;
        self.head = links.link(id).next;
        self.close_gap(links, I::NONE, self.head);
        Some(id)
    }

    /// Takes a slot out of any place. The slot must be in this list or in none.
    pub(crate) fn remove(&mut self, links: &mut impl Links<I>, id: SlotId) {
        let link = links.link(id);
        if link.previous != I::NONE || self.head == I::new(id) {
            self.unlink(links, id, link);
        }
    }

    /// Whether a slot is in this list. It must not be in another one.
    #[cfg(feature = "alloc")]
    pub(crate) fn contains(&self, links: &impl Links<I>, id: SlotId) -> bool {
        links.link(id).previous != I::NONE || self.head == I::new(id)
    }

    pub(crate) fn after(&self, links: &impl Links<I>, id: SlotId) -> Option<SlotId> {
        links.link(id).next.get()
    }

    fn unlink(&mut self, links: &mut impl Links<I>, id: SlotId, link: Link<I>) {
        match link.previous.get() {
            Some(previous) => {
                let before = links.link(previous);
                links.set_link(
                    previous,
                    Link {
                        next: link.next,
                        ..before
                    },
                );
            }
            None => self.head = link.next,
        }
        self.close_gap(links, link.previous, link.next);
        links.set_link(id, Link::UNLINKED);
    }

    /// The second half of taking a slot out: links what follows the gap to what precedes it.
    #[inline]
    fn close_gap(&mut self, links: &mut impl Links<I>, previous: I, next: I) {
        match next.get() {
            Some(next) => {
                let link = links.link(next);
                links.set_link(next, Link { previous, ..link });
            }
            None => self.tail = previous,
        }
        self.len -= 1;
    }
}
