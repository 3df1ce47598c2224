//! Where a queue keeps its keys: [`Storage`], the fourth parameter of its type.

// This file knows a storage and all its parts: slots, lists, heap, policy. The parts do not know
// it.

#[cfg(feature = "alloc")]
use core::hash::BuildHasher;
use core::hash::Hash;
use core::ops::Deref;

use heapless::Vec;

use crate::delay::Nodes;
use crate::id::Index;
use crate::lists::Lists;
use crate::policy::KeepPolicy;
#[cfg(feature = "alloc")]
use crate::policy::SideTable;
use crate::priority::Priorities;
use crate::sealed::Sealed;
use crate::store::fixed::{FixedNodes, FixedSlots};
#[cfg(feature = "alloc")]
use crate::store::growable::{GrowableNodes, GrowableRecords, GrowableSlots};
use crate::store::{Records, Slots};

pub use crate::store::fixed::Fixed;
#[cfg(feature = "alloc")]
pub use crate::store::growable::Growable;

/// Where a queue keeps its keys: [`Fixed`] without an allocator, or
/// `Growable` with one (feature `alloc`).
///
/// The trait is sealed, because the queue's invariants depend on its implementations.
///
/// # Examples
///
/// A function that takes a queue with any storage:
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::{Fixed, Storage};
/// use requeue::{Instant, Queue};
///
/// fn add_all<S: Storage>(queue: &mut Queue<u16, Plain, NoLimit, S>, sensors: &[u16]) -> usize {
///     let keys = sensors.iter().copied();
///     queue.at(Instant::EPOCH).add_many(keys, |_| {}).rejected
/// }
///
/// let mut queue: Queue<u16, Plain, NoLimit, Fixed<2>> = Queue::new(NoLimit);
/// assert_eq!(add_all(&mut queue, &[17, 18, 19]), 1);
/// ```
pub trait Storage: Sealed {
    /// How many keys fit, `None` if the storage grows. How many fit into a queue that grows is
    /// [limited](crate::Builder::max_keys) at run time.
    const CAPACITY: Option<usize>;

    /// How many due keys one operation makes ready, unless
    /// [`limit_due_keys`](crate::Queue::limit_due_keys) says otherwise: 2 in
    /// [`Fixed`], 8 in `Growable`.
    const DUE_KEYS_MAX: u8;

    /// How many keys of a batch are added, taken or ended under one lock, so that no call waits for
    /// a whole batch of another: 8 in [`Fixed`], 64 in `Growable`.
    ///
    /// A batch of at most this many keys is one *chunk*. A larger one is several: other calls may
    /// come in between, and each chunk sends its own wake. While keys are added they need room on
    /// the stack, about three times the size of a key for each of a chunk.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::storage::{Fixed, Storage};
    ///
    /// let locks = 1_000_usize.div_ceil(Fixed::<1_000>::KEYS_PER_LOCK);
    /// assert_eq!(locks, 125, "a batch of 1,000 keys is added in as many chunks");
    /// ```
    const KEYS_PER_LOCK: usize;

    /// How many keys or groups a call that goes through all of them looks at under one lock: 8 in
    /// [`Fixed`], 32 in `Growable`.
    const LOOKS_PER_LOCK: usize;

    #[doc(hidden)]
    type Slots<K: Eq + Hash, N>: Slots<K, N>;
    #[doc(hidden)]
    type Lists<P: Priorities>: Lists<Group = P::Group, Rates = P::Rates>;
    #[doc(hidden)]
    type Nodes<P: Priorities>: Nodes;
    #[doc(hidden)]
    type Policy<P: Priorities>: KeepPolicy;
    #[doc(hidden)]
    type Records<K: Eq + Hash, R>: Records<K, R>;
    /// Room for `KEYS_PER_LOCK` items.
    #[doc(hidden)]
    type Chunk<T>: Bounded<T>;
    /// Room for `LOOKS_PER_LOCK` items.
    #[doc(hidden)]
    type Page<T>: Bounded<T>;
}

impl<const N: usize, I: Index> Sealed for Fixed<N, I> {}

impl<const N: usize, I: Index> Storage for Fixed<N, I> {
    const CAPACITY: Option<usize> = Some(N);
    const DUE_KEYS_MAX: u8 = 2;
    const KEYS_PER_LOCK: usize = 8;
    const LOOKS_PER_LOCK: usize = 8;
    type Slots<K: Eq + Hash, S> = FixedSlots<K, S, N, I>;
    type Lists<P: Priorities> = P::FixedLists<N, I>;
    type Nodes<P: Priorities> = FixedNodes<N, I, P::FixedSlack>;
    type Policy<P: Priorities> = P::FixedPolicy;
    type Records<K: Eq + Hash, R> = ();
    type Chunk<T> = Vec<T, 8>;
    type Page<T> = Vec<T, 8>;
}

#[cfg(feature = "alloc")]
impl<H> Sealed for Growable<H> {}

#[cfg(feature = "alloc")]
impl<H: BuildHasher> Storage for Growable<H> {
    const CAPACITY: Option<usize> = None;
    const DUE_KEYS_MAX: u8 = 8;
    const KEYS_PER_LOCK: usize = 64;
    const LOOKS_PER_LOCK: usize = 32;
    type Slots<K: Eq + Hash, S> = GrowableSlots<K, S, H>;
    type Lists<P: Priorities> = P::GrowableLists;
    type Nodes<P: Priorities> = GrowableNodes;
    type Policy<P: Priorities> = SideTable;
    type Records<K: Eq + Hash, R> = GrowableRecords<K, R, H>;
    type Chunk<T> = Vec<T, 64>;
    type Page<T> = Vec<T, 32>;
}

/// A number of items that is known beforehand, without an allocator.
#[doc(hidden)]
pub trait Bounded<T>:
    Default + Deref<Target = [T]> + FromIterator<T> + IntoIterator<Item = T>
{
    /// Adds an item. Hands it back if there is no room.
    fn push(&mut self, item: T) -> Result<(), T>;
}

impl<T, const N: usize> Bounded<T> for Vec<T, N> {
    fn push(&mut self, item: T) -> Result<(), T> {
        self.push(item)
    }
}

/// The place of a key in a storage.
pub(crate) type Place<K, N, S> = <<S as Storage>::Slots<K, N> as Slots<K, N>>::Place;
