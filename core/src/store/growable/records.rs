//! Records of keys without slots, for a limiter without a queue. Owns the records that differ from
//! the default; never drops another record.

use core::borrow::Borrow;
use core::hash::{BuildHasher, Hash};
use core::mem;

use hashbrown::HashTable;

use crate::store::Records;

/// Keys and their records, in one hash table.
#[doc(hidden)]
#[derive(Debug)]
pub struct GrowableRecords<K, R, H> {
    table: HashTable<(K, R)>,
    hasher: H,
}

impl<K, R, H> GrowableRecords<K, R, H> {
    pub(crate) const fn new(hasher: H) -> Self {
        Self {
            table: HashTable::new(),
            hasher,
        }
    }
}

impl<K: Eq + Hash, R, H: BuildHasher> Records<K, R> for GrowableRecords<K, R, H> {
    fn len(&self) -> usize {
        self.table.len()
    }

    fn get<B>(&self, key: &B) -> Option<&R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let (_, record) = self.table.find(hash, |(known, _)| known.borrow() == key)?;
        Some(record)
    }

    #[inline]
    fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut R) -> T) -> T
    where
        K: Clone,
        R: Default + PartialEq,
    {
        let hash = self.hasher.hash_one(key);
        if let Some((_, record)) = self.table.find_mut(hash, |(known, _)| known == key) {
            return change(record);
        }
        let mut record = R::default();
        let value = change(&mut record);
        if record != R::default() {
            let new = (key.clone(), record);
            let hasher = &self.hasher;
            let _ = self
                .table
                .insert_unique(hash, new, |(known, _)| hasher.hash_one(known));
        }
        value
    }

    fn remove<B>(&mut self, key: &B) -> Option<R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let hash = self.hasher.hash_one(key);
        let is_sought = |(known, _): &(K, R)| known.borrow() == key;
        let entry = self.table.find_entry(hash, is_sought).ok()?;
        let ((_, record), _) = entry.remove();
        Some(record)
    }

    fn take(&mut self) -> impl Iterator<Item = (K, R)> {
        mem::take(&mut self.table).into_iter()
    }
}
