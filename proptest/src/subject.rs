//! What is tested: a queue that can be driven by one thread on a clock that the test moves.

mod direct;
mod embassy;
mod futures;
mod hand;
mod shared;
mod tasks;
mod threads;
mod waits;

use std::fmt::{self, Debug};
use std::time::Duration;

use requeue_core::{
    AddOptions, Added, AddedMany, Completion, Drained, Facts, Finished, Instant, KeyState,
    Leftover, Limited, Next, NotActive, Rejected, Wake, Work,
};

use crate::Figures;

pub use crate::trace::limiter::{AnyLimiter, LimiterSpec};
pub use direct::{Direct, Home, Note};
pub use embassy::{Embassy, HandTimer};
pub(crate) use futures::poll_once;
pub use futures::{Futures, LocalCall};
pub use hand::{HandClock, Sleep};
pub use shared::{Bare, OnWorkQueue, Runtime, handed, panicking};
pub use tasks::Tasks;
pub use threads::{ThreadCall, ThreadCalls, Threads};
pub use waits::{Answer, Call, CallId, Drive, WaitingRuntime, Waits};

/// The keys of every test.
pub type Key = u16;

/// How a queue under test is made.
#[derive(Clone, Debug, PartialEq)]
pub struct Setup {
    /// What decides how long a failed key waits.
    pub limiter: LimiterSpec,
    /// How many keys may be kept for their failures alone, by a queue without a capacity.
    pub memories_max: usize,
}

impl Setup {
    /// A queue with this limiter, and no limit to what it remembers.
    pub fn new(limiter: LimiterSpec) -> Self {
        Self {
            limiter,
            memories_max: usize::MAX,
        }
    }

    /// A queue whose failed keys wait 1 ns, 2 ns, 4 ns and so on.
    pub fn exponential() -> Self {
        let max_ns = 1_000_000_000_000;
        Self::new(LimiterSpec::Exponential { base_ns: 1, max_ns })
    }
}

/// A queue under test.
///
/// Every method is one step of one thread, and nothing happens between the steps: the clock moves
/// by [`advance`](Self::advance) alone. A call that would wait is [`get`](Self::get), which says so
/// instead, and counts as a sleeping call from then on.
///
/// The operations mean what those of [`requeue_core::Queue`] mean. What a queue cannot do it states
/// here: that it [has a capacity or none](Self::capacity), [no metrics](Self::figures),
/// [nobody to be seen asleep](Self::asleep), or that it does not
/// [give a key back](Self::GIVES_BACK) with which a worker panics. Nothing is tested then that
/// needs it, and everything else is.
#[expect(clippy::len_without_is_empty, reason = "a test needs one of the two")]
pub trait Subject {
    /// The right to complete a run. Dropping one must have no effect.
    type Ticket: Debug;
    /// One call that may wait.
    type Getter: Debug + Default;
    /// One wait for the drain.
    type Drain: Debug;

    /// Whether a key comes back as failed whose worker panics.
    const GIVES_BACK: bool = false;

    /// Makes an empty queue whose clock stands at its epoch.
    fn new(setup: &Setup) -> Self;

    /// How many keys fit; nothing if the queue grows.
    fn capacity(&self) -> Option<usize>;

    /// How many priority levels there are.
    fn levels(&self) -> u8 {
        1
    }

    /// Marks a key as having work to do.
    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>>;
    /// Adds a key after a delay.
    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>>;
    /// Adds a key at a point in time.
    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>>;
    /// Counts a failure, and adds the key after the delay it answers.
    fn add_rate_limited(&mut self, key: Key) -> Result<Retried, Rejected<Key>>;
    /// Adds a key as asked.
    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Retried, Rejected<Key>>;
    /// Adds keys in order, and answers which were handed back.
    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>);
    /// Forgets the failures of a key.
    fn forget(&mut self, key: Key) -> u32;

    /// Hands out the first ready key.
    fn try_get(&mut self) -> Option<Handed<Self::Ticket>>;
    /// One look of a call that may wait.
    fn get(&mut self, getter: &mut Self::Getter) -> Next<Handed<Self::Ticket>>;
    /// The same for many keys.
    fn get_many(
        &mut self,
        max: usize,
        getter: &mut Self::Getter,
    ) -> Next<Vec<Handed<Self::Ticket>>>;
    /// Completes a run and looks for the next key.
    fn next(
        &mut self,
        ticket: Self::Ticket,
        completion: Completion,
        getter: &mut Self::Getter,
    ) -> Turn<Self::Ticket>;
    /// A call that was told to wait is cancelled.
    fn leave(&mut self, getter: &mut Self::Getter);

    /// Completes the run of a key by name.
    fn done_key(&mut self, key: Key) -> Result<(), NotActive>;
    /// Completes a run.
    fn done(&mut self, ticket: Self::Ticket) -> Result<(), NotActive>;
    /// Completes runs in order.
    fn complete_many(
        &mut self,
        tickets: Vec<Self::Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive>;
    /// Completes a run, and says what becomes of the key.
    fn complete(
        &mut self,
        ticket: Self::Ticket,
        completion: Completion,
    ) -> Result<Finished, NotActive>;

    /// A worker takes the first ready key, panics with it, and is caught.
    ///
    /// Called only if the queue [gives such keys back](Self::GIVES_BACK).
    fn panic_at_work(&mut self) {}

    /// Takes no more keys, and ends every wait for the drain.
    fn shut_down(&mut self);
    /// Takes no more keys, and begins to wait for the drain.
    fn begin_drain(&mut self) -> Self::Drain;
    /// How a wait for the drain stands.
    fn drained(&mut self, drain: &Self::Drain) -> Drained;
    /// After shutdown: takes out the first delayed key.
    fn take_delayed(&mut self) -> Option<Left>;
    /// After shutdown: takes out the first ready key.
    fn take_ready(&mut self) -> Option<Left>;

    /// How many keys are ready. Like every operation that could tell, it first releases what is
    /// due.
    fn len(&mut self) -> usize;
    /// What the queue knows of a key.
    fn state(&mut self, key: Key) -> Option<Known>;
    /// Whether there is work to be done on a key.
    fn contains(&mut self, key: Key) -> bool;
    /// How many failures are remembered of a key.
    fn num_requeues(&mut self, key: Key) -> u32;
    /// The rest of what can be seen.
    fn totals(&mut self) -> Totals;
    /// Whether the queue is shutting down.
    fn shutting_down(&mut self) -> bool;

    /// Reports the two gauges of work under way.
    fn report_running(&mut self);
    /// What was reported; nothing if the queue has no metrics.
    fn figures(&mut self) -> Option<Figures>;

    /// The time.
    fn now(&self) -> Instant;
    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);
    /// How many calls sleep; nothing if that cannot be seen.
    fn asleep(&mut self) -> Option<usize>;
    /// Whom the queue has woken since this was last asked; nothing if that cannot be seen.
    fn wakes(&mut self) -> Option<Wake>;
    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    fn assert_valid(&mut self);
}

/// A key that was handed out.
#[derive(Debug, PartialEq, Eq)]
pub struct Handed<T> {
    /// The key.
    pub key: Key,
    /// Completes its run.
    pub ticket: T,
    /// How many failures were remembered of it.
    pub requeues: u32,
    /// Its priority level.
    pub priority: u8,
}

impl<T> fmt::Display for Handed<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} with {} failures", self.key, self.requeues)?;
        match self.priority {
            0 => Ok(()),
            level => write!(f, " at level {level}"),
        }
    }
}

/// What became of a run, and what there is to do next.
pub type Turn<T> = (Result<Finished, NotActive>, Next<Handed<T>>);

/// What became of an add that may have the key wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retried {
    /// How long the limiter lets the key wait, or the add.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// A key that was left over after shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The key.
    pub key: Key,
    /// How much of its delay was left.
    pub left: Duration,
    /// How many failures were remembered of it.
    pub requeues: u32,
    /// Its priority level.
    pub priority: u8,
}

/// What a queue knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The key waits for its turn.
    pub ready: bool,
    /// The key is in work.
    pub active: bool,
    /// The key is in work and will be once more.
    pub dirty: bool,
    /// The deadline the key waits for.
    pub due: Option<Instant>,
    /// How many failures are remembered of it.
    pub requeues: u32,
    /// The priority level at which it is ready or will be; else of its run; else of its deadline.
    pub priority: u8,
}

/// What a queue says of all its keys together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Totals {
    /// Keys in work.
    pub active: usize,
    /// Keys that wait for a deadline.
    pub delayed: usize,
    /// Keys that take up room.
    pub held: usize,
    /// The earliest deadline that will come.
    pub next_deadline: Option<Instant>,
}

impl<F: Facts> From<Work<Key, F>> for Handed<requeue_core::Ticket> {
    fn from(work: Work<Key, F>) -> Self {
        Self {
            priority: work.priority(),
            key: work.key,
            ticket: work.ticket,
            requeues: work.requeues,
        }
    }
}

impl From<Limited> for Retried {
    fn from(limited: Limited) -> Self {
        Self {
            delay: limited.delay,
            added: limited.added,
        }
    }
}

impl From<Leftover<Key>> for Left {
    fn from(leftover: Leftover<Key>) -> Self {
        Self {
            key: leftover.key,
            left: leftover.left,
            requeues: leftover.requeues,
            priority: leftover.priority,
        }
    }
}

impl From<KeyState> for Known {
    fn from(state: KeyState) -> Self {
        Self {
            ready: state.ready,
            active: state.active,
            dirty: state.dirty,
            due: state.due,
            requeues: state.requeues,
            priority: state.priority,
        }
    }
}

/// The same answer of another kind of work.
fn map_next<T, U>(next: Next<T>, map: impl FnOnce(T) -> U) -> Next<U> {
    match next {
        Next::Work(work) => Next::Work(map(work)),
        Next::Wait { until } => Next::Wait { until },
        Next::Closed => Next::Closed,
    }
}
