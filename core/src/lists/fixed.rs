//! Both lists of a fixed queue with one level, in one array of links. Owns the order of arrival,
//! and no other.

use crate::Instant;
use crate::array::ConstDefault;
use crate::id::{Index, SlotId};
use crate::lists::{Link, List, Lists};

/// Both lists, threaded through one array of links.
#[doc(hidden)]
#[derive(Debug)]
pub struct FixedLists<const N: usize, I> {
    links: [Link<I>; N],
    ready: List<I>,
    records: List<I>,
}

impl<const N: usize, I: Index> ConstDefault for FixedLists<N, I> {
    const DEFAULT: Self = Self {
        links: [Link::UNLINKED; N],
        ready: List::new(),
        records: List::new(),
    };
}

impl<const N: usize, I: Index> Lists for FixedLists<N, I> {
    type Group = ();
    type Rates = ();
    type Backing = ();
    type Seat = ();
    type Index = I;
    type Links = [Link<I>; N];

    #[inline]
    fn seat(&mut self, (): &(), _: Instant) -> Option<()> {
        Some(())
    }

    fn push_ready(&mut self, id: SlotId, _: u8, _: Instant) {
        self.ready.push_back(&mut self.links, id);
    }

    fn first_ready(&self) -> Option<SlotId> {
        self.ready.first()
    }

    fn pop_ready(&mut self, _: u8, _: Instant) -> Option<SlotId> {
        self.ready.pop_front(&mut self.links)
    }

    fn remove_ready(&mut self, id: SlotId, _: u8) {
        self.ready.remove(&mut self.links, id);
    }

    fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn records(&self) -> (&List<I>, &[Link<I>; N]) {
        (&self.records, &self.links)
    }

    fn records_mut(&mut self) -> (&mut List<I>, &mut [Link<I>; N]) {
        (&mut self.records, &mut self.links)
    }

    fn ready_at(&self, place: usize) -> Option<SlotId> {
        self.ready.nth(&self.links, place)
    }
}
