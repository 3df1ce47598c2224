//! Storage of a fixed size: N slots, found through N hash chains, without an allocator. Owns where
//! a key is stored; never changes a slot's phase.

use core::borrow::Borrow;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;

use crate::id::{Index, SlotId};

use super::{Located, Phase, Slot, Slots};

mod nodes;

pub(crate) use nodes::FixedNodes;

/// Room for exactly `N` keys, inside the queue itself: for a `static`, without an allocator.
///
/// `I` is the integer type of slot numbers. The default, `u8`, is enough for 255 keys. A larger
/// queue needs `u16` or `u32`. A size that does not fit does not compile.
///
/// On a server, use `Builder::max_keys` instead. It limits a growable queue at run time, without
/// changing its type.
///
/// # Memory
///
/// The queue contains its keys, so it takes room in a `static` or on the stack. Each key takes
/// `12 + 7 * size_of::<I>()` bytes and a slot. A slot has the key, the data of limiter, metrics
/// and priorities, and 5 bytes, padded. That is 27 bytes for a `u16` key and `NoLimit` with slot
/// numbers of `u8`. For a `String` and `DefaultController` with `u16` on a 64-bit system it is 66,
/// or 264 KB for 4,000 keys. A build without optimization copies a queue several times, and may
/// overflow the stack of a thread, 2 MiB.
///
/// ```
/// use requeue::limiter::{DefaultController, NoLimit};
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// assert_eq!(size_of::<Queue<u16, Plain, NoLimit, Fixed<200>>>() / 200, 27);
/// # #[cfg(target_pointer_width = "64")]
/// assert_eq!(size_of::<Queue<String, Plain, DefaultController, Fixed<4000, u16>>>() / 4000, 66);
/// ```
///
/// # Lookups
///
/// Keys are found through a hash table of `N` chains. Its hash is fast and has no seed (Fibonacci
/// hashing, D. E. Knuth, *The Art of Computer Programming* 3, 6.4). A lookup is O(1) expected. If
/// all keys are in one chain, it costs up to `N` comparisons under the lock. An attacker who
/// chooses the keys can cause that, and you cannot replace the hasher. So for keys from outside,
/// choose an `N` that is small enough, or check the keys first. On a Cortex-M3 an `add` takes 79
/// instructions if the key is found at once, and about 15 more for each key before it in the chain:
/// 1015 if 64 keys share a hash (`docs/firmware.md`).
///
/// # Examples
///
/// ```
/// use requeue::limiter::{Exponential, default_item_based};
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// type Small = Queue<u16, Plain, Exponential, Fixed<16>>;
/// type Large = Queue<u16, Plain, Exponential, Fixed<1000, u16>>;
///
/// const SMALL: Small = Queue::new(default_item_based());
/// let large: Large = Queue::new(default_item_based());
/// assert_eq!(SMALL.stats().max_keys, Some(16));
/// assert_eq!(large.stats().max_keys, Some(1000));
/// ```
///
/// ```compile_fail
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// let too_large: Queue<u16, Plain, NoLimit, Fixed<256>> = Queue::new(NoLimit);
/// ```
#[derive(Debug)]
pub struct Fixed<const N: usize, I: Index = u8>(PhantomData<I>);

/// Slots in an array, indexed by `N` hash chains.
#[doc(hidden)]
#[derive(Debug)]
pub struct FixedSlots<K, S, const N: usize, I> {
    /// The slots up to the largest number that was ever used. The rest is not initialised.
    entries: heapless::Vec<Option<Slot<K, S, ()>>, N>,
    /// The first slot of each chain.
    heads: [I; N],
    /// The next slot in the chain of a live slot, or in the free list.
    nexts: [I; N],
    /// The chain of each live slot, so that a slot is freed without hashing its key again.
    chains: [I; N],
    free: I,
    len: usize,
}

impl<K, S, const N: usize, I: Index> FixedSlots<K, S, N, I> {
    pub(crate) const fn new() -> Self {
        const {
            assert!(N > 0, "a queue needs room for at least one key");
            assert!(
                N <= I::SLOTS_MAX,
                "N is too large for the slot numbers: use Fixed<N, u16> or Fixed<N, u32>"
            );
        }
        Self {
            entries: heapless::Vec::new(),
            heads: [I::NONE; N],
            nexts: [I::NONE; N],
            chains: [I::NONE; N],
            free: I::NONE,
            len: 0,
        }
    }

    /// The next slot in a chain, or in the free list.
    #[inline]
    fn next(&self, id: SlotId) -> I {
        self.nexts.get(id.index()).copied().unwrap_or(I::NONE)
    }

    #[inline]
    fn set_next(&mut self, id: SlotId, next: I) {
        if let Some(to) = self.nexts.get_mut(id.index()) {
            *to = next;
        }
    }
}

/// Slots of one chain are linked (D. E. Knuth, *The Art of Computer Programming* 3, 6.4, separate
/// chaining).
impl<K, S, const N: usize, I: Index> FixedSlots<K, S, N, I> {
    /// The first slot of a chain.
    #[inline]
    fn head(&self, chain: usize) -> I {
        self.heads.get(chain).copied().unwrap_or(I::NONE)
    }

    /// Puts a slot that is in no chain at the head of one. O(1).
    #[inline]
    fn enter(&mut self, chain: usize, id: SlotId) {
        let next = match self.heads.get_mut(chain) {
            Some(head) => core::mem::replace(head, I::new(id)),
            None => I::NONE,
        };
        self.set_next(id, next);
    }

    /// Removes a slot from its chain. O(n) in the length of the chain.
    #[inline]
    fn leave(&mut self, chain: usize, id: SlotId) {
        let (gone, next) = (I::new(id), self.next(id));
        let Some(head) = self.heads.get_mut(chain) else {
            return;
        };
        if *head == gone {
            *head = next;
            return;
        }
        let mut current = *head;
        while let Some(at) = current.get() {
            let Some(after) = self.nexts.get_mut(at.index()) else {
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

impl<K: Eq + Hash, S, const N: usize, I: Index> Slots<K, S> for FixedSlots<K, S, N, I> {
    type Tag = ();
    /// The chain.
    type Place = usize;

    fn locate<B>(&self, key: &B) -> Located<usize>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let chain = chain::<N>(hash(key));
        let mut current = self.head(chain);
        while let Some(id) = current.get() {
            match self.slot(id) {
                Some(slot) if key == slot.key.borrow() => return Located::Found(id),
                _ => current = self.next(id),
            }
        }
        Located::Absent(chain)
    }

    #[inline]
    fn vacant_slot(&self) -> Option<SlotId> {
        let never_used = || SlotId::from_index(self.entries.len());
        let free = self.free.get();
        free.or_else(|| (!self.entries.is_full()).then(never_used))
    }

    #[inline]
    fn claim(&mut self, vacancy: SlotId, chain: usize, key: K, meta: S, phase: Phase) {
        let slot = Some(Slot::new(key, meta, (), phase));
        match self.entries.get_mut(vacancy.index()) {
            Some(entry) => {
                *entry = slot;
                self.free = self.next(vacancy);
            }
            None => {
                let _ = self.entries.push(slot);
            }
        }
        self.enter(chain, vacancy);
        if let Some(to) = self.chains.get_mut(vacancy.index()) {
            *to = I::new(SlotId::from_index(chain));
        }
        self.len += 1;
    }

    fn free(&mut self, id: SlotId) {
        if let Some(chain) = self.chains.get(id.index()).and_then(|chain| chain.get()) {
            self.leave(chain.index(), id);
        }
        self.set_next(id, self.free);
        self.free = I::new(id);
        self.len -= 1;
        if let Some(entry) = self.entries.get_mut(id.index()) {
            // Last, because the key's `Drop` runs here and may panic.
            *entry = None;
        }
    }

    #[inline]
    fn slot(&self, id: SlotId) -> Option<&Slot<K, S, ()>> {
        self.entries.get(id.index())?.as_ref()
    }

    #[inline]
    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, S, ()>> {
        self.entries.get_mut(id.index())?.as_mut()
    }

    fn len(&self) -> usize {
        self.len
    }

    fn capacity(&self) -> Option<usize> {
        Some(N)
    }

    fn bound(&self) -> usize {
        self.entries.len()
    }
}

fn hash<K: Hash + ?Sized>(key: &K) -> u32 {
    let mut hasher = Fibonacci(0);
    key.hash(&mut hasher);
    hasher.finish() as u32
}

/// The chain of a hash: its leading bits, scaled to N without a division. A Cortex-M0 has neither
/// a division nor a wide multiplication, so only 16 bits are used if they suffice.
const fn chain<const N: usize>(hash: u32) -> usize {
    if N <= 1 << 16 {
        (((hash >> 16) * N as u32) >> 16) as usize
    } else {
        ((hash as u64 * N as u64) >> 32) as usize
    }
}

/// Multiplicative hashing, a word at a time. The leading bits of the product are the best ones.
struct Fibonacci(u32);

impl Fibonacci {
    #[inline]
    fn mix(&mut self, word: u32) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9);
    }
}

impl Hasher for Fibonacci {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(4) {
            let mut word = [0; 4];
            for (to, from) in word.iter_mut().zip(chunk) {
                *to = *from;
            }
            self.mix(u32::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, word: u8) {
        self.mix(u32::from(word));
    }

    fn write_u16(&mut self, word: u16) {
        self.mix(u32::from(word));
    }

    fn write_u32(&mut self, word: u32) {
        self.mix(word);
    }

    fn write_u64(&mut self, word: u64) {
        self.mix(word as u32);
        self.mix((word >> 32) as u32);
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }

    fn finish(&self) -> u64 {
        u64::from(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 64;

    /// The length of the longest chain that `N` consecutive keys make.
    fn longest_chain<K: Hash>(keys: impl Iterator<Item = K>) -> usize {
        let mut chains = [0; N];
        for key in keys.take(N) {
            chains[chain::<N>(hash(&key))] += 1;
        }
        chains.into_iter().max().unwrap()
    }

    #[test]
    fn keys_that_follow_each_other_spread_over_the_chains() {
        assert!(longest_chain(0_u8..) <= 4);
        assert!(longest_chain(0_u16..) <= 4);
        assert!(longest_chain(0_u32..) <= 4);
        assert!(longest_chain(0_u64..) <= 4);
        assert!(longest_chain((0_u64..).map(|key| key << 32)) <= 4);
        assert!(longest_chain(0_usize..) <= 4);
        assert!(longest_chain((0_u32..).map(|key| [key, key + 1])) <= 8);
        assert!(longest_chain((0..).map(|key| std::format!("node-{key}"))) <= 8);
    }

    /// Both formulas: 16 bits of the hash for small queues, all of it for large ones.
    #[test]
    fn a_hash_is_scaled_to_the_number_of_chains() {
        assert_eq!([0, 1 << 31, u32::MAX].map(chain::<10>), [0, 5, 9]);
        const LARGE: usize = 100_000;
        let large = [0, 1 << 31, u32::MAX].map(chain::<LARGE>);
        assert_eq!(large, [0, LARGE / 2, LARGE - 1]);
    }
}
