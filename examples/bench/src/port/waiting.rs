//! client-go's `waitForPriorityQueue`: a binary heap of pointers to entries, each of which knows
//! its place in the heap, and a map that finds a key's entry.

use core::hash::{BuildHasher, Hash};
use std::collections::HashMap;

/// The waiting entries. Numbers replace Go's pointers. Vacant entries are reused, where Go's
/// allocator would do that.
#[derive(Debug)]
pub(super) struct Waiting<K, H> {
    entries: Vec<Entry<K>>,
    vacant: Vec<u32>,
    heap: Vec<u32>,
    known: HashMap<K, u32, H>,
}

#[derive(Debug)]
struct Entry<K> {
    key: Option<K>,
    due: u64,
    index: u32,
}

impl<K, H: Default> Default for Waiting<K, H> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            vacant: Vec::new(),
            heap: Vec::new(),
            known: HashMap::default(),
        }
    }
}

impl<K: Eq + Hash + Clone, H: BuildHasher> Waiting<K, H> {
    /// Lets a key wait. Of two times the earlier one wins.
    pub(super) fn insert(&mut self, key: K, due: u64) {
        if let Some(&id) = self.known.get(&key) {
            if self.entries[id as usize].due > due {
                self.entries[id as usize].due = due;
                self.up(self.entries[id as usize].index as usize);
            }
            return;
        }
        let entry = Entry {
            key: Some(key.clone()),
            due,
            index: self.heap.len() as u32,
        };
        let id = match self.vacant.pop() {
            Some(id) => {
                self.entries[id as usize] = entry;
                id
            }
            None => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
        };
        self.known.insert(key, id);
        self.heap.push(id);
        self.up(self.heap.len() - 1);
    }

    /// Removes the key with the earliest time, if that has passed.
    pub(super) fn pop_due(&mut self, now: u64) -> Option<K> {
        let &first = self.heap.first()?;
        if self.entries[first as usize].due > now {
            return None;
        }
        self.heap.swap_remove(0);
        if let Some(&moved) = self.heap.first() {
            self.entries[moved as usize].index = 0;
            self.down();
        }
        self.vacant.push(first);
        let key = self.entries[first as usize].key.take()?;
        self.known.remove(&key);
        Some(key)
    }

    fn due(&self, index: usize) -> u64 {
        self.entries[self.heap[index] as usize].due
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.heap.swap(a, b);
        self.entries[self.heap[a] as usize].index = a as u32;
        self.entries[self.heap[b] as usize].index = b as u32;
    }

    fn up(&mut self, mut index: usize) {
        while index > 0 {
            let parent = (index - 1) / 2;
            if self.due(parent) <= self.due(index) {
                break;
            }
            self.swap(parent, index);
            index = parent;
        }
    }

    fn down(&mut self) {
        let mut index = 0;
        loop {
            let left = 2 * index + 1;
            if left >= self.heap.len() {
                break;
            }
            let right = left + 1;
            let least = if right < self.heap.len() && self.due(right) < self.due(left) {
                right
            } else {
                left
            };
            if self.due(index) <= self.due(least) {
                break;
            }
            self.swap(index, least);
            index = least;
        }
    }
}
