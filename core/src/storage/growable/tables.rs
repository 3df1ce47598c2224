//! The index: from hashes to slot numbers, in tables of which no add moves more than a few entries.
//!
//! A table of hashbrown that is full moves all it holds at once. So tables have a size, and there
//! are as many as the slots need: one at a time is split, a few buckets with each new slot
//! (W. Litwin, "Linear hashing: a new tool for file and table addressing", 1980). Of 2^k + m tables
//! the first m of the first 2^k have been split, and their other halves are the last m.

use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::mem;

use hashbrown::HashTable;

/// Slot numbers by the hashes that their slots keep. What `hash_of` returns is the hash of a slot.
#[derive(Debug)]
pub(super) struct Tables {
    /// The only table, which grows to the size of all others. A field of its own, so that a queue
    /// that is not large pays for nothing but it.
    one: HashTable<u32>,
    /// All tables, if there are several.
    many: Vec<HashTable<u32>>,
    /// Selects one of the first 2^(k + 1) tables, if there are 2^k or more, and not 2^(k + 1).
    mask: u32,
    /// While the last table is being filled from another: the first bucket of that one that was not
    /// looked at.
    unmoved: Option<usize>,
}

/// How many buckets a table has, if there are several. They take 80 KiB.
const BUCKETS: usize = if cfg!(miri) { 64 } else { 1 << 14 };

/// How many numbers these have room for.
const ROOM: usize = BUCKETS / 8 * 7;

/// How many slots there are for each table. A table that waits to be split has twice as many, give
/// or take a few hundred, and still room.
const SLOTS: usize = BUCKETS / 5 * 2;

/// Up to so many slots most of a table is left empty. In a small, full table an add, get and finish
/// takes half as long again, probably because a search reads what the last change has just written.
const FEW: usize = BUCKETS / 64;

/// How many buckets are looked at with each new slot: a table is split before the next one has to
/// be.
const STEP: usize = 16;

impl Tables {
    pub(super) const fn new() -> Self {
        Self {
            one: HashTable::new(),
            many: Vec::new(),
            mask: 0,
            unmoved: None,
        }
    }

    /// The place of a table among many.
    // Without a branch, because none could be predicted: which half applies is random.
    #[inline]
    fn place(&self, hash: Hashed) -> usize {
        let split = selecting(hash, self.mask);
        let whole = selecting(hash, self.mask >> 1);
        select_unpredictable(split < self.many.len(), split, whole)
    }

    #[inline]
    fn table(&self, hash: Hashed) -> Option<&HashTable<u32>> {
        if self.many.is_empty() {
            return Some(&self.one);
        }
        self.many.get(self.place(hash))
    }

    #[inline]
    fn table_mut(&mut self, hash: Hashed) -> Option<&mut HashTable<u32>> {
        if self.many.is_empty() {
            return Some(&mut self.one);
        }
        let place = self.place(hash);
        self.many.get_mut(place)
    }

    /// The place of the table that is being split, and of the one that is filled.
    fn under_way(&self) -> Option<[usize; 2]> {
        let _ = self.unmoved?;
        let last = self.many.len().checked_sub(1)?;
        Some([last & (self.mask >> 1) as usize, last])
    }

    /// The place of the table that a number may still be in, instead of where it belongs.
    fn source(&self, hash: Hashed) -> Option<usize> {
        let [source, target] = self.under_way()?;
        (self.place(hash) == target).then_some(source)
    }

    /// The first number that may have a hash, which it has most of the time. [`find`](Self::find)
    /// goes on if it has not.
    #[inline]
    pub(super) fn first(&self, hash: Hashed) -> Option<u32> {
        self.table(hash)?.iter_hash(hash.0).next().copied()
    }

    /// Whether a number may be in another table than that which [`first`](Self::first) looks at.
    #[inline]
    pub(super) const fn is_split(&self) -> bool {
        self.unmoved.is_some()
    }

    /// Finds a number, also in a table that is being split. O(1) expected.
    pub(super) fn find(&self, hash: Hashed, mut is_sought: impl FnMut(u32) -> bool) {
        let source = self.source(hash).and_then(|source| self.many.get(source));
        for table in [self.table(hash), source].into_iter().flatten() {
            if table.find(hash.0, |&id| is_sought(id)).is_some() {
                return;
            }
        }
    }

    /// Puts a number in that is not there. O(1) expected.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: Hashed, id: u32, hash_of: impl Fn(u32) -> Kept) {
        if self.is_split() {
            self.look_again(hash);
        }
        if let Some(table) = self.table_mut(hash) {
            let _ = table.insert_unique(hash.0, id, |&id| hash_of(id).hash().0);
        }
    }

    /// A number that comes into a full table may move all others: they have to be looked at again.
    #[cold]
    fn look_again(&mut self, hash: Hashed) {
        let [source, _] = self.under_way().unwrap_or_default();
        let is_full = |table: &HashTable<u32>| table.len() == table.capacity();
        if self.place(hash) == source && self.many.get(source).is_some_and(is_full) {
            self.unmoved = Some(0);
        }
    }

    /// Takes a number out. O(1) expected. No other slot is looked at.
    #[inline]
    pub(super) fn remove(&mut self, hash: Hashed, id: u32) {
        let Some(table) = self.table_mut(hash) else {
            return;
        };
        match table.find_entry(hash.0, |&other| other == id) {
            Ok(entry) => _ = entry.remove(),
            Err(_) => self.remove_unmoved(hash, id),
        }
    }

    #[cold]
    fn remove_unmoved(&mut self, hash: Hashed, id: u32) {
        if let Some(source) = self.source(hash)
            && let Some(table) = self.many.get_mut(source)
            && let Ok(entry) = table.find_entry(hash.0, |&other| other == id)
        {
            let _ = entry.remove();
        }
    }

    /// Goes on with the split of a table, or begins one if there are too few for so many slots.
    /// Called for each new slot.
    pub(super) fn grow(&mut self, slots: usize, hash_of: impl Fn(u32) -> Kept) {
        if self.is_split() {
            self.move_some(STEP, hash_of);
        } else if self.many.len().max(1) < tables_for(slots) {
            self.begin_split();
        } else if slots <= FEW && self.one.capacity() < 4 * slots {
            self.reserve_one(8 * slots, hash_of);
        }
    }

    /// Makes room for so many slots. As many steps as there are slots.
    pub(super) fn reserve(&mut self, slots: usize, hash_of: impl Fn(u32) -> Kept) {
        self.move_some(usize::MAX, &hash_of);
        if self.many.is_empty() {
            self.reserve_one(slots.min(ROOM), &hash_of);
        }
        for _ in self.many.len().max(1)..tables_for(slots) {
            self.begin_split();
            self.move_some(usize::MAX, &hash_of);
        }
    }

    fn reserve_one(&mut self, slots: usize, hash_of: impl Fn(u32) -> Kept) {
        let more = slots.saturating_sub(self.one.len());
        self.one.reserve(more, |&id| hash_of(id).hash().0);
    }

    /// Adds a table, which takes over about half of another one.
    fn begin_split(&mut self) {
        if self.many.is_empty() {
            self.many.push(mem::take(&mut self.one));
        }
        if self.many.len() > self.mask as usize {
            self.mask = self.mask << 1 | 1;
        }
        self.many.push(HashTable::with_capacity(ROOM));
        self.unmoved = Some(0);
    }

    /// Looks at so many buckets of the table that is being split.
    fn move_some(&mut self, buckets: usize, hash_of: impl Fn(u32) -> Kept) {
        let (mask, hash_of) = (self.mask, |id: &u32| hash_of(*id));
        let (Some(first), Some(places)) = (self.unmoved, self.under_way()) else {
            return;
        };
        let Ok([source, target]) = self.many.get_disjoint_mut(places) else {
            return;
        };
        let end = first.saturating_add(buckets).min(source.num_buckets());
        for bucket in first..end {
            let Ok(entry) = source.get_bucket_entry(bucket) else {
                continue;
            };
            let hash = hash_of(entry.get()).hash();
            if selecting(hash, mask) == places[1] {
                let (id, _) = entry.remove();
                let _ = target.insert_unique(hash.0, id, |id| hash_of(id).hash().0);
            }
        }
        self.unmoved = (end < source.num_buckets()).then_some(end);
    }
}

/// How many tables there are for so many slots.
const fn tables_for(slots: usize) -> usize {
    match slots / SLOTS {
        0 => 1,
        tables => tables,
    }
}

/// What selects a table: bits that neither a place in a table comes from nor the tag, as long as
/// there are at most 2^11 tables.
#[inline]
const fn selecting(hash: Hashed, mask: u32) -> usize {
    (hash.kept().0 >> 14 & mask) as usize
}

/// The bits of a hash that are used: hashbrown begins its search at the lowest, and compares the
/// highest seven, the tag, before it asks about a number.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed(u64);

/// The same in 32 bits, as a slot keeps it.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept(u32);

const USED: u64 = 0xFE00_0000_01FF_FFFF;

impl Hashed {
    #[inline]
    pub(super) const fn new(hash: u64) -> Self {
        let used = Self(hash & USED);
        // Where an address has 32 bits, the tag comes from the highest of these.
        if usize::BITS < 64 {
            return Self(used.kept().0 as u64);
        }
        used
    }

    #[inline]
    pub(super) const fn kept(self) -> Kept {
        Kept((self.0 >> 32 | self.0) as u32)
    }
}

impl Kept {
    /// The hash of no slot.
    pub(super) const NONE: Self = Self(0);

    #[inline]
    pub(super) const fn hash(self) -> Hashed {
        Hashed::new((self.0 as u64) << 32 | self.0 as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Numbers in tables, and beside them which are there.
    struct Numbers {
        tables: Tables,
        hashes: Vec<Kept>,
        there: Vec<bool>,
    }

    impl Numbers {
        fn new(hash_of: impl Fn(u32) -> u32, count: u32) -> Self {
            Self {
                tables: Tables::new(),
                hashes: (0..count).map(|id| Kept(hash_of(id))).collect(),
                there: Vec::new(),
            }
        }

        /// A new slot with the next number.
        fn add(&mut self) {
            let id = self.there.len() as u32;
            let hashes = &self.hashes;
            self.there.push(false);
            self.tables.grow(self.there.len(), |id| hashes[id as usize]);
            self.put(id);
        }

        fn put(&mut self, id: u32) {
            let hashes = &self.hashes;
            let hash = hashes[id as usize].hash();
            self.tables.insert(hash, id, |id| hashes[id as usize]);
            self.there[id as usize] = true;
        }

        fn remove(&mut self, id: u32) {
            self.tables.remove(self.hashes[id as usize].hash(), id);
            self.there[id as usize] = false;
        }

        /// Whether a number is found, and how many were asked about.
        fn find(&self, id: u32) -> (bool, usize) {
            let (mut found, mut asked) = (false, 0);
            self.tables.find(self.hashes[id as usize].hash(), |other| {
                asked += 1;
                found = other == id;
                found
            });
            (found, asked)
        }

        fn all(&self) -> impl Iterator<Item = &HashTable<u32>> {
            let one = self.tables.many.is_empty().then_some(&self.tables.one);
            one.into_iter().chain(&self.tables.many)
        }

        fn assert_all_found(&self) {
            for id in 0..self.there.len() as u32 {
                assert_eq!(self.find(id).0, self.there[id as usize], "{id}");
            }
            let held = self.all().map(HashTable::len).sum::<usize>();
            assert_eq!(held, self.there.iter().filter(|&&there| there).count());
        }
    }

    /// As good a hash as any.
    fn mixed(id: u32) -> u32 {
        let id = (id ^ id >> 16).wrapping_mul(0x85EB_CA6B);
        let id = (id ^ id >> 13).wrapping_mul(0xC2B2_AE35);
        id ^ id >> 16
    }

    const MANY: u32 = 9 * SLOTS as u32;

    #[test]
    fn tables_are_added_one_at_a_time_and_none_of_them_grows() {
        let mut numbers = Numbers::new(mixed, MANY);
        assert_eq!(numbers.tables.one.capacity(), 0);
        let mut before = 1;
        for id in 0..MANY {
            numbers.add();
            let tables = numbers.all().count();
            assert!(tables <= before + 1);
            before = tables;
            if id % (SLOTS as u32 / 3) == 0 {
                numbers.assert_all_found();
            }
        }
        assert_eq!(before, tables_for(MANY as usize));
        // The few numbers of a small table deviate more from their mean.
        let buckets = if cfg!(miri) { 2 * BUCKETS } else { BUCKETS };
        let all = numbers.all().map(HashTable::num_buckets);
        assert!(all.max() <= Some(buckets));
        let asked = (0..MANY).map(|id| numbers.find(id).1);
        assert!(asked.sum::<usize>() < MANY as usize * 11 / 10);
    }

    /// Numbers of which the first table is being split, half-way.
    fn half_split() -> Numbers {
        let mut numbers = Numbers::new(mixed, MANY);
        while numbers.tables.unmoved.unwrap_or(0) < BUCKETS / 2 {
            numbers.add();
        }
        numbers
    }

    /// A number that is in the wrong table until it is moved.
    fn unmoved(numbers: &Numbers) -> u32 {
        let is_unmoved = |id: &u32| {
            let hash = numbers.hashes[*id as usize].hash();
            let source = numbers
                .tables
                .source(hash)
                .map(|source| &numbers.tables.many[source]);
            source.is_some_and(|table| table.find(hash.0, |other| other == id).is_some())
        };
        (0..numbers.there.len() as u32).find(is_unmoved).unwrap()
    }

    #[test]
    fn a_number_that_was_not_moved_is_found_and_leaves_and_returns() {
        let mut numbers = half_split();
        numbers.assert_all_found();
        let id = unmoved(&numbers);
        numbers.remove(id);
        assert!(!numbers.find(id).0);
        numbers.put(id);
        numbers.assert_all_found();
        // It is where it belongs now, and the others follow.
        assert_ne!(unmoved(&numbers), id);
        while numbers.tables.unmoved.is_some() {
            numbers.add();
        }
        numbers.assert_all_found();
        (0..numbers.there.len() as u32).for_each(|id| numbers.remove(id));
        assert!(numbers.all().all(HashTable::is_empty));
    }

    #[test]
    fn a_table_that_is_put_in_order_while_it_is_split_loses_nothing() {
        let mut numbers = half_split();
        let buckets = numbers.tables.many[0].num_buckets();
        let is_of_source = |numbers: &Numbers, id: &u32| {
            numbers.there[*id as usize]
                && numbers.tables.place(numbers.hashes[*id as usize].hash()) == 0
        };
        let ids = 0..numbers.there.len() as u32;
        let of_source: Vec<u32> = ids.filter(|id| is_of_source(&numbers, id)).collect();
        // Others come in their place until the table has no room that was never used.
        let spare = numbers.there.len() as u32..MANY;
        let mut spare =
            spare.filter(|id| numbers.tables.place(numbers.hashes[*id as usize].hash()) == 0);
        let others: Vec<u32> = spare.by_ref().take(of_source.len()).collect();
        numbers.there.resize(MANY as usize, false);
        for (&id, &other) in of_source.iter().zip(&others) {
            numbers.remove(id);
            numbers.put(other);
            numbers.put(id);
            if numbers.tables.many[0].num_buckets() > buckets {
                break;
            }
        }
        assert_eq!(numbers.tables.unmoved, Some(0), "looked at again");
        assert_eq!(numbers.tables.many[0].num_buckets(), 2 * buckets);
        numbers.assert_all_found();
        let hashes = &numbers.hashes;
        numbers
            .tables
            .move_some(usize::MAX, |id| hashes[id as usize]);
        numbers.assert_all_found();
    }

    #[test]
    fn numbers_that_come_and_go_leave_room() {
        let mut numbers = Numbers::new(mixed, MANY);
        let count = 2 * SLOTS as u32 - 1;
        (0..count).for_each(|_| numbers.add());
        numbers.there.resize(MANY as usize, false);
        for id in 0..MANY * 3 - count {
            numbers.remove(id % MANY);
            numbers.put((id + count) % MANY);
        }
        numbers.assert_all_found();
        assert!(numbers.tables.one.num_buckets() <= 2 * BUCKETS);
    }

    #[test]
    fn what_is_reserved_is_there() {
        let mut numbers = Numbers::new(mixed, MANY);
        numbers.tables.reserve(MANY as usize, |_| Kept::NONE);
        let before: Vec<usize> = numbers.all().map(HashTable::num_buckets).collect();
        assert_eq!(before.len(), tables_for(MANY as usize));
        (0..MANY).for_each(|_| numbers.add());
        if !cfg!(miri) {
            let after = numbers.all().map(HashTable::num_buckets);
            assert!(after.eq(before));
        }

        let mut few = Numbers::new(mixed, MANY);
        (0..100).for_each(|_| few.add());
        let hashes = &few.hashes;
        few.tables.reserve(MANY as usize, |id| hashes[id as usize]);
        few.assert_all_found();
        assert_eq!(few.all().count(), tables_for(MANY as usize));
    }

    #[test]
    fn one_hash_of_all_is_only_slower() {
        let count = if cfg!(miri) { 40 } else { 400 };
        let mut numbers = Numbers::new(|_| 7, count);
        (0..count).for_each(|_| numbers.add());
        numbers.assert_all_found();
        (0..count / 2).for_each(|id| numbers.remove(id));
        numbers.assert_all_found();
    }

    #[test]
    fn as_many_tables_as_slots_can_be_numbered() {
        assert_eq!(
            [0, 1, 2 * SLOTS - 1, 2 * SLOTS].map(tables_for),
            [1, 1, 1, 2]
        );
        // Their numbers take fewer bits than a hash has, and each gets its share of the slots.
        for slots in [1 << 31, super::super::SLOTS_MAX] {
            let tables = tables_for(slots);
            assert!(cfg!(miri) || tables.next_power_of_two() <= 1 << 20);
            assert!(slots / tables <= SLOTS + 1);
        }
    }
    #[test]
    fn a_hash_is_kept_in_half_its_bits() {
        for hash in [0, 1, u64::MAX, 0x0123_4567_89AB_CDEF].map(Hashed::new) {
            assert_eq!(hash.kept().hash(), hash);
        }
        let kept = [1 << 24, 1 << 57, 1 << 63].map(|hash| Hashed::new(hash).kept());
        assert_eq!(kept, [1 << 24, 1 << 25, 1 << 31].map(Kept));
        assert_eq!(selecting(Kept(1 << 14).hash(), u32::MAX), 1);
    }
}
