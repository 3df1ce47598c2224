//! One doubly linked list of slots, over links that it may share with other lists. Owns the joining
//! of links; the owner of a list owns its meaning.

use crate::array::{Array, ConstDefault};
use crate::id::{Index, SlotId};

/// The neighbours of a slot in its list. A slot in no list has no `previous`, and its `next` is
/// stale. The `previous` of the first slot is stale, so that removing the first does not write to
/// the second.
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

    pub(crate) fn convert<J: Index>(self) -> Link<J> {
        let convert = |slot: I| slot.get().map_or(J::NONE, J::new);
        Link {
            next: convert(self.next),
            previous: convert(self.previous),
        }
    }
}

impl<I: Index> ConstDefault for Link<I> {
    const DEFAULT: Self = Self::UNLINKED;
}

/// A value that contains the link of a slot.
#[doc(hidden)]
pub trait Linked<I> {
    fn link(&self) -> Link<I>;
    fn link_mut(&mut self) -> &mut Link<I>;
}

impl<I: Index> Linked<I> for Link<I> {
    #[inline]
    fn link(&self) -> Self {
        *self
    }

    #[inline]
    fn link_mut(&mut self) -> &mut Self {
        self
    }
}

/// Links, one per slot.
#[doc(hidden)]
pub trait Links<I: Index> {
    fn link(&self, id: SlotId) -> Link<I>;
    /// Sets the link of a slot that may never have had one.
    fn set_link(&mut self, id: SlotId, link: Link<I>);
    /// Changes one end of the link of a slot in a list.
    fn set_next(&mut self, id: SlotId, next: I);
    fn set_previous(&mut self, id: SlotId, previous: I);
}

impl<I: Index, A: Array<Item: Linked<I>>> Links<I> for A {
    #[inline]
    fn link(&self, id: SlotId) -> Link<I> {
        self.get(id.index()).map_or(Link::UNLINKED, Linked::link)
    }

    #[inline]
    fn set_link(&mut self, id: SlotId, link: Link<I>) {
        if let Some(linked) = self.slot(id.index()) {
            *linked.link_mut() = link;
        }
    }

    #[inline]
    fn set_next(&mut self, id: SlotId, next: I) {
        if let Some(linked) = self.get_mut(id.index()) {
            linked.link_mut().next = next;
        }
    }

    #[inline]
    fn set_previous(&mut self, id: SlotId, previous: I) {
        if let Some(linked) = self.get_mut(id.index()) {
            linked.link_mut().previous = previous;
        }
    }
}

/// One doubly linked list.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct List<I> {
    head: I,
    /// Stale while the list is empty.
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
        self.first().and(self.tail.get())
    }

    pub(crate) fn push_back(&mut self, links: &mut impl Links<I>, id: SlotId) {
        let new = I::new(id);
        let (next, previous) = (I::NONE, self.tail);
        links.set_link(id, Link { next, previous });
        if self.head == I::NONE {
            self.head = new;
        } else {
            links.set_next(self.tail.slot(), new);
        }
        self.tail = new;
        self.len += 1;
    }

    pub(crate) fn pop_front(&mut self, links: &mut impl Links<I>) -> Option<SlotId> {
        let id = self.head.get()?;
        self.head = links.link(id).next;
        links.set_previous(id, I::NONE);
        self.len -= 1;
        Some(id)
    }

    /// Removes a slot from any place. The slot must be in this list or in none.
    pub(crate) fn remove(&mut self, links: &mut impl Links<I>, id: SlotId) {
        let Link { next, previous } = links.link(id);
        match previous.get() {
            _ if self.head == I::new(id) => self.head = next,
            Some(before) => links.set_next(before, next),
            None => return,
        }
        match next.get() {
            Some(after) => links.set_previous(after, previous),
            None => self.tail = previous,
        }
        links.set_previous(id, I::NONE);
        self.len -= 1;
    }

    /// Whether a slot is in this list. It must not be in another list.
    #[cfg(feature = "alloc")]
    pub(crate) fn contains(&self, links: &impl Links<I>, id: SlotId) -> bool {
        links.link(id).previous != I::NONE || self.head == I::new(id)
    }

    /// The slot at a place of the list, for checks. O(n) in the slots before it.
    pub(crate) fn nth(&self, links: &impl Links<I>, place: usize) -> Option<SlotId> {
        (0..place).try_fold(self.first()?, |id, _| self.after(links, id))
    }

    pub(crate) fn after(&self, links: &impl Links<I>, id: SlotId) -> Option<SlotId> {
        links.link(id).next.get()
    }
}

impl<I: Index> ConstDefault for List<I> {
    const DEFAULT: Self = Self::new();
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    const SLOTS: u32 = 12;

    /// Slots come and go at any place of two lists that share their links.
    #[test]
    fn two_lists_with_shared_links_are_as_two_queues() {
        let mut links = [Link::<u8>::UNLINKED; SLOTS as usize];
        let mut lists = [List::new(), List::new()];
        let mut expected = [VecDeque::new(), VecDeque::new()];
        let mut random = 1_u32;
        for _ in 0..if cfg!(miri) { 300 } else { 20_000 } {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let id = SlotId((random >> 8) % SLOTS);
            let which = (random >> 16) as usize % 2;
            let is_in = |own: &VecDeque<SlotId>| own.contains(&id);
            match (random >> 20) % 4 {
                0 | 1 if !expected.iter().any(is_in) => {
                    lists[which].push_back(&mut links, id);
                    expected[which].push_back(id);
                }
                // A slot that is in no list is in none afterwards.
                0..=2 if !is_in(&expected[1 - which]) => {
                    lists[which].remove(&mut links, id);
                    expected[which].retain(|other| *other != id);
                }
                3 => {
                    let first = lists[which].pop_front(&mut links);
                    assert_eq!(first, expected[which].pop_front());
                }
                _ => {}
            }
            for (list, expected) in lists.iter().zip(&expected) {
                let next = |id: &SlotId| list.after(&links, *id);
                let listed: VecDeque<_> = core::iter::successors(list.first(), next).collect();
                assert_eq!(listed, *expected);
                assert_eq!(list.last(), expected.back().copied());
                assert_eq!(list.len(), expected.len());
            }
        }
    }
}
