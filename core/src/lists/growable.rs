//! Both lists of a growable queue with one level: a ring for the ready keys, links for the failure
//! records. Owns the choice between the ring and the list in front of it; never searches the ring.

use alloc::boxed::Box;

use crate::Instant;
use crate::id::SlotId;
use crate::lists::{Link, List, Lists};
use crate::ring::Ring;
use crate::segments::Segments;

mod removals;

use removals::Removals;

/// Ready keys in a ring, and failure records in a list. Its links are allocated with the first
/// record.
#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct GrowableLists {
    ready: Ring,
    links: GrowableLinks,
    records: List<u32>,
    /// Allocated once a key is removed from the middle of the ring.
    removals: Option<Box<Removals>>,
}

/// A link for each slot up to the largest number that was ever linked.
pub(crate) type GrowableLinks = Segments<Link<u32>, 512>;

impl GrowableLists {
    /// The first ready key while the front of the ring is hidden.
    #[cold]
    fn first_held(&self) -> Option<SlotId> {
        self.removals.as_ref()?.first()
    }

    #[cfg(test)]
    fn removals(&self) -> Option<&Removals> {
        self.removals.as_deref()
    }

    #[cold]
    fn pop_held(&mut self) -> Option<SlotId> {
        let removals = self.removals.as_mut()?;
        removals.pop(&mut self.ready, &mut self.links)
    }
}

impl Default for GrowableLists {
    fn default() -> Self {
        Self {
            ready: Ring::new(),
            links: GrowableLinks::new(),
            records: List::new(),
            removals: None,
        }
    }
}

impl Lists for GrowableLists {
    type Group = ();
    type Rates = ();
    type Backing = ();
    type Seat = ();
    type Index = u32;
    type Links = GrowableLinks;

    #[inline]
    fn seat(&mut self, (): &(), _: Instant) -> Option<()> {
        Some(())
    }

    fn reserve(&mut self, additional: usize) {
        self.ready.reserve(additional);
    }

    #[inline]
    fn push_ready(&mut self, id: SlotId, _: u8, _: Instant) {
        self.ready.push_back(id.0);
    }

    #[inline]
    fn first_ready(&self) -> Option<SlotId> {
        match self.ready.front() {
            Some(first) => Some(SlotId(first)),
            None => self.first_held(),
        }
    }

    #[inline]
    fn pop_ready(&mut self, _: u8, _: Instant) -> Option<SlotId> {
        match self.ready.pop_front() {
            Some(first) => Some(SlotId(first)),
            None => self.pop_held(),
        }
    }

    fn remove_ready(&mut self, id: SlotId, _: u8) {
        if self.ready.front() == Some(id.0) {
            let _ = self.ready.pop_front();
            return;
        }
        let removals = self.removals.get_or_insert_default();
        removals.remove(&mut self.ready, &mut self.links, id);
    }

    #[inline]
    fn ready_len(&self) -> usize {
        self.ready.len()
    }

    fn records(&self) -> (&List<u32>, &GrowableLinks) {
        (&self.records, &self.links)
    }

    fn records_mut(&mut self) -> (&mut List<u32>, &mut GrowableLinks) {
        (&mut self.records, &mut self.links)
    }

    #[inline]
    fn discard_record(&mut self, id: SlotId) {
        if self.records.len() > 0 {
            self.records.remove(&mut self.links, id);
        }
    }

    fn ready_at(&self, place: usize) -> Option<SlotId> {
        match &self.removals {
            Some(removals) => removals.get(&self.ready, &self.links, place),
            None => self.ready.get(place).map(SlotId),
        }
    }
}
