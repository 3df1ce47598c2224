//! The queue for microcontrollers: its type, how it is made, and how keys are added and taken. Owns
//! the choice of lock, clock and storage; what an operation does is core's.

use core::hash::Hash;
use core::marker::PhantomData;

use embassy_sync::blocking_mutex::raw::{NoopRawMutex, RawMutex};
use requeue_core::Queue;
use requeue_core::binding::{AsShared, FixedWaitList, Host, State, Timer};
use requeue_core::limiter::{Exponential, NoLimit, RateLimiter, default_item_based};
use requeue_core::priority::{Groups, Plain, Priorities, WithSlack, WithSuspension};
use requeue_core::storage::Fixed;

use crate::clock::QueueClock;
use crate::parts::Parts;
use crate::sync::Locked;

/// Writes an `impl` block of the queue whose parts `X` are of this kind.
macro_rules! methods {
    ($(#[$doc:meta])* [$($parts:tt)+] $($methods:tt)+) => {
        $(#[$doc])*
        impl<
            R: RawMutex,
            K: Eq + Hash,
            const N: usize,
            P: Priorities,
            L: RateLimiter,
            const WAITERS: usize,
            X: $($parts)+,
        > WorkQueue<R, K, N, P, L, WAITERS, X>
        {
            $($methods)+
        }
    };
}
pub(crate) use methods;

/// Writes a part of core's methods that do not wait.
macro_rules! face {
    ($part:ident) => {
        requeue_core::queue_face! {
            $part: "requeue::embassy", "# let queue = requeue::embassy::example();",
            "# let queue = requeue::embassy::example_groups();", K, P, Stored<N, X>
        }
    };
}
pub(crate) use face;

/// Writes a part of core's methods that wait.
macro_rules! face_async {
    ($part:ident, $($rest:tt)+) => {
        requeue_core::queue_face! {
            $part: "requeue::embassy",
            "# use embassy_futures::join::join;\n\
             # embassy_futures::block_on(async {\n\
             # let queue = requeue::embassy::example();",
            "# });", $($rest)+
        }
    };
}
pub(crate) use face_async;

/// Where a [`WorkQueue`] keeps its keys.
pub(crate) type Stored<const N: usize, X> = Fixed<N, <X as Parts>::Index>;

/// The types that a queue on Embassy is made of.
#[derive(Debug)]
pub struct EmbassyHost<R, K, const N: usize, P, L, const WAITERS: usize, X>(
    PhantomData<(R, K, P, L, X)>,
);

impl<R, K, const N: usize, P, L, const WAITERS: usize, X> Host
    for EmbassyHost<R, K, N, P, L, WAITERS, X>
where
    R: RawMutex,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    X: Parts,
{
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = Stored<N, X>;
    type Metrics = X::Metrics;
    type Waiters = FixedWaitList<WAITERS>;
    type Clock = X::Clock;
    type Lock = Locked<R, State<Self>>;
}

/// The queue of core in a [`WorkQueue`].
pub(crate) type Shared<R, K, const N: usize, P, L, const WAITERS: usize, X> =
    requeue_core::binding::Shared<EmbassyHost<R, K, N, P, L, WAITERS, X>>;

/// A key that [`WorkQueue::get`] returned. Its methods are those of core's
/// [`Guard`](requeue_core::Guard).
///
/// **A guard that is dropped counts as failed.** Its key is retried when its limiter says so. So a
/// `select` or a timeout that drops a future loses nothing.
///
/// # Examples
///
/// ```
/// use requeue::embassy::limiter::default_item_based;
/// use requeue::embassy::raw::NoopRawMutex;
/// use requeue::embassy::{Finished, Guard, WorkQueue};
///
/// fn read(sensor: Guard<'_, NoopRawMutex, u16, 16>) -> Finished {
///     let replies = *sensor != 17;
///     if replies { sensor.success() } else { sensor.retry() }
/// }
///
/// let queue: WorkQueue<NoopRawMutex, u16, 16> = WorkQueue::new(default_item_based());
/// queue.add_many([17, 18], |_| {});
/// assert!(matches!(read(queue.try_get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(read(queue.try_get().unwrap()), Finished::Idle);
/// ```
pub type Guard<
    'q,
    R,
    K,
    const N: usize,
    P = Plain,
    L = Exponential,
    const WAITERS: usize = 3,
    X = (),
> = requeue_core::Guard<
    EmbassyHost<R, K, N, P, L, WAITERS, X>,
    &'q Shared<R, K, N, P, L, WAITERS, X>,
>;

/// A keyed work queue for tasks on a microcontroller, made for a `static`.
///
/// | parameter | |
/// |---|---|
/// | `R` | the kind of mutex, as in embassy-sync; for interrupts, [`CriticalSectionRawMutex`] |
/// | `K` | the keys: small and `Clone`, an enum or an integer |
/// | `N` | how many keys it has room for: the room is in the queue, so there is no limit at run time |
/// | `P` | priority levels, aging, groups, or a policy: see [`Priorities`] |
/// | `L` | what decides how long a failed key waits |
/// | `WAITERS` | how many calls may wait at the same time, for keys and for the drain |
/// | `X` | metrics, slot numbers and clock: a tuple, see [`Parts`] |
///
/// Producers call [`add`](Self::add) and its relatives. An event source that only adds keys takes a
/// `&'static dyn Producer<K>`, which `&QUEUE` is. Workers await [`get`](Self::get), or
/// [`run`](Self::run), which is a worker's whole loop.
///
/// A call that waits needs one of `WAITERS` places. If none is free it returns
/// [`WaitError::TooManyWaiters`](crate::WaitError::TooManyWaiters), or
/// [`Rejected::TooManyWaiters`](crate::Rejected::TooManyWaiters) if it adds, which is logged if the
/// feature `log` is on. This is why calls that wait for a state return a `Result` here, and plain
/// values on threads and Tokio.
///
/// There is no background task: of the tasks that wait in [`get`](Self::get), one has set a timer
/// for the earliest deadline, the others none. An operation wakes a task only if one waits, after
/// it has unlocked the queue. Tasks are woken in the order in which they began to wait.
///
/// # From an interrupt
///
/// Every method that does not wait may be called from an interrupt handler, if `R` is a critical
/// section. None allocates. Interrupts are disabled for one operation.
/// [`add`](Self::add) takes O(1) expected, and at most `N` comparisons of keys if all of them share
/// a hash. An operation makes at most two keys ready whose deadlines have passed, at O(log `N`)
/// each. The waker of a waiting task is taken in a section of its own, O(`WAITERS`), and called
/// after it.
///
/// # Panics
///
/// If a key's own code calls the queue. No method panics by itself.
///
/// [`CriticalSectionRawMutex`]: https://docs.rs/embassy-sync/0.8/embassy_sync/blocking_mutex/raw/struct.CriticalSectionRawMutex.html
/// # Examples
///
/// ```
/// use requeue::embassy::limiter::default_item_based;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::WorkQueue;
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Job {
///     Read(u8),
///     Upload,
/// }
///
/// static JOBS: WorkQueue<CriticalSectionRawMutex, Job, 16> =
///     WorkQueue::new(default_item_based());
///
/// fn on_data_ready() {
///     // An interrupt handler: ten edges make one run.
///     let _ = JOBS.add(Job::Read(3));
/// }
///
/// async fn worker() {
///     while let Ok(job) = JOBS.get().await {
///         let read = matches!(*job, Job::Read(_));
///         job.success();
///         if read {
///             let _ = JOBS.add(Job::Upload);
///         }
///     }
/// }
///
/// on_data_ready();
/// on_data_ready();
/// # let mut worker = core::pin::pin!(worker());
/// # assert!(embassy_futures::poll_once(worker.as_mut()).is_pending());
/// # assert!(!JOBS.contains(&Job::Read(3)) && !JOBS.contains(&Job::Upload));
/// ```
///
/// With priorities, here two, alarms are handed out first.
///
/// ```
/// use requeue::embassy::limiter::default_item_based;
/// use requeue::embassy::priority::Levels;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::{AddOptions, WorkQueue};
///
/// type Jobs = WorkQueue<CriticalSectionRawMutex, u8, 16, Levels<2>>;
/// static JOBS: Jobs = WorkQueue::new(default_item_based());
/// const ALARM: AddOptions = AddOptions { priority: Some(1), ..AddOptions::new() };
///
/// let _ = JOBS.add(3);
/// JOBS.add_with(9, ALARM).unwrap();
/// let first = JOBS.try_get().unwrap();
/// assert_eq!((*first, first.priority()), (9, 1));
/// ```
///
/// With [`Groups`](requeue_core::priority::Groups), here as many as four buses, at most one sensor
/// of a bus is read at a time. Limits are set when the program starts.
///
/// ```
/// use requeue::embassy::limiter::default_item_based;
/// use requeue::embassy::priority::{Groups, Plain};
/// use requeue::embassy::GroupLimits;
/// use requeue::embassy::raw::CriticalSectionRawMutex;
/// use requeue::embassy::{QueueClock, Queue, WorkQueue};
///
/// #[derive(Clone, Debug, PartialEq, Eq, Hash)]
/// struct Sensor { bus: u8, address: u8 }
///
/// type Sensors = WorkQueue<CriticalSectionRawMutex, Sensor, 16, Groups<u8, Plain, 4>>;
/// static READINGS: Sensors = WorkQueue::from_queue(
///     Queue::with_groups(default_item_based(), (), |sensor: &Sensor| sensor.bus),
///     QueueClock,
/// );
///
/// READINGS.limit_groups(GroupLimits::new().max_active(1));
/// for (bus, address) in [(1, 40), (1, 41), (2, 40)] {
///     let _ = READINGS.add(Sensor { bus, address });
/// }
/// let first = READINGS.try_get().unwrap();
/// let other = READINGS.try_get().unwrap();
/// assert_eq!((first.bus, other.bus), (1, 2));
/// assert!(READINGS.try_get().is_none(), "both buses are in use");
/// first.success();
/// assert_eq!(READINGS.try_get().unwrap().address, 41);
/// ```
pub struct WorkQueue<
    R,
    K,
    const N: usize,
    P = Plain,
    L = Exponential,
    const WAITERS: usize = 3,
    X = (),
> where
    R: RawMutex,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    X: Parts,
{
    pub(crate) shared: Shared<R, K, N, P, L, WAITERS, X>,
}

/// Making a queue.
impl<R, K, const N: usize, P, L, const WAITERS: usize, X> WorkQueue<R, K, N, P, L, WAITERS, X>
where
    R: RawMutex,
    K: Eq + Hash,
    P: Priorities<Naming<K> = ()>,
    L: RateLimiter,
    X: Parts<Metrics = (), Clock = QueueClock>,
{
    /// Creates an empty queue on embassy-time's clock. Can be used in a `static`. For other parts
    /// see [`from_queue`](Self::from_queue).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::embassy::limiter::{DefaultController, default_controller, default_item_based};
    /// use requeue::embassy::priority::Plain;
    /// use requeue::embassy::raw::CriticalSectionRawMutex;
    /// use requeue::embassy::WorkQueue;
    ///
    /// // 1 ms doubled per failure for each key.
    /// static PLAIN: WorkQueue<CriticalSectionRawMutex, u16, 16> =
    ///     WorkQueue::new(default_item_based());
    /// // And a bucket for all keys together, and five calls that may wait.
    /// static MORE: WorkQueue<CriticalSectionRawMutex, u16, 200, Plain, DefaultController, 5> =
    ///     WorkQueue::new(default_controller());
    /// # let _ = PLAIN.add(1);
    /// # let _ = MORE.add(1);
    /// ```
    #[doc(alias = "NewRateLimitingQueue")]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub const fn new(limiter: L) -> Self {
        Self::from_queue(Queue::new(limiter), QueueClock)
    }
}

/// Making a queue from parts.
impl<R, K, const N: usize, P, L, const WAITERS: usize, X> WorkQueue<R, K, N, P, L, WAITERS, X>
where
    R: RawMutex,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    X: Parts,
{
    /// Creates a queue of chosen parts with a clock: a [`ManualClock`](crate::ManualClock) for
    /// tests.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::embassy::limiter::NoLimit;
    /// use requeue::embassy::metrics::Metrics;
    /// use requeue::embassy::priority::Plain;
    /// use requeue::embassy::raw::CriticalSectionRawMutex;
    /// use requeue::embassy::{QueueClock, Queue, WorkQueue};
    ///
    /// struct Deepest(usize);
    ///
    /// impl Metrics for Deepest {
    ///     type Timestamps = ();
    ///
    ///     fn depth(&mut self, keys: usize) {
    ///         self.0 = self.0.max(keys);
    ///     }
    /// }
    ///
    /// type Keys = WorkQueue<CriticalSectionRawMutex, u16, 16, Plain, NoLimit, 3, (Deepest,)>;
    /// static QUEUE: Keys =
    ///     WorkQueue::from_queue(Queue::with_metrics(NoLimit, Deepest(0)), QueueClock);
    /// # let _ = QUEUE.add(1);
    /// ```
    pub const fn from_queue(
        queue: Queue<K, P, L, Stored<N, X>, X::Metrics>,
        clock: X::Clock,
    ) -> Self {
        let state = State::new(queue, FixedWaitList::new());
        Self {
            shared: Shared::<R, K, N, P, L, WAITERS, X>::new(Locked::new(state), clock),
        }
    }
}

requeue_core::queue_face! {
    shared: [
        R: RawMutex, K: Eq + Hash, const N: usize, P: Priorities, L: RateLimiter,
        const WAITERS: usize, X: Parts
    ]
    WorkQueue<R, K, N, P, L, WAITERS, X>, EmbassyHost<R, K, N, P, L, WAITERS, X>, K
}

methods! {
    /// Adding keys. None of these waits.
    [Parts]
    face!(adding);
    face!(adding_each);
}

methods! {
    /// Adding keys, and waiting for room.
    [Parts<Clock: Timer>]
    face_async!(adding_async, K);
}

methods! {
    /// Taking keys, and waiting for them.
    [Parts<Clock: Timer>]
    face_async!(taking_async, K, Self::as_shared, Guard<'_, R, K, N, P, L, WAITERS, X>);
}

methods! {
    /// Taking keys without waiting.
    [Parts]
    requeue_core::queue_face! {
        taking: "requeue::embassy", "# let queue = requeue::embassy::example();", K, Self::as_shared,
        Guard<'_, R, K, N, P, L, WAITERS, X>
    }
}

/// The queue of the examples in the documentation.
#[doc(hidden)]
pub fn example() -> WorkQueue<NoopRawMutex, &'static str, 4, WithSlack<WithSuspension>> {
    WorkQueue::new(default_item_based())
}

/// The queue with groups of the examples in the documentation.
#[doc(hidden)]
pub fn example_groups()
-> WorkQueue<NoopRawMutex, (&'static str, u32), 8, Groups<&'static str>, NoLimit> {
    let queue = Queue::with_groups(NoLimit, (), |key: &(&'static str, u32)| key.0);
    WorkQueue::from_queue(queue, QueueClock)
}
