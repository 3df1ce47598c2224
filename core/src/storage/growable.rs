//! Storage that grows with the number of keys.

use alloc::vec::Vec;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;

use crate::id::SlotId;
use crate::priority::{NoPriorities, Priorities};

use super::{Located, Phase, Slot, Slots, Storage};

mod index;
mod lists;
mod nodes;
mod ring;
mod seed;
mod segments;

use index::Index;
pub(crate) use lists::{GrowableLinks, GrowableLists};
pub(crate) use nodes::GrowableNodes;
pub use seed::RandomState;
pub(crate) use segments::Segments;

/// Room for as many keys as fit into memory, up to 2^32 - 2.
///
/// # Hashing
///
/// `H` hashes the keys. The default, [`RandomState`](crate::RandomState), is foldhash. With the
/// feature `std`, which `requeue-std` and `requeue-tokio` turn on, its seed is the system's
/// randomness, different in each process: keys that collide cannot be prepared in advance. Without
/// it the seed is made of addresses, which repeat if the system does not randomise them.
///
/// A lookup is O(1) expected. Of n keys with the same hash it costs up to n comparisons, and to add
/// all of them n²/2, each add under the lock. Foldhash does not protect against an attacker who can
/// measure the queue and adapt the keys, or who learns the seed; SipHash does against the first,
/// and is slower. [`Queue::from_parts`](crate::Queue::from_parts) takes any hasher:
///
/// ```
/// use std::hash::RandomState as SipHash;
/// use requeue_core::{Growable, NoMetrics, Queue, default_controller};
///
/// let hasher = SipHash::new();
/// let queue: Queue<String, Growable<SipHash>, _> =
///     Queue::from_parts(default_controller(), NoMetrics, hasher, 0);
/// # assert_eq!(queue.held_len(), 0);
/// ```
///
/// `P` is [`Levels`](crate::Levels) for keys with priorities.
///
/// # Growth
///
/// The index, the ready list and the deadlines grow in steps of a bounded size. The keys themselves
/// are in one vector: when the allocator cannot extend that in place, one add copies it, O(n).
/// [`Queue::with_capacity`] and [`Queue::reserve`] make room in advance.
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
    const RELEASE_MAX: u8 = 16;
    type Priorities = P;
    type KeyHash = u64;
    type Slots<K: Eq + Hash, S> = GrowableSlots<K, S, H>;
    type Lists = P::GrowableLists;
    type Nodes = GrowableNodes;
}

/// Slots in one vector, and their index.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableSlots<K, S, H> {
    /// Each with the hash of its key, so that a slot changes its place in the index, and leaves it,
    /// without a look at the key.
    entries: Vec<Option<Slot<K, S, u64>>>,
    /// Vacant slots. The last to be emptied is filled first, because it is still in cache.
    free: Vec<u32>,
    index: Index,
    hasher: H,
}

impl<K, S, H> GrowableSlots<K, S, H> {
    pub(crate) fn with_capacity(hasher: H, capacity: usize) -> Self {
        Self {
            entries: Vec::with_capacity(capacity),
            free: Vec::new(),
            index: Index::with_capacity(capacity),
            hasher,
        }
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, u64>> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, u64>> {
        self.entries.get_mut(id.index())?.as_mut()
    }
}

/// The hash of a slot's key. All slots that are asked for are live.
#[inline]
fn hash_in<K, S>(entries: &[Option<Slot<K, S, u64>>]) -> impl Fn(u32) -> u64 {
    |id| {
        let slot = entries.get(id as usize).and_then(Option::as_ref);
        slot.map_or(0, |slot| slot.tag)
    }
}

impl<K: Eq + Hash, S, H: BuildHasher> Slots<K, S> for GrowableSlots<K, S, H> {
    type Tag = u64;
    type KeyHash = u64;

    fn reserve(&mut self, additional: usize) {
        let new = additional.saturating_sub(self.free.len());
        self.entries.reserve(new);
        let slots = self.entries.len().saturating_add(new);
        self.index.reserve(slots, hash_in(&self.entries));
    }

    #[inline]
    fn locate<B>(&self, key: &B) -> Located<u64>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let is_it = |id| self.slot(id).is_some_and(|slot| key == slot.key.borrow());
        match self.index.find(hash, is_it) {
            Some(id) => Located::Found(id),
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
    fn claim(&mut self, vacancy: SlotId, hash: u64, key: K, meta: S, phase: Phase) {
        let slot = Some(Slot::new(key, meta, hash, phase));
        match self.entries.get_mut(vacancy.index()) {
            Some(entry) => {
                *entry = slot;
                let _ = self.free.pop();
            }
            None => {
                self.entries.push(slot);
                self.index.grow(self.entries.len(), hash_in(&self.entries));
            }
        }
        self.index.insert(hash, vacancy, hash_in(&self.entries));
    }

    // Always inlined, because most runs end here: a call costs a tenth of an add, get and finish.
    #[inline(always)]
    fn release(&mut self, id: SlotId) {
        let Some(slot) = self.slot(id) else {
            return;
        };
        self.index.remove(slot.tag, id);
        self.free.push(id.0);
        if let Some(entry) = self.entries.get_mut(id.index()) {
            // Last, because the key's `Drop` runs here and may panic.
            *entry = None;
        }
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, u64>> {
        self.slot(id)
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, u64>> {
        self.slot_mut(id)
    }

    fn len(&self) -> usize {
        self.entries.len() - self.free.len()
    }

    fn bound(&self) -> usize {
        self.entries.len()
    }
}

/// One number is reserved by the heap, for a slot that does not wait, and one by the links, for the
/// end of a list.
const SLOTS_MAX: usize = u32::MAX as usize - 1;
