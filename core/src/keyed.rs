//! A rate limiter with a memory of its own, for keys that are in no queue.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::id::{Index, SlotId};
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::slots::fixed::{Fixed, FixedLists, FixedSlots};
use crate::slots::{Located, Phase, Slots, Storage};

/// A [`RateLimiter`] and what it remembers of each key: client-go's `TypedRateLimiter` as it is
/// used on its own.
///
/// Only keys that have failed take room. Where that is short ([`Fixed`] storage, or a
/// [limit](Self::limit_memories)), the key whose last failure lies furthest back is forgotten: a
/// key that nobody forgets cannot leak for ever.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, KeyedLimiter, default_item_based};
///
/// let mut limiter: KeyedLimiter<&str, Fixed<8>, _> = KeyedLimiter::new(default_item_based());
/// let now = Instant::EPOCH;
/// assert_eq!(limiter.when(&"api", now), Duration::from_millis(1));
/// assert_eq!(limiter.when(&"api", now), Duration::from_millis(2));
/// assert_eq!(limiter.when(&"db", now), Duration::from_millis(1));
/// assert_eq!(limiter.num_requeues(&"api"), 2);
/// assert_eq!(limiter.forget(&"api"), 2);
/// assert_eq!(limiter.len(), 1);
/// ```
#[derive(Debug)]
pub struct KeyedLimiter<K, S, L>
where
    K: Eq + Hash,
    S: Storage,
    L: RateLimiter,
{
    slots: S::Slots<K, L::Memory>,
    /// The keys in the order of their last failures, the longest ago first. Kept only where
    /// somebody may ask for it: with a limit.
    lists: S::Lists,
    limiter: L,
    memories_max: Option<usize>,
}

impl<K, L, const N: usize, I> KeyedLimiter<K, Fixed<N, I>, L>
where
    K: Eq + Hash,
    L: RateLimiter,
    I: Index,
{
    /// A limiter that remembers `N` keys, in a `static` if need be. The example of the
    /// [type](Self) makes one.
    pub const fn new(limiter: L) -> Self {
        Self {
            slots: FixedSlots::new(),
            lists: FixedLists::EMPTY,
            limiter,
            memories_max: Some(N),
        }
    }
}

#[cfg(feature = "alloc")]
impl<K: Eq + Hash, L: RateLimiter> KeyedLimiter<K, crate::Growable, L> {
    /// A limiter that remembers as many keys as fail.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Instant, KeyedLimiter, default_item_based};
    ///
    /// let mut limiter = KeyedLimiter::growable(default_item_based());
    /// for peer in 0..1000_u32 {
    ///     let _ = limiter.when(&peer, Instant::EPOCH);
    /// }
    /// assert_eq!(limiter.len(), 1000);
    /// ```
    pub fn growable(limiter: L) -> Self {
        use crate::slots::growable::{GrowableLists, GrowableSlots, RandomState};
        Self {
            slots: GrowableSlots::with_capacity(RandomState::default(), 0),
            lists: GrowableLists::EMPTY,
            limiter,
            memories_max: None,
        }
    }
}

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter> KeyedLimiter<K, S, L> {
    /// Counts one more failure of a key and answers how long it has to wait. O(1) and the limiter's
    /// cost. The key is cloned if it is new.
    ///
    /// # Examples
    ///
    /// A client that calls peers waits before it calls one again:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, ItemExponentialFailure, KeyedLimiter};
    ///
    /// let limiter = ItemExponentialFailure::new(Duration::from_secs(1), Duration::from_secs(60));
    /// let mut limiter: KeyedLimiter<u16, Fixed<8>, _> = KeyedLimiter::new(limiter);
    /// let mut pause = |peer: u16| limiter.when(&peer, Instant::EPOCH).as_secs();
    /// assert_eq!([pause(7), pause(7), pause(7), pause(8)], [1, 2, 4, 1]);
    /// ```
    pub fn when(&mut self, key: &K, now: Instant) -> Duration {
        match self.slots.locate(key) {
            Located::Found(id) => {
                self.make_youngest(id);
                match self.slots.slot_mut(id) {
                    Some(slot) => self.limiter.when(&mut slot.note, now),
                    None => Duration::ZERO,
                }
            }
            Located::Absent(hash) => {
                let mut memory = L::Memory::default();
                let delay = self.limiter.when(&mut memory, now);
                if memory != L::Memory::default() {
                    self.remember(hash, key.clone(), memory);
                }
                delay
            }
        }
    }

    fn remember(&mut self, hash: u32, key: K, memory: L::Memory) {
        if let Some(max) = self.memories_max {
            self.shrink_to(max.saturating_sub(1));
        }
        if let Some(id) = self.slots.vacancy() {
            self.slots.claim(id, hash, key, memory, Phase::Idle);
            self.make_youngest(id);
        }
        if let Some(max) = self.memories_max {
            self.shrink_to(max);
        }
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter> KeyedLimiter<K, S, L> {
    /// Forgets the failures of a key and answers how many there were. O(1). The example of the
    /// [type](Self) does so.
    pub fn forget(&mut self, key: &K) -> u32 {
        match self.slots.locate(key) {
            Located::Found(id) => {
                let requeues = self.requeues(id);
                self.release(id);
                requeues
            }
            Located::Absent(_) => 0,
        }
    }

    /// How many failures of a key are remembered. O(1).
    pub fn num_requeues(&self, key: &K) -> u32 {
        match self.slots.locate(key) {
            Located::Found(id) => self.requeues(id),
            Located::Absent(_) => 0,
        }
    }

    /// How many keys are remembered. O(1).
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Whether no key is remembered. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets how many keys are remembered at most, and forgets the oldest that are too many. A fixed
    /// storage remembers no more than it has room for. O(n).
    ///
    /// Without a limit nobody keeps the order of the failures: the first limit of a growable
    /// limiter finds its keys in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, KeyedLimiter, default_item_based};
    ///
    /// let mut limiter: KeyedLimiter<&str, Fixed<8>, _> = KeyedLimiter::new(default_item_based());
    /// for peer in ["peer-1", "peer-2", "peer-1"] {
    ///     let _ = limiter.when(&peer, Instant::EPOCH);
    /// }
    /// limiter.limit_memories(1);
    /// assert_eq!(limiter.num_requeues(&"peer-1"), 2, "it failed last");
    /// assert_eq!(limiter.num_requeues(&"peer-2"), 0);
    /// ```
    pub fn limit_memories(&mut self, keys: usize) {
        let max = keys.min(S::CAPACITY.unwrap_or(usize::MAX));
        if self.memories_max.replace(max).is_none() {
            let slots = (0..self.slots.bound()).map(SlotId::from_index);
            for id in slots.filter(|id| self.slots.slot(*id).is_some()) {
                self.lists.remember(id);
            }
        }
        self.shrink_to(max);
    }

    /// The limiter itself. O(1).
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    fn requeues(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.requeues(&slot.note))
    }

    fn make_youngest(&mut self, id: SlotId) {
        if self.memories_max.is_some() {
            self.lists.unremember(id);
            self.lists.remember(id);
        }
    }

    fn release(&mut self, id: SlotId) {
        self.lists.unremember(id);
        self.slots.release(id);
    }

    /// Forgets the oldest until `keys` are left. At most as many steps as keys are too many.
    fn shrink_to(&mut self, keys: usize) {
        while self.slots.len() > keys {
            match self.lists.oldest_memory() {
                Some(id) => self.release(id),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ItemExponentialFailure, NoLimit, default_item_based};

    type Two = KeyedLimiter<u8, Fixed<2>, ItemExponentialFailure>;

    static _IN_A_STATIC: Two = KeyedLimiter::new(default_item_based());

    #[test]
    fn the_key_that_failed_longest_ago_is_forgotten_first() {
        let mut limiter: Two = KeyedLimiter::new(default_item_based());
        let now = Instant::EPOCH;
        for key in [1, 2, 1, 3] {
            let _ = limiter.when(&key, now);
        }
        assert_eq!([1, 2, 3].map(|key| limiter.num_requeues(&key)), [2, 0, 1]);
        assert_eq!(limiter.len(), 2);
        assert!(!limiter.is_empty());
        assert_eq!([1, 2].map(|key| limiter.forget(&key)), [2, 0]);
    }

    #[test]
    fn a_limit_of_nothing_remembers_nothing() {
        let mut limiter: Two = KeyedLimiter::new(default_item_based());
        limiter.limit_memories(0);
        for _ in 0..2 {
            assert_eq!(limiter.when(&1, Instant::EPOCH), Duration::from_millis(1));
        }
        assert!(limiter.is_empty());
    }

    #[test]
    fn a_limiter_without_memory_takes_no_room() {
        let mut limiter: KeyedLimiter<u8, Fixed<1>, NoLimit> = KeyedLimiter::new(NoLimit);
        assert_eq!(limiter.when(&1, Instant::EPOCH), Duration::ZERO);
        assert!(limiter.is_empty());
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_growable_limiter_remembers_every_key() {
        let mut limiter = KeyedLimiter::growable(default_item_based());
        for key in 0..1000_u32 {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        assert_eq!(limiter.len(), 1000);
        limiter.limit_memories(10);
        assert_eq!(limiter.len(), 10);
        for key in 2000..2010 {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        assert_eq!(limiter.len(), 10);
        assert!((2000..2010).all(|key| limiter.num_requeues(&key) == 1));
    }
}
