//! Slot numbers, and the integer types that store them. Owns the number that means *none*; never
//! checks that a slot exists.

use crate::sealed::Sealed;

/// The number of a slot: small, dense, reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct SlotId(pub(crate) u32);

impl SlotId {
    /// No slot: no storage is as large.
    pub(crate) const NONE: Self = Self(u32::MAX);

    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }

    /// Slot numbers are less than `u32::MAX` in every storage, so nothing is truncated.
    pub(crate) const fn from_index(index: usize) -> Self {
        Self(index as u32)
    }
}

/// An integer that a [`Fixed`](crate::storage::Fixed) storage uses for its slot numbers: `u8`,
/// `u16` or `u32`.
///
/// A queue stores seven of them per key, so a small one saves room: `u8` is enough for 255 keys,
/// `u16` for 65,535. The largest value means "none". The trait is sealed.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::Queue;
///
/// let small: Queue<u16, Plain, NoLimit, Fixed<200>> = Queue::new(NoLimit);
/// let large: Queue<u16, Plain, NoLimit, Fixed<200, u16>> = Queue::new(NoLimit);
/// assert!(size_of_val(&large) - size_of_val(&small) >= 7 * 200);
/// ```
pub trait Index: Copy + PartialEq + core::fmt::Debug + Sealed + 'static {
    /// No slot.
    #[doc(hidden)]
    const NONE: Self;
    /// How many slots can be numbered.
    #[doc(hidden)]
    const SLOTS_MAX: usize;
    #[doc(hidden)]
    fn new(id: SlotId) -> Self;
    #[doc(hidden)]
    fn get(self) -> Option<SlotId>;
    /// As [`get`](Self::get), if there certainly is a slot.
    #[doc(hidden)]
    fn slot(self) -> SlotId;
}

macro_rules! index {
    ($($integer:ty)*) => {$(
        impl Sealed for $integer {}

        impl Index for $integer {
            const NONE: Self = <$integer>::MAX;
            const SLOTS_MAX: usize = <$integer>::MAX as usize;

            #[inline]
            fn new(id: SlotId) -> Self {
                id.0 as $integer
            }

            #[inline]
            fn get(self) -> Option<SlotId> {
                (self != Self::NONE).then_some(self.slot())
            }

            #[inline]
            fn slot(self) -> SlotId {
                SlotId(self as u32)
            }
        }
    )*};
}

index!(u8 u16 u32);
