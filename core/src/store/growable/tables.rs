//! The index: hash tables from hashes to slot numbers. No add moves more than a few entries.
//!
//! A full table of hashbrown moves all its entries at once. So a table has a maximum size, and a
//! large queue has many tables. One table at a time is split, a few buckets with each new slot (W.
//! Litwin, "Linear hashing: a new tool for file and table addressing", 1980). Of 2^k + m tables,
//! the first m have been split, and the last m are their other halves.
//!
//! A slot knows the bucket of its number, so a removal needs no search. A number that leaves a full
//! place leaves a *mark* (a tombstone), over which searches continue. In a queue with much coming
//! and going, marks would slow down every search, so a table with many marks is rebuilt.

use alloc::vec::Vec;
use core::hint::select_unpredictable;
use core::mem;

use hashbrown::HashTable;

/// The slots, each of which knows its place in the index.
pub(super) trait Places {
    /// The hash of a slot.
    fn hash(&self, id: u32) -> Kept;

    /// Called when the number of a slot is in another bucket.
    fn moved(&mut self, id: u32, bucket: Bucket);
}

/// The bucket of a number. If a bucket does not fit into the type, this names another one, and a
/// removal notices that.
pub(super) type Bucket = u16;

/// Slot numbers by their hashes, which the slots keep.
// The only table is first, because it counts its entries.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Tables {
    /// The only table of a small queue, which grows up to the size of others. A separate field, so
    /// that a small queue does not pay for the rest.
    one: HashTable<u32>,
    /// During a split, the next bucket to move of the table that is being split.
    unmoved: Option<usize>,
    /// All tables, if there are several.
    many: Vec<HashTable<u32>>,
    /// Selects one of the first 2^(k + 1) tables, if there are 2^k or more, and not 2^(k + 1).
    mask: u32,
}

/// How many buckets a table has if there are several. They take 160 KiB.
const BUCKETS: usize = if cfg!(miri) { 64 } else { 1 << 15 };

/// How many slots there are per table. A table that is not split yet has twice as many, plus or
/// minus a few hundred, and is five eighths full.
const SLOTS: usize = BUCKETS / 16 * 5;

/// Up to so many slots, most of a table is left empty. In a small, full table an add, get and
/// finish take a quarter longer, probably because a search reads bytes that were just written.
const FEW: usize = BUCKETS / 128;

/// How many buckets are moved with each new slot, so that one split ends before the next is due.
const MOVES: usize = 16;

impl Tables {
    pub(super) const fn new() -> Self {
        Self {
            one: HashTable::new(),
            many: Vec::new(),
            mask: 0,
            unmoved: None,
        }
    }

    /// The index of a hash's table among many.
    // Without a branch, because it is random which half applies, and cannot be predicted.
    #[inline]
    fn place(&self, hash: Kept) -> usize {
        let split = selecting(hash, self.mask);
        let whole = selecting(hash, self.mask >> 1);
        select_unpredictable(split < self.many.len(), split, whole)
    }

    #[inline]
    fn table(&self, hash: Kept) -> Option<&HashTable<u32>> {
        if self.many.is_empty() {
            return Some(&self.one);
        }
        self.many.get(self.place(hash))
    }

    #[inline]
    fn table_mut(&mut self, hash: Kept) -> Option<&mut HashTable<u32>> {
        if self.many.is_empty() {
            return Some(&mut self.one);
        }
        let place = self.place(hash);
        self.many.get_mut(place)
    }

    /// The indices of the table that is being split, and of the one that is being filled.
    fn under_way(&self) -> Option<[usize; 2]> {
        let _ = self.unmoved?;
        let last = self.many.len().checked_sub(1)?;
        Some([last & (self.mask >> 1) as usize, last])
    }

    /// The index of the table in which a number may still be during a split.
    fn source(&self, hash: Kept) -> Option<usize> {
        let [source, target] = self.under_way()?;
        (self.place(hash) == target).then_some(source)
    }

    /// The first candidate for a hash, which is usually right. If it is not, call
    /// [`find`](Self::find).
    #[inline]
    pub(super) fn first(&self, hash: Hashed) -> Option<u32> {
        self.table(hash.kept())?.find(hash.0, |_| true).copied()
    }

    /// Whether a split is in progress, so that a number may be in another table than the one in
    /// which [`first`](Self::first) looks.
    #[inline]
    pub(super) const fn is_split(&self) -> bool {
        self.unmoved.is_some()
    }

    /// Finds a number, also in a table that is being split. O(1) expected.
    pub(super) fn find(&self, hash: Hashed, mut is_sought: impl FnMut(u32) -> bool) {
        let kept = hash.kept();
        let source = self.source(kept).and_then(|source| self.many.get(source));
        for table in [self.table(kept), source].into_iter().flatten() {
            if table.find(hash.0, |&id| is_sought(id)).is_some() {
                return;
            }
        }
    }

    /// Adds a number that is not there, and returns its bucket. O(1) expected.
    #[inline(always)]
    pub(super) fn insert(&mut self, hash: Hashed, id: u32, slots: &mut impl Places) -> Bucket {
        let kept = hash.kept();
        if self.table_mut(kept).is_some_and(|table| is_crowded(table)) {
            self.rebuild(kept, slots);
        }
        match self.table_mut(kept) {
            Some(table) => put(table, hash, id, slots),
            None => 0,
        }
    }

    /// Rebuilds a table. Makes it larger if it is really full, as with keys that were chosen to hit
    /// this table.
    #[cold]
    #[inline(never)]
    fn rebuild(&mut self, hash: Kept, slots: &mut impl Places) {
        // Rebuilding changes all buckets, so a split of this table has to start again.
        if self
            .under_way()
            .is_some_and(|[source, _]| self.place(hash) == source)
        {
            self.unmoved = Some(0);
        }
        if let Some(table) = self.table_mut(hash) {
            let room = table.num_buckets() / 8 * 7;
            let room = if table.len() < room / 8 * 7 {
                room
            } else {
                2 * room
            };
            refill(table, room.max(1), slots);
        }
    }

    /// Removes a number. O(1) expected. Reads no other slot.
    #[inline(always)]
    pub(super) fn remove(&mut self, hash: Kept, id: u32, bucket: Bucket) {
        if let Some(table) = self.table_mut(hash)
            && let Ok(entry) = table.get_bucket_entry(bucket.into())
            && *entry.get() == id
        {
            let _ = entry.remove();
        } else {
            self.remove_elsewhere(hash, id);
        }
    }

    /// The same for a number that is in a table that is being split, or in a very large one.
    #[cold]
    #[inline(never)]
    fn remove_elsewhere(&mut self, hash: Kept, id: u32) {
        let places = [Some(self.place(hash)), self.source(hash)];
        let many = places.into_iter().flatten();
        for place in many {
            let table = match self.many.get_mut(place) {
                Some(table) => table,
                None => &mut self.one,
            };
            if let Ok(entry) = table.find_entry(hash.hash().0, |&other| other == id) {
                let _ = entry.remove();
                return;
            }
        }
    }

    /// Continues the split of a table, or begins one if there are too few tables for `count` slots.
    /// Call it for each new slot.
    pub(super) fn grow(&mut self, count: usize, slots: &mut impl Places) {
        if self.is_split() {
            self.move_some(MOVES, slots);
        } else if self.many.len().max(1) < tables_for(count) {
            self.begin_split();
        } else {
            self.grow_one(count, slots);
        }
    }

    /// Makes room for `count` slots. O(n) in the slots.
    pub(super) fn reserve(&mut self, count: usize, slots: &mut impl Places) {
        self.move_some(usize::MAX, slots);
        self.grow_one(count, slots);
        for _ in self.many.len().max(1)..tables_for(count) {
            self.begin_split();
            self.move_some(usize::MAX, slots);
        }
    }

    /// Grows the only table, so that more than half of it is empty until it has its full size.
    fn grow_one(&mut self, count: usize, slots: &mut impl Places) {
        let (least, room) = match count {
            ..=FEW => (4 * count, 8 * count),
            _ => (2 * count, (2 * count).min(BUCKETS / 8 * 7)),
        };
        if self.many.is_empty() && self.one.capacity() < least && self.one.num_buckets() < BUCKETS {
            refill(&mut self.one, room, slots);
        }
    }

    /// Adds a table that will take over about half of another one.
    fn begin_split(&mut self) {
        if self.many.is_empty() {
            self.many.push(mem::take(&mut self.one));
        }
        if self.many.len() > self.mask as usize {
            self.mask = self.mask << 1 | 1;
        }
        self.many.push(HashTable::with_capacity(BUCKETS / 8 * 7));
        self.unmoved = Some(0);
    }

    /// Moves the numbers of so many buckets of the table that is being split.
    fn move_some(&mut self, buckets: usize, slots: &mut impl Places) {
        let mask = self.mask;
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
            let hash = slots.hash(*entry.get());
            if selecting(hash, mask) == places[1] {
                let (id, _) = entry.remove();
                let bucket = put(target, hash.hash(), id, slots);
                slots.moved(id, bucket);
            }
        }
        self.unmoved = (end < source.num_buckets()).then_some(end);
    }
}

/// Whether an eighth of a table is marks, or it is full.
#[inline]
fn is_crowded(table: &HashTable<u32>) -> bool {
    // A mark takes the room of a number until a number replaces it.
    table.capacity() < table.num_buckets() / 4 * 3 || table.len() == table.capacity()
}

/// Puts a number into a table that has room, and returns its bucket.
#[inline(always)]
fn put(table: &mut HashTable<u32>, hash: Hashed, id: u32, slots: &impl Places) -> Bucket {
    let entry = table.insert_unique(hash.0, id, |&id| slots.hash(id).hash().0);
    entry.bucket_index() as Bucket
}

/// Moves all numbers of a table into a new one, without the marks.
fn refill(table: &mut HashTable<u32>, room: usize, slots: &mut impl Places) {
    for id in mem::replace(table, HashTable::with_capacity(room)) {
        let bucket = put(table, slots.hash(id).hash(), id, slots);
        slots.moved(id, bucket);
    }
}

/// How many tables there are for so many slots.
const fn tables_for(slots: usize) -> usize {
    match slots / SLOTS {
        0 => 1,
        tables => tables,
    }
}

/// Selects a table, by bits that are used neither for a bucket nor for the tag, as long as there
/// are at most 2^10 tables.
#[inline]
const fn selecting(hash: Kept, mask: u32) -> usize {
    (hash.0 >> 15 & mask) as usize
}

/// The used bits of a hash. hashbrown starts its search at the lowest bits, and compares the
/// highest seven, the tag, before it compares keys.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hashed(u64);

/// The same in 32 bits, for the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept(pub(super) u32);

const USED: u64 = 0xFE00_0000_01FF_FFFF;

impl Hashed {
    #[inline]
    pub(super) const fn new(hash: u64) -> Self {
        let used = Self(hash & USED);
        // If addresses have 32 bits, hashbrown takes the tag from the highest of these.
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

    /// Hashes and buckets of slots.
    struct Known(Vec<(Kept, Bucket)>);

    impl Places for Known {
        fn hash(&self, id: u32) -> Kept {
            self.0[id as usize].0
        }

        fn moved(&mut self, id: u32, bucket: Bucket) {
            self.0[id as usize].1 = bucket;
        }
    }

    /// Numbers in tables, and beside them which are there.
    struct Numbers {
        tables: Tables,
        known: Known,
        there: Vec<bool>,
    }

    impl Numbers {
        fn new(hash_of: impl Fn(u32) -> u32, count: u32) -> Self {
            Self {
                tables: Tables::new(),
                known: Known((0..count).map(|id| (Kept(hash_of(id)), 0)).collect()),
                there: Vec::new(),
            }
        }

        /// A new slot with the next number.
        fn add(&mut self) {
            let id = self.there.len() as u32;
            self.there.push(false);
            self.tables.grow(self.there.len(), &mut self.known);
            self.put(id);
        }

        fn put(&mut self, id: u32) {
            let hash = self.hash(id).hash();
            let bucket = self.tables.insert(hash, id, &mut self.known);
            self.known.moved(id, bucket);
            self.there[id as usize] = true;
        }

        fn remove(&mut self, id: u32) {
            let (hash, bucket) = self.known.0[id as usize];
            self.tables.remove(hash, id, bucket);
            self.there[id as usize] = false;
        }

        fn hash(&self, id: u32) -> Kept {
            self.known.hash(id)
        }

        /// Whether a number is found, and how many were asked about.
        fn find(&self, id: u32) -> (bool, usize) {
            let (mut found, mut asked) = (false, 0);
            self.tables.find(self.hash(id).hash(), |other| {
                asked += 1;
                found = other == id;
                found
            });
            (found, asked)
        }

        /// Whether a removal is no search.
        fn is_in_its_bucket(&self, id: u32) -> bool {
            let (hash, bucket) = self.known.0[id as usize];
            let table = self.tables.table(hash).unwrap();
            table.get_bucket(bucket.into()) == Some(&id)
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
        numbers.tables.move_some(usize::MAX, &mut numbers.known);
        assert!((0..MANY).all(|id| numbers.is_in_its_bucket(id)));
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
            let hash = numbers.hash(*id);
            let source = numbers.tables.source(hash);
            source.is_some_and(|source| {
                let table = &numbers.tables.many[source];
                table.find(hash.hash().0, |other| other == id).is_some()
            })
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
            numbers.there[*id as usize] && numbers.tables.place(numbers.hash(*id)) == 0
        };
        let ids = 0..numbers.there.len() as u32;
        let of_source: Vec<u32> = ids.filter(|id| is_of_source(&numbers, id)).collect();
        // Others come in their place until the table has no room that was never used.
        let spare = numbers.there.len() as u32..MANY;
        let mut spare = spare.filter(|id| numbers.tables.place(numbers.hash(*id)) == 0);
        let others: Vec<u32> = spare.by_ref().take(2 * of_source.len()).collect();
        numbers.there.resize(MANY as usize, false);
        for (place, &other) in others.iter().enumerate() {
            let known = of_source.get(place).copied();
            known.into_iter().for_each(|id| numbers.remove(id));
            numbers.put(other);
            known.into_iter().for_each(|id| numbers.put(id));
            if numbers.tables.many[0].num_buckets() > buckets {
                break;
            }
        }
        assert_eq!(numbers.tables.unmoved, Some(0), "looked at again");
        assert_eq!(numbers.tables.many[0].num_buckets(), 2 * buckets);
        numbers.assert_all_found();
        numbers.tables.move_some(usize::MAX, &mut numbers.known);
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
        let table = &numbers.tables.one;
        assert_eq!(table.num_buckets(), BUCKETS);
        assert!(table.capacity() >= BUCKETS / 4 * 3, "few marks");
        let stored = (0..MANY).filter(|id| numbers.there[*id as usize]);
        assert!(stored.into_iter().all(|id| numbers.is_in_its_bucket(id)));
    }

    #[test]
    fn what_is_reserved_is_there() {
        let mut numbers = Numbers::new(mixed, MANY);
        numbers.tables.reserve(MANY as usize, &mut numbers.known);
        let before: Vec<usize> = numbers.all().map(HashTable::num_buckets).collect();
        assert_eq!(before.len(), tables_for(MANY as usize));
        (0..MANY).for_each(|_| numbers.add());
        if !cfg!(miri) {
            let after = numbers.all().map(HashTable::num_buckets);
            assert!(after.eq(before));
        }

        let mut few = Numbers::new(mixed, MANY);
        (0..100).for_each(|_| few.add());
        few.tables.reserve(MANY as usize, &mut few.known);
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
        assert_eq!(selecting(Kept(1 << 15), u32::MAX), 1);
    }
}
