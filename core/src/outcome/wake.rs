//! The outcome of an operation, and the wake that it needs.

use core::fmt;
use core::ops::BitOr;

/// The outcome of an operation, and the wake that the runtime has to send.
///
/// A look that returns [`Wait`](crate::binding::Next::Wait) can return a wake that is meant for the
/// same call. So register the call as a sleeper before you send the wake, or look again after it.
///
/// # Examples
///
/// ```
/// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
/// use requeue_core::binding::Wake;
///
/// let mut queue: Queue<u8, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let effect = queue.add(7, Instant::EPOCH);
/// assert_eq!(effect.value, Ok(Added::Ready));
/// assert_eq!(effect.wake, Wake::NONE, "no getter sleeps yet");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "`wake` has to be sent to the sleeping getters"]
pub struct Effect<T> {
    /// The outcome.
    pub value: T,
    /// The wake to send, after the lock is released.
    pub wake: Wake,
}

impl<T> Effect<T> {
    /// Changes the outcome and keeps the wake.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::Effect;
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// // The wake is kept while the outcome is narrowed down.
    /// let Effect { value: is_taken, wake: _ } =
    ///     queue.add("node-7", Instant::EPOCH).map(|added| added.is_ok());
    /// assert!(is_taken);
    /// ```
    #[inline]
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Effect<U> {
        Effect {
            value: change(self.value),
            wake: self.wake,
        }
    }
}

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
/// let _ = queue.poll_get(now, &mut getter);
///
/// assert_eq!(queue.add("node-7", now).wake, Wake::ONE);
/// // The sleeper has been woken already.
/// assert_eq!(queue.add("node-8", now).wake, Wake::NONE);
/// assert_eq!(queue.shut_down(now).wake, Wake::ALL);
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
