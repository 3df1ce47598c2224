//! The calls to wake.

use core::fmt;
use core::ops::BitOr;

/// The set of waiting calls to wake.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, Queue};
/// use requeue_core::binding::{Getter, Wake};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// // A worker finds nothing and goes to sleep.
/// let mut getter = Getter::new();
/// let _ = queue.at(now).poll_get(&mut getter);
///
/// let _ = queue.at(now).add("node-7");
/// assert_eq!(queue.at(now).close(), Wake::ONE);
/// // The sleeper has been woken already.
/// let _ = queue.at(now).add("node-8");
/// assert_eq!(queue.at(now).close(), Wake::NONE);
/// queue.at(now).shut_down();
/// assert_eq!(queue.at(now).close(), Wake::ALL);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a sleeper that is not woken sleeps on"]
pub struct Wake(u32);

impl Wake {
    /// No call.
    pub const NONE: Self = Self(0);
    /// Any one sleeping getter. It wakes the next one if there is more to do.
    pub const ONE: Self = Self(1);
    /// The first call that [waits for room](crate::Queue::poll_add). It wakes the next one if there
    /// is more room.
    pub const ROOM: Self = Self(1 << 1);
    /// Every call that waits for a state of the queue: [`poll_idle`](crate::Queue::poll_idle) and
    /// its neighbours.
    pub const WATCHERS: Self = Self(1 << 2);
    /// Every call.
    pub const ALL: Self = Self(u32::MAX);

    /// Returns whether these calls are among those to wake. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::binding::Wake;
    ///
    /// assert!(Wake::ALL.contains(Wake::ROOM));
    /// assert!(!Wake::ONE.contains(Wake::ROOM));
    /// assert!((Wake::ONE | Wake::ROOM).contains(Wake::ROOM));
    /// ```
    #[inline]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// What is left to wake after a call of a kind, of which only the first may be meant.
    pub(crate) fn without_first(self, kind: Self) -> Self {
        match self {
            Self::ALL => self,
            _ if kind == Self::WATCHERS => self,
            _ => Self(self.0 & !kind.0),
        }
    }
}

impl BitOr for Wake {
    type Output = Self;

    #[inline]
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl fmt::Debug for Wake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const PARTS: [(Wake, &str); 3] = [
            (Wake::ONE, "ONE"),
            (Wake::ROOM, "ROOM"),
            (Wake::WATCHERS, "WATCHERS"),
        ];
        match *self {
            Self::NONE => return f.write_str("NONE"),
            Self::ALL => return f.write_str("ALL"),
            _ => {}
        }
        let mut separator = "";
        for (part, name) in PARTS {
            if self.contains(part) {
                write!(f, "{separator}{name}")?;
                separator = " | ";
            }
        }
        Ok(())
    }
}
