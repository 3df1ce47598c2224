//! One doubly linked list of slots, over links that it may share with other lists. Owns how links
//! are joined and parted; what a list means is up to its owner.

use crate::array::{Array, ConstDefault};
use crate::id::{Index, SlotId};

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

/// What holds the link of a slot.
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
        let (next, previous) = (I::NONE, self.tail);
        links.set_link(id, Link { next, previous });
        match self.tail.get() {
            Some(tail) => links.set_next(tail, new),
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
            Some(previous) => links.set_next(previous, link.next),
            None => self.head = link.next,
        }
        self.close_gap(links, link.previous, link.next);
        links.set_link(id, Link::UNLINKED);
    }

    /// The second half of taking a slot out: links what follows the gap to what precedes it.
    #[inline]
    fn close_gap(&mut self, links: &mut impl Links<I>, previous: I, next: I) {
        match next.get() {
            Some(next) => links.set_previous(next, previous),
            None => self.tail = previous,
        }
        self.len -= 1;
    }
}

impl<I: Index> ConstDefault for List<I> {
    const DEFAULT: Self = Self::new();
}
