//! Aging: keys of low levels that have waited long.

use core::time::Duration;

use crate::Instant;
use crate::array::ConstDefault;
use crate::id::Index;
use crate::priority::{AgeLimit, KeyLevels, Priorities, sealed};

/// Priority levels whose busy high ones do not starve the low ones: a key that has waited for
/// longer than [a given time](crate::Session::age_after) is served before the younger keys of
/// higher levels.
///
/// `P` are the levels, [`Levels`](crate::Levels). A queue with groups has
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
/// use requeue_core::{AddOptions, Aging, Fixed, Instant, Levels, NoLimit, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<16, u8, Aging<Levels<2>>>, NoLimit> = Queue::new(NoLimit);
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

    type KeyLevels = Aged<P::KeyLevels>;
    type AgeLimit = Option<Duration>;
    type PerLevel<T: ConstDefault> = P::PerLevel<T>;
    type Group = P::Group;
    type Naming<K> = P::Naming<K>;
    type FixedLists<const N: usize, I: Index> = P::FixedLists<N, I>;
    #[cfg(feature = "alloc")]
    type GrowableLists = P::GrowableLists;
}

/// An age limit that can be set.
#[diagnostic::on_unimplemented(
    message = "the keys of this queue do not age",
    label = "this queue does not know how long its keys have waited",
    note = "call `.aging()` on the builder, or put `Aging` around the queue's priorities"
)]
#[doc(hidden)]
pub trait Ages: AgeLimit {
    fn limit(after: Option<Duration>) -> Self;
}

#[diagnostic::do_not_recommend]
impl Ages for Option<Duration> {
    #[inline]
    fn limit(after: Option<Duration>) -> Self {
        after
    }
}

impl AgeLimit for Option<Duration> {
    const AGES: bool = true;
    const OFF: Self = None;

    #[inline]
    fn after(&self) -> Option<Duration> {
        *self
    }
}

/// The levels of a key, and since when it waits.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Aged<R> {
    levels: R,
    since: Instant,
}

impl<R: KeyLevels> KeyLevels for Aged<R> {
    #[inline]
    fn queued(self) -> u8 {
        self.levels.queued()
    }

    #[inline]
    fn set_queued(&mut self, level: u8) {
        self.levels.set_queued(level);
    }

    #[inline]
    fn delayed(self) -> u8 {
        self.levels.delayed()
    }

    #[inline]
    fn set_delayed(&mut self, level: u8) {
        self.levels.set_delayed(level);
    }

    #[inline]
    fn running(self) -> u8 {
        self.levels.running()
    }

    #[inline]
    fn set_running(&mut self, level: u8) {
        self.levels.set_running(level);
    }

    #[inline]
    fn since(self) -> Instant {
        self.since
    }

    #[inline]
    fn set_since(&mut self, at: Instant) {
        self.since = at;
    }
}
