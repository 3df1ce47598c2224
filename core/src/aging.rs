//! Aging: keys of low levels that have waited long.

use core::fmt::Debug;
use core::time::Duration;

use crate::Instant;
use crate::array::ConstDefault;
use crate::id::Index;
use crate::levels::{Priorities, sealed};

/// Priority levels whose busy high ones do not starve the low ones: a key that has waited for
/// longer than [a given time](crate::Session::age_after) is served before the younger keys of
/// higher levels.
///
/// `P` are the levels, [`Levels`](crate::priority::Levels). A queue with groups has
/// `Groups<G, Aging<Levels<2>>>`.
///
/// - Of each level, the key that is next there is looked at. Of those that have waited for longer
///   than the time, the one that has waited longest is served; if there is none, the highest level
///   is, as without aging.
/// - A key waits from the add that made it ready, or dirty, or from its deadline. A key that is
///   raised to a higher level keeps its age.
/// - Until the time is set, nothing ages.
///
/// # Cost
///
/// A time of eight bytes per key, which padding makes 12 to 16 bytes on a 64-bit machine; a reading
/// of the clock for each operation, and O(levels) for a get.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::priority::{Aging, Levels};
/// use requeue_core::storage::Fixed;
/// use requeue_core::{AddOptions, Instant, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Aging<Levels<2>>, NoLimit, Fixed<16>> = Queue::new(NoLimit);
/// queue.at(now).age_after(Duration::from_secs(60));
///
/// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
/// queue.at(now).add("report").unwrap();
/// let later = now + Duration::from_secs(61);
/// queue.at(later).add_with("alarm", urgent).unwrap();
/// assert_eq!(queue.at(later).try_get().unwrap().key, "report");
/// assert_eq!(queue.at(later).try_get().unwrap().key, "alarm");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Aging<P>(P);

impl<P> sealed::Sealed for Aging<P> {}

impl<P: Priorities> Priorities for Aging<P> {
    const LEVELS: u8 = P::LEVELS;

    type Group = P::Group;
    type Leveled<const LEVELS: usize> = Aging<P::Leveled<LEVELS>>;
    type Aged = Self;

    type KeyLevels = P::KeyLevels;
    type Age = Instant;
    type FixedPolicy = P::FixedPolicy;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;
    type Naming<K> = P::Naming<K>;
    type FixedLists<const N: usize, I: Index> = P::FixedLists<N, I>;
    #[cfg(feature = "alloc")]
    type GrowableLists = P::GrowableLists;
}

/// Since when a key has been ready or dirty: `()` if keys do not age.
#[doc(hidden)]
pub trait Age: Copy + Debug + Default {
    const EXISTS: bool;
    /// How old keys become before they are served first; [`OFF`](Self::OFF) at first.
    type Limit: Copy + Debug;
    const OFF: Self::Limit;

    fn since(self) -> Instant;
    fn begin(&mut self, at: Instant);
    fn after(limit: Self::Limit) -> Option<Duration>;
}

impl Age for () {
    const EXISTS: bool = false;
    type Limit = ();
    const OFF: () = ();

    #[inline]
    fn since(self) -> Instant {
        Instant::EPOCH
    }

    #[inline]
    fn begin(&mut self, _: Instant) {}

    #[inline]
    fn after((): ()) -> Option<Duration> {
        None
    }
}

impl Age for Instant {
    const EXISTS: bool = true;
    type Limit = Option<Duration>;
    const OFF: Option<Duration> = None;

    #[inline]
    fn since(self) -> Instant {
        self
    }

    #[inline]
    fn begin(&mut self, at: Instant) {
        *self = at;
    }

    #[inline]
    fn after(limit: Option<Duration>) -> Option<Duration> {
        limit
    }
}

/// The [`Priorities`] of a queue whose keys age: the bound of a function that takes any such queue.
#[diagnostic::on_unimplemented(
    message = "the keys of this queue do not age",
    label = "this queue does not know how long its keys have waited",
    note = "call `.aging()` on the builder, or put `Aging` around the queue's priorities"
)]
pub trait Ages: Priorities<Age = Instant> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities<Age = Instant>> Ages for P {}
