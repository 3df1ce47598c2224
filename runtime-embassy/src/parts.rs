//! The parts of a queue that are seldom chosen.

use core::marker::PhantomData;

use requeue_core::binding::Clock;
use requeue_core::metrics::{Metrics, NoMetrics};
use requeue_core::storage::Index;

use crate::clock::EmbassyClock;

/// The parts of a [`WorkQueue`](crate::WorkQueue) that are seldom chosen: [`With`] names them.
///
/// # Examples
///
/// A function that takes a queue with any of them:
///
/// ```
/// use requeue_embassy::limiter::{Exponential, default_item_based};
/// use requeue_embassy::metrics::NoMetrics;
/// use requeue_embassy::priority::Plain;
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{Parts, With, WorkQueue};
///
/// fn read_all<const N: usize, X: Parts>(
///     queue: &WorkQueue<NoopRawMutex, u16, N, Plain, Exponential, 3, X>,
/// ) -> usize {
///     queue.add_many(1..=16, |_| {}).ready
/// }
///
/// let small: WorkQueue<NoopRawMutex, u16, 8> = WorkQueue::new(default_item_based());
/// assert_eq!(read_all(&small), 8);
/// let large: WorkQueue<_, _, 300, Plain, _, 3, With<NoMetrics, u16>> =
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

/// The [`Parts`] of a queue: metrics, slot numbers and clock, in this order.
///
/// # Examples
///
/// ```
/// use requeue_embassy::limiter::{Exponential, default_item_based};
/// use requeue_embassy::metrics::NoMetrics;
/// use requeue_embassy::priority::{Levels, Plain, WithPolicy};
/// use requeue_embassy::Policy;
/// use requeue_embassy::raw::CriticalSectionRawMutex as Raw;
/// use requeue_embassy::{EmbassyClock, Queue, With, WorkQueue};
///
/// // More than 255 keys.
/// type Large = WorkQueue<Raw, u16, 300, Plain, Exponential, 3, With<NoMetrics, u16>>;
/// static LARGE: Large = WorkQueue::new(default_item_based());
///
/// // Two priority levels.
/// static ALARMS: WorkQueue<Raw, u16, 16, Levels<2>> =
///     WorkQueue::new(default_item_based());
///
/// // A job that failed does not run before its backoff is over, though its line is raised again.
/// static READINGS: WorkQueue<Raw, u16, 16, WithPolicy> =
///     WorkQueue::from_queue(
///         Queue::new(default_item_based()).with_policy(Policy::new().hold_failures()),
///         EmbassyClock,
///     );
/// # let _ = READINGS.add(1);
/// # let _ = LARGE.add(1);
/// # let _ = ALARMS.add(1);
/// ```
#[derive(Debug)]
pub struct With<M = NoMetrics, I = u8, C = EmbassyClock>(PhantomData<Named<M, I, C>>);

/// Names the parameters. A function, so that `With` is `Send` and `Sync` whatever they are.
type Named<M, I, C> = fn() -> (M, I, C);

impl<M: Metrics, I: Index, C: Clock> Parts for With<M, I, C> {
    type Metrics = M;
    type Index = I;
    type Clock = C;
}
