//! What can be done to a queue, and what it answers: values that a test draws, compares and prints.

use std::fmt;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Finished, Instant, KeyState, Leftover, Merge, Rejected,
    Stats, Why,
};

use crate::combinations::Uses;
use crate::histories::Bytes;
use crate::subject::{Call, GroupFigures, GroupOrder, PolicySpec, Scheduled, Subject, group_of};

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
    /// A sleeper looks again, woken or not.
    LookAgain(u8),
    /// Begins a call of the queue's own.
    Start(Call),
    /// Makes a call that completes a key and waits for the next, and drops it before it has run.
    NextUnrun(Action),
    /// A call that waits is cancelled.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
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

/// What [`Operation::AddDisplacing`] answers: what was added, and the key that made way.
pub type Displaced = Result<(Scheduled, Option<Left>), Rejected<Key>>;

/// How often an operation comes in drawn histories, and how it is made of bytes.
pub(crate) struct Drawn {
    /// Among operations that never wait, towards their end, among calls that wait, towards their
    /// end, and among calls of several threads.
    pub(crate) weights: [u16; 5],
    /// Whether such histories do it.
    pub(crate) is_used: fn(&Uses) -> bool,
    pub(crate) draw: fn(&mut Bytes<'_>) -> Operation,
    /// What exploration tries of it for a key.
    explored: fn(Key) -> Vec<Operation>,
}

const fn drawn([a, b, c, d]: [u16; 4], draw: fn(&mut Bytes<'_>) -> Operation) -> Drawn {
    Drawn {
        weights: [a, b, c, d, 0],
        is_used: |_| true,
        draw,
        explored: |_| Vec::new(),
    }
}

impl Drawn {
    const fn used(self, is_used: fn(&Uses) -> bool) -> Self {
        Self { is_used, ..self }
    }

    /// Several threads do it at once: it takes effect at one point in time.
    const fn at_once(mut self, weight: u16) -> Self {
        self.weights[4] = weight;
        self
    }

    const fn explored(self, explored: fn(Key) -> Vec<Operation>) -> Self {
        Self { explored, ..self }
    }
}

/// How every operation is drawn. A history that fails shrinks towards the first: new operations go
/// last, or histories become longer.
pub(crate) const DRAWN: &[Drawn] = &[
    drawn([0, 0, 8, 0], |_| O::Settle),
    drawn([0, 0, 6, 0], |_| O::Start(Call::Get)),
    drawn([20, 0, 6, 0], |b| O::Add(b.key()))
        .at_once(14)
        .explored(|key| vec![O::Add(key)]),
    drawn([20, 0, 8, 0], |b| O::AddAfter(b.key(), b.delay()))
        .at_once(7)
        .explored(|key| vec![O::AddAfter(key, ns(1)), O::AddAfter(key, ns(2))]),
    drawn([0, 0, 4, 0], |b| O::Cancel(b.byte())),
    drawn([14, 0, 6, 0], |_| O::AdvanceToDeadline).used(|uses| !uses.backlog),
    drawn([28, 0, 4, 0], |b| O::Advance(b.passing())).explored(|_| vec![O::Advance(ns(1))]),
    drawn([0, 0, 4, 0], |b| O::Start(Call::GetTimeout(b.delay()))),
    drawn([32, 0, 6, 0], |b| O::Complete(b.run(), b.action()))
        .at_once(10)
        .explored(|_| {
            let ends = [
                Action::Release,
                Action::Success,
                Action::Retry,
                Action::GiveUp,
                Action::RequeueAfter(ns(1)),
                Action::Snooze(ns(2)),
                Action::Suspend(ns(1)),
                Action::poll(ns(1), ns(2)),
            ];
            ends.map(|end| O::Complete(Run::Pick(0), end)).into()
        }),
    drawn([0, 0, 3, 0], |b| O::Start(Call::Next(b.action()))),
    drawn([0, 0, 2, 0], |b| O::NextUnrun(b.action())),
    drawn([0, 0, 2, 0], |b| O::Nudge(b.byte())),
    drawn([16, 0, 3, 0], |b| O::AddRateLimited(b.key()))
        .at_once(6)
        .explored(|key| vec![O::AddRateLimited(key)]),
    drawn([4, 0, 2, 0], |b| O::AddMany(b.several(Bytes::key))).at_once(4),
    drawn([16, 0, 3, 0], |b| O::AddWith(b.key(), b.options()))
        .at_once(3)
        .explored(|key| {
            // A deadline is replaced: of the first key by now, of the second by one 2 ns away.
            let options = AddOptions {
                after: (key > 1).then_some(ns(2)),
                merge: Merge::Replace,
                ..AddOptions::new()
            };
            vec![O::AddWith(key, options)]
        }),
    drawn([36, 0, 2, 0], |_| O::TryGet).at_once(7),
    drawn([16, 0, 1, 0], |b| O::Done(b.run())).at_once(1),
    drawn([16, 0, 2, 0], |b| O::DoneKey(b.key()))
        .at_once(3)
        .explored(|key| vec![O::DoneKey(key)]),
    drawn([8, 8, 2, 1], |b| O::CancelKey(b.key()))
        .at_once(3)
        .used(|uses| uses.cancel)
        .explored(|key| vec![O::CancelKey(key)]),
    drawn([3, 3, 1, 0], |b| O::CancelDelay(b.key()))
        .at_once(1)
        .used(|uses| uses.cancel)
        .explored(|key| vec![O::CancelDelay(key)]),
    drawn([3, 3, 2, 0], |b| O::Expedite(b.key()))
        .at_once(2)
        .used(|uses| uses.cancel)
        .explored(|key| vec![O::Expedite(key)]),
    drawn([1, 1, 1, 0], |_| O::ExpediteAll)
        .used(|uses| uses.cancel)
        .explored(|_| vec![O::ExpediteAll]),
    drawn([1, 1, 1, 0], |b| O::RetainBelow(b.key()))
        .used(|uses| uses.cancel)
        .explored(|_| vec![O::RetainBelow(2)]),
    drawn([8, 0, 2, 0], |_| O::PanicAtWork),
    drawn([12, 0, 2, 0], |b| {
        O::AddDebounced(b.key(), b.delay(), b.delay())
    })
    .used(|uses| uses.debounce)
    .explored(|key| vec![O::AddDebounced(key, ns(1), ns(2))]),
    drawn([1, 1, 2, 0], |_| O::Pause)
        .at_once(1)
        .used(|uses| uses.pause)
        .explored(|_| vec![O::Pause]),
    drawn([2, 2, 3, 0], |_| O::Unpause)
        .at_once(2)
        .used(|uses| uses.pause)
        .explored(|_| vec![O::Unpause]),
    drawn([0, 0, 2, 0], |_| O::Start(Call::WaitIdle)),
    drawn([0, 0, 2, 0], |_| O::Start(Call::WaitSettled)),
    drawn([0, 0, 3, 0], |b| O::Start(Call::Flush(b.key()))),
    drawn([0, 0, 2, 0], |b| O::Start(Call::CancelAndWait(b.key()))),
    // Keys that are added by no other step.
    drawn([0, 0, 6, 0], |b| {
        O::Start(Call::AddWait(b.key() + b.keys()))
    }),
    drawn([1, 1, 1, 0], |_| O::Snapshot).explored(|_| vec![O::Snapshot]),
    drawn([4, 0, 2, 0], |b| O::Restore(b.left()))
        .at_once(1)
        .used(|uses| uses.restore)
        // A key that has failed once: the first is ready, the second delayed.
        .explored(|key| vec![O::Restore(left_over(key, ns(u64::from(key) - 1), 1, 0))]),
    drawn([4, 4, 6, 0], |b| O::Order(b.order())).used(|uses| uses.change),
    drawn([2, 2, 2, 0], |b| O::AgeAfter(b.option(Bytes::delay))).used(|uses| uses.change),
    drawn([2, 2, 2, 0], |b| O::LimitKeys(b.room())).used(|uses| uses.change),
    drawn([4, 4, 2, 0], |b| O::Why(b.key()))
        .at_once(1)
        .explored(|key| vec![O::Why(key)]),
    drawn([5, 5, 3, 0], |b| O::Suspend(b.key(), b.delay()))
        .at_once(3)
        .used(|uses| uses.suspend)
        .explored(|key| vec![O::Suspend(key, ns(2))]),
    drawn([5, 5, 3, 0], |b| O::Resume(b.key()))
        .at_once(3)
        .used(|uses| uses.suspend)
        .explored(|key| vec![O::Resume(key)]),
    drawn([12, 0, 2, 0], |b| O::AddDisplacing(b.key(), b.options())).used(|uses| uses.displace),
    drawn([2, 2, 2, 0], |b| O::SetPolicy(b.policy())).used(|uses| uses.change),
    drawn([0, 0, 0, 3], |_| O::Start(Call::Drain)),
    drawn([0, 0, 0, 2], |b| O::Start(Call::DrainTimeout(b.delay()))),
    drawn([0, 47, 0, 1], |_| O::ShutDown)
        .at_once(1)
        .explored(|_| vec![O::ShutDown]),
    drawn([0, 47, 0, 0], |_| O::BeginDrain).explored(|_| vec![O::BeginDrain]),
    drawn([0, 188, 0, 1], |_| O::TakeReady)
        .at_once(1)
        .explored(|_| vec![O::TakeReady]),
    drawn([0, 94, 0, 1], |_| O::TakeDelayed)
        .at_once(1)
        .explored(|_| vec![O::TakeDelayed]),
    drawn([8, 0, 0, 0], |b| {
        O::AddWithin(b.key(), b.delay(), b.delay())
    })
    .at_once(2)
    .used(|uses| uses.slack),
    drawn([8, 0, 0, 0], |b| O::AddAt(b.key(), b.instant())),
    drawn([36, 0, 0, 0], |_| O::Get(Sleeper::New))
        .at_once(4)
        .explored(|_| vec![O::Get(Sleeper::New)]),
    drawn([9, 0, 0, 0], |b| {
        O::GetMany(b.below(4).into(), Sleeper::New)
    })
    .at_once(2),
    drawn([27, 0, 0, 0], |b| O::LookAgain(b.byte())).explored(|_| vec![O::LookAgain(0)]),
    drawn([9, 0, 0, 0], |b| O::Leave(Sleeper::Pick(b.byte())))
        .explored(|_| vec![O::Leave(Sleeper::Pick(0))]),
    drawn([4, 0, 0, 0], |b| O::Forget(b.key()))
        .at_once(3)
        .explored(|key| vec![O::Forget(key)]),
    drawn([8, 0, 0, 0], |b| {
        O::CompleteMany(b.several(Bytes::run), b.action())
    })
    .at_once(4),
    drawn([16, 0, 0, 0], |b| {
        O::Next(b.run(), b.action(), Sleeper::New)
    })
    .at_once(4)
    .explored(|_| vec![O::Next(Run::Pick(0), Action::Release, Sleeper::New)]),
    drawn([7, 0, 0, 0], |_| O::ReportRunning),
    drawn([1, 1, 0, 0], |b| {
        O::LimitFailureRecords(b.one_of(&[0, 1, 2, usize::MAX]))
    })
    .used(|uses| uses.change),
    drawn([1, 1, 0, 0], |b| O::LimitDueKeys(b.below(3) + 1)).used(|uses| uses.change),
    drawn([0; 4], |_| O::Start(Call::GetTimeout(Duration::ZERO))).at_once(4),
    drawn([0; 4], |_| O::Start(Call::DrainTimeout(Duration::ZERO))).at_once(2),
    drawn([0; 4], |b| O::Advance(b.short())).at_once(4),
    drawn([0; 4], |_| O::Len).at_once(2),
    drawn([0; 4], |b| O::State(b.key())).at_once(3),
    drawn([0; 4], |b| O::Failures(b.key())).at_once(2),
    drawn([0; 4], |b| O::Contains(b.key())).at_once(1),
    drawn([0; 4], |_| O::IsShuttingDown).at_once(1),
    drawn([0; 4], |_| O::IsPaused).at_once(1),
    drawn([0; 4], |_| O::IsIdle).at_once(1),
    drawn([9, 3, 0, 0], |b| O::IsWithin(b.short(), b.short())).at_once(1),
];

const fn ns(count: u64) -> Duration {
    Duration::from_nanos(count)
}

impl Operation {
    /// Everything that can be seen of a queue with these keys. The first releases what is due.
    pub(crate) fn looks(keys: Key) -> impl Iterator<Item = Self> {
        let of_key = |key| {
            let group = group_of(&key);
            [
                O::State(key),
                O::Contains(key),
                O::Why(key),
                O::Failures(key),
                O::Group(group),
            ]
        };
        let of_queue = [
            O::Stats,
            O::IsShuttingDown,
            O::IsPaused,
            O::IsIdle,
            O::IsSettled,
            O::NextLook,
        ];
        [O::Len]
            .into_iter()
            .chain((1..=keys).flat_map(of_key))
            .chain(of_queue)
    }

    /// Every kind of step that a program of one thread can take, on the keys up to this one.
    pub fn explored(keys: Key) -> Vec<Self> {
        let mut steps = Vec::new();
        for step in
            (1..=keys).flat_map(|key| DRAWN.iter().flat_map(move |kind| (kind.explored)(key)))
        {
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        steps
    }

    /// Whether it moves the clock.
    pub(crate) fn passes_time(&self) -> bool {
        matches!(self, Self::Advance(_) | Self::AdvanceToDeadline)
    }

    /// Whether it adds a key by name.
    pub(crate) fn adds(&self) -> bool {
        matches!(
            self,
            Self::Add(_)
                | Self::AddAfter(..)
                | Self::AddWithin(..)
                | Self::AddAt(..)
                | Self::AddRateLimited(_)
                | Self::AddWith(..)
                | Self::AddDisplacing(..)
                | Self::AddDebounced(..)
                | Self::Restore(_)
        )
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
}

impl Answer {
    /// Whether two queues have answered the same. *When* a call that sleeps looks again they may
    /// choose: one of those who sleep watches the clock for all.
    pub(crate) fn agrees(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Next(Next::Wait { .. }), Self::Next(Next::Wait { .. }))
            | (Self::NextMany(Next::Wait { .. }), Self::NextMany(Next::Wait { .. })) => true,
            (Self::Turn(one, Next::Wait { .. }), Self::Turn(other, Next::Wait { .. })) => {
                one == other
            }
            _ => self == other,
        }
    }
}

/// As a reader of a history wants to have it, and as a story says it. Times are those of the clock.
impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let next = |next: &Next<Handed>| match next {
            Next::Work(handed) => handed.to_string(),
            Next::Wait { .. } => String::from("waits"),
            Next::Closed => String::from("closed"),
        };
        match self {
            Self::Done | Self::Drain(_) => f.write_str("done"),
            Self::Lacking => f.write_str("there is no such operation"),
            Self::Is(true) => f.write_str("yes"),
            Self::Is(false) => f.write_str("no"),
            Self::Count(it) => write!(f, "{it}"),
            Self::Added(it) => f.write_str(&outcome(it, name)),
            Self::Scheduled(it) => f.write_str(&outcome(it, scheduled)),
            Self::Displaced(it) => f.write_str(&outcome(it, |(added, left)| match left {
                Some(left) => format!("{} in place of {}", scheduled(added), left.key),
                None => scheduled(added),
            })),
            Self::AddedMany(many, rejected) => {
                let counts = [
                    (many.ready, "ready"),
                    (many.dirty, "dirty"),
                    (many.delayed, "delayed"),
                    (many.coalesced, "coalesced"),
                ];
                let rejected = rejected
                    .iter()
                    .map(|it| format!("{} {}", it.into_key(), name(it)));
                f.write_str(&listed(counted(&counts).chain(rejected)))
            }
            Self::Restored(it) => f.write_str(&outcome(it, name)),
            Self::State(it) => f.write_str(&it.map_or(String::from("none"), state)),
            Self::Snapshot(it) => {
                let keys = it
                    .iter()
                    .map(|(key, known)| format!("{key} {}", state(*known)));
                f.write_str(&keys.collect::<Vec<_>>().join("; "))
            }
            Self::Due(it) => f.write_str(&it.map_or(String::from("none"), |due| due.to_string())),
            Self::Work(None) => f.write_str("no key"),
            Self::Work(Some(handed)) => write!(f, "{handed}"),
            Self::Next(it) => f.write_str(&next(it)),
            Self::Look(Next::Work(())) => f.write_str("a key"),
            Self::Look(Next::Wait { until: None }) => f.write_str("never"),
            Self::Look(Next::Wait { until: Some(until) }) => write!(f, "{until}"),
            Self::Look(Next::Closed) => f.write_str("closed"),
            Self::NextMany(Next::Work(handed)) => {
                f.write_str(&listed(handed.iter().map(Handed::to_string)))
            }
            Self::NextMany(Next::Wait { .. }) => f.write_str("waits"),
            Self::NextMany(Next::Closed) => f.write_str("closed"),
            Self::Turn(end, it) => write!(f, "{}, {}", finished(end), next(it)),
            Self::Finished(it) => f.write_str(&finished(it)),
            Self::Drained(it) => write!(f, "{it:?}"),
            Self::Left(it) => f.write_str(&it.as_ref().map_or(String::from("none"), left)),
            Self::Why(it) => f.write_str(&why(it)),
            Self::Stats(it) => f.write_str(&stats(it)),
            Self::Group(it) => write!(f, "{it:?}"),
        }
    }
}

/// The name of a variant, without what it has.
fn name(it: &impl fmt::Debug) -> String {
    let shown = format!("{it:?}");
    let name = shown.split(|c: char| !c.is_alphanumeric()).next();
    name.unwrap_or_default().to_owned()
}

fn outcome<T, E: fmt::Debug>(result: &Result<T, E>, show: impl FnOnce(&T) -> String) -> String {
    result.as_ref().map_or_else(name, show)
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

fn listed(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}

/// Those that are not zero.
fn counted(counts: &[(usize, &'static str)]) -> impl Iterator<Item = String> {
    let counts = counts.iter().filter(|(count, _)| *count > 0);
    counts.map(|(count, what)| format!("{what} {count}"))
}

fn flags(flags: &[(bool, &'static str)]) -> impl Iterator<Item = String> {
    let set = flags.iter().filter(|(is_set, _)| *is_set);
    set.map(|(_, name)| String::from(*name))
}

fn state(it: KeyState) -> String {
    let states = [
        (it.ready, "ready"),
        (it.active, "active"),
        (it.dirty, "dirty"),
        (it.cancelled, "cancelled"),
    ];
    let due = it.due.map(|due| format!("due {due}"));
    let suspended = it.suspended.map(|until| format!("suspended {until}"));
    let counts = [
        (it.failures as usize, "failures"),
        (usize::from(it.priority), "level"),
    ];
    listed(
        flags(&states)
            .chain(due)
            .chain(suspended)
            .chain(counted(&counts)),
    )
}

fn left(it: &Left) -> String {
    let after = (!it.left.is_zero()).then(|| format!("after {}", time(it.left)));
    let counts = [
        (it.failures as usize, "failures"),
        (usize::from(it.priority), "level"),
    ];
    let parts = listed(after.into_iter().chain(counted(&counts)));
    format!("{} {parts}", it.key).trim_end().to_owned()
}

fn why(it: &Why) -> String {
    let failures = match it {
        Why::BackingOff { failures, .. } | Why::Held { failures, .. } => {
            format!(", failures {failures}")
        }
        Why::Running { again: true, .. } | Why::Suspended { again: true, .. } => {
            String::from(", again")
        }
        _ => String::new(),
    };
    let until = it.until().map(|until| format!(" {until}"));
    format!("{}{}{failures}", name(it), until.unwrap_or_default())
}

fn stats(it: &Stats) -> String {
    let counts = [
        (it.total, "total"),
        (it.ready, "ready"),
        (it.active, "active"),
        (it.dirty, "dirty"),
        (it.delayed, "delayed"),
        (it.suspended, "suspended"),
        (it.failure_records, "failure_records"),
    ];
    let due = it.next_deadline.map(|due| format!("next_deadline {due}"));
    let states = [
        (it.paused, "paused"),
        (it.shutting_down, "shutting_down"),
        (it.total == 0, "total 0"),
    ];
    listed(counted(&counts).chain(due).chain(flags(&states)))
}

/// An answer that is of no use to its caller.
#[track_caller]
#[expect(clippy::panic, reason = "this is how a test fails")]
fn unfit(operation: &Operation, answer: &Answer) -> ! {
    panic!("{operation:?} is answered by {answer:?}")
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
                    other => unfit(&operation, &other),
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
    order(order: &GroupOrder): O::Order(order.clone()) => Answer::Done => ();
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

    #[test]
    fn each_operation_is_drawn_or_is_a_look() {
        let source = include_str!("operation.rs");
        let all = source
            .split_once("pub enum Operation {")
            .map_or("", |it| it.1);
        let all = all.split_once("\n}").map_or("", |it| it.0);
        let all = all.lines().filter_map(|line| line.strip_prefix("    "));
        let all = all.filter(|line| line.starts_with(char::is_uppercase));
        let all: BTreeSet<&str> = all
            .filter_map(|line| line.split(|c: char| !c.is_alphanumeric()).next())
            .collect();
        let any = Uses::ANY;
        let drawn = DRAWN
            .iter()
            .map(|kind| (kind.draw)(&mut Bytes::new(&[], &any)));
        let looks = Operation::looks(1);
        // Stories do this, and drawn histories do not.
        let by_story = [Operation::PanicUnderLock, Operation::Drained(Drain(0))];
        let known: BTreeSet<String> = drawn
            .chain(looks)
            .chain(by_story)
            .map(|it| name(&it))
            .collect();
        let known: BTreeSet<&str> = known.iter().map(String::as_str).collect();
        assert!(all.len() > 50, "{all:?}");
        assert_eq!(all, known);
    }
}
