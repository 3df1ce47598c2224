//! Adds that wait until no more come.

use core::time::Duration;

use crate::{Instant, RateLimiter};

/// Lets a queue debounce adds: [`add_debounced`](crate::Session::add_debounced) exists with this
/// limiter. The delays are those of another limiter.
///
/// What it keeps for a key is its present burst: when that began, and the deadline that it has set.
///
/// # Cost
///
/// That of the inner limiter. 24 bytes per key.
///
/// # Examples
///
/// Five events 50 ms apart make one run, 100 ms after the last:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, WithDebounce};
///
/// let (quiet, max) = (Duration::from_millis(100), Duration::from_secs(1));
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(WithDebounce::new(NoLimit));
/// let mut now = Instant::EPOCH;
/// for event in 0..5 {
///     now = Instant::EPOCH + Duration::from_millis(50) * event;
///     let _ = queue.at(now).add_debounced("etc/hosts", quiet, max);
///     assert!(queue.at(now).try_get().is_none());
/// }
/// assert_eq!(queue.next_deadline(), Some(now + quiet));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WithDebounce<L> {
    inner: L,
}

/// What [`WithDebounce`] keeps for one key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Debounced<R> {
    inner: R,
    burst: Burst,
}

/// Adds of a key that have become one deadline, which has not come.
///
/// It says something only while the key waits for that very deadline. So nothing has to end it when
/// the deadline comes, is taken back, or moves to another time, and it is no reason to hold a key.
/// Another call that asks for the same time ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Burst {
    /// When the first of them came.
    pub(crate) first: Instant,
    /// The deadline that they have set: the epoch, which is none, if the key had an earlier one, or
    /// if another call has asked for it too.
    pub(crate) due: Instant,
}

/// A limiter that keeps the present burst of each key: [`WithDebounce`], or one around it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Added, Debounces, Fixed, Instant, Queue};
///
/// fn changed<L: Debounces>(queue: &mut Queue<u16, Fixed<4>, L>, key: u16, now: Instant) {
///     let quiet = Duration::from_millis(100);
///     let _ = queue.at(now).add_debounced(key, quiet, quiet * 10);
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not debounce adds",
    note = "put `WithDebounce` around the queue's limiter"
)]
pub trait Debounces: RateLimiter {
    /// Returns the burst that a record keeps.
    fn burst(record: &mut Self::Record) -> &mut Burst;
}

impl Burst {
    /// Returns the same with every time changed, for tests that compare times from different
    /// starts.
    #[doc(hidden)]
    #[must_use]
    pub fn map(self, change: impl Fn(Instant) -> Instant) -> Self {
        Self {
            first: change(self.first),
            due: change(self.due),
        }
    }

    /// Whether the deadline for which the key waits is the burst's own.
    pub(crate) fn goes_on(&self, pending: Option<Instant>) -> bool {
        pending == Some(self.due)
    }

    /// Takes in an add. Returns the deadline that it asks for.
    pub(crate) fn add(&mut self, goes_on: bool, limits: [Duration; 2], now: Instant) -> Instant {
        if !goes_on {
            self.first = now;
        }
        let [quiet, max] = limits;
        (now + quiet).min(self.first + max)
    }
}

impl<R> Debounced<R> {
    /// Changes both parts, for tests that compare times from different starts.
    #[doc(hidden)]
    #[must_use]
    pub fn map(self, inner: impl FnOnce(R) -> R, burst: impl FnOnce(Burst) -> Burst) -> Self {
        Self {
            inner: inner(self.inner),
            burst: burst(self.burst),
        }
    }
}

impl<L> WithDebounce<L> {
    /// Creates a limiter with the delays of `inner`.
    pub const fn new(inner: L) -> Self {
        Self { inner }
    }
}

impl<L: RateLimiter> Debounces for WithDebounce<L> {
    fn burst(record: &mut Self::Record) -> &mut Burst {
        &mut record.burst
    }
}

impl<L: RateLimiter> RateLimiter for WithDebounce<L> {
    type Record = Debounced<L::Record>;

    fn when(&mut self, record: &mut Self::Record, now: Instant) -> Duration {
        self.inner.when(&mut record.inner, now)
    }

    fn requeues(&self, record: &Self::Record) -> u32 {
        self.inner.requeues(&record.inner)
    }

    fn set_requeues(&self, record: &mut Self::Record, requeues: u32) {
        self.inner.set_requeues(&mut record.inner, requeues);
    }

    const HOLDS: bool = L::HOLDS;

    #[inline]
    fn needs_time(&self) -> bool {
        self.inner.needs_time()
    }

    #[inline]
    fn held_until(&self, record: &Self::Record) -> Instant {
        self.inner.held_until(&record.inner)
    }

    #[inline]
    fn ended(&mut self, record: &mut Self::Record, now: Instant) {
        self.inner.ended(&mut record.inner, now);
    }

    #[inline]
    fn note_deadline(&self, record: &mut Self::Record, due: Instant) {
        self.inner.note_deadline(&mut record.inner, due);
        if record.burst.due == due {
            record.burst.due = Instant::EPOCH;
        }
    }

    /// A burst goes on: it has nothing to do with failures.
    #[inline]
    fn forget(&self, record: &mut Self::Record) {
        self.inner.forget(&mut record.inner);
    }

    #[inline]
    fn is_blank(&self, record: &Self::Record, now: Instant) -> bool {
        self.inner.is_blank(&record.inner, now)
    }

    delegate_pace!(L, self, self.inner);
}
