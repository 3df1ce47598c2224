//! Memory that grows with the number of keys.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use hashbrown::HashTable;

/// The default hasher of [`Growable`]: foldhash, with a seed from addresses of the process.
pub use foldhash::fast::RandomState;

use crate::id::SlotId;
use crate::priority::{NoPriorities, Priorities};

use super::{Located, Phase, Slot, Slots, Storage};

mod lists;
mod nodes;

pub(crate) use lists::GrowableLists;
pub(crate) use nodes::GrowableNodes;

/// Room for as many keys as memory holds, up to 2^32 - 2.
///
/// `H` hashes the keys. The default is quick and seeded differently in each queue, so that keys
/// which collide cannot be prepared beforehand; it is no defence against somebody who can watch the
/// queue and adapt, and on a target without random addresses the seed may repeat.
/// [`Queue::from_parts`](crate::Queue::from_parts) takes any other hasher. `P` is
/// [`Levels`](crate::Levels) for keys with priorities.
///
/// Growth moves the table: one add can then cost O(n). [`Queue::with_capacity`] and
/// [`Queue::reserve`] do that beforehand.
///
/// [`Queue::with_capacity`]: crate::Queue::with_capacity
/// [`Queue::reserve`]: crate::Queue::reserve
///
/// # Examples
///
/// ```
/// use requeue_core::{Growable, ItemExponentialFailure, Queue, default_item_based};
///
/// let queue: Queue<String, Growable, ItemExponentialFailure> =
///     Queue::with_capacity(default_item_based(), 10_000);
/// assert_eq!(queue.capacity(), None);
/// ```
#[derive(Debug)]
pub struct Growable<H = RandomState, P: Priorities = NoPriorities>(PhantomData<(H, P)>);

impl<H, P: Priorities> super::sealed::Sealed for Growable<H, P> {}

impl<H: BuildHasher, P: Priorities> Storage for Growable<H, P> {
    const CAPACITY: Option<usize> = None;
    type Priorities = P;
    type Slots<K: Eq + Hash, S> = GrowableSlots<K, S, H>;
    type Lists = P::GrowableLists;
    type Nodes = GrowableNodes;
}

/// Slots in one vector, indexed by a table of slot numbers.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableSlots<K, S, H> {
    table: HashTable<u32>,
    /// A slot keeps its hash: the table then grows, and forgets a key, without touching keys.
    entries: Vec<Option<Slot<K, S, u32>>>,
    /// Vacant slots; the last to be emptied is the first to be filled, since it is still in cache.
    free: Vec<u32>,
    hasher: H,
}

impl<K, S, H> GrowableSlots<K, S, H> {
    pub(crate) fn with_capacity(hasher: H, capacity: usize) -> Self {
        Self {
            table: HashTable::with_capacity(capacity),
            entries: Vec::with_capacity(capacity),
            free: Vec::new(),
            hasher,
        }
    }
}

impl<K: Eq + Hash, S, H: BuildHasher> Slots<K, S> for GrowableSlots<K, S, H> {
    type Tag = u32;

    fn reserve(&mut self, additional: usize) {
        let entries = &self.entries;
        self.table
            .reserve(additional, |&id| rehash(entries, SlotId(id)));
        self.entries
            .reserve(additional.saturating_sub(self.free.len()));
    }

    #[inline]
    fn locate(&self, key: &K) -> Located {
        let hash = self.hasher.hash_one(key) as u32;
        let found = self.table.find(spread(hash), |&id| {
            self.slot(SlotId(id)).is_some_and(|slot| slot.key == *key)
        });
        match found {
            Some(&id) => Located::Found(SlotId(id)),
            None => Located::Absent(hash),
        }
    }

    #[inline]
    fn vacancy(&self) -> Option<SlotId> {
        match self.free.last() {
            Some(&id) => Some(SlotId(id)),
            None if self.entries.len() >= SLOTS_MAX => None,
            None => Some(SlotId::from_index(self.entries.len())),
        }
    }

    #[inline]
    fn claim(&mut self, vacancy: SlotId, hash: u32, key: K, note: S, phase: Phase) {
        match self.entries.get_mut(vacancy.index()) {
            Some(entry) => {
                *entry = Some(Slot::new(key, note, hash, phase));
                let _ = self.free.pop();
            }
            None => self.entries.push(Some(Slot::new(key, note, hash, phase))),
        }
        let entries = &self.entries;
        self.table
            .insert_unique(spread(hash), vacancy.0, |&id| rehash(entries, SlotId(id)));
    }

    // Always, since this is the tail of every completion: a call costs a tenth of the cycle.
    #[inline(always)]
    fn release(&mut self, id: SlotId) {
        let Some(entry) = self.entries.get_mut(id.index()) else {
            return;
        };
        let Some(slot) = entry else {
            return;
        };
        let hash = spread(slot.tag);
        if let Ok(found) = self.table.find_entry(hash, |&other| other == id.0) {
            let _ = found.remove();
        }
        self.free.push(id.0);
        // Last, since the key's destructor runs here.
        *entry = None;
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, u32>> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, u32>> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn bound(&self) -> usize {
        self.entries.len()
    }
}

/// The heap keeps one number to say that a slot does not wait, the links one to say that a list
/// ends.
const SLOTS_MAX: usize = u32::MAX as usize - 1;

/// The table takes its index from the low bits of a hash and a tag from the high ones. A slot keeps
/// 32 bits, which one multiplication makes 64.
#[inline]
const fn spread(hash: u32) -> u64 {
    (hash as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

fn rehash<K, S>(entries: &[Option<Slot<K, S, u32>>], id: SlotId) -> u64 {
    let hash = match entries.get(id.index()) {
        Some(Some(slot)) => slot.tag,
        _ => 0,
    };
    spread(hash)
}
