//! Storage that grows with the number of keys.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::hint::select_unpredictable;
use core::marker::PhantomData;
use core::mem;

use crate::id::{Index, SlotId};
use crate::policy::SideTable;
use crate::priority::{NoPriorities, Priorities};

use super::chains::Chains;
use super::{Located, Phase, Slot, Slots, Storage};

mod nodes;
mod parts;
mod seed;

pub(crate) use nodes::GrowableNodes;
use parts::Parts;
pub use seed::RandomState;

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
/// Growth costs each add the same, however many keys there are: the index grows by two or three
/// chains with each new slot, the ready list and the deadlines by segments. The slots and the heads
/// of the chains are in parts, of which only the first is ever copied: up to 2^15 slots, or 2^18
/// heads, in one add. [`Queue::with_capacity`] and [`Queue::reserve`] make room in advance.
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
/// assert_eq!(queue.max_keys(), None);
/// ```
#[derive(Debug)]
pub struct Growable<H = RandomState, P: Priorities = NoPriorities>(PhantomData<(H, P)>);

impl<H, P: Priorities> super::sealed::Sealed for Growable<H, P> {}

impl<H: BuildHasher, P: Priorities> Storage for Growable<H, P> {
    const CAPACITY: Option<usize> = None;
    const DUE_KEYS_MAX: u8 = 8;
    type Priorities = P;
    type Slots<K: Eq + Hash, S> = GrowableSlots<K, S, H>;
    type Lists = P::GrowableLists;
    type Nodes = GrowableNodes;
    type Policy = SideTable;
}

/// Slots in parts, indexed by hash chains.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableSlots<K, S, H> {
    entries: Parts<Entry<K, S>, ENTRIES>,
    /// How many entries are live.
    len: usize,
    /// The vacant entry that was emptied last. It is filled first, because it is still in cache.
    vacant: u32,
    /// A vacant entry below this number is filled without asking how many keys fit: any, unless
    /// there are more entries than keys fit, and then none.
    unasked: u32,
    /// How many keys fit.
    keys_max: u32,
    /// The first slot of each chain. Two or three more with each new slot.
    heads: Parts<u32, HEADS>,
    /// Selects one of the first 2^(k + 1) chains, if there are 2^k or more, and not 2^(k + 1).
    mask: u32,
    hasher: H,
}

/// How many slots a part holds.
const ENTRIES: usize = 1 << 15;

/// How many heads a part holds: 1 MiB of them.
const HEADS: usize = 1 << 18;

/// A slot, or room for one.
#[derive(Debug)]
enum Entry<K, S> {
    Live(Slot<K, S, Chained>),
    /// The vacant entry that was emptied before this one.
    Vacant(u32),
}

/// A slot's place in the index.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Chained {
    /// Kept, so that a slot changes its chain, and leaves it, without a look at the key.
    hash: u32,
    next: u32,
}

/// Where a key would be found.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Place {
    hash: u32,
    /// Its chain, until chains are added.
    chain: usize,
}

/// The chains grow by linear hashing (W. Litwin, "Linear hashing: a new tool for file and table
/// addressing", 1980): of 2^k + m chains, the first m of the first 2^k have been split, and their
/// other halves are the last m.
impl<K, S, H> GrowableSlots<K, S, H> {
    pub(crate) fn with_capacity(hasher: H, capacity: usize) -> Self {
        let mut slots = Self {
            entries: Parts::new(),
            len: 0,
            vacant: u32::NONE,
            unasked: u32::NONE,
            keys_max: SLOTS_MAX as u32,
            heads: Parts::new(),
            mask: 0,
            hasher,
        };
        slots.entries.reserve(capacity);
        slots.reserve_chains(capacity);
        slots
    }

    /// Sets how many keys fit. Keys that are stored stay, and so do their slots.
    pub(crate) fn limit(&mut self, keys: usize) {
        // Few enough for the type.
        self.keys_max = keys.min(SLOTS_MAX) as u32;
        let has_surplus = self.entries.len() > self.keys_max as usize;
        self.unasked = if has_surplus { 0 } else { u32::NONE };
    }

    /// The chain of a hash.
    // Without a branch, because none could be predicted: which half applies is random.
    #[inline]
    fn chain(&self, hash: u32) -> usize {
        let split = (hash & self.mask) as usize;
        let whole = (hash & self.mask >> 1) as usize;
        select_unpredictable(split < self.heads.len(), split, whole)
    }

    fn reserve_chains(&mut self, slots: usize) {
        let more = chains_for(slots).saturating_sub(self.heads.len());
        self.heads.reserve(more);
        self.add_chains(more);
    }

    /// Adds chains, each of which takes over about half of another. As many steps as the chains
    /// that are split are long: O(1) expected for each.
    fn add_chains(&mut self, chains: usize) {
        for _ in 0..chains {
            let new = self.heads.len();
            if new > self.mask as usize {
                self.mask = self.mask << 1 | 1;
            }
            self.heads.push(u32::NONE);
            let split = new & (self.mask >> 1) as usize;
            if new == split {
                continue;
            }
            let mut rest = self.take_chain(split);
            while let Some(id) = rest.get() {
                let Some(Chained { hash, next }) = self.slot(id).map(|slot| slot.tag) else {
                    break;
                };
                rest = next;
                let next = self.enter(self.chain(hash), id);
                if let Some(slot) = self.slot_mut(id) {
                    slot.tag.next = next;
                }
            }
        }
    }

    /// Makes room for one more slot, and for its chains.
    #[inline(never)]
    fn add_slot(&mut self) {
        self.entries.push(Entry::Vacant(u32::NONE));
        let chains = chains_for(self.entries.len());
        self.add_chains(chains.saturating_sub(self.heads.len()));
    }

    fn take_chain(&mut self, chain: usize) -> u32 {
        let head = self.heads.get_mut(chain);
        head.map_or(u32::NONE, |head| mem::replace(head, u32::NONE))
    }
}

impl<K, S, H> GrowableSlots<K, S, H> {
    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, Chained>> {
        match self.entries.get(id.index())? {
            Entry::Live(slot) => Some(slot),
            Entry::Vacant(_) => None,
        }
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, Chained>> {
        match self.entries.get_mut(id.index())? {
            Entry::Live(slot) => Some(slot),
            Entry::Vacant(_) => None,
        }
    }
}

impl<K, S, H> Chains<u32> for GrowableSlots<K, S, H> {
    #[inline]
    fn head(&self, chain: usize) -> u32 {
        self.heads.get(chain).copied().unwrap_or(u32::NONE)
    }

    #[inline]
    fn head_mut(&mut self, chain: usize) -> Option<&mut u32> {
        self.heads.get_mut(chain)
    }

    #[inline]
    fn next_mut(&mut self, id: SlotId) -> Option<&mut u32> {
        Some(&mut self.slot_mut(id)?.tag.next)
    }
}

impl<K: Eq + Hash, S, H: BuildHasher> Slots<K, S> for GrowableSlots<K, S, H> {
    type Tag = Chained;
    type Place = Place;

    fn reserve(&mut self, additional: usize) {
        let new = additional.saturating_sub(self.entries.len() - self.len);
        self.entries.reserve(new);
        self.reserve_chains(self.entries.len().saturating_add(new));
    }

    #[inline]
    fn locate<B>(&self, key: &B) -> Located<Place>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let hash = spread(self.hasher.hash_one(key));
        let pass = |id| match self.slot(id) {
            Some(slot) if slot.tag.hash == hash && key == slot.key.borrow() => None,
            Some(slot) => Some(slot.tag.next),
            None => Some(u32::NONE),
        };
        let chain = self.chain(hash);
        match self.find(chain, pass) {
            Some(id) => Located::Found(id),
            None => Located::Absent(Place { hash, chain }),
        }
    }

    #[inline]
    fn vacant_slot(&self) -> Option<SlotId> {
        (self.vacant < self.unasked).then_some(SlotId(self.vacant))
    }

    /// The vacant slot, or else the one that [`add_slot`](Self::add_slot) adds.
    // Not inlined, because otherwise it is computed for every key, and chosen without a branch.
    #[inline(never)]
    fn new_slot(&self) -> Option<SlotId> {
        if self.len >= self.keys_max as usize {
            return None;
        }
        let new = || SlotId::from_index(self.entries.len());
        Some(self.vacant.get().unwrap_or_else(new))
    }

    #[inline]
    fn claim(&mut self, vacancy: SlotId, place: Place, key: K, meta: S, phase: Phase) {
        let Place { hash, mut chain } = place;
        // Not by a test for none, which the compiler would make: here it knows the result.
        if self.vacant != vacancy.0 {
            self.add_slot();
            chain = self.chain(hash);
        }
        let next = self.enter(chain, vacancy);
        if let Some(entry) = self.entries.get_mut(vacancy.index()) {
            if let Entry::Vacant(before) = *entry {
                self.vacant = before;
            }
            *entry = Entry::Live(Slot::new(key, meta, Chained { hash, next }, phase));
            self.len += 1;
        }
    }

    // Always inlined, because most runs end here: a call costs a tenth of an add, get and finish.
    #[inline(always)]
    fn release(&mut self, id: SlotId) {
        let Some(entry @ Entry::Live(_)) = self.entries.get_mut(id.index()) else {
            return;
        };
        let Entry::Live(gone) = mem::replace(entry, Entry::Vacant(self.vacant)) else {
            return;
        };
        self.vacant = id.0;
        self.len -= 1;
        self.leave(self.chain(gone.tag.hash), id, gone.tag.next);
        // Last, because the key's `Drop` runs here and may panic.
        drop(gone);
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, Chained>> {
        self.slot(id)
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, Chained>> {
        self.slot_mut(id)
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> Option<usize> {
        let keys_max = self.keys_max as usize;
        (keys_max < SLOTS_MAX).then_some(keys_max)
    }

    #[inline]
    fn is_over_full(&self) -> bool {
        self.len > self.keys_max as usize
    }

    fn bound(&self) -> usize {
        self.entries.len()
    }
}

/// One number is reserved by the heap, for a slot that does not wait, and one by the links, for the
/// end of a list.
const SLOTS_MAX: usize = u32::MAX as usize - 1;

/// How many chains there are for so many slots: five for two, because a slot that is visited on the
/// way to another is rarely in cache, and whether there is one cannot be predicted.
const fn chains_for(slots: usize) -> usize {
    let chains = slots.saturating_mul(2).saturating_add(slots / 2);
    if chains < CHAINS_MAX {
        chains
    } else {
        CHAINS_MAX
    }
}

/// More chains cannot be numbered: at most 31 bits of a hash select one.
const CHAINS_MAX: usize = u32::MAX as usize / 2 + 1;

/// A slot keeps 32 bits of a hash. All 64 bits contribute to them, and the lowest, which select a
/// chain, are good even with a poor hasher: the halves of a product with the golden ratio are
/// folded (D. E. Knuth, *The Art of Computer Programming* 3, 6.4).
#[inline]
const fn spread(hash: u64) -> u32 {
    let product = hash as u128 * 0x9E37_79B9_7F4A_7C15;
    (product >> 64) as u32 ^ product as u32
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use foldhash::fast::FixedState;

    use super::*;

    type Keys = GrowableSlots<u64, (), RandomState>;

    fn with_capacity(capacity: usize) -> Keys {
        GrowableSlots::with_capacity(RandomState::default(), capacity)
    }

    fn store<H: BuildHasher>(slots: &mut GrowableSlots<u64, (), H>, key: u64) {
        if let Located::Absent(place) = slots.locate(&key) {
            let vacancy = slots.vacancy().unwrap();
            slots.claim(vacancy, place, key, (), Phase::Idle);
        }
    }

    #[test]
    fn room_for_a_slot_takes_no_more_than_the_slot() {
        assert_eq!(
            size_of::<Entry<u8, ()>>(),
            size_of::<Slot<u8, (), Chained>>()
        );
        assert_eq!(
            size_of::<Entry<u64, u32>>(),
            size_of::<Slot<u64, u32, Chained>>()
        );
    }

    #[test]
    fn an_empty_queue_has_no_chains() {
        let mut slots = with_capacity(0);
        assert_eq!(slots.heads.len(), 0);
        assert!(matches!(slots.locate(&7), Located::Absent(_)));
        store(&mut slots, 7);
        assert!(matches!(slots.locate(&7), Located::Found(_)));
        assert_eq!(slots.heads.len(), chains_for(1));
    }

    #[test]
    fn a_new_slot_adds_chains_and_every_key_is_found_again() {
        let keys = if cfg!(miri) { 200 } else { 5000 };
        let mut slots = with_capacity(0);
        for key in 0..keys {
            store(&mut slots, key);
            assert_eq!(slots.heads.len(), chains_for(slots.entries.len()));
            for known in [key, key / 2, key / 3, 0] {
                assert!(matches!(slots.locate(&known), Located::Found(_)));
            }
            assert!(matches!(slots.locate(&(key + 1)), Located::Absent(_)));
        }
        assert!((0..keys).all(|key| matches!(slots.locate(&key), Located::Found(_))));
    }

    #[test]
    fn keys_that_follow_each_other_spread_over_the_chains() {
        let hasher = FixedState::with_seed(7);
        let mut slots: GrowableSlots<u64, (), _> = GrowableSlots::with_capacity(hasher, 0);
        for key in 0..if cfg!(miri) { 500 } else { 5000 } {
            if let Located::Absent(place) = slots.locate(&key) {
                slots.claim(SlotId(key as u32), place, key, (), Phase::Idle);
            }
        }
        assert!(longest_chain(&slots) <= 6);
    }

    /// How many slots a lookup visits at most.
    fn longest_chain<H>(slots: &GrowableSlots<u64, (), H>) -> usize {
        let lengths = (0..slots.heads.len()).map(|chain| {
            let mut length = 0;
            let _ = slots.find(chain, |id| {
                length += 1;
                slots.slot(id).map(|slot| slot.tag.next)
            });
            length
        });
        lengths.max().unwrap_or(0)
    }

    /// 200 keys that an attacker has made for a known seed: the bits of their hash that select a
    /// chain are the same.
    fn crafted(seed: &FixedState) -> Vec<u64> {
        let selects = |key: &u64| spread(seed.hash_one(key)) & 0xFFF;
        (0..).filter(|key| selects(key) == 0).take(200).collect()
    }

    #[test]
    fn keys_made_for_a_known_seed_are_in_one_chain_and_with_a_random_one_they_are_not() {
        let known = FixedState::with_seed(7);
        let keys = crafted(&known);
        let mut slots = GrowableSlots::with_capacity(known, 0);
        keys.iter().for_each(|key| store(&mut slots, *key));
        assert_eq!(longest_chain(&slots), keys.len());

        let mut slots = with_capacity(0);
        keys.iter().for_each(|key| store(&mut slots, *key));
        assert!(longest_chain(&slots) <= 9, "{}", longest_chain(&slots));
    }

    #[test]
    fn what_is_reserved_needs_no_more_chains() {
        let mut slots = with_capacity(300);
        let chains = slots.heads.len();
        assert_eq!(chains, chains_for(300));
        (0..300).for_each(|key| store(&mut slots, key));
        assert_eq!(slots.heads.len(), chains);

        for key in 0..100 {
            let Located::Found(id) = slots.locate(&key) else {
                panic!("{key} was stored");
            };
            slots.release(id);
        }
        slots.reserve(100);
        assert_eq!(slots.heads.len(), chains, "a hundred slots are vacant");
        slots.reserve(1000);
        let chains = slots.heads.len();
        (1000..2000).for_each(|key| store(&mut slots, key));
        assert_eq!((slots.heads.len(), slots.len()), (chains, 1200));
    }

    #[test]
    fn every_bit_of_a_hash_tells_chains_apart() {
        for bit in 0..64 {
            let (one, other) = (spread(0) as u8, spread(1 << bit) as u8);
            assert_ne!(one, other, "bit {bit}");
        }
    }
}
