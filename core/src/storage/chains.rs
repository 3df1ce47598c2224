//! Hash chains: how both storages find a key.
//!
//! Slots whose keys have similar hashes are linked, and an array holds the first of each chain
//! (D. E. Knuth, *The Art of Computer Programming* 3, 6.4, separate chaining). A slot enters a
//! chain without a search, and to find or remove one takes a look at the few slots of its chain
//! only.

use crate::id::{Index, SlotId};

/// What chains consist of: the first slot of each chain, and the next of each slot.
pub(super) trait Chains<I: Index> {
    /// The first slot of a chain.
    fn head(&self, chain: usize) -> I;
    fn head_mut(&mut self, chain: usize) -> Option<&mut I>;
    /// The slot that follows another.
    fn next_mut(&mut self, id: SlotId) -> Option<&mut I>;

    /// Finds a slot of a chain. `pass` looks at one, and returns the next, or `None` if it is the
    /// one that is sought. As many steps as the chain is long.
    #[inline]
    fn find(&self, chain: usize, mut pass: impl FnMut(SlotId) -> Option<I>) -> Option<SlotId> {
        let mut current = self.head(chain);
        while let Some(id) = current.get() {
            match pass(id) {
                Some(next) => current = next,
                None => return Some(id),
            }
        }
        None
    }

    /// Puts a slot that is in no chain at the head of one, and returns the slot that has to become
    /// its next. O(1).
    #[inline]
    fn enter(&mut self, chain: usize, id: SlotId) -> I {
        match self.head_mut(chain) {
            Some(head) => core::mem::replace(head, I::new(id)),
            None => I::NONE,
        }
    }

    /// Takes a slot out of its chain, in which `next` follows it. As many steps as the chain is
    /// long.
    #[inline]
    fn leave(&mut self, chain: usize, id: SlotId, next: I) {
        let gone = I::new(id);
        let Some(head) = self.head_mut(chain) else {
            return;
        };
        if *head == gone {
            *head = next;
            return;
        }
        let mut current = *head;
        while let Some(at) = current.get() {
            let Some(after) = self.next_mut(at) else {
                return;
            };
            if *after == gone {
                *after = next;
                return;
            }
            current = *after;
        }
    }
}

#[cfg(test)]
#[cfg(feature = "alloc")]
mod tests {
    use core::hash::{BuildHasher, Hash, Hasher};

    use crate::storage::fixed::FixedSlots;
    use crate::storage::growable::{GrowableSlots, RandomState};
    use crate::storage::{Located, Phase, Slots};

    const KEYS: usize = 60;

    /// Hashes every key to one of this many values.
    struct Poor(u64);

    impl BuildHasher for Poor {
        type Hasher = PoorHasher;

        fn build_hasher(&self) -> PoorHasher {
            PoorHasher(0, self.0)
        }
    }

    struct PoorHasher(u64, u64);

    impl Hasher for PoorHasher {
        fn write(&mut self, bytes: &[u8]) {
            self.0 = bytes.iter().map(|&byte| u64::from(byte)).sum();
        }

        fn finish(&self) -> u64 {
            self.0 % self.1
        }
    }

    /// A key that `Fixed` also hashes poorly.
    #[derive(Clone, Copy, PartialEq, Eq, Debug)]
    struct Crowded(u16);

    impl Hash for Crowded {
        fn hash<H: Hasher>(&self, state: &mut H) {
            state.write_u8((self.0 % 4) as u8);
        }
    }

    /// Stores and removes keys in an order that looks random, and looks up all of them each time.
    fn come_and_go<K: Copy + Eq + Hash>(slots: &mut impl Slots<K, ()>, key: impl Fn(u16) -> K) {
        let mut there = [false; KEYS];
        let mut random = 1_u32;
        for _ in 0..if cfg!(miri) { 10 } else { 2000 } {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let index = (random >> 16) as usize % KEYS;
            match slots.locate(&key(index as u16)) {
                Located::Found(id) => slots.release(id),
                Located::Absent(place) => {
                    let Some(vacancy) = slots.vacancy() else {
                        unreachable!("there is room for all keys");
                    };
                    slots.claim(vacancy, place, key(index as u16), (), Phase::Idle);
                }
            }
            there[index] = !there[index];
            for (index, &is_there) in there.iter().enumerate() {
                let key = key(index as u16);
                let found = match slots.locate(&key) {
                    Located::Found(id) => slots.slot(id).is_some_and(|slot| slot.key == key),
                    Located::Absent(_) => false,
                };
                assert_eq!(found, is_there);
            }
            assert_eq!(slots.len(), there.iter().filter(|&&there| there).count());
        }
    }

    #[test]
    fn what_is_stored_is_found_and_nothing_else() {
        come_and_go(&mut FixedSlots::<u16, (), KEYS, u8>::new(), |key| key);
        let hasher = RandomState::default();
        come_and_go(&mut GrowableSlots::with_capacity(hasher, 0), |key| key);
    }

    #[test]
    fn long_chains_are_only_slower() {
        come_and_go(&mut FixedSlots::<_, (), KEYS, u8>::new(), Crowded);
        for values in [1, 3] {
            come_and_go(&mut GrowableSlots::with_capacity(Poor(values), 0), Crowded);
        }
    }
}
