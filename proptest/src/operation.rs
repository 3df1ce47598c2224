//! What can be done to a queue, and what it answers: values that a test draws, compares and prints.

use std::fmt;
use std::slice;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Finished, Instant, KeyState, Leftover, Rejected, Stats,
    Why,
};

use crate::combinations::Uses;
use crate::subject::{
    Call, Cap, GroupFigures, GroupOrder, PolicySpec, Scheduled, Subject, group_of,
};

use Operation as O;

/// The keys of every test.
pub type Key = u16;

/// A key that was left over after shutdown.
pub type Left = Leftover<Key>;

/// A key that another queue has left like this.
pub fn left_over(key: Key, left: Duration, failures: u32, priority: u8) -> Left {
    let mut leftover = Left::new(key);
    leftover.left = left;
    leftover.failures = failures;
    leftover.priority = priority;
    leftover
}

/// One step of a history: an operation that never waits, or a step of the calls that do.
///
/// A drawn history names runs, sleepers and calls by [picks](Run::Pick). Where there is none to
/// pick, nothing happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Operation {
    /// Adds a key.
    Add(Key),
    /// Adds a key after a delay.
    AddAfter(Key, Duration),
    /// The same, up to the second time later.
    AddWithin(Key, Duration, Duration),
    /// Adds a key at a point in time.
    AddAt(Key, Instant),
    /// Counts a failure, and adds the key after the delay of the limiter.
    AddRateLimited(Key),
    /// Adds a key as asked.
    AddWith(Key, AddOptions),
    /// The same, in place of a key of a lower level if there is no room.
    AddDisplacing(Key, AddOptions),
    /// Adds a key once no such add has come for the first time, or the second time is over since
    /// the first of them. Only for a queue that [can have a policy](crate::subject::Abilities).
    AddDebounced(Key, Duration, Duration),
    /// Adds keys in order.
    AddMany(Vec<Key>),
    /// Adds a key as another queue has left it.
    Restore(Left),
    /// Forgets the failures of a key.
    Forget(Key),
    /// Takes back the work of a key.
    CancelKey(Key),
    /// Takes back the deadline of a key.
    CancelDelay(Key),
    /// Ends the delay of a key.
    Expedite(Key),
    /// Ends the delays of all keys. In a history it is left out where there are several and the
    /// limiter holds keys, because then their order is not specified.
    ExpediteAll,
    /// Takes back the work of all keys but those below one. In a history it is left out where
    /// several of them would be kept for their failures alone, because then their order is not
    /// specified.
    RetainBelow(Key),
    /// Hands out no key from now on.
    Pause,
    /// Ends a pause.
    Unpause,
    /// Suspends a key for a while at most, in a queue that can.
    Suspend(Key, Duration),
    /// Ends the suspension of a key, in a queue that can.
    Resume(Key),
    /// Changes the limits of groups, in a queue that has them.
    Order(GroupOrder),
    /// Sets after which time keys age, in a queue whose keys do.
    AgeAfter(Option<Duration>),
    /// Changes how many keys fit, any number with [`usize::MAX`], in a queue that can be limited.
    LimitKeys(usize),
    /// Changes how many keys may be kept for their failures alone, where that can be changed.
    LimitFailureRecords(usize),
    /// Changes how many due keys an operation makes ready, where a step is one operation.
    LimitDueKeys(u8),
    /// Changes what else keys wait for, in a queue that can have a policy.
    SetPolicy(PolicySpec),

    /// Hands out the first ready key.
    TryGet,
    /// One look of a call that may wait, and sleeps if there is nothing.
    Get(Sleeper),
    /// The same for many keys.
    GetMany(usize, Sleeper),
    /// Completes a run, and looks for the next key.
    Next(Run, Action, Sleeper),
    /// A sleeper is cancelled.
    Leave(Sleeper),
    /// Completes the run of a key by name.
    DoneKey(Key),
    /// Completes a run, which may have been completed before.
    Done(Run),
    /// Completes a run, and says what becomes of the key.
    Complete(Run, Action),
    /// Completes runs in order.
    CompleteMany(Vec<Run>, Action),
    /// A worker takes the first ready key, if there is one, panics with it, and is caught. The key
    /// counts as failed.
    PanicAtWork,
    /// Something panics while the queue's lock is held, and is caught.
    PanicUnderLock,
    /// Reports the gauges of work under way.
    ReportRunning,

    /// Takes no more keys, and ends every wait for the drain.
    ShutDown,
    /// Takes no more keys, and begins to wait for the drain.
    BeginDrain,
    /// How a wait for the drain stands.
    Drained(Drain),
    /// After shutdown: takes out the first delayed key.
    TakeDelayed,
    /// After shutdown: takes out the first ready key.
    TakeReady,

    /// How many keys are ready. Like every operation that could tell, it first releases what is
    /// due.
    Len,
    /// What the queue knows of each key that it holds, in the order of the keys.
    Snapshot,
    /// What the queue knows of a key.
    State(Key),
    /// Whether there is work to be done on a key.
    Contains(Key),
    /// How many failures are remembered of a key.
    Failures(Key),
    /// Why a key does not run.
    Why(Key),
    /// The counts of the queue. Releases nothing.
    Stats,
    /// The figures of a group, if it has keys.
    Group(u8),
    /// Whether the queue is paused.
    IsPaused,
    /// Whether no key is ready or active.
    IsIdle,
    /// Whether no key is ready, active or delayed.
    IsSettled,
    /// Whether the queue is shutting down.
    IsShuttingDown,
    /// When a loop has to look for a key.
    NextLook,
    /// Whether ready keys have waited, and runs have lasted, no longer than this, in a queue without
    /// groups.
    IsWithin(Duration, Duration),

    /// Time passes.
    Advance(Duration),
    /// Time passes until the earliest deadline.
    AdvanceToDeadline,
    /// The clock of a queue without a lock goes back, against its contract.
    Rewind(Duration),
    /// A sleeper looks again, woken or not.
    LookAgain(u8),
    /// Begins a call of the queue's own.
    Start(Call),
    /// Makes a call that completes a key and waits for the next, and drops it before it has run.
    NextUnrun(Action),
    /// A call that waits is cancelled: 0 is the first of those that still wait.
    Cancel(u8),
    /// A call that waits is let run although it was not woken.
    Nudge(u8),
    /// Everything runs that can.
    Settle,
}

/// What an operation answers: core's own answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Nothing is returned.
    Done,
    /// The queue has no such operation, and has done nothing.
    Lacking,
    /// There is no place for another group, and nothing has changed.
    NoPlace,
    /// Yes or no.
    Is(bool),
    /// How many.
    Count(usize),
    /// What became of an add.
    Added(Result<Added, Rejected<Key>>),
    /// What became of an add that may have the key wait.
    Scheduled(Result<Scheduled, Rejected<Key>>),
    /// The same, and the key that made way.
    Displaced(Displaced),
    /// What became of many, and those that were handed back.
    AddedMany(AddedMany, Vec<Rejected<Key>>),
    /// What became of a key that another queue has left.
    Restored(Result<Added, Rejected<Left>>),
    /// What is known of a key.
    State(Option<KeyState>),
    /// What is known of all keys.
    Snapshot(Vec<(Key, KeyState)>),
    /// A deadline.
    Due(Option<Instant>),
    /// A key that was handed out.
    Work(Option<Handed>),
    /// What there is to do for a call.
    Next(Next<Handed>),
    /// When to look.
    Look(Next<()>),
    /// The same for many keys.
    NextMany(Next<Vec<Handed>>),
    /// What became of a run, and what there is to do next.
    Turn(Finished, Next<Handed>),
    /// What became of a run.
    Finished(Finished),
    /// A wait for the drain.
    Drain(Drain),
    /// How a wait for the drain stands.
    Drained(Drained),
    /// A key that was left over.
    Left(Option<Left>),
    /// Why a key does not run.
    Why(Why),
    /// The counts of the queue.
    Stats(Stats),
    /// The figures of a group.
    Group(Option<GroupFigures>),
}

/// The right to complete a run: the key, and how often the queue had handed it out to the test by
/// then. It is the same for every queue with the same history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket {
    /// The key.
    pub key: Key,
    /// The number of the run.
    pub run: u64,
}

/// Which run an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Run {
    /// One of those that have begun, in a history that is drawn.
    Pick(u8),
    /// That of a ticket.
    Of(Ticket),
}

impl From<Ticket> for Run {
    fn from(ticket: Ticket) -> Self {
        Self::Of(ticket)
    }
}

/// Which call looks, or goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sleeper {
    /// A new one.
    New,
    /// One of those that sleep, in a history that is drawn.
    Pick(u8),
    /// The one with this number.
    Of(u32),
}

/// One wait for the drain, numbered from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drain(pub usize);

/// A key that was handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Handed {
    /// Describes a key whose run has no number yet.
    pub(crate) fn of(key: Key, failures: u32, priority: u8, timed_out: bool) -> Self {
        let ticket = Ticket { key, run: 0 };
        Self {
            key,
            ticket,
            failures,
            priority,
            timed_out,
        }
    }
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

/// What [`Operation::AddDisplacing`] answers: what was added, and the key that made way.
pub type Displaced = Result<(Scheduled, Option<Left>), Rejected<Key>>;

/// Where the arguments of an operation come from: the bytes of a drawn history, or the words of a
/// story.
pub(crate) trait Arguments {
    fn key(&mut self) -> Key;
    fn keys(&mut self) -> Vec<Key>;
    /// A key that no other operation of a drawn history names.
    fn other_key(&mut self) -> Key;
    fn run(&mut self) -> Run;
    fn runs(&mut self) -> Vec<Run>;
    /// One of the calls that wait.
    fn waiting(&mut self) -> u8;
    fn action(&mut self) -> Action;
    fn options(&mut self) -> AddOptions;
    fn left(&mut self) -> Left;
    fn delay(&mut self) -> Duration;
    /// A time that is not zero.
    fn short(&mut self) -> Duration {
        self.delay()
    }
    /// How far the clock moves.
    fn passing(&mut self) -> Duration {
        self.delay()
    }
    fn instant(&mut self) -> Instant;
    fn age(&mut self) -> Option<Duration>;
    fn cap(&mut self) -> Cap;
    fn own_cap(&mut self) -> Option<Cap>;
    fn policy(&mut self) -> PolicySpec;
    /// One of these numbers, or any that a story says. A story need not say the only one.
    fn number(&mut self, drawn: &[usize]) -> usize;
}

/// An operation as stories and drawn histories do it.
pub(crate) struct Row {
    /// How a step of a story begins. Longer where a story says the same with arguments.
    pub(crate) words: &'static str,
    /// How often it comes among operations that never wait, towards their end, among calls that
    /// wait, towards their end, and among calls of several threads. Those take effect at one point
    /// in time.
    pub(crate) weights: [u16; 5],
    /// Whether drawn histories do it.
    pub(crate) is_used: fn(&Uses) -> bool,
    pub(crate) make: fn(&mut dyn Arguments) -> Operation,
}

macro_rules! rows {
    (|$uses:ident, $it:ident|
        $($words:literal, $weights:expr, $is_used:expr => $operation:expr;)+) => {
        &[$(Row {
            words: $words,
            weights: $weights,
            is_used: |$uses| {
                let _ = $uses;
                $is_used
            },
            make: |$it| {
                let _ = &$it;
                $operation
            },
        }),+]
    };
}

/// Every operation. A history that fails shrinks towards the first: new operations go last, or
/// histories become longer.
pub(crate) const ROWS: &[Row] = rows! { |uses, it|
    "settle", [0, 0, 8, 0, 0], true => O::Settle;
    "start get", [0, 0, 6, 0, 0], true => O::Start(Call::Get);
    "add", [20, 0, 6, 0, 14], true => O::Add(it.key());
    "add_after", [20, 0, 8, 0, 7], true => O::AddAfter(it.key(), it.delay());
    "drop_call", [0, 0, 4, 0, 0], true => O::Cancel(it.waiting());
    "advance_to_deadline", [14, 0, 6, 0, 0], !uses.backlog => O::AdvanceToDeadline;
    "advance", [28, 0, 4, 0, 0], true => O::Advance(it.passing());
    "start get_timeout", [0, 0, 4, 0, 0], true => O::Start(Call::GetTimeout(it.delay()));
    "finish", [32, 0, 6, 0, 10], true => O::Complete(it.run(), it.action());
    "start next", [0, 0, 3, 0, 0], true => O::Start(Call::Next(it.action()));
    "next_unrun", [0, 0, 2, 0, 0], true => O::NextUnrun(it.action());
    "nudge_call", [0, 0, 2, 0, 0], true => O::Nudge(it.waiting());
    "add_rate_limited", [16, 0, 3, 0, 6], true => O::AddRateLimited(it.key());
    "add_many", [4, 0, 2, 0, 4], true => O::AddMany(it.keys());
    "add_with", [16, 0, 3, 0, 3], true => O::AddWith(it.key(), it.options());
    "try_get", [36, 0, 2, 0, 7], true => O::TryGet;
    "release", [16, 0, 1, 0, 1], true => O::Done(it.run());
    "done", [16, 0, 2, 0, 3], true => O::DoneKey(it.key());
    "cancel", [8, 8, 2, 1, 3], uses.cancel => O::CancelKey(it.key());
    "cancel_delay", [3, 3, 1, 0, 1], uses.cancel => O::CancelDelay(it.key());
    "expedite", [3, 3, 2, 0, 2], uses.cancel => O::Expedite(it.key());
    "expedite_all", [1, 1, 1, 0, 0], uses.cancel => O::ExpediteAll;
    "retain_below", [1, 1, 1, 0, 0], uses.cancel => O::RetainBelow(it.key());
    "panic_at_work", [8, 0, 2, 0, 0], true => O::PanicAtWork;
    "add_debounced", [12, 0, 2, 0, 0], uses.debounce
        => O::AddDebounced(it.key(), it.delay(), it.delay());
    "pause", [1, 1, 2, 0, 1], uses.pause => O::Pause;
    "unpause", [2, 2, 3, 0, 2], uses.pause => O::Unpause;
    "start wait_idle", [0, 0, 2, 0, 0], true => O::Start(Call::WaitIdle);
    "start wait_settled", [0, 0, 2, 0, 0], true => O::Start(Call::WaitSettled);
    "start flush", [0, 0, 3, 0, 0], true => O::Start(Call::Flush(it.key()));
    "start cancel_and_wait", [0, 0, 2, 0, 0], true => O::Start(Call::CancelAndWait(it.key()));
    "start add_wait", [0, 0, 6, 0, 0], true => O::Start(Call::AddWait(it.other_key()));
    "snapshot", [1, 1, 1, 0, 0], true => O::Snapshot;
    "restore", [4, 0, 2, 0, 1], uses.restore => O::Restore(it.left());
    "limit_groups", [1, 1, 2, 0, 0], uses.change => O::Order(GroupOrder::LimitAll(it.cap()));
    "limit_group", [2, 2, 2, 0, 0], uses.change
        => O::Order(GroupOrder::Limit(it.number(&[0, 1, 2]) as u8, it.own_cap()));
    "pause_group", [1, 1, 1, 0, 0], uses.change
        => O::Order(GroupOrder::Pause(it.number(&[0, 1, 2]) as u8));
    "unpause_group", [1, 1, 2, 0, 0], uses.change
        => O::Order(GroupOrder::Unpause(it.number(&[0, 1, 2]) as u8));
    "age_after", [2, 2, 2, 0, 0], uses.change => O::AgeAfter(it.age());
    "limit_keys", [2, 2, 2, 0, 0], uses.change
        => O::LimitKeys(it.number(&[0, 1, 2, 3, 5, 6, 20, usize::MAX]));
    "why", [4, 4, 2, 0, 1], true => O::Why(it.key());
    "suspend", [5, 5, 3, 0, 3], uses.suspend => O::Suspend(it.key(), it.delay());
    "resume", [5, 5, 3, 0, 3], uses.suspend => O::Resume(it.key());
    "add_displacing", [12, 0, 2, 0, 0], uses.displace
        => O::AddDisplacing(it.key(), it.options());
    "set_policy", [2, 2, 2, 0, 0], uses.change => O::SetPolicy(it.policy());
    "start drain", [0, 0, 0, 3, 0], true => O::Start(Call::Drain);
    "start drain_timeout", [0, 0, 0, 2, 0], true => O::Start(Call::DrainTimeout(it.delay()));
    "shut_down", [0, 47, 0, 1, 1], true => O::ShutDown;
    "begin_drain", [0, 47, 0, 0, 0], true => O::BeginDrain;
    "take_ready", [0, 188, 0, 1, 1], true => O::TakeReady;
    "take_delayed", [0, 94, 0, 1, 1], true => O::TakeDelayed;
    "add_within", [8, 0, 0, 0, 2], uses.slack => O::AddWithin(it.key(), it.delay(), it.delay());
    "add_at", [8, 0, 0, 0, 0], true => O::AddAt(it.key(), it.instant());
    "get", [36, 0, 0, 0, 4], true => O::Get(Sleeper::New);
    "get_many", [9, 0, 0, 0, 2], true => O::GetMany(it.number(&[0, 1, 2, 3]), Sleeper::New);
    "look_again", [27, 0, 0, 0, 0], true => O::LookAgain(it.waiting());
    "leave", [9, 0, 0, 0, 0], true => O::Leave(Sleeper::Pick(it.waiting()));
    "forget", [4, 0, 0, 0, 3], true => O::Forget(it.key());
    "finish_many", [8, 0, 0, 0, 4], true => O::CompleteMany(it.runs(), it.action());
    "next", [16, 0, 0, 0, 4], true => O::Next(it.run(), it.action(), Sleeper::New);
    "report_running", [7, 0, 0, 0, 0], true => O::ReportRunning;
    "limit_failure_records", [1, 1, 0, 0, 0], uses.change
        => O::LimitFailureRecords(it.number(&[0, 1, 2, usize::MAX]));
    "limit_due_keys", [1, 1, 0, 0, 0], uses.change => O::LimitDueKeys(it.number(&[1, 2, 3]) as u8);
    "start get_timeout 0s", [0, 0, 0, 0, 4], true => O::Start(Call::GetTimeout(Duration::ZERO));
    "start drain_timeout 0s", [0, 0, 0, 0, 2], true => O::Start(Call::DrainTimeout(Duration::ZERO));
    "advance a little", [0, 0, 0, 0, 4], true => O::Advance(it.short());
    "rewind", [28, 0, 0, 0, 0], uses.rewind => O::Rewind(it.delay());
    "len", [0, 0, 0, 0, 2], true => O::Len;
    "state", [0, 0, 0, 0, 3], true => O::State(it.key());
    "failures", [0, 0, 0, 0, 2], true => O::Failures(it.key());
    "contains", [0, 0, 0, 0, 1], true => O::Contains(it.key());
    "is_shutting_down", [0, 0, 0, 0, 1], true => O::IsShuttingDown;
    "is_paused", [0, 0, 0, 0, 1], true => O::IsPaused;
    "is_idle", [0, 0, 0, 0, 1], true => O::IsIdle;
    "is_within", [9, 3, 0, 0, 1], true => O::IsWithin(it.short(), it.short());
    "is_settled", [0, 0, 0, 0, 0], true => O::IsSettled;
    "stats", [0, 0, 0, 0, 0], true => O::Stats;
    "next_look", [0, 0, 0, 0, 0], true => O::NextLook;
    "group", [0, 0, 0, 0, 0], true => O::Group(it.number(&[0, 1, 2]) as u8);
    "drained", [0, 0, 0, 0, 0], true => O::Drained(Drain(it.number(&[0])));
    "panic_under_lock", [0, 0, 0, 0, 0], true => O::PanicUnderLock;
};

impl Operation {
    /// Everything that can be seen of a queue with these keys. The first releases what is due.
    pub(crate) fn looks(keys: Key) -> impl Iterator<Item = Self> {
        let of_key = |key| {
            let group = O::Group(group_of(&key));
            let of_key: [fn(Key) -> O; 4] = [O::State, O::Contains, O::Why, O::Failures];
            of_key.map(|look| look(key)).into_iter().chain([group])
        };
        let of_queue = [
            O::Stats,
            O::IsShuttingDown,
            O::IsPaused,
            O::IsIdle,
            O::IsSettled,
            O::NextLook,
        ];
        let of_keys = (1..=keys).flat_map(of_key);
        [O::Len].into_iter().chain(of_keys).chain(of_queue)
    }

    /// The highest key that is named.
    pub(crate) fn highest_key(&self) -> Key {
        match self {
            Self::Add(key)
            | Self::AddAfter(key, _)
            | Self::AddWithin(key, ..)
            | Self::AddAt(key, _)
            | Self::AddRateLimited(key)
            | Self::AddWith(key, _)
            | Self::AddDisplacing(key, _)
            | Self::AddDebounced(key, ..)
            | Self::Forget(key)
            | Self::CancelKey(key)
            | Self::CancelDelay(key)
            | Self::Expedite(key)
            | Self::DoneKey(key)
            | Self::Why(key)
            | Self::Suspend(key, _)
            | Self::Resume(key)
            | Self::Start(Call::Flush(key) | Call::CancelAndWait(key) | Call::AddWait(key))
            | Self::Restore(Left { key, .. }) => *key,
            Self::AddMany(keys) => keys.iter().copied().max().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the runs that it ends.
    pub fn runs_mut(&mut self) -> &mut [Run] {
        match self {
            Self::Done(run) | Self::Complete(run, _) | Self::Next(run, ..) => slice::from_mut(run),
            Self::CompleteMany(runs, _) => runs,
            _ => &mut [],
        }
    }

    /// The call that looks, or goes.
    pub(crate) fn sleeper_mut(&mut self) -> Option<&mut Sleeper> {
        match self {
            Self::Get(sleeper)
            | Self::GetMany(_, sleeper)
            | Self::Next(_, _, sleeper)
            | Self::Leave(sleeper) => Some(sleeper),
            _ => None,
        }
    }
}

impl Answer {
    /// Whether two queues have answered the same. *When* a call that sleeps looks again they may
    /// choose: one of those who sleep watches the clock for all.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Turn(one, _), Self::Turn(other, _)) if one != other => false,
            _ if self.waits().is_some() && other.waits().is_some() => true,
            _ => self == other,
        }
    }

    /// Until when a call sleeps that looks, if it does.
    pub(crate) fn waits(&self) -> Option<Option<Instant>> {
        match self {
            Self::Next(Next::Wait { until })
            | Self::NextMany(Next::Wait { until })
            | Self::Turn(_, Next::Wait { until }) => Some(*until),
            _ => None,
        }
    }

    /// The keys that are handed out.
    pub(crate) fn handed(&self) -> &[Handed] {
        match self {
            Self::Work(Some(handed))
            | Self::Next(Next::Work(handed))
            | Self::Turn(_, Next::Work(handed)) => slice::from_ref(handed),
            Self::NextMany(Next::Work(handed)) => handed,
            _ => &[],
        }
    }
}

/// As a reader of a history wants to have it, and as a story says it. Times are those of the clock.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Done | Self::Drain(_) => String::from("done"),
            Self::Lacking => String::from("there is no such operation"),
            Self::NoPlace => String::from("there is no place for another group"),
            Self::Is(it) => String::from(if *it { "yes" } else { "no" }),
            Self::Count(it) => it.to_string(),
            Self::Added(it) => outcome(it, name),
            Self::Scheduled(it) => outcome(it, scheduled),
            Self::Displaced(it) => outcome(it, |(added, left)| match left {
                Some(left) => format!("{} in place of {}", scheduled(added), left.key),
                None => scheduled(added),
            }),
            Self::AddedMany(many, rejected) => {
                let counts = [
                    count(many.ready, "ready"),
                    count(many.dirty, "dirty"),
                    count(many.delayed, "delayed"),
                    count(many.coalesced, "coalesced"),
                ];
                let rejected = rejected.iter();
                let rejected = rejected.map(|it| Some(format!("{} {}", it.into_key(), name(it))));
                listed(counts.into_iter().chain(rejected))
            }
            Self::Restored(it) => outcome(it, name),
            Self::State(it) => it.map_or(String::from("none"), state),
            Self::Snapshot(it) => {
                let keys = it.iter();
                let keys = keys.map(|(key, known)| format!("{key} {}", state(*known)));
                keys.collect::<Vec<_>>().join("; ")
            }
            Self::Due(it) => it.map_or(String::from("none"), |due| due.to_string()),
            Self::Work(it) => it.map_or(String::from("no key"), |it| it.to_string()),
            Self::Next(it) => next(it, Handed::to_string),
            Self::NextMany(it) => next(it, |handed| {
                listed(handed.iter().map(|it| Some(it.to_string())))
            }),
            Self::Turn(end, it) => format!("{}, {}", finished(end), next(it, Handed::to_string)),
            Self::Look(Next::Wait { until: None }) => String::from("never"),
            Self::Look(Next::Wait { until: Some(until) }) => until.to_string(),
            Self::Look(it) => next(it, |()| String::from("a key")),
            Self::Finished(it) => finished(it),
            Self::Drained(it) => format!("{it:?}"),
            Self::Left(it) => it.as_ref().map_or(String::from("none"), left),
            Self::Why(it) => why(it),
            Self::Stats(it) => stats(it),
            Self::Group(it) => format!("{it:?}"),
        };
        f.write_str(&text)
    }
}

/// The name of a variant, without what it has.
pub(crate) fn name(it: &impl fmt::Debug) -> String {
    let shown = format!("{it:?}");
    let name = shown.split(|c: char| !c.is_alphanumeric()).next();
    name.unwrap_or_default().to_owned()
}

fn outcome<T, E: fmt::Debug>(result: &Result<T, E>, show: impl FnOnce(&T) -> String) -> String {
    result.as_ref().map_or_else(name, show)
}

fn next<T>(next: &Next<T>, show: impl FnOnce(&T) -> String) -> String {
    match next {
        Next::Work(work) => show(work),
        Next::Wait { .. } => String::from("waits"),
        Next::Closed => String::from("closed"),
    }
}

fn time(time: Duration) -> String {
    match time {
        Duration::MAX => String::from("never"),
        time => format!("{time:?}"),
    }
}

fn scheduled(it: &Scheduled) -> String {
    match it.delay {
        Duration::ZERO => name(&it.added),
        delay => format!("{} {}", name(&it.added), time(delay)),
    }
}

fn finished(it: &Finished) -> String {
    match *it {
        Finished::Delayed(delay) | Finished::Leftover(delay) | Finished::Suspended(delay) => {
            format!("{} {}", name(it), time(delay))
        }
        _ => name(it),
    }
}

/// Those that are there.
fn listed(parts: impl IntoIterator<Item = Option<String>>) -> String {
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// A count, unless it is zero.
fn count(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| format!("{what} {count}"))
}

fn flag(is_set: bool, name: &str) -> Option<String> {
    is_set.then(|| String::from(name))
}

fn state(it: KeyState) -> String {
    listed([
        flag(it.ready, "ready"),
        flag(it.active, "active"),
        flag(it.dirty, "dirty"),
        flag(it.cancelled, "cancelled"),
        it.due.map(|due| format!("due {due}")),
        it.suspended.map(|until| format!("suspended {until}")),
        count(it.failures as usize, "failures"),
        count(it.priority.into(), "level"),
    ])
}

fn left(it: &Left) -> String {
    let parts = listed([
        (!it.left.is_zero()).then(|| format!("after {}", time(it.left))),
        count(it.failures as usize, "failures"),
        count(it.priority.into(), "level"),
    ]);
    format!("{} {parts}", it.key).trim_end().to_owned()
}

fn why(it: &Why) -> String {
    let until = it.until().map(|until| format!(" {until}"));
    let more = match it {
        Why::BackingOff { failures, .. } | Why::Held { failures, .. } => {
            format!(", failures {failures}")
        }
        Why::Running { again: true, .. } | Why::Suspended { again: true, .. } => {
            String::from(", again")
        }
        _ => String::new(),
    };
    format!("{}{}{more}", name(it), until.unwrap_or_default())
}

fn stats(it: &Stats) -> String {
    listed([
        count(it.total, "total"),
        count(it.ready, "ready"),
        count(it.active, "active"),
        count(it.dirty, "dirty"),
        count(it.delayed, "delayed"),
        count(it.suspended, "suspended"),
        count(it.failure_records, "failure_records"),
        it.next_deadline.map(|due| format!("next_deadline {due}")),
        flag(it.paused, "paused"),
        flag(it.shutting_down, "shutting_down"),
        flag(it.total == 0, "total 0"),
    ])
}

/// Each operation as a method, for tests that are written by hand.
macro_rules! methods {
    ($($name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?:
        $operation:expr => $pattern:pat => $value:expr;)+) => {
        /// The operations as methods, with the answers that fit them.
        ///
        /// # Panics
        ///
        /// If a queue answers an operation by something else, as by [`Answer::Lacking`].
        #[allow(missing_docs, reason = "they are documented as values")]
        pub trait Operate: Subject {$(
            #[track_caller]
            fn $name(&mut self, $($argument: $type),*) $(-> $answer)? {
                let operation = $operation;
                match self.apply(&operation) {
                    $pattern => $value,
                    other => panic!("{operation:?} is answered by {other:?}"),
                }
            }
        )+}
    };
}

impl<S: Subject + ?Sized> Operate for S {}

methods! {
    add(key: Key) -> Result<Added, Rejected<Key>>: O::Add(key) => Answer::Added(it) => it;
    add_after(key: Key, delay: Duration) -> Result<Added, Rejected<Key>>:
        O::AddAfter(key, delay) => Answer::Added(it) => it;
    add_rate_limited(key: Key) -> Result<Scheduled, Rejected<Key>>:
        O::AddRateLimited(key) => Answer::Scheduled(it) => it;
    add_with(key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>>:
        O::AddWith(key, options) => Answer::Scheduled(it) => it;
    restore(left: Left) -> Result<Added, Rejected<Left>>:
        O::Restore(left) => Answer::Restored(it) => it;
    forget(key: Key) -> u32: O::Forget(key) => Answer::Count(it) => it as u32;
    cancel_key(key: Key) -> Option<KeyState>: O::CancelKey(key) => Answer::State(it) => it;
    cancel_delay(key: Key) -> Option<Instant>: O::CancelDelay(key) => Answer::Due(it) => it;
    expedite(key: Key) -> bool: O::Expedite(key) => Answer::Is(it) => it;
    order(order: &GroupOrder): O::Order(order.clone()) => Answer::Done | Answer::NoPlace => ();
    age_after(after: Option<Duration>): O::AgeAfter(after) => Answer::Done => ();
    try_get() -> Option<Handed>: O::TryGet => Answer::Work(it) => it;
    get(sleeper: u32) -> Next<Handed>: O::Get(Sleeper::Of(sleeper)) => Answer::Next(it) => it;
    leave(sleeper: u32): O::Leave(Sleeper::Of(sleeper)) => Answer::Done => ();
    release_key(key: Key) -> Finished: O::DoneKey(key) => Answer::Finished(it) => it;
    release(ticket: Ticket) -> Finished: O::Done(ticket.into()) => Answer::Finished(it) => it;
    finish(ticket: Ticket, action: Action) -> Finished:
        O::Complete(ticket.into(), action) => Answer::Finished(it) => it;
    report_running(): O::ReportRunning => Answer::Done => ();
    shut_down(): O::ShutDown => Answer::Done => ();
    begin_drain() -> Drain: O::BeginDrain => Answer::Drain(it) => it;
    drained(drain: &Drain) -> Drained: O::Drained(*drain) => Answer::Drained(it) => it;
    take_delayed() -> Option<Left>: O::TakeDelayed => Answer::Left(it) => it;
    take_ready() -> Option<Left>: O::TakeReady => Answer::Left(it) => it;
    len() -> usize: O::Len => Answer::Count(it) => it;
    state(key: Key) -> Option<KeyState>: O::State(key) => Answer::State(it) => it;
    contains(key: Key) -> bool: O::Contains(key) => Answer::Is(it) => it;
    failures(key: Key) -> u32: O::Failures(key) => Answer::Count(it) => it as u32;
    why(key: Key) -> Why: O::Why(key) => Answer::Why(it) => it;
    stats() -> Stats: O::Stats => Answer::Stats(it) => it;
    is_paused() -> bool: O::IsPaused => Answer::Is(it) => it;
    is_idle() -> bool: O::IsIdle => Answer::Is(it) => it;
    is_settled() -> bool: O::IsSettled => Answer::Is(it) => it;
    is_shutting_down() -> bool: O::IsShuttingDown => Answer::Is(it) => it;
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::histories::Bytes;

    #[test]
    fn each_operation_has_a_row() {
        let source = include_str!("operation.rs");
        let (_, variants) = source.split_once("pub enum Operation {").unwrap();
        let (variants, _) = variants.split_once("\n}").unwrap();
        let variants = variants
            .lines()
            .map(str::trim)
            .filter(|line| line.starts_with(char::is_uppercase))
            .filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next());
        let variants: BTreeSet<String> = variants.map(String::from).collect();
        let made = ROWS
            .iter()
            .map(|row| (row.make)(&mut Bytes::new(&[], Uses::ANY)));
        assert!(variants.len() > 50, "{variants:?}");
        assert_eq!(variants, made.map(|it| name(&it)).collect());
    }
}
