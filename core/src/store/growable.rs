//! Storage that grows with the number of keys: slots in parts, found through tables. Owns where a
//! key is stored, and the limit on keys; never changes a slot's phase.

use alloc::boxed::Box;
use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::marker::PhantomData;
use core::mem;

use crate::id::{Index, SlotId};
use crate::ring::Ring;

use super::{Located, Phase, Slot, Slots};

mod nodes;
mod parts;
mod records;
mod seed;
mod tables;

pub(crate) use nodes::GrowableNodes;
use parts::Parts;
pub(crate) use records::GrowableRecords;
pub use seed::RandomState;
use tables::{Bucket, Hashed, Kept, Places, Tables};

/// Room for as many keys as fit into memory, up to 2^32 - 2.
///
/// # Hashing
///
/// `H` hashes the keys. The default, [`RandomState`](crate::binding::RandomState), is foldhash.
/// With the feature `std`, which `requeue-std` and `requeue-tokio` enable, its seed is the system's
/// randomness. It differs between processes, so nobody can prepare keys that collide. Without `std`
/// the seed is made of addresses, which repeat if the system does not randomise them.
///
/// A lookup is O(1) expected. With n keys of one hash, a lookup costs up to n comparisons, and
/// adding all of them costs n²/2, each add under the lock. Foldhash does not protect against an
/// attacker who measures the queue and adapts the keys, or who learns the seed. SipHash protects
/// against the first, and is slower. [`Queue::from_parts`](crate::Queue::from_parts) takes any
/// hasher that is good enough for std's `HashMap`:
///
/// ```
/// use std::hash::RandomState as SipHash;
/// use requeue::limiter::default_controller;
/// use requeue::priority::Plain;
/// use requeue::storage::Growable;
/// use requeue::Queue;
///
/// let hasher = SipHash::new();
/// let queue: Queue<String, Plain, _, Growable<SipHash>> =
///     Queue::from_parts(default_controller(), (), hasher, 0);
/// # assert_eq!(queue.stats().total, 0);
/// ```
///
/// # Growth
///
/// The cost of an add does not depend on the number of keys. Up to 20,000 keys, the index is one
/// hash table. A larger queue has a table of 160 KiB for every 10,000 keys. One table at a time is
/// split in two, 16 buckets with each new slot. The ready list and the deadlines grow by segments,
/// and the slots by parts. One add copies at most the first part, 2^15 slots, or one table of the
/// index. [`Queue::with_capacity`] and [`Session::reserve`] make room in advance. If the system has
/// no memory left, the process ends, as with std's collections.
///
/// [`Queue::with_capacity`]: crate::Queue::with_capacity
/// [`Session::reserve`]: crate::Session::reserve
///
/// # Examples
///
/// ```
/// use requeue::limiter::{Exponential, default_item_based};
/// use requeue::priority::Plain;
/// use requeue::storage::Growable;
/// use requeue::Queue;
///
/// let queue: Queue<String, Plain, Exponential, Growable> =
///     Queue::with_capacity(default_item_based(), 10_000);
/// assert_eq!(queue.stats().max_keys, None);
/// ```
#[derive(Debug)]
pub struct Growable<H = RandomState>(PhantomData<H>);

/// Slots in parts, and an index of them.
// In this order, because each add and each end of a run writes to the index and to the next two
// fields. Only growth writes to the others.
#[doc(hidden)]
#[derive(Debug)]
#[repr(C)]
pub struct GrowableSlots<K, S, H> {
    index: Tables,
    /// How many entries are live.
    len: usize,
    /// The vacant entry that was emptied last. It is filled first, because it is still in cache.
    vacant: u32,
    /// A vacant entry below this number is used without a capacity check. It is zero if there are
    /// more entries than keys fit, and otherwise above every entry.
    unasked: u32,
    /// How many keys fit.
    keys_max: u32,
    entries: Parts<Entry<K, S>, ENTRIES>,
    hasher: H,
    /// The other vacant entries, in the order in which they were emptied. Stored apart from the
    /// entries, so that the next one is known before this one is fetched from memory. Allocated
    /// once two entries are vacant.
    vacant_before: Option<Box<Ring>>,
}

/// How many slots a part holds.
const ENTRIES: usize = 1 << 15;

/// A slot, or room for one.
#[derive(Debug)]
enum Entry<K, S> {
    Live(Slot<K, S, Tag>),
    Vacant,
}

/// A slot's place in the index: its hash, so that the index can move it without reading the key,
/// and its bucket, so that a removal needs no search.
// In bytes, to avoid padding: with a u64 key, alignment would add some.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub struct Tag {
    hash: [u8; 4],
    bucket: [u8; size_of::<Bucket>()],
}

impl Tag {
    #[inline]
    fn new(hash: Kept, bucket: Bucket) -> Self {
        Self {
            hash: hash.0.to_ne_bytes(),
            bucket: bucket.to_ne_bytes(),
        }
    }

    #[inline]
    fn hash(self) -> Kept {
        Kept(u32::from_ne_bytes(self.hash))
    }

    #[inline]
    fn bucket(self) -> Bucket {
        Bucket::from_ne_bytes(self.bucket)
    }
}

impl<K, S, H> GrowableSlots<K, S, H> {
    pub(crate) fn with_capacity(hasher: H, capacity: usize) -> Self {
        let mut slots = Self {
            entries: Parts::new(),
            len: 0,
            vacant: u32::NONE,
            unasked: u32::NONE,
            keys_max: SLOTS_MAX as u32,
            index: Tables::new(),
            hasher,
            vacant_before: None,
        };
        slots.make_room(capacity);
        slots
    }

    /// Sets how many keys fit. Stored keys keep their slots.
    pub(crate) fn limit(&mut self, keys: usize) {
        // At most as many as the type can number.
        self.keys_max = keys.min(SLOTS_MAX) as u32;
        let has_surplus = self.entries.len() > self.keys_max as usize;
        self.unasked = if has_surplus { 0 } else { u32::NONE };
    }

    fn make_room(&mut self, additional: usize) {
        let new = additional.saturating_sub(self.entries.len() - self.len);
        self.entries.reserve(new);
        let slots = self.entries.len().saturating_add(new);
        self.index.reserve(slots, &mut self.entries);
    }

    /// Makes room for one more slot.
    #[inline(never)]
    fn add_slot(&mut self) {
        self.entries.push(Entry::Vacant);
        let slots = self.entries.len();
        self.index.grow(slots, &mut self.entries);
    }
}

impl<K, S> Places for Parts<Entry<K, S>, ENTRIES> {
    #[inline]
    fn hash(&self, id: u32) -> Kept {
        match self.get(id as usize) {
            Some(Entry::Live(slot)) => slot.tag.hash(),
            _ => Kept::NONE,
        }
    }

    #[inline]
    fn moved(&mut self, id: u32, bucket: Bucket) {
        if let Some(Entry::Live(slot)) = self.get_mut(id as usize) {
            slot.tag.bucket = bucket.to_ne_bytes();
        }
    }
}

impl<K, S, H> GrowableSlots<K, S, H> {
    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, Tag>> {
        match self.entries.get(id.index())? {
            Entry::Live(slot) => Some(slot),
            Entry::Vacant => None,
        }
    }

    /// Finds a key that is not in the first candidate slot.
    #[cold]
    #[inline(never)]
    fn find_other<B>(&self, hash: Hashed, key: &B) -> Option<(SlotId, &Slot<K, S, Tag>)>
    where
        K: Borrow<B>,
        B: Eq + ?Sized,
    {
        let mut found = None;
        self.index.find(hash, |id| {
            found = self.slot_of(SlotId(id), key);
            found.is_some()
        });
        found
    }

    /// A slot, if it has a key.
    #[inline]
    fn slot_of<B>(&self, id: SlotId, key: &B) -> Option<(SlotId, &Slot<K, S, Tag>)>
    where
        K: Borrow<B>,
        B: Eq + ?Sized,
    {
        let slot = self.slot(id)?;
        (key == slot.key.borrow()).then_some((id, slot))
    }
}

impl<K: Eq + Hash, S, H: BuildHasher> Slots<K, S> for GrowableSlots<K, S, H> {
    type Tag = Tag;
    type Place = Hashed;

    fn reserve(&mut self, additional: usize) {
        self.make_room(additional);
    }

    #[inline]
    fn locate<B>(&self, key: &B) -> Located<Hashed>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        self.find(key).0
    }

    #[inline(always)]
    fn find<B>(&self, key: &B) -> (Located<Hashed>, Option<&Slot<K, S, Tag>>)
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let hash = Hashed::new(self.hasher.hash_one(key));
        let first = self.index.first(hash);
        let mut found = first.and_then(|id| self.slot_of(SlotId(id), key));
        if found.is_none() && (first.is_some() || self.index.is_split()) {
            found = self.find_other(hash, key);
        }
        match found {
            Some((id, slot)) => (Located::Found(id), Some(slot)),
            None => (Located::Absent(hash), None),
        }
    }

    #[inline]
    fn vacant_slot(&self) -> Option<SlotId> {
        (self.vacant < self.unasked).then_some(SlotId(self.vacant))
    }

    /// The vacant slot, or else the one that [`add_slot`](Self::add_slot) adds.
    // Not inlined. Otherwise the compiler computes it for every key, and selects without a branch.
    #[inline(never)]
    fn new_slot(&self) -> Option<SlotId> {
        if self.len >= self.keys_max as usize {
            return None;
        }
        let new = || SlotId::from_index(self.entries.len());
        Some(self.vacant.get().unwrap_or_else(new))
    }

    #[inline(always)]
    fn claim(&mut self, vacancy: SlotId, hash: Hashed, key: K, meta: S, phase: Phase) {
        // Compared with the vacancy, and not with `NONE`: then the compiler knows the result.
        if self.vacant != vacancy.0 {
            self.add_slot();
        } else {
            let before = self.vacant_before.as_mut();
            self.vacant = before
                .and_then(|before| before.pop_back())
                .unwrap_or(u32::NONE);
        }
        let bucket = self.index.insert(hash, vacancy.0, &mut self.entries);
        if let Some(entry) = self.entries.get_mut(vacancy.index()) {
            *entry = Entry::Live(Slot::new(key, meta, Tag::new(hash.kept(), bucket), phase));
            self.len += 1;
        }
    }

    // Always inlined, because most runs end here. A call costs a tenth of an add, get and finish.
    #[inline(always)]
    fn free(&mut self, id: SlotId) {
        let Some(entry @ Entry::Live(_)) = self.entries.get_mut(id.index()) else {
            return;
        };
        let Entry::Live(gone) = mem::replace(entry, Entry::Vacant) else {
            return;
        };
        if self.vacant != u32::NONE {
            let before = self.vacant_before.get_or_insert_default();
            before.push_back(self.vacant);
        }
        self.vacant = id.0;
        self.len -= 1;
        self.index.remove(gone.tag.hash(), id.0, gone.tag.bucket());
        // Last, because the key's `Drop` runs here and may panic.
        drop(gone);
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, Tag>> {
        self.slot(id)
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, Tag>> {
        match self.entries.get_mut(id.index())? {
            Entry::Live(slot) => Some(slot),
            Entry::Vacant => None,
        }
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

/// The heap reserves one number, for a slot that does not wait. The links reserve one, for the end
/// of a list.
const SLOTS_MAX: usize = u32::MAX as usize - 1;

#[cfg(test)]
mod tests {
    use core::cell::Cell;
    use core::hash::Hasher;
    use std::vec::Vec;

    use foldhash::fast::FixedState;

    use super::*;

    type Keys = GrowableSlots<u64, (), RandomState>;

    fn with_capacity(capacity: usize) -> Keys {
        GrowableSlots::with_capacity(RandomState::default(), capacity)
    }

    fn store<K: Eq + Hash, H: BuildHasher>(slots: &mut GrowableSlots<K, (), H>, key: K) {
        if let Located::Absent(place) = slots.locate(&key) {
            let vacancy = slots.vacancy().unwrap();
            slots.claim(vacancy, place, key, (), Phase::Idle);
        }
    }

    fn is_stored(slots: &Keys, key: u64) -> bool {
        matches!(slots.find(&key), (Located::Found(_), Some(slot)) if slot.key == key)
    }

    #[test]
    fn room_for_a_slot_takes_no_more_than_the_slot() {
        assert_eq!(size_of::<Entry<u8, ()>>(), size_of::<Slot<u8, (), Tag>>());
        assert_eq!(
            size_of::<Entry<u64, u32>>(),
            size_of::<Slot<u64, u32, Tag>>()
        );
    }

    #[test]
    fn an_empty_queue_finds_nothing() {
        let mut slots = with_capacity(0);
        assert!(!is_stored(&slots, 7));
        store(&mut slots, 7);
        assert!(is_stored(&slots, 7));
    }

    /// More than two tables, of which one is being split most of the time.
    const MANY: u64 = if cfg!(miri) { 200 } else { 30_000 };

    #[test]
    fn every_key_is_found_while_there_are_more_and_more() {
        let mut slots = with_capacity(0);
        for key in 0..MANY {
            store(&mut slots, key);
            for known in [key, key / 2, key / 3, 0] {
                assert!(is_stored(&slots, known));
            }
            assert!(!is_stored(&slots, key + 1));
        }
        assert!((0..MANY).all(|key| is_stored(&slots, key)));
        for key in (0..MANY).step_by(2) {
            let Located::Found(id) = slots.locate(&key) else {
                panic!("{key} was stored");
            };
            slots.free(id);
        }
        assert!((0..MANY).all(|key| is_stored(&slots, key) == (key % 2 == 1)));
    }

    #[test]
    fn what_is_reserved_is_not_reserved_again() {
        let mut slots = with_capacity(300);
        (0..300).for_each(|key| store(&mut slots, key));
        for key in 0..100 {
            let Located::Found(id) = slots.locate(&key) else {
                panic!("{key} was stored");
            };
            slots.free(id);
        }
        slots.reserve(100);
        assert_eq!(slots.bound(), 300, "a hundred slots are vacant");
        slots.reserve(1000);
        (1000..2000).for_each(|key| store(&mut slots, key));
        assert_eq!(slots.len(), 1200);
        assert!((1000..2000).all(|key| is_stored(&slots, key)));
    }

    std::thread_local! {
        static COMPARISONS: Cell<usize> = const { Cell::new(0) };
    }

    /// A key whose comparisons are counted.
    #[derive(Clone, Copy, Debug)]
    struct Counted(u64, u64);

    impl Hash for Counted {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u64(self.0);
            state.write_u64(self.1);
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            COMPARISONS.set(COMPARISONS.get() + 1);
            (self.0, self.1) == (other.0, other.1)
        }
    }

    impl Eq for Counted {}

    const SEED: u64 = 7;

    /// Keys that an attacker has made for a known seed: all have the same hash, because one factor
    /// of foldhash's product is zero.
    fn crafted() -> Vec<Counted> {
        let zero = SEED ^ 0x082E_FA98_EC4E_6C89;
        (0..if cfg!(miri) { 20 } else { 200 })
            .map(|key| Counted(zero, key))
            .collect()
    }

    /// How many keys the dearest lookup compares, and how many all adds.
    fn comparisons<H: BuildHasher>(hasher: H) -> (usize, usize) {
        let mut slots = GrowableSlots::with_capacity(hasher, 0);
        COMPARISONS.set(0);
        crafted().into_iter().for_each(|key| store(&mut slots, key));
        let to_add = COMPARISONS.get();
        let of_lookups = crafted().into_iter().map(|key| {
            COMPARISONS.set(0);
            assert!(matches!(slots.locate(&key), Located::Found(_)));
            COMPARISONS.get()
        });
        (of_lookups.max().unwrap(), to_add)
    }

    #[test]
    fn keys_made_for_a_known_seed_are_all_compared_and_with_a_random_one_they_are_not() {
        let known = FixedState::with_seed(SEED);
        let keys = crafted().len();
        assert!(
            crafted()
                .iter()
                .all(|key| known.hash_one(key) == known.hash_one(crafted()[0]))
        );
        // All that are there, and the first of them twice.
        assert_eq!(comparisons(known), (keys + 1, (keys - 1) * (keys + 2) / 2));
        let (dearest, to_add) = comparisons(RandomState::default());
        assert!(dearest <= 9 && to_add < keys, "{dearest} and {to_add}");
    }
}
