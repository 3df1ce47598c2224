//! The queue of a bare loop: its type, and how it is made. Owns the choice of lock and storage; what
//! an operation does is core's.

use core::cell::RefCell;
use core::hash::Hash;
use core::marker::PhantomData;

use critical_section::Mutex;
use requeue_core::Queue;
use requeue_core::binding::{AsShared, FixedWaitList, Host, Index, Lock, State};
use requeue_core::limiter::{Exponential, NoLimit, RateLimiter, default_item_based};
use requeue_core::metrics::Metrics;
use requeue_core::priority::{Groups, Plain, Priorities, WithSlack, WithSuspension};
use requeue_core::storage::Fixed;

use crate::board::{Board, ManualClock};

/// Writes an `impl` block of the queue, perhaps of a trait.
macro_rules! methods {
    ([$($doc:literal)?] $($methods:tt)+) => {
        $(#[doc = $doc])?
        impl<
            H: Board,
            K: Eq + Hash,
            const N: usize,
            P: Priorities,
            L: RateLimiter,
            const WAITERS: usize,
            M: Metrics,
            I: Index,
        > WorkQueue<H, K, N, P, L, WAITERS, M, I>
        {
            $($methods)+
        }
    };
}
pub(crate) use methods;

/// Writes a part of core's methods.
macro_rules! face {
    ($part:ident) => {
        requeue_core::queue_face! {
            $part: "requeue::bare", "# let queue = requeue::bare::example();",
            "# let queue = requeue::bare::example_groups();", K, P, Fixed<N, I>
        }
    };
}
pub(crate) use face;

/// A critical section as core's [`Lock`].
///
/// # Panics
///
/// If a key's own code (`Hash`, `Eq`, `Clone`, `Drop`) calls the queue.
#[derive(Debug)]
pub struct Section<T>(Mutex<RefCell<T>>);

impl<T> Lock for Section<T> {
    type State = T;

    #[inline]
    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        critical_section::with(|section| work(&mut self.0.borrow_ref_mut(section)))
    }
}

/// The types that a queue of a bare loop is made of.
#[derive(Debug)]
pub struct BareHost<H, K, const N: usize, P, L, const WAITERS: usize, M, I>(
    PhantomData<(H, K, P, L, M, I)>,
);

impl<H, K, const N: usize, P, L, const WAITERS: usize, M, I> Host
    for BareHost<H, K, N, P, L, WAITERS, M, I>
where
    H: Board,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    M: Metrics,
    I: Index,
{
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = Fixed<N, I>;
    type Metrics = M;
    type Waiters = FixedWaitList<WAITERS>;
    type Clock = H;
    type Lock = Section<State<Self>>;
}

/// The queue of core in a [`WorkQueue`].
pub(crate) type Shared<H, K, const N: usize, P, L, const WAITERS: usize, M, I> =
    requeue_core::binding::Shared<BareHost<H, K, N, P, L, WAITERS, M, I>>;

/// A key that [`WorkQueue::get`] returned. Its methods are those of core's
/// [`Guard`](requeue_core::Guard).
///
/// **A guard that is dropped counts as failed.** Its key is retried when its limiter says so.
///
/// # Examples
///
/// ```
/// use requeue::bare::limiter::default_item_based;
/// use requeue::bare::{Finished, Guard, ManualClock, WorkQueue};
///
/// fn read(sensor: Guard<'_, &ManualClock, u16, 16>) -> Finished {
///     let replies = *sensor != 17;
///     if replies { sensor.success() } else { sensor.retry() }
/// }
///
/// let board = ManualClock::new();
/// let queue: WorkQueue<&ManualClock, u16, 16> = WorkQueue::new(default_item_based(), &board);
/// queue.add_many([17, 18], |_| {});
/// assert!(matches!(read(queue.get().unwrap()), Finished::Delayed(_)));
/// assert_eq!(read(queue.get().unwrap()), Finished::Idle);
/// ```
pub type Guard<
    'q,
    H,
    K,
    const N: usize,
    P = Plain,
    L = Exponential,
    const WAITERS: usize = 0,
    M = (),
    I = u8,
> = requeue_core::Guard<
    BareHost<H, K, N, P, L, WAITERS, M, I>,
    &'q Shared<H, K, N, P, L, WAITERS, M, I>,
>;

/// A keyed work queue for a loop on a microcontroller, made for a `static`. It needs no executor,
/// no allocator and no task: interrupts add keys, and a loop works on them.
///
/// | parameter | |
/// |---|---|
/// | `H` | the [`Board`]: a clock, an alarm, and how the core sleeps |
/// | `K` | the keys: small and `Clone`, an enum or an integer |
/// | `N` | how many keys it holds: the room is in the queue, so there is no limit at run time |
/// | `P` | priority levels, aging, groups, or a policy: see [`Priorities`] |
/// | `L` | what decides how long a failed key waits |
/// | `WAITERS` | 0 on one core; on several, how many loops and drains may sleep at the same time |
/// | `M` | what receives the figures: `()` for none |
/// | `I` | `u8` for up to 255 keys, `u16` for more |
///
/// # From an interrupt
///
/// Every method may be called from an interrupt handler, except those that wait: [`get`](Self::get),
/// [`get_timeout`](Self::get_timeout), [`get_deadline`](Self::get_deadline), [`next`](Self::next),
/// [`run`](Self::run), [`drain`](Self::drain) and [`wait_drained`](Self::wait_drained). Interrupts
/// are masked for one operation. [`add`](Self::add) takes O(1) expected, and at most `N` comparisons of keys if all of them share
/// a hash. An operation makes at most two keys ready whose deadlines have passed, at O(log `N`)
/// each.
///
/// # Sleeping
///
/// A loop sleeps while no key may run: also if a ready key has to wait for a token, for another run
/// of its group or for the end of a pause. Interrupts are masked between its last look
/// and the sleep. An interrupt that adds a key in between is pending, and ends the sleep.
///
/// The other runtimes also wait for room, for the work of one key, and for an idle queue. A loop
/// that slept for these would wait for itself, so this queue has no such calls. Ask instead:
/// [`is_idle`](Self::is_idle), [`is_settled`](Self::is_settled), [`state`](Self::state).
///
/// On one core (`WAITERS` is 0) an add sends no wake, because its interrupt has ended the sleep. On
/// several cores each loop that sleeps has a place in the queue, and an add wakes one of
/// them through [`Board::waker`]. If all places are taken, `get` returns
/// [`TooManyWaiters`](crate::WaitError::TooManyWaiters).
///
/// # Panics
///
/// If a key's own code calls the queue. No method panics by itself.
///
/// # Examples
///
/// ```
/// use requeue::bare::limiter::default_item_based;
/// use requeue::bare::{Action, ManualClock, WorkQueue};
///
/// // On a board: your own type that implements `Board`.
/// static BOARD: ManualClock = ManualClock::new();
/// static SENSORS: WorkQueue<&ManualClock, u16, 8> =
///     WorkQueue::new(default_item_based(), &BOARD);
///
/// fn on_data_ready() {
///     // An interrupt handler: ten edges make one run.
///     let _ = SENSORS.add(17);
/// }
///
/// on_data_ready();
/// on_data_ready();
/// let mut runs = 0;
/// SENSORS.run(|_sensor| {
///     runs += 1;
///     // A real loop never ends.
///     SENSORS.shut_down();
///     Action::Success
/// });
/// assert_eq!(runs, 1);
/// ```
pub struct WorkQueue<
    H,
    K,
    const N: usize,
    P = Plain,
    L = Exponential,
    const WAITERS: usize = 0,
    M = (),
    I = u8,
> where
    H: Board,
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    M: Metrics,
    I: Index,
{
    pub(crate) shared: Shared<H, K, N, P, L, WAITERS, M, I>,
}

/// Making a queue.
impl<H, K, const N: usize, P, L, const WAITERS: usize, I> WorkQueue<H, K, N, P, L, WAITERS, (), I>
where
    H: Board,
    K: Eq + Hash,
    P: Priorities<Naming<K> = ()>,
    L: RateLimiter,
    I: Index,
{
    /// Creates an empty queue. Can be used in a `static`. For groups, metrics and policies see
    /// [`from_queue`](Self::from_queue).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::bare::limiter::default_item_based;
    /// use requeue::bare::{ManualClock, WorkQueue};
    ///
    /// static BOARD: ManualClock = ManualClock::new();
    /// // 1 ms doubled per failure for each key.
    /// static QUEUE: WorkQueue<&ManualClock, u16, 16> = WorkQueue::new(default_item_based(), &BOARD);
    /// # let _ = QUEUE.add(1);
    /// ```
    #[doc(alias = "NewRateLimitingQueue")]
    #[doc(alias = "NewTypedRateLimitingQueue")]
    pub const fn new(limiter: L, board: H) -> Self {
        Self::from_queue(Queue::new(limiter), board)
    }
}

methods! {
    ["Making a queue from parts."]
    /// Creates a queue of chosen parts, on a board.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::bare::limiter::{Exponential, default_item_based};
    /// use requeue::bare::priority::WithPolicy;
    /// use requeue::bare::{ManualClock, Policy, Queue, WorkQueue};
    ///
    /// static BOARD: ManualClock = ManualClock::new();
    /// // At most 500 runs a second, one at a time.
    /// static QUEUE: WorkQueue<&ManualClock, u16, 8, WithPolicy> = WorkQueue::from_queue(
    ///     Queue::new(default_item_based()).with_policy(Policy::new().run_rate(500.0, 1)),
    ///     &BOARD,
    /// );
    /// # let _ = QUEUE.add(1);
    /// ```
    pub const fn from_queue(queue: Queue<K, P, L, Fixed<N, I>, M>, board: H) -> Self {
        let state = State::new(queue, FixedWaitList::new());
        let lock = Section(Mutex::new(RefCell::new(state)));
        Self {
            shared: Shared::<H, K, N, P, L, WAITERS, M, I>::new(lock, board),
        }
    }
}

requeue_core::queue_face! {
    shared: [
        H: Board, K: Eq + Hash, const N: usize, P: Priorities, L: RateLimiter,
        const WAITERS: usize, M: Metrics, I: Index
    ]
    WorkQueue<H, K, N, P, L, WAITERS, M, I>, BareHost<H, K, N, P, L, WAITERS, M, I>, K
}

methods! {
    ["Adding keys. None of these waits."]
    face!(adding);
    face!(adding_each);
}

methods! {
    ["Taking keys without waiting."]
    requeue_core::queue_face! {
        taking: "requeue::bare", "# let queue = requeue::bare::example();", K, Self::as_shared,
        Guard<'_, H, K, N, P, L, WAITERS, M, I>
    }
}

/// The queue of the examples in the documentation.
#[doc(hidden)]
pub fn example() -> WorkQueue<ManualClock, &'static str, 4, WithSlack<WithSuspension>> {
    WorkQueue::new(default_item_based(), ManualClock::new())
}

/// The queue with groups of the examples in the documentation.
#[doc(hidden)]
pub fn example_groups()
-> WorkQueue<ManualClock, (&'static str, u32), 8, Groups<&'static str>, NoLimit> {
    let queue = Queue::with_groups(NoLimit, (), |key: &(&'static str, u32)| key.0);
    WorkQueue::from_queue(queue, ManualClock::new())
}
