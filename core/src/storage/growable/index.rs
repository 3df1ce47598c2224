//! The index from a key's hash to its slot: hash tables that are split one at a time.
//!
//! Linear hashing (W. Litwin, "Linear hashing: a new tool for file and table addressing", 1980),
//! with a [`HashTable`] of some thousand entries for each bucket. When the tables are full on
//! average, the next one in turn is split in two. So growth costs one split at a time, however
//! large the index is.

use alloc::vec::Vec;

use hashbrown::HashTable;

use crate::id::SlotId;

/// The slots of all keys, by the hash of the key.
#[derive(Debug)]
pub(super) struct Index {
    /// At least one, once there is an entry. With 2^k + m tables, the first m of the first 2^k have
    /// been split, and their other halves are the last m.
    tables: Vec<HashTable<u32>>,
    /// Selects one of the first 2^(k + 1) tables, of which only the first 2^k + m are there.
    mask: usize,
    /// With more slots than this a table is split.
    slots_max: usize,
}

/// How many entries a table has on average before one is split. A split visits at most about twice
/// as many.
const ENTRIES: usize = 1024;

/// The bits of a hash from here on select a table. The table itself finds its entries with the
/// lowest bits, and tells them apart with the highest seven.
const TABLE_BITS: u32 = 24;

impl Index {
    /// An index that needs no split for this many slots.
    pub(super) fn with_capacity(slots: usize) -> Self {
        let mut index = Self {
            tables: Vec::new(),
            mask: 0,
            slots_max: 0,
        };
        if slots > 0 {
            index.reserve(slots, |_| 0);
        }
        index
    }

    /// Makes room for this many slots. O(slots).
    pub(super) fn reserve(&mut self, slots: usize, hash_of: impl Fn(u32) -> u64) {
        while self.slots_max < slots {
            self.split(&hash_of);
        }
        let each = slots.div_ceil(self.tables.len().max(1));
        for table in &mut self.tables {
            let more = each.saturating_sub(table.len());
            table.reserve(more, |&id| hash_of(id));
        }
    }

    /// Notes that there are so many slots: before the last of them is inserted. One split at most.
    #[inline]
    pub(super) fn grow(&mut self, slots: usize, hash_of: impl Fn(u32) -> u64) {
        if slots > self.slots_max {
            self.split(hash_of);
        }
    }

    /// Finds the slot for which `is_it` holds among those with this hash. O(1) expected.
    #[inline]
    pub(super) fn find(&self, hash: u64, mut is_it: impl FnMut(SlotId) -> bool) -> Option<SlotId> {
        let table = self.tables.get(self.table_of(hash))?;
        let id = table.find(hash, |&id| is_it(SlotId(id)))?;
        Some(SlotId(*id))
    }

    /// Adds a slot that is not in the index. O(1) expected.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64, id: SlotId, hash_of: impl Fn(u32) -> u64) {
        let place = self.table_of(hash);
        if let Some(table) = self.tables.get_mut(place) {
            table.insert_unique(hash, id.0, |&id| hash_of(id));
        }
    }

    /// Removes a slot. O(1) expected.
    #[inline]
    pub(super) fn remove(&mut self, hash: u64, id: SlotId) {
        let place = self.table_of(hash);
        if let Some(table) = self.tables.get_mut(place)
            && let Ok(entry) = table.find_entry(hash, |&other| other == id.0)
        {
            entry.remove();
        }
    }

    #[inline]
    fn table_of(&self, hash: u64) -> usize {
        let selected = (hash >> TABLE_BITS) as usize & self.mask;
        if selected < self.tables.len() {
            return selected;
        }
        selected & (self.mask >> 1)
    }

    /// Adds a table, and moves to it the entries that are found there from now on: about half of
    /// one other table.
    #[cold]
    fn split(&mut self, hash_of: impl Fn(u32) -> u64) {
        let new = self.tables.len();
        self.slots_max += ENTRIES;
        if new > self.mask {
            self.mask = self.mask << 1 | 1;
        }
        self.tables.push(HashTable::new());
        let Some(below) = new.checked_ilog2().map(|bits| new - (1 << bits)) else {
            return;
        };
        let Some(old) = self.tables.get_mut(below).map(core::mem::take) else {
            return;
        };
        let (mut stays, mut goes) = (HashTable::new(), HashTable::new());
        let each = old.len() / 2 + old.len() / 8;
        for half in [&mut stays, &mut goes] {
            half.reserve(each, |_| 0);
        }
        for id in old {
            let hash = hash_of(id);
            let half = if self.table_of(hash) == new {
                &mut goes
            } else {
                &mut stays
            };
            half.insert_unique(hash, id, |&id| hash_of(id));
        }
        for (place, half) in [(below, stays), (new, goes)] {
            if let Some(table) = self.tables.get_mut(place) {
                *table = half;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The hash of a slot, spread over all bits.
    fn hash(id: u32) -> u64 {
        let mixed = u64::from(id).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9)
    }

    fn insert(index: &mut Index, id: u32, hash_of: fn(u32) -> u64) {
        index.grow(id as usize + 1, hash_of);
        index.insert(hash_of(id), SlotId(id), hash_of);
    }

    fn find(index: &Index, id: u32) -> Option<u32> {
        let found = index.find(hash(id), |other| other.0 == id);
        found.map(|id| id.0)
    }

    #[test]
    fn an_empty_index_has_no_table() {
        let index = Index::with_capacity(0);
        assert_eq!((index.tables.capacity(), find(&index, 7)), (0, None));
    }

    #[test]
    fn every_entry_is_found_at_every_size() {
        let mut index = Index::with_capacity(0);
        for id in 0..40_000 {
            insert(&mut index, id, hash);
            assert_eq!(find(&index, id), Some(id));
            assert_eq!(find(&index, id / 2), Some(id / 2));
            assert_eq!(find(&index, id + 1), None);
        }
        assert!((0..40_000).all(|id| find(&index, id) == Some(id)));
        for id in (0..40_000).step_by(3) {
            index.remove(hash(id), SlotId(id));
        }
        assert!((0..40_000).all(|id| find(&index, id).is_some() == (id % 3 != 0)));
    }

    #[test]
    fn a_split_visits_one_table_and_tables_stay_small() {
        let mut index = Index::with_capacity(0);
        for id in 0..200_000 {
            insert(&mut index, id, hash);
        }
        assert_eq!(index.tables.len(), 200_000_usize.div_ceil(ENTRIES));
        let longest = index.tables.iter().map(HashTable::len).max();
        assert!(longest < Some(3 * ENTRIES), "{longest:?}");
    }

    #[test]
    fn what_is_reserved_is_not_split() {
        let mut index = Index::with_capacity(10_000);
        let tables = index.tables.len();
        (0..10_000).for_each(|id| insert(&mut index, id, hash));
        assert_eq!(index.tables.len(), tables);
        index.reserve(30_000, hash);
        assert!((0..10_000).all(|id| find(&index, id) == Some(id)));
    }

    #[test]
    fn entries_of_one_hash_are_distinguished() {
        let mut index = Index::with_capacity(0);
        (0..3_000).for_each(|id| insert(&mut index, id, |_| 7));
        for id in 0..3_000 {
            assert_eq!(index.find(7, |other| other.0 == id), Some(SlotId(id)));
            index.remove(7, SlotId(id));
            assert_eq!(index.find(7, |other| other.0 == id), None);
        }
    }
}
