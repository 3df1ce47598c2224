//! One slot per live key: a key is stored once, and found by one lookup.
//!
//! This file has the traits of slots, which [`fixed`] and `growable` implement. No decisions are
//! made here. Only `queue.rs` changes a slot's phase.

use core::borrow::Borrow;
use core::hash::Hash;

use crate::id::SlotId;
use crate::work::Ticket;

pub(crate) mod fixed;
#[cfg(feature = "alloc")]
pub(crate) mod growable;

/// A limiter's records of keys without slots, in unbounded number. Fixed storage has none, `()`.
#[doc(hidden)]
pub trait Records<K, R> {
    fn len(&self) -> usize;

    fn get<B>(&self, key: &B) -> Option<&R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized;

    /// Changes the record of a key, and stores it unless it is then the default one.
    fn change<T>(&mut self, key: &K, change: impl FnOnce(&mut R) -> T) -> T
    where
        K: Clone,
        R: Default + PartialEq;

    fn remove<B>(&mut self, key: &B) -> Option<R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized;

    /// Removes and returns all records, in no particular order.
    fn take(&mut self) -> impl Iterator<Item = (K, R)>;
}

impl<K, R> Records<K, R> for () {
    fn len(&self) -> usize {
        0
    }

    fn get<B>(&self, _: &B) -> Option<&R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        None
    }

    fn change<T>(&mut self, _: &K, change: impl FnOnce(&mut R) -> T) -> T
    where
        K: Clone,
        R: Default + PartialEq,
    {
        change(&mut R::default())
    }

    fn remove<B>(&mut self, _: &B) -> Option<R>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        None
    }

    fn take(&mut self) -> impl Iterator<Item = (K, R)> {
        core::iter::empty()
    }
}

/// The slots of a queue and the index from key to slot.
#[doc(hidden)]
pub trait Slots<K, N> {
    /// The storage's own data in a slot.
    type Tag;
    /// Where a key would be found. Valid until another key is stored.
    type Place: Copy;

    /// Makes room for `additional` more keys, if the storage grows.
    fn reserve(&mut self, additional: usize) {
        let _ = additional;
    }

    /// Finds the slot of a key: one lookup, O(1) expected.
    fn locate<B>(&self, key: &B) -> Located<Self::Place>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized;

    /// As [`locate`](Self::locate), with a look at the slot.
    #[inline]
    fn find<B>(&self, key: &B) -> Sighted<'_, Self::Place, K, N, Self::Tag>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let located = self.locate(key);
        match located {
            Located::Found(id) => (located, self.slot(id)),
            Located::Absent(_) => (located, None),
        }
    }

    /// The slot that is filled next, `None` if there is no room.
    fn vacancy(&self) -> Option<SlotId> {
        self.vacant_slot().or_else(|| self.new_slot())
    }

    /// A vacant slot, usable without a capacity check.
    fn vacant_slot(&self) -> Option<SlotId>;

    /// The next slot if none is vacant. `None` if no key fits.
    // A separate method, so that the common case is one test.
    #[inline]
    fn new_slot(&self) -> Option<SlotId> {
        None
    }

    /// Stores a key that [`locate`](Slots::locate) did not find, in the slot that
    /// [`vacancy`](Slots::vacancy) has returned. Runs no code of the key, so it cannot panic
    /// halfway.
    fn claim(&mut self, vacancy: SlotId, place: Self::Place, key: K, meta: N, phase: Phase);

    /// Empties a slot. The slot's number is used again.
    fn free(&mut self, id: SlotId);

    fn slot(&self, id: SlotId) -> Option<&Slot<K, N, Self::Tag>>;

    fn slot_mut(&mut self, id: SlotId) -> Option<&mut Slot<K, N, Self::Tag>>;

    /// The number of keys stored.
    fn len(&self) -> usize;

    /// How many keys fit. `None` if there is no limit.
    fn capacity(&self) -> Option<usize>;

    /// Whether more keys are stored than fit, because the limit was lowered.
    #[inline]
    fn is_over_full(&self) -> bool {
        false
    }

    /// One more than the largest slot number in use: the bound for scans over all slots.
    fn bound(&self) -> usize;
}

/// Where a key is, or would be.
#[doc(hidden)]
#[derive(Clone, Copy, Debug)]
pub enum Located<P> {
    Found(SlotId),
    /// Not stored. Has the place for it, so that [`Slots::claim`] need not search again.
    Absent(P),
}

impl<P> Located<P> {
    /// The slot of a key that is stored.
    #[inline]
    pub(crate) fn found(&self) -> Option<SlotId> {
        match self {
            Self::Found(id) => Some(*id),
            Self::Absent(_) => None,
        }
    }
}

/// Where a key is, or would be, and its slot.
pub(crate) type Sighted<'s, P, K, N, T> = (Located<P>, Option<&'s Slot<K, N, T>>);

/// A key and its state, except its place in the lists and in the heap.
#[doc(hidden)]
#[derive(Debug)]
pub struct Slot<K, N, T> {
    pub(crate) key: K,
    pub(crate) meta: N,
    /// The storage's own data. A field, and not a wrapper around the slot, so that no room is lost
    /// to padding.
    #[cfg_attr(
        not(feature = "alloc"),
        expect(dead_code, reason = "read by `Growable`")
    )]
    pub(crate) tag: T,
    /// The number of the key's last run. A ticket with another number is stale.
    pub(crate) run: u32,
    pub(crate) phase: Phase,
}

impl<K, N, T> Slot<K, N, T> {
    #[inline]
    pub(crate) fn new(key: K, meta: N, tag: T, phase: Phase) -> Self {
        Self {
            key,
            meta,
            tag,
            run: 0,
            phase,
        }
    }

    /// Whether the run of a ticket has not ended.
    #[inline]
    pub(crate) fn is_run_by(&self, ticket: &Ticket) -> bool {
        self.phase.is_active() && self.run == ticket.run
    }
}

/// The phase of a key: client-go's dirty and processing sets in one value.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Neither ready nor active. The slot is live for a delay or a failure record.
    Idle,
    /// In the ready list.
    Ready,
    /// Handed out to a worker.
    Active,
    /// Handed out to a worker, and added meanwhile.
    Dirty,
    /// As `Active`, and cancelled meanwhile.
    CancelledActive,
    /// As `Dirty`, and cancelled meanwhile, before the last add.
    CancelledDirty,
}

impl Phase {
    /// Whether the key was handed out and its run has not ended.
    #[inline]
    pub(crate) const fn is_active(self) -> bool {
        self as u8 >= Self::Active as u8
    }

    /// Whether the key will be handed out without another add or deadline.
    #[inline]
    pub(crate) const fn is_queued(self) -> bool {
        // These phases have odd numbers.
        self as u8 % 2 == 1
    }

    /// The phase of an active key after an add.
    #[inline]
    pub(crate) const fn made_dirty(self) -> Self {
        if self.is_cancelled() {
            Self::CancelledDirty
        } else {
            Self::Dirty
        }
    }

    /// Whether the key was cancelled during its present run.
    #[inline]
    pub(crate) const fn is_cancelled(self) -> bool {
        self as u8 >= Self::CancelledActive as u8
    }
}

#[cfg(test)]
#[cfg(feature = "alloc")]
mod tests {
    use core::hash::{BuildHasher, Hash, Hasher};

    use super::fixed::FixedSlots;
    use super::growable::{GrowableSlots, RandomState};
    use super::{Located, Phase, Slots};

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
                Located::Found(id) => slots.free(id),
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
    fn keys_with_few_hashes_are_only_slower() {
        come_and_go(&mut FixedSlots::<_, (), KEYS, u8>::new(), Crowded);
        for values in [1, 3] {
            come_and_go(&mut GrowableSlots::with_capacity(Poor(values), 0), Crowded);
        }
    }
}
