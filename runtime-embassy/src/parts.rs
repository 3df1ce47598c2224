//! The parts of a queue that are seldom chosen. Owns their defaults.

use requeue_core::binding::{Clock, Index};
use requeue_core::metrics::Metrics;

use crate::clock::QueueClock;

/// The parts of a [`WorkQueue`](crate::WorkQueue) that are seldom chosen, as a tuple: metrics, slot
/// numbers and clock. `()` are the defaults, and `(M,)` and `(M, I)` leave the rest at them.
///
/// | part | default | to choose |
/// |---|---|---|
/// | [`Metrics`](Self::Metrics) | `()`: none | a type of yours that is [`Metrics`] |
/// | [`Index`](Self::Index) | `u8`: up to 255 keys | `u16` for more |
/// | [`Clock`](Self::Clock) | [`QueueClock`] | [`ManualClock`](crate::ManualClock) in tests |
///
/// # Examples
///
/// ```
/// use requeue::embassy::limiter::{Exponential, default_item_based};
/// use requeue::embassy::priority::{Levels, Plain, WithPolicy};
/// use requeue::embassy::raw::CriticalSectionRawMutex as Raw;
/// use requeue::embassy::{Policy, Queue, QueueClock, WorkQueue};
///
/// // More than 255 keys.
/// static LARGE: WorkQueue<Raw, u16, 300, Plain, Exponential, 3, ((), u16)> =
///     WorkQueue::new(default_item_based());
///
/// // Two priority levels.
/// static ALARMS: WorkQueue<Raw, u16, 16, Levels<2>> =
///     WorkQueue::new(default_item_based());
///
/// // A job that failed does not run before its backoff is over, though its line is raised again.
/// static READINGS: WorkQueue<Raw, u16, 16, WithPolicy> =
///     WorkQueue::from_queue(
///         Queue::new(default_item_based()).with_policy(Policy::new().hold_failures()),
///         QueueClock,
///     );
/// # let _ = READINGS.add(1);
/// # let _ = LARGE.add(1);
/// # let _ = ALARMS.add(1);
/// ```
///
/// A function that takes a queue with any of them:
///
/// ```
/// use requeue::embassy::binding::Parts;
/// use requeue::embassy::limiter::{Exponential, default_item_based};
/// use requeue::embassy::priority::Plain;
/// use requeue::embassy::raw::NoopRawMutex;
/// use requeue::embassy::WorkQueue;
///
/// fn read_all<const N: usize, X: Parts>(
///     queue: &WorkQueue<NoopRawMutex, u16, N, Plain, Exponential, 3, X>,
/// ) -> usize {
///     queue.add_many(1..=16, |_| {}).ready
/// }
///
/// let small: WorkQueue<NoopRawMutex, u16, 8> = WorkQueue::new(default_item_based());
/// assert_eq!(read_all(&small), 8);
/// let large: WorkQueue<_, _, 300, Plain, _, 3, ((), u16)> =
///     WorkQueue::new(default_item_based());
/// assert_eq!(read_all(&large), 16);
/// ```
pub trait Parts {
    /// What receives the figures.
    type Metrics: Metrics;
    /// Holds slot numbers: `u8` up to 255 keys, `u16` beyond.
    type Index: Index;
    /// The clock.
    type Clock: Clock;
}

impl Parts for () {
    type Metrics = ();
    type Index = u8;
    type Clock = QueueClock;
}

impl<M: Metrics> Parts for (M,) {
    type Metrics = M;
    type Index = u8;
    type Clock = QueueClock;
}

impl<M: Metrics, I: Index> Parts for (M, I) {
    type Metrics = M;
    type Index = I;
    type Clock = QueueClock;
}

impl<M: Metrics, I: Index, C: Clock> Parts for (M, I, C) {
    type Metrics = M;
    type Index = I;
    type Clock = C;
}
