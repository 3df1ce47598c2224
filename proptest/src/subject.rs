//! What is tested: a queue that can be driven by one thread on a clock that the test moves.

mod calls;
mod direct;
#[cfg(feature = "embassy")]
mod embassy;
mod futures;
mod groups;
mod hand;
mod policy;
#[cfg(feature = "tokio")]
mod tasks;
#[cfg(feature = "std")]
mod threads;
mod work_queue;

use std::fmt::{self, Debug};
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Wake, Work};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Entry, Finished, Instant, KeyState, Leftover,
    Rejected, Stats, Why,
};

use crate::Figures;

pub use crate::limiter::{AnyLimiter, FloatBits, LimiterSpec};
pub use calls::{Answer, Call, CallId, Drive};
pub use direct::{Direct, Home, Note};
#[cfg(feature = "embassy")]
pub use embassy::{Embassy, HandTimer};
pub use futures::{Futures, LocalCall, poll_once};
pub use groups::{Cap, GroupFigures, GroupOrder, Kind, Rate, group_of};
pub use hand::{HandClock, Sleep};
pub use policy::PolicySpec;
#[cfg(feature = "tokio")]
pub use tasks::Tasks;
#[cfg(feature = "std")]
pub use threads::{ThreadCall, ThreadCalls, Threads};
pub use work_queue::{Bare, OnWorkQueue, Runtime, handed, panicking};

/// The keys of every test.
pub type Key = u16;

/// How a queue under test is made, and the model of it: each option is a value.
///
/// A queue whose type says how many keys fit, which levels there are, whether keys age and whether
/// there are groups has what its type says.
#[derive(Clone, Debug, PartialEq)]
pub struct Configuration {
    /// How many keys fit into a queue of a fixed size; `None` if it grows.
    pub storage: Option<usize>,
    /// How many priority levels there are.
    pub levels: u8,
    /// How long keys may wait at their levels, in a queue whose keys [age](Subject::ages).
    pub age_limit: Option<Duration>,
    /// The limits of groups, in a queue that [has groups](Subject::groups).
    pub groups: Option<Cap>,
    /// What decides how long a failed key waits.
    pub limiter: LimiterSpec,
    /// What else keys wait for, in a queue that [can have a policy](Abilities::governs).
    pub policy: PolicySpec,
    /// How many keys fit into a queue that [can be limited](Abilities::limits_keys).
    pub max_keys: usize,
    /// How many keys may be kept for their failures alone, by a queue without a capacity of its
    /// own.
    pub failure_records_max: usize,
    /// How many due keys one operation makes ready, if the subject does one operation a step.
    pub due_keys_max: u8,
}

impl Configuration {
    /// Describes a queue that grows, with this limiter, and without all else.
    pub fn new(limiter: LimiterSpec) -> Self {
        Self {
            storage: None,
            levels: 1,
            age_limit: None,
            groups: None,
            limiter,
            policy: PolicySpec::default(),
            max_keys: usize::MAX,
            failure_records_max: usize::MAX,
            due_keys_max: 16,
        }
    }

    /// The same, but for no more keys than this.
    fn for_at_most(&self, max_keys: usize) -> Self {
        Self {
            max_keys: self.max_keys.min(max_keys),
            ..self.clone()
        }
    }

    /// Describes a queue whose failed keys wait 1 ns, 2 ns, 4 ns and so on.
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
/// A queue that is core's `WorkQueue` implements [`Runtime`] instead.
#[expect(clippy::len_without_is_empty, reason = "a test needs one of the two")]
pub trait Subject {
    /// Makes an empty queue whose clock stands at its epoch.
    fn new(setup: &Configuration) -> Self
    where
        Self: Sized;

    /// How many keys fit; `None` if the queue grows.
    fn capacity(&self) -> Option<usize>;

    /// Changes how many keys fit, any number with [`usize::MAX`]. Called only if the queue
    /// [can be limited](Abilities::limits_keys).
    fn limit_keys(&mut self, keys: usize) {
        let _ = keys;
    }

    /// Changes how many keys may be kept for their failures alone. Returns `false`, and does
    /// nothing, if that cannot be changed while the queue is used.
    fn limit_failure_records(&mut self, keys: usize) -> bool {
        let _ = keys;
        false
    }

    /// Changes how many due keys one operation makes ready. Called only if the queue
    /// [says how many](Abilities::due_keys_max).
    fn limit_due_keys(&mut self, keys: u8) {
        let _ = keys;
    }

    /// Changes what else keys wait for. Called only if the queue
    /// [can have a policy](Abilities::governs).
    fn set_policy(&mut self, policy: &PolicySpec) {
        let _ = policy;
    }

    /// How many priority levels there are.
    fn levels(&self) -> u8 {
        1
    }

    /// What else the queue can do.
    fn abilities(&self) -> Abilities {
        Abilities::default()
    }

    /// Whether keys belong to groups, by [`group_of`].
    fn groups(&self) -> bool {
        false
    }

    /// Whether keys of low levels age.
    fn ages(&self) -> bool {
        false
    }

    /// Changes the limits of groups. Nothing without them.
    fn order(&mut self, order: &GroupOrder) {
        let _ = order;
    }

    /// The figures of a group. `None` if it has no keys, or without groups.
    fn group(&mut self, group: u8) -> Option<GroupFigures> {
        let _ = group;
        None
    }

    /// Sets after which time keys age. Without aging, nothing changes.
    fn age_after(&mut self, after: Option<Duration>) {
        let _ = after;
    }

    /// Adds a key.
    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>>;
    /// Adds a key after a delay.
    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>>;
    /// Adds a key at a point in time.
    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>>;
    /// Counts a failure, and adds the key after the delay that it returns.
    fn add_rate_limited(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>>;
    /// Adds a key as asked.
    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>>;
    /// The same, in place of a key of a lower level if there is no room.
    fn add_displacing(&mut self, key: Key, options: AddOptions) -> Displaced;
    /// Adds a key once no such add of it has come for a while, or a time after the first. Called
    /// only if the queue [can have a policy](Abilities::governs).
    fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>>;
    /// Adds keys in order, and returns those that were handed back.
    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>);
    /// Forgets the failures of a key.
    fn forget(&mut self, key: Key) -> u32;
    /// Takes back the work of a key, and returns what the key was.
    fn cancel_key(&mut self, key: Key) -> Option<Known>;
    /// Takes back the deadline of a key.
    fn cancel_delay(&mut self, key: Key) -> Option<Instant>;
    /// Ends the delay of a key now.
    fn expedite(&mut self, key: Key) -> bool;
    /// Ends the delays of all keys now.
    fn expedite_all(&mut self);
    /// Takes back the work of all keys but those below `key`, and returns of how many.
    fn retain_below(&mut self, key: Key) -> usize;

    /// Adds a key as it was left over by another queue.
    fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>>;

    /// Hands out no key until [`unpause`](Self::unpause).
    fn pause(&mut self);
    /// Ends a pause.
    fn unpause(&mut self);
    /// Whether the queue is paused.
    fn is_paused(&mut self) -> bool;

    /// Suspends a key for a while at most. Called only if the queue
    /// [can suspend keys](Abilities::suspends).
    fn suspend(&mut self, key: Key, timeout: Duration) -> bool;
    /// Ends the suspension of a key. Called only then.
    fn resume(&mut self, key: Key) -> bool;

    /// Whether no key is ready or active.
    fn is_idle(&mut self) -> bool;
    /// Whether no key is ready, active or delayed.
    fn is_settled(&mut self) -> bool;

    /// Hands out the first ready key.
    fn try_get(&mut self) -> Option<Handed>;
    /// One look of a call that may wait.
    fn get(&mut self, getter: &mut Getter) -> Next<Handed>;
    /// The same for many keys.
    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>>;
    /// Completes a run and looks for the next key.
    fn next(&mut self, ticket: Ticket, action: Action, getter: &mut Getter) -> Turn;
    /// Cancels a call that waits.
    fn leave(&mut self, getter: &mut Getter);

    /// Completes the run of a key by name.
    fn release_key(&mut self, key: Key) -> Finished;
    /// Completes a run.
    fn release(&mut self, ticket: Ticket) -> Finished;
    /// Completes runs in order, and returns how many of them had ended before.
    fn finish_many(&mut self, tickets: Vec<Ticket>, action: Action) -> usize;
    /// Completes a run, and says what becomes of the key.
    fn finish(&mut self, ticket: Ticket, action: Action) -> Finished;

    /// A worker takes the first ready key, if there is one, panics with it, and is caught. The key
    /// counts as failed. Returns `false`, and does nothing, if the queue does not give such keys
    /// back.
    fn panic_at_work(&mut self) -> bool {
        false
    }

    /// Something panics while the queue's lock is held, and is caught. Returns `false`, and does
    /// nothing, if the queue has no lock.
    fn panic_under_lock(&mut self) -> bool {
        false
    }

    /// Takes no more keys, and ends every wait for the drain.
    fn shut_down(&mut self);
    /// Takes no more keys, and begins to wait for the drain.
    fn begin_drain(&mut self) -> Drain;
    /// How a wait for the drain stands.
    fn drained(&mut self, drain: &Drain) -> Drained;
    /// After shutdown: takes out the first delayed key.
    fn take_delayed(&mut self) -> Option<Left>;
    /// After shutdown: takes out the first ready key.
    fn take_ready(&mut self) -> Option<Left>;

    /// How many keys are ready. Like every operation that could tell, it first releases what is
    /// due.
    fn len(&mut self) -> usize;
    /// What the queue knows of each key that it holds, in the order of the keys.
    fn snapshot(&mut self) -> Vec<(Key, Known)>;
    /// What the queue knows of a key.
    fn state(&mut self, key: Key) -> Option<Known>;
    /// Whether there is work to be done on a key.
    fn contains(&mut self, key: Key) -> bool;
    /// How many failures are remembered of a key.
    fn failures(&mut self, key: Key) -> u32;
    /// Why a key does not run.
    fn why(&mut self, key: Key) -> Why;
    /// The counts of the queue. Releases nothing.
    fn stats(&mut self) -> Stats;
    /// Whether the queue is shutting down.
    fn is_shutting_down(&mut self) -> bool;

    /// Reports the two gauges of work under way.
    fn report_running(&mut self);
    /// What was reported; `None` if the queue has no metrics.
    fn figures(&mut self) -> Option<Figures>;

    /// The time.
    fn now(&self) -> Instant;
    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);
    /// How many calls sleep; `None` if that cannot be seen.
    fn asleep(&mut self) -> Option<usize>;
    /// Which getters the queue has woken since this was last asked; `None` if that cannot be seen.
    fn wakes(&mut self) -> Option<Wake>;
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
    /// Takes the answer of a call; `None` if it waits.
    fn answer(&mut self, id: CallId) -> Option<Answer> {
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
    /// How many keys fit can be [changed](Subject::limit_keys).
    pub limits_keys: bool,
    /// The queue can have a [policy](Configuration::policy), and [debounces](Subject::add_debounced).
    pub governs: bool,
    /// The queue can [suspend keys](Subject::suspend).
    pub suspends: bool,
    /// A call that waits can be cancelled, as a future is by dropping it.
    pub cancels: bool,
    /// The shortest time that its timers can tell apart, at least a nanosecond. Histories are drawn
    /// in such short times, and in milliseconds.
    pub grain: Duration,
    /// How many calls can wait at once; `None` if any number can. One more is
    /// [refused](Answer::Refused).
    pub places: Option<usize>,
    /// How many due keys one operation makes ready. `None` if a step may be several operations, and
    /// then the subject makes all of them ready.
    pub due_keys_max: Option<u8>,
}

impl Default for Abilities {
    fn default() -> Self {
        Self {
            runs_by_itself: false,
            limits_keys: false,
            governs: true,
            suspends: true,
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

/// The right to complete a run. Dropping one has no effect.
#[derive(Debug, PartialEq, Eq)]
pub enum Ticket {
    /// core's.
    Core(requeue_core::binding::Ticket),
    /// That of a queue which numbers its runs itself.
    Numbered(NumberedRun),
}

/// A run of a key, numbered by its queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberedRun {
    /// The key.
    pub key: Key,
    /// The number.
    pub run: u64,
}

impl Ticket {
    /// Returns core's ticket, if it is one.
    pub fn core(self) -> Option<requeue_core::binding::Ticket> {
        match self {
            Self::Core(ticket) => Some(ticket),
            Self::Numbered(_) => None,
        }
    }

    /// Returns the number of the run. `None` for a ticket of core's.
    pub fn numbered(self) -> Option<NumberedRun> {
        match self {
            Self::Numbered(run) => Some(run),
            Self::Core(_) => None,
        }
    }
}

impl From<requeue_core::binding::Ticket> for Ticket {
    fn from(ticket: requeue_core::binding::Ticket) -> Self {
        Self::Core(ticket)
    }
}

/// One wait for the drain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drain {
    /// core's.
    Core(requeue_core::binding::Drain),
    /// That of a queue which numbers them itself.
    Numbered(usize),
}

/// A key that was handed out.
#[derive(Debug, PartialEq, Eq)]
pub struct Handed {
    /// The key.
    pub key: Key,
    /// Completes its run.
    pub ticket: Ticket,
    /// How many failures were remembered of it.
    pub failures: u32,
    /// Its priority level.
    pub priority: u8,
    /// It was suspended, and nobody resumed it in time.
    pub timed_out: bool,
}

impl fmt::Display for Handed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "key {} with {} failures", self.key, self.failures)?;
        match self.priority {
            0 => {}
            level => write!(f, " at level {level}")?,
        }
        f.write_str(if self.timed_out { ", timed out" } else { "" })
    }
}

/// What became of a run, and what there is to do next.
pub type Turn = (Finished, Next<Handed>);

/// What became of an add that may have the key wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// How long the limiter lets the key wait, or the add.
    pub delay: Duration,
    /// What became of the key.
    pub added: Added,
}

/// What [`Subject::add_displacing`] returns: what was added, and the key that made way.
pub type Displaced = Result<(Scheduled, Option<Left>), Rejected<Key>>;

/// A key that was left over after shutdown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The key.
    pub key: Key,
    /// How much of its delay was left.
    pub left: Duration,
    /// How many failures were remembered of it.
    pub failures: u32,
    /// Its priority level.
    pub priority: u8,
}

/// What a queue knows of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// The key waits for its turn.
    pub ready: bool,
    /// The key is active.
    pub active: bool,
    /// The key is active and will be once more.
    pub dirty: bool,
    /// The key is active, and its work was taken back since it was handed out.
    pub cancelled: bool,
    /// The deadline the key waits for.
    pub due: Option<Instant>,
    /// The end of the timeout, if the key is suspended.
    pub suspended: Option<Instant>,
    /// How many failures are remembered of it.
    pub failures: u32,
    /// The priority level at which it is ready or will be; else of its run; else of its deadline.
    pub priority: u8,
}

/// A snapshot, in the order of the keys.
fn in_order(entries: impl IntoIterator<Item = Entry<Key>>) -> Vec<(Key, Known)> {
    let known = |entry: Entry<Key>| (entry.key, Known::from(entry.state));
    let mut snapshot: Vec<_> = entries.into_iter().map(known).collect();
    snapshot.sort_by_key(|(key, _)| *key);
    snapshot
}

impl From<Work<Key>> for Handed {
    fn from(work: Work<Key>) -> Self {
        Self {
            priority: work.priority,
            key: work.key,
            ticket: Ticket::Core(work.ticket),
            failures: work.failures,
            timed_out: work.timed_out,
        }
    }
}

impl From<requeue_core::Scheduled> for Scheduled {
    fn from(limited: requeue_core::Scheduled) -> Self {
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
            failures: leftover.failures,
            priority: leftover.priority,
        }
    }
}

impl From<Left> for Leftover<Key> {
    fn from(left: Left) -> Self {
        let mut leftover = Self::new(left.key);
        leftover.left = left.left;
        leftover.failures = left.failures;
        leftover.priority = left.priority;
        leftover
    }
}

/// The same, with what was handed back in our words.
fn refused(rejected: Rejected<Leftover<Key>>) -> Rejected<Left> {
    match rejected {
        Rejected::Full(leftover) => Rejected::Full(leftover.into()),
        Rejected::Closed(leftover) => Rejected::Closed(leftover.into()),
        other => Rejected::UnknownPriority(other.into_key().into()),
    }
}

impl From<KeyState> for Known {
    fn from(state: KeyState) -> Self {
        Self {
            ready: state.ready,
            active: state.active,
            dirty: state.dirty,
            cancelled: state.cancelled,
            due: state.due,
            suspended: state.suspended,
            failures: state.failures,
            priority: state.priority,
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
