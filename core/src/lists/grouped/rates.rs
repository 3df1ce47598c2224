//! Where a queue keeps the rates of its groups: nowhere, or beside the groups. Owns what is left of
//! each rate, and when it allows the next run; never blocks a group.

use core::fmt::Debug;

use crate::Instant;
use crate::array::{Array, ConstDefault, Optional, Stored};
use crate::delay::{Delays, Nodes, Window};
use crate::id::SlotId;
use crate::lists::List;
use crate::rate::{Rate, RateLimit};
#[cfg(feature = "alloc")]
use crate::segments::Segments;
use crate::store::fixed::FixedNodes;
#[cfg(feature = "alloc")]
use crate::store::growable::GrowableNodes;

/// Lets groups have [rates](crate::GroupLimits::rate): the default of
/// [`Groups`](crate::priority::Groups) and of [`GroupLimits`](crate::GroupLimits).
///
/// A board whose groups need no rates writes `()` in its place. Then neither the rates nor their
/// code take room.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Groups, Plain, Rates};
/// use requeue::storage::Fixed;
/// use requeue::{GroupLimits, Queue};
///
/// type Rated = Queue<u16, Groups<u8, Plain, 4, Rates>, NoLimit, Fixed<16>>;
/// type Unrated = Queue<u16, Groups<u8, Plain, 4, ()>, NoLimit, Fixed<16>>;
/// assert!(size_of::<Unrated>() < size_of::<Rated>());
///
/// const ONE: GroupLimits<()> = GroupLimits::new().max_active(1);
/// let mut queue: Unrated = Queue::with_groups(NoLimit, (), |key| (key / 256) as u8);
/// queue.at(requeue::Instant::EPOCH).limit_groups(ONE);
/// ```
///
/// ```compile_fail
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Groups, Plain};
/// use requeue::storage::Fixed;
/// use requeue::{GroupLimits, Instant, Queue};
///
/// let mut queue: Queue<u16, Groups<u8, Plain, 4, ()>, NoLimit, Fixed<16>> =
///     Queue::with_groups(NoLimit, (), |key| (key / 256) as u8);
/// // Groups of this queue have no rates.
/// queue.at(Instant::EPOCH).limit_groups(GroupLimits::new().rate(10.0, 5));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rates(pub(super) Option<RateLimit>);

impl ConstDefault for Rates {
    const DEFAULT: Self = Self(None);
}

impl ConstDefault for () {
    const DEFAULT: Self = ();
}

/// Whether groups may have rates: [`Rates`] or `()`. The value is that of limits.
#[doc(hidden)]
pub trait GroupRates: ConstDefault + Copy + Debug {
    type Fixed<const MAX: usize>: KeepRates + ConstDefault;
    #[cfg(feature = "alloc")]
    type Growable: KeepRates + Default;

    #[inline]
    fn limit(&self) -> Option<RateLimit> {
        None
    }
}

impl GroupRates for () {
    type Fixed<const MAX: usize> = ();
    #[cfg(feature = "alloc")]
    type Growable = ();
}

impl GroupRates for Rates {
    type Fixed<const MAX: usize> = KeptRates<[Rate; MAX], FixedNodes<MAX, u8>>;
    #[cfg(feature = "alloc")]
    type Growable = KeptRates<Segments<Rate, 64>, GrowableNodes>;

    #[inline]
    fn limit(&self) -> Option<RateLimit> {
        self.0
    }
}

/// The rates of groups, and the groups that wait for a token. Without rates this does nothing.
#[doc(hidden)]
pub trait KeepRates {
    type OfGroup: Optional<RateOfGroup>;

    #[inline]
    fn get(&self, _group: SlotId) -> Option<&Rate> {
        None
    }
    #[inline]
    fn get_mut(&mut self, _group: SlotId) -> Option<&mut Rate> {
        None
    }
    /// Gives a group a full bucket.
    #[inline]
    fn begin(&mut self, _group: SlotId, _limit: RateLimit) {}

    /// Lets a group wait until it has a token.
    #[inline]
    fn rest(&mut self, _group: SlotId, _until: Instant) {}
    /// Ends the waiting of a group, if it waits.
    #[inline]
    fn wake(&mut self, _group: SlotId) {}
    /// The group that has waited for its token, if that time has passed.
    #[inline]
    fn take_due(&mut self, _now: Instant) -> Option<SlotId> {
        None
    }
    #[inline]
    fn earliest(&self) -> Option<Instant> {
        None
    }
    #[inline]
    fn is_due(&self, _now: Instant) -> bool {
        false
    }

    /// The leaving groups, which have neither keys nor limits of their own, but a bucket that may
    /// not be full. In the order in which their last keys left.
    #[inline]
    fn leaving(&mut self) -> Option<&mut List<u32>> {
        None
    }
    #[inline]
    fn first_leaving(&self) -> Option<SlotId> {
        None
    }

    /// The common rate has changed, and with it the common limits to this generation.
    #[inline]
    fn note_change(&mut self, _generation: u32) {}
    /// Whether the common rate has changed since a former generation.
    #[inline]
    fn has_changed_since(&self, _former: u32, _present: u32) -> bool {
        false
    }

    /// Counts a rate of a group's own, or no longer counts it.
    #[inline]
    fn count_own(&mut self, _before: bool, _after: bool) {}
    /// Whether a group has a rate of its own, or waits for a token.
    #[inline]
    fn needs_time(&self) -> bool {
        false
    }
}

impl KeepRates for () {
    type OfGroup = ();
}

/// The rates of groups, in an array with a place for each group.
#[doc(hidden)]
#[derive(Debug)]
pub struct KeptRates<A, N> {
    rates: A,
    /// When the rates of groups allow their next runs.
    resting: Delays<N>,
    leaving: List<u32>,
    /// How many groups have a rate of their own.
    own: usize,
    /// The generation of the common limits with which the common rate last changed.
    changed: u32,
}

impl<const MAX: usize> ConstDefault for KeptRates<[Rate; MAX], FixedNodes<MAX, u8>> {
    const DEFAULT: Self = Self {
        rates: ConstDefault::DEFAULT,
        resting: Delays::new(FixedNodes::new()),
        leaving: List::new(),
        own: 0,
        changed: 0,
    };
}

#[cfg(feature = "alloc")]
impl Default for KeptRates<Segments<Rate, 64>, GrowableNodes> {
    fn default() -> Self {
        Self {
            rates: ConstDefault::DEFAULT,
            resting: Delays::new(GrowableNodes::new()),
            leaving: List::new(),
            own: 0,
            changed: 0,
        }
    }
}

impl<A: Array<Item = Rate>, N: Nodes> KeepRates for KeptRates<A, N> {
    type OfGroup = Stored<RateOfGroup>;

    fn get(&self, group: SlotId) -> Option<&Rate> {
        self.rates.get(group.index())
    }

    fn get_mut(&mut self, group: SlotId) -> Option<&mut Rate> {
        self.rates.get_mut(group.index())
    }

    fn begin(&mut self, group: SlotId, limit: RateLimit) {
        if let Some(rate) = self.rates.slot(group.index()) {
            *rate = Rate::full(limit);
        }
    }

    fn rest(&mut self, group: SlotId, until: Instant) {
        let _ = self.resting.schedule(group, Window::exact(until));
    }

    fn wake(&mut self, group: SlotId) {
        if !self.resting.is_empty() {
            let _ = self.resting.remove(group);
        }
    }

    fn take_due(&mut self, now: Instant) -> Option<SlotId> {
        let (group, _) = self.resting.take_due(SlotId::NONE, now)?;
        Some(group)
    }

    fn earliest(&self) -> Option<Instant> {
        self.resting.earliest()
    }

    fn is_due(&self, now: Instant) -> bool {
        self.resting.is_due(now)
    }

    fn leaving(&mut self) -> Option<&mut List<u32>> {
        Some(&mut self.leaving)
    }

    fn first_leaving(&self) -> Option<SlotId> {
        self.leaving.first()
    }

    fn note_change(&mut self, generation: u32) {
        self.changed = generation;
    }

    fn has_changed_since(&self, former: u32, present: u32) -> bool {
        present.wrapping_sub(former) > present.wrapping_sub(self.changed)
    }

    fn count_own(&mut self, before: bool, after: bool) {
        self.own += usize::from(after);
        self.own -= usize::from(before);
    }

    fn needs_time(&self) -> bool {
        self.own > 0 || !self.resting.is_empty()
    }
}

/// What a group knows of its rate, in a queue whose groups may have one.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default)]
pub struct RateOfGroup {
    /// The group has a rate.
    pub(super) exists: bool,
    /// The rate is the group's own.
    pub(super) is_own: bool,
    /// The rate does not allow a run now. It has a deadline while the group has ready keys.
    pub(super) is_resting: bool,
}
