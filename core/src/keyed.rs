//! A rate limiter with its own records, for keys without a queue. Owns the choice of records to
//! keep; never waits, and never runs a key.

use core::borrow::Borrow;
use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::array::ConstDefault;
use crate::id::{Index, SlotId};
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::lists::fixed::FixedLists;
use crate::priority::Plain;
use crate::storage::{Place, Storage};
use crate::store::fixed::{Fixed, FixedSlots};
use crate::store::{Located, Phase, Records, Slots};

/// A [`RateLimiter`] with a record for each key: client-go's `TypedRateLimiter` without a queue.
///
/// Only keys that have failed take room. If there is no room ([`Fixed`] storage, or a
/// [limit](Self::limit_failure_records)), the record whose last failure is the oldest is discarded.
/// So keys that are never forgotten explicitly cannot fill it up.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::limiter::{KeyedLimiter, default_item_based};
/// use requeue::storage::Fixed;
/// use requeue::Instant;
///
/// let mut limiter: KeyedLimiter<&str, _, Fixed<8>> = KeyedLimiter::new(default_item_based());
/// let now = Instant::EPOCH;
/// assert_eq!(limiter.when(&"api", now), Duration::from_millis(1));
/// assert_eq!(limiter.when(&"api", now), Duration::from_millis(2));
/// assert_eq!(limiter.when(&"db", now), Duration::from_millis(1));
/// assert_eq!(limiter.failures(&"api"), 2);
/// assert_eq!(limiter.forget(&"api"), 2);
/// assert_eq!(limiter.len(), 1);
/// ```
#[derive(Debug)]
pub struct KeyedLimiter<K, L, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    S: Storage,
{
    /// All records, if there is no limit.
    unordered: S::Records<K, L::Record>,
    /// All records, if there is a limit.
    slots: S::Slots<K, L::Record>,
    /// The keys of these records, in the order of their last failures, the oldest first.
    lists: S::Lists<Plain>,
    limiter: L,
    failure_records_max: Option<usize>,
}

impl<K, L, const N: usize, I> KeyedLimiter<K, L, Fixed<N, I>>
where
    K: Eq + Hash,
    L: RateLimiter,
    I: Index,
{
    /// Creates a limiter with room for `N` records. Can be used in a `static`. The [type](Self) has
    /// an example.
    pub const fn new(limiter: L) -> Self {
        Self {
            unordered: (),
            slots: FixedSlots::new(),
            lists: FixedLists::DEFAULT,
            limiter,
            failure_records_max: Some(N),
        }
    }
}

#[cfg(feature = "alloc")]
impl<K: Eq + Hash, L: RateLimiter> KeyedLimiter<K, L, crate::storage::Growable> {
    /// Creates a limiter with room for as many records as are needed.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::{KeyedLimiter, default_item_based};
    /// use requeue::Instant;
    ///
    /// let mut limiter = KeyedLimiter::growable(default_item_based());
    /// for peer in 0..1000_u32 {
    ///     let _ = limiter.when(&peer, Instant::EPOCH);
    /// }
    /// assert_eq!(limiter.len(), 1000);
    /// ```
    pub fn growable(limiter: L) -> Self {
        use crate::lists::growable::GrowableLists;
        use crate::store::growable::{GrowableRecords, GrowableSlots, RandomState};
        Self {
            unordered: GrowableRecords::new(RandomState::default()),
            slots: GrowableSlots::with_capacity(RandomState::default(), 0),
            lists: GrowableLists::default(),
            limiter,
            failure_records_max: None,
        }
    }
}

impl<K: Eq + Hash + Clone, L: RateLimiter, S: Storage> KeyedLimiter<K, L, S> {
    /// Counts a failure of a key, and returns how long the key has to wait. O(1) plus the limiter's
    /// cost. The key is cloned if it is new. Without a limit a new key may move all records: O(1)
    /// amortized.
    ///
    /// # Examples
    ///
    /// A client waits before it calls a peer again:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::{Exponential, KeyedLimiter};
    /// use requeue::storage::Fixed;
    /// use requeue::Instant;
    ///
    /// let limiter = Exponential::new(Duration::from_secs(1), Duration::from_secs(60));
    /// let mut limiter: KeyedLimiter<u16, _, Fixed<8>> = KeyedLimiter::new(limiter);
    /// let mut pause = |peer: u16| limiter.when(&peer, Instant::EPOCH).as_secs();
    /// assert_eq!([pause(7), pause(7), pause(7), pause(8)], [1, 2, 4, 1]);
    /// ```
    pub fn when(&mut self, key: &K, now: Instant) -> Duration {
        if self.failure_records_max.is_none() {
            let limiter = &mut self.limiter;
            return self
                .unordered
                .change(key, |record| limiter.when(record, now));
        }
        match self.slots.locate(key) {
            Located::Found(id) => {
                self.make_youngest(id);
                match self.slots.slot_mut(id) {
                    Some(slot) => self.limiter.when(&mut slot.meta, now),
                    None => Duration::ZERO,
                }
            }
            Located::Absent(place) => {
                let mut record = L::Record::default();
                let delay = self.limiter.when(&mut record, now);
                if record != L::Record::default() {
                    self.retain_record(place, key.clone(), record);
                }
                delay
            }
        }
    }

    fn retain_record(&mut self, place: Place<K, L::Record, S>, key: K, record: L::Record) {
        if let Some(max) = self.failure_records_max {
            self.shrink_to(max.saturating_sub(1));
        }
        if let Some(id) = self.slots.vacancy() {
            self.slots.claim(id, place, key, record, Phase::Idle);
            self.make_youngest(id);
        }
        if let Some(max) = self.failure_records_max {
            self.shrink_to(max);
        }
    }
}

impl<K: Eq + Hash, L: RateLimiter, S: Storage> KeyedLimiter<K, L, S> {
    /// Forgets the failures of a key, and returns how many there were. O(1). The [type](Self) has
    /// an example.
    #[doc(alias = "Forget")]
    pub fn forget<B>(&mut self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        if self.failure_records_max.is_none() {
            let record = self.unordered.remove(key);
            return record.map_or(0, |record| self.limiter.failures(&record));
        }
        match self.slots.locate(key) {
            Located::Found(id) => {
                let failures = self.failures_of(id);
                self.free(id);
                failures
            }
            Located::Absent(_) => 0,
        }
    }

    /// Returns how many failures of a key are on record. O(1).
    #[doc(alias = "NumRequeues")]
    pub fn failures<B>(&self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        if self.failure_records_max.is_none() {
            let record = self.unordered.get(key);
            return record.map_or(0, |record| self.limiter.failures(record));
        }
        match self.slots.locate(key) {
            Located::Found(id) => self.failures_of(id),
            Located::Absent(_) => 0,
        }
    }

    /// Returns the number of keys that have a record. O(1).
    pub fn len(&self) -> usize {
        self.unordered.len() + self.slots.len()
    }

    /// Returns whether no key has a record. O(1).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Sets how many records are kept at most, and discards the oldest beyond that. With fixed
    /// storage the limit is at most its capacity. O(n).
    ///
    /// Without a limit the order of the failures is not kept: the first limit of a growable limiter
    /// discards records in no particular order.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::{KeyedLimiter, default_item_based};
    /// use requeue::storage::Fixed;
    /// use requeue::Instant;
    ///
    /// let mut limiter: KeyedLimiter<&str, _, Fixed<8>> = KeyedLimiter::new(default_item_based());
    /// for peer in ["peer-1", "peer-2", "peer-1"] {
    ///     let _ = limiter.when(&peer, Instant::EPOCH);
    /// }
    /// limiter.limit_failure_records(1);
    /// assert_eq!(limiter.failures(&"peer-1"), 2, "it failed last");
    /// assert_eq!(limiter.failures(&"peer-2"), 0);
    /// ```
    pub fn limit_failure_records(&mut self, keys: usize) {
        let max = keys.min(S::CAPACITY.unwrap_or(usize::MAX));
        self.failure_records_max = Some(max);
        for (key, record) in self.unordered.take().take(max) {
            if let Located::Absent(place) = self.slots.locate(&key)
                && let Some(id) = self.slots.vacancy()
            {
                self.slots.claim(id, place, key, record, Phase::Idle);
                self.lists.retain_record(id);
            }
        }
        self.shrink_to(max);
    }

    /// Returns the limiter. O(1).
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    fn failures_of(&self, id: SlotId) -> u32 {
        self.slots
            .slot(id)
            .map_or(0, |slot| self.limiter.failures(&slot.meta))
    }

    fn make_youngest(&mut self, id: SlotId) {
        if self.failure_records_max.is_some() {
            self.lists.discard_record(id);
            self.lists.retain_record(id);
        }
    }

    fn free(&mut self, id: SlotId) {
        self.lists.discard_record(id);
        self.slots.free(id);
    }

    /// Discards the oldest records until `keys` are left. O(1) per discarded record.
    fn shrink_to(&mut self, keys: usize) {
        while self.slots.len() > keys {
            match self.lists.oldest_record() {
                Some(id) => self.free(id),
                None => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limiter::{Exponential, NoLimit, default_item_based};

    type Two = KeyedLimiter<u8, Exponential, Fixed<2>>;

    static _IN_A_STATIC: Two = KeyedLimiter::new(default_item_based());

    #[test]
    fn the_key_that_failed_longest_ago_is_forgotten_first() {
        let mut limiter: Two = KeyedLimiter::new(default_item_based());
        let now = Instant::EPOCH;
        for key in [1, 2, 1, 3] {
            let _ = limiter.when(&key, now);
        }
        assert_eq!([1, 2, 3].map(|key| limiter.failures(&key)), [2, 0, 1]);
        assert_eq!(limiter.len(), 2);
        assert!(!limiter.is_empty());
        assert_eq!([1, 2].map(|key| limiter.forget(&key)), [2, 0]);
    }

    #[test]
    fn a_limit_of_zero_keeps_no_record() {
        let mut limiter: Two = KeyedLimiter::new(default_item_based());
        limiter.limit_failure_records(0);
        for _ in 0..2 {
            assert_eq!(limiter.when(&1, Instant::EPOCH), Duration::from_millis(1));
        }
        assert!(limiter.is_empty());
    }

    #[test]
    fn a_limiter_without_records_takes_no_room() {
        let mut limiter: KeyedLimiter<u8, NoLimit, Fixed<1>> = KeyedLimiter::new(NoLimit);
        assert_eq!(limiter.when(&1, Instant::EPOCH), Duration::ZERO);
        assert!(limiter.is_empty());
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn records_keep_their_failures_when_they_are_limited() {
        let mut limiter = KeyedLimiter::growable(default_item_based());
        for key in [1, 2, 2, 3, 3, 3] {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        limiter.limit_failure_records(5);
        assert_eq!([1, 2, 3, 4].map(|key| limiter.failures(&key)), [1, 2, 3, 0]);
        for key in [4, 5, 1] {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        assert_eq!((limiter.len(), limiter.failures(&1)), (5, 2));
    }

    #[cfg(feature = "alloc")]
    #[test]
    fn a_growable_limiter_has_a_record_of_every_key() {
        let mut limiter = KeyedLimiter::growable(default_item_based());
        for key in 0..1000_u32 {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        assert_eq!(limiter.len(), 1000);
        let delay = limiter.when(&7, Instant::EPOCH);
        assert_eq!(delay, Duration::from_millis(2));
        assert_eq!((limiter.failures(&7), limiter.forget(&7)), (2, 2));
        assert_eq!((limiter.failures(&7), limiter.forget(&7)), (0, 0));
        assert_eq!(limiter.len(), 999);
        limiter.limit_failure_records(10);
        assert_eq!(limiter.len(), 10);
        for key in 2000..2010 {
            let _ = limiter.when(&key, Instant::EPOCH);
        }
        assert_eq!(limiter.len(), 10);
        assert!((2000..2010).all(|key| limiter.failures(&key) == 1));
    }
}
