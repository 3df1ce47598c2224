//! What is tested: a queue that can be driven by one thread on a clock that the test moves.

mod apply;
mod calls;
mod configuration;
mod direct;
#[cfg(feature = "embassy")]
mod embassy;
mod futures;
mod hand;
mod held;
#[cfg(feature = "bare")]
mod loops;
#[cfg(feature = "tokio")]
mod tasks;
#[cfg(any(feature = "std", feature = "bare"))]
mod thread_calls;
#[cfg(feature = "std")]
mod threads;
mod work_queue;

use std::time::Duration;

use requeue_core::binding::{Next, Wake};
use requeue_core::{Action, Added, Instant, KeyState};

use crate::Figures;

pub use crate::limiter::{AnyLimiter, FloatBits, LimiterSpec};
pub use crate::operation::{
    Answer, Displaced, Drain, Handed, Key, Left, Operate, Operation, Run, Sleeper, Ticket,
    left_over,
};
pub use apply::{Home, Kind, answer_of};
pub use calls::{Call, CallId, Drive, Returned};
pub use configuration::{Cap, Configuration, GroupFigures, GroupOrder, PolicySpec, Rate, group_of};
pub use direct::Direct;
#[cfg(feature = "embassy")]
pub use embassy::Embassy;
pub use futures::{Futures, LocalCall, call_on};
pub use hand::{HandClock, Sleep};
pub use held::Taken;
#[cfg(feature = "bare")]
pub use loops::{Cores, Loops};
#[cfg(feature = "tokio")]
pub use tasks::Tasks;
#[cfg(any(feature = "std", feature = "bare"))]
pub use thread_calls::{ThreadCall, ThreadCalls};
#[cfg(feature = "std")]
pub use threads::Threads;
pub use work_queue::{OnWorkQueue, Runtime, handed, panicking};

/// A queue under test.
///
/// Every [operation](Operation) is one step of one thread, and nothing happens between the steps:
/// the clock moves by [`advance`](Self::advance) alone. A call that would wait is
/// [`Operation::Get`], which says so instead, and counts as a sleeping call from then on.
///
/// The operations mean what those of [`requeue_core::Queue`] mean. What a queue cannot do it states
/// here: that it [has a capacity or none](Self::capacity), [no metrics](Self::figures),
/// [no sleepers that can be counted](Self::asleep), and its [abilities](Self::abilities). Rules
/// that need more are skipped, and all others are tested.
///
/// # Calls that wait
///
/// The last six methods drive the queue's own calls that wait, which are what a runtime adds to
/// core. A call is [started](Self::start), and returns or waits. Then [`settle`](Self::settle) lets
/// everything run that can, and the test looks which calls have answered. Time passes by
/// [`advance`](Self::advance), which makes the runtime's timers ring but need not run the calls
/// that they wake. A queue that leaves waiting to others has no such calls, and keeps the defaults.
///
/// If your queue is core's [`Shared`](requeue_core::binding::Shared), implement [`Runtime`] instead.
pub trait Subject {
    /// Makes an empty queue whose clock stands at its epoch.
    fn new(configuration: &Configuration) -> Self
    where
        Self: Sized;

    /// Does an operation that never waits. Runs and sleepers are named by their numbers.
    fn apply(&mut self, operation: &Operation) -> Answer;

    /// How many keys fit; `None` if the queue grows.
    fn capacity(&self) -> Option<usize>;

    /// What else the queue can do.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// What was reported; `None` if the queue has no metrics.
    fn figures(&mut self) -> Option<Figures>;

    /// The time.
    fn now(&self) -> Instant;
    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);
    /// How many calls sleep; `None` if that cannot be seen.
    fn asleep(&mut self) -> Option<usize> {
        None
    }
    /// Which getters the queue has woken since this was last asked; `None` if that cannot be seen.
    /// The wakes of a runtime are seen by the calls that they wake.
    fn wakes(&mut self) -> Option<Wake> {
        None
    }
    /// Checks the queue's own invariants.
    ///
    /// # Panics
    ///
    /// If one does not hold.
    fn assert_valid(&mut self);

    /// Begins a call and lets it run until it returns or waits. Returns `false`, and does nothing,
    /// if the queue has no such call.
    fn start(&mut self, id: CallId, call: Call) -> bool {
        let _ = (id, call);
        false
    }
    /// Takes the first ready key, makes the call that completes it and waits for the next, and
    /// cancels that call before it has run at all: the key is completed nevertheless. Called only
    /// while a key is ready. Returns `false`, and does nothing, if the queue has no such call.
    fn next_unrun(&mut self, action: Action) -> bool {
        let _ = action;
        false
    }
    /// Lets everything run that can, until every call has answered or sleeps and no wake is under
    /// way. Returns `false` if that does not come about; if calls
    /// [run by themselves](Abilities::runs_by_itself), it is asked again.
    fn settle(&mut self) -> bool {
        true
    }
    /// Takes what a call has returned; `None` if it waits.
    fn answer(&mut self, id: CallId) -> Option<Returned<Handed>> {
        let _ = id;
        None
    }
    /// Cancels a call that has not answered, without letting it run.
    fn cancel(&mut self, id: CallId) {
        let _ = id;
    }
    /// Lets a call run although it was not woken, as happens to a future that is polled together
    /// with others, or has moved to another task.
    fn nudge(&mut self, id: CallId) {
        let _ = id;
    }
}

/// What a queue can do, and how its calls that wait are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Abilities {
    /// Calls run by themselves, as threads do, while the test does something else. The test then
    /// lets everything settle after each step, and is patient.
    pub runs_by_itself: bool,
    /// How many priority levels there are.
    pub levels: u8,
    /// How many groups there can be, to which keys belong by [`group_of`]. Zero if there are none.
    pub groups: usize,
    /// Whether keys of low levels age.
    pub ages: bool,
    /// How many keys fit can be [changed](Operation::LimitKeys).
    pub limits_keys: bool,
    /// The queue can have a [policy](Configuration::policy), and
    /// [debounces](Operation::AddDebounced).
    pub governs: bool,
    /// The queue can [suspend keys](Operation::Suspend).
    pub suspends: bool,
    /// Delays may have slack.
    pub slackens: bool,
    /// A call that waits can be cancelled, as a future is by dropping it.
    pub cancels: bool,
    /// The shortest time that its timers can tell apart, at least a nanosecond. Histories are drawn
    /// in such short times, and in milliseconds.
    pub grain: Duration,
    /// How many calls can wait at once; `None` if any number can. One more is
    /// [refused](Returned::Refused).
    pub places: Option<usize>,
    /// How many due keys one operation makes ready. `None` if a step may be several operations, and
    /// then the subject makes all of them ready.
    pub due_keys_max: Option<u8>,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            runs_by_itself: false,
            levels: 1,
            groups: 0,
            ages: false,
            limits_keys: false,
            governs: true,
            suspends: true,
            slackens: true,
            cancels: true,
            grain: Duration::from_nanos(1),
            places: None,
            due_keys_max: None,
        }
    }
}

/// How a test makes the queues that it needs.
pub type NewSubject = fn(&Configuration) -> Box<dyn Subject>;

/// Makes an `S` whose type the suite need not know: its code exists once, for all queues.
pub fn boxed<S: Subject + 'static>(setup: &Configuration) -> Box<dyn Subject> {
    Box::new(S::new(setup))
}

/// What became of an add that may have the key wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// How long the limiter lets the key wait, or the add.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// A snapshot, in the order of the keys.
fn in_order(entries: impl IntoIterator<Item = (Key, KeyState)>) -> Vec<(Key, KeyState)> {
    let mut snapshot: Vec<_> = entries.into_iter().collect();
    snapshot.sort_by_key(|(key, _)| *key);
    snapshot
}

impl From<requeue_core::Scheduled> for Scheduled {
    fn from(limited: requeue_core::Scheduled) -> Self {
        Self {
            delay: limited.delay,
            added: limited.added,
        }
    }
}

/// The same with another kind of work.
fn map_next<T, U>(next: Next<T>, map: impl FnOnce(T) -> U) -> Next<U> {
    match next {
        Next::Work(work) => Next::Work(map(work)),
        Next::Wait { until } => Next::Wait { until },
        Next::Closed => Next::Closed,
    }
}
