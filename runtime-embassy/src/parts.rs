//! The parts of a queue that are seldom chosen.

use core::marker::PhantomData;

use requeue_core::binding::Clock;
use requeue_core::{Index, Metrics, NoMetrics, Plain, Priorities};

use crate::clock::EmbassyClock;

/// The parts of a [`WorkQueue`](crate::WorkQueue) that are seldom chosen: [`With`] names them.
///
/// # Examples
///
/// A function that takes a queue with any of them:
///
/// ```
/// use requeue_embassy::core::{Exponential, NoMetrics, default_item_based};
/// use requeue_embassy::raw::NoopRawMutex;
/// use requeue_embassy::{Parts, With, WorkQueue};
///
/// fn read_all<const N: usize, P: Parts>(
///     queue: &WorkQueue<NoopRawMutex, u16, N, Exponential, 3, P>,
/// ) -> usize {
///     queue.add_many(1..=16, |_| {}).ready
/// }
///
/// let small: WorkQueue<NoopRawMutex, u16, 8> = WorkQueue::new(default_item_based());
/// assert_eq!(read_all(&small), 8);
/// let large: WorkQueue<_, _, 300, _, 3, With<NoMetrics, u16>> =
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
    /// How many priority levels there are, whether keys belong to groups, and whether the queue
    /// can have a policy.
    type Priorities: Priorities;
}

/// The [`Parts`] of a queue: metrics, slot numbers, clock and priorities, in this order.
///
/// # Examples
///
/// ```
/// use requeue_embassy::core::{
///     Exponential, Levels, NoMetrics, Policy, WithPolicy, default_item_based,
/// };
/// use requeue_embassy::raw::CriticalSectionRawMutex as Raw;
/// use requeue_embassy::{EmbassyClock, Queue, With, WorkQueue};
///
/// // More than 255 keys.
/// type Large = WorkQueue<Raw, u16, 300, Exponential, 3, With<NoMetrics, u16>>;
/// static LARGE: Large = WorkQueue::new(default_item_based());
///
/// // Two priority levels.
/// type Urgent = With<NoMetrics, u8, EmbassyClock, Levels<2>>;
/// static ALARMS: WorkQueue<Raw, u16, 16, Exponential, 3, Urgent> =
///     WorkQueue::new(default_item_based());
///
/// // A job that failed does not run before its backoff is over, though its line is raised again.
/// type Held = With<NoMetrics, u8, EmbassyClock, WithPolicy>;
/// static READINGS: WorkQueue<Raw, u16, 16, Exponential, 3, Held> =
///     WorkQueue::from_queue(
///         Queue::new(default_item_based()).with_policy(Policy::new().hold_failures()),
///         EmbassyClock,
///     );
/// # let _ = READINGS.add(1);
/// # let _ = LARGE.add(1);
/// # let _ = ALARMS.add(1);
/// ```
#[derive(Debug)]
pub struct With<M = NoMetrics, I = u8, C = EmbassyClock, P = Plain>(PhantomData<Named<M, I, C, P>>);

/// Names the parameters. A function, so that `With` is `Send` and `Sync` whatever they are.
type Named<M, I, C, P> = fn() -> (M, I, C, P);

impl<M: Metrics, I: Index, C: Clock, P: Priorities> Parts for With<M, I, C, P> {
    type Metrics = M;
    type Index = I;
    type Clock = C;
    type Priorities = P;
}
