//! Queues behind a lock: core's `Shared`, whatever its runtime.

use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use requeue_core::binding::{
    Clock, FixedWaitList, Getter, Host, Lock, Machine, Next, Shared, State, Wake,
};
use requeue_core::priority::Priorities;
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Finished, Guard, Instant, Rejected, Stats, Why,
};

use super::direct::{Home, figures};
use super::{
    Abilities, Answer, Call, CallId, Configuration, Displaced, Drain, Drive, Futures, GroupFigures,
    GroupOrder, HandClock, Handed, Key, Kind, Known, Left, LocalCall, PolicySpec, Scheduled,
    Subject, Ticket, Turn, in_order, map_next, refused,
};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// A runtime's queue under test: where its [`Shared`] is, and how to move its clock.
///
/// This is all that an adapter has to say for itself. [`OnWorkQueue`] does the rest.
pub trait Runtime {
    /// The types that the runtime's queue is made of.
    type Host: Host<Key = Key, Priorities: Kind, Limiter = AnyLimiter, Storage: Home>;
    /// What keeps the calls that have begun.
    type Calls: Drive;

    /// As [`Abilities::grain`].
    const GRAIN: Duration = Duration::from_nanos(1);
    /// As [`Abilities::places`].
    const PLACES: Option<usize> = None;

    /// Makes an empty queue.
    fn new(setup: &Configuration) -> Self;

    /// The queue.
    fn queue(&self) -> &Shared<Self::Host>;

    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);

    /// A call of the runtime's own, about to begin; `None` if the queue has no such call.
    fn begin(&self, call: Call) -> Option<<Self::Calls as Drive>::Begun>;

    /// The calls that have begun.
    fn calls(&mut self) -> &mut Self::Calls;

    /// As [`Subject::next_unrun`].
    fn next_unrun(&mut self, action: Action) -> bool {
        let _ = action;
        false
    }

    /// What was reported; `None` if the queue has no metrics.
    fn figures(&self) -> Option<Figures> {
        None
    }

    /// Takes the first ready key without waiting, in the runtime's own way.
    fn try_get(&mut self) -> Option<Handed> {
        let guard = self.queue().try_get()?;
        handed(guard)
    }

    /// A worker takes the first ready key, in the runtime's own way, panics with it, and is caught:
    /// [`panicking`] does that. Returns `false`, and does nothing, unless a binding overrides it.
    /// The rules of panics are not tried then.
    fn panic_at_work(&mut self) -> bool {
        false
    }
}

/// Panics with what `take` returns, and catches that; prints nothing. Returns whether it did, which
/// it does where panics unwind. This is for [`Runtime::panic_at_work`].
///
/// # Examples
///
/// ```
/// let guard = String::from("what a runtime hands out");
/// assert!(requeue_proptest::subject::panicking(|| guard));
/// ```
pub fn panicking<G>(take: impl FnOnce() -> G) -> bool {
    let work = || {
        let _guard = take();
        resume_unwind(Box::new("a worker panics with a key"));
    };
    // A panic is what was asked for.
    cfg!(panic = "unwind") && catch_unwind(AssertUnwindSafe(work)).is_err()
}

/// Takes a guard apart, so that a test can complete the key when it likes. `None` if its run has
/// been completed before.
pub fn handed<H, R>(guard: Guard<H, R>) -> Option<Handed>
where
    H: Host<Key = Key>,
    R: std::ops::Deref<Target = Shared<H>>,
{
    let (key, failures, priority) = (*guard.key(), guard.failures(), guard.priority());
    let timed_out = guard.timed_out();
    let ticket = Ticket::Core(guard.into_ticket()?);
    Some(Handed {
        key,
        ticket,
        failures,
        priority,
        timed_out,
    })
}

/// A [`Subject`] for every queue that is a [`Shared`] of core, for at most `MAX` keys if it
/// grows.
#[derive(Debug)]
pub struct OnWorkQueue<R, const MAX: usize = { usize::MAX }>(R);

/// Where the queue of a runtime keeps its keys.
type StorageOf<R> = <<R as Runtime>::Host as Host>::Storage;

/// The priorities of the queue of a runtime.
type KindOf<R> = <<R as Runtime>::Host as Host>::Priorities;

impl<R: Runtime, const MAX: usize> OnWorkQueue<R, MAX> {
    fn queue(&self) -> &Shared<R::Host> {
        self.0.queue()
    }

    fn with<T>(&self, work: impl FnOnce(&Machine<R::Host>) -> T) -> T {
        self.queue().look(work)
    }
}

impl<R: Runtime, const MAX: usize> Subject for OnWorkQueue<R, MAX> {
    fn new(setup: &Configuration) -> Self {
        // A call may look several times, which the model cannot count.
        Self(R::new(&Configuration {
            due_keys_max: u8::MAX,
            ..setup.for_at_most(MAX)
        }))
    }

    fn capacity(&self) -> Option<usize> {
        self.with(|queue| queue.stats().max_keys)
    }

    fn limit_keys(&mut self, keys: usize) {
        self.queue()
            .with(|session| StorageOf::<R>::limit_keys(session, keys));
    }

    fn set_policy(&mut self, policy: &PolicySpec) {
        self.queue()
            .with(|session| StorageOf::<R>::set_policy(session, policy.build()));
    }

    fn levels(&self) -> u8 {
        KindOf::<R>::LEVELS
    }

    fn groups(&self) -> bool {
        KindOf::<R>::GROUPS
    }

    fn ages(&self) -> bool {
        KindOf::<R>::AGES
    }

    fn order(&mut self, order: &GroupOrder) {
        self.queue()
            .with(|session| KindOf::<R>::order(session, order));
    }

    fn group(&mut self, group: u8) -> Option<GroupFigures> {
        figures(self.with(|queue| KindOf::<R>::group(queue, group))?)
    }

    fn age_after(&mut self, after: Option<Duration>) {
        self.queue()
            .with(|session| KindOf::<R>::age(session, after));
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            limits_keys: StorageOf::<R>::LIMITS_KEYS,
            governs: StorageOf::<R>::governs::<KindOf<R>>(),
            suspends: StorageOf::<R>::suspends::<KindOf<R>>(),
            runs_by_itself: R::Calls::RUNS_BY_ITSELF,
            cancels: R::Calls::CANCELS,
            grain: R::GRAIN,
            places: R::PLACES,
            ..Abilities::default()
        }
    }

    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        self.queue().add(key)
    }

    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>> {
        self.queue().add_after(key, delay)
    }

    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        self.queue().add_at(key, due)
    }

    fn add_rate_limited(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>> {
        self.queue().add_rate_limited(key).map(Scheduled::from)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>> {
        self.queue().add_with(key, options).map(Scheduled::from)
    }

    fn add_displacing(&mut self, key: Key, options: AddOptions) -> Displaced {
        let added = self.queue().add_displacing(key, options);
        added.map(|(scheduled, left)| (scheduled.into(), left.map(Left::from)))
    }

    fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        self.queue().timed(true, |session| {
            StorageOf::<R>::add_debounced(session, key, [quiet, max])
        })
    }

    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        let mut rejected = Vec::new();
        let keys = keys.iter().copied();
        let added = self.queue().add_many(keys, |key| rejected.push(key));
        (added, rejected)
    }

    fn forget(&mut self, key: Key) -> u32 {
        self.queue().forget(&key)
    }

    fn cancel_key(&mut self, key: Key) -> Option<Known> {
        self.queue().cancel(&key).map(Known::from)
    }

    fn cancel_delay(&mut self, key: Key) -> Option<Instant> {
        self.queue().cancel_delay(&key)
    }

    fn expedite(&mut self, key: Key) -> bool {
        self.queue().expedite(&key)
    }

    fn expedite_all(&mut self) {
        self.queue().expedite_all();
    }

    fn retain_below(&mut self, key: Key) -> usize {
        match key {
            0 => self.queue().clear(),
            _ => self.queue().retain(|other| *other < key),
        }
    }

    fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        self.queue().restore(left.into()).map_err(refused)
    }

    fn pause(&mut self) {
        self.queue().pause();
    }

    fn unpause(&mut self) {
        self.queue().unpause();
    }

    fn is_paused(&mut self) -> bool {
        self.queue().is_paused()
    }

    fn suspend(&mut self, key: Key, timeout: Duration) -> bool {
        self.queue().timed(true, |session| {
            StorageOf::<R>::suspend(session, key, Some(timeout))
        })
    }

    fn resume(&mut self, key: Key) -> bool {
        self.queue()
            .with(|session| StorageOf::<R>::suspend(session, key, None))
    }

    fn is_idle(&mut self) -> bool {
        self.queue().is_idle()
    }

    fn is_settled(&mut self) -> bool {
        self.queue().is_settled()
    }

    fn try_get(&mut self) -> Option<Handed> {
        self.0.try_get()
    }

    fn get(&mut self, getter: &mut Getter) -> Next<Handed> {
        let next = self.queue().with(|session| session.poll_get(getter));
        map_next(next, Handed::from)
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>> {
        let mut taken = Vec::new();
        let next = self.queue().with(|session| {
            session.poll_get_many(max, getter, |work| taken.push(Handed::from(work)))
        });
        map_next(next, |_| taken)
    }

    fn next(&mut self, ticket: Ticket, action: Action, getter: &mut Getter) -> Turn {
        let Some(ticket) = ticket.core() else {
            return (Finished::Stale, self.get(getter));
        };
        let (finished, next) = self.queue().timed(true, |session| {
            (session.finish(ticket, action), session.poll_get(getter))
        });
        (finished, map_next(next, Handed::from))
    }

    fn leave(&mut self, getter: &mut Getter) {
        self.queue().with(|session| session.leave(getter));
    }

    fn release_key(&mut self, key: Key) -> Finished {
        self.queue().release_key(&key)
    }

    fn release(&mut self, ticket: Ticket) -> Finished {
        self.finish(ticket, Action::Release)
    }

    fn finish_many(&mut self, tickets: Vec<Ticket>, action: Action) -> usize {
        let tickets = tickets.into_iter().filter_map(Ticket::core);
        self.queue().finish_many(tickets, action)
    }

    fn finish(&mut self, ticket: Ticket, action: Action) -> Finished {
        match ticket.core() {
            Some(ticket) => self.queue().finish(ticket, action),
            None => Finished::Stale,
        }
    }

    fn panic_at_work(&mut self) -> bool {
        self.0.panic_at_work()
    }

    fn panic_under_lock(&mut self) -> bool {
        let lock = self.queue().lock();
        panicking(|| lock.with(|_| resume_unwind(Box::new("a panic while the lock is held"))))
    }

    fn shut_down(&mut self) {
        self.queue().shut_down();
    }

    fn begin_drain(&mut self) -> Drain {
        Drain::Core(self.queue().begin_drain())
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        match drain {
            Drain::Core(drain) => self.queue().drain_status(drain),
            Drain::Numbered(_) => Drained::Pending,
        }
    }

    fn take_delayed(&mut self) -> Option<Left> {
        self.queue().take_delayed().map(Left::from)
    }

    fn take_ready(&mut self) -> Option<Left> {
        self.queue().take_ready().map(Left::from)
    }

    fn len(&mut self) -> usize {
        self.queue().len()
    }

    fn snapshot(&mut self) -> Vec<(Key, Known)> {
        in_order(self.queue().snapshot())
    }

    fn state(&mut self, key: Key) -> Option<Known> {
        self.queue().state(&key).map(Known::from)
    }

    fn contains(&mut self, key: Key) -> bool {
        self.queue().contains(&key)
    }

    fn failures(&mut self, key: Key) -> u32 {
        self.queue().failures(&key)
    }

    fn why(&mut self, key: Key) -> Why {
        self.queue().with(|session| session.why(&key))
    }

    fn stats(&mut self) -> Stats {
        self.with(|queue| queue.stats())
    }

    fn is_shutting_down(&mut self) -> bool {
        self.queue().is_shutting_down()
    }

    fn report_running(&mut self) {
        self.queue().report_running();
    }

    fn figures(&mut self) -> Option<Figures> {
        self.0.figures()
    }

    fn now(&self) -> Instant {
        self.queue().clock().now()
    }

    fn advance(&mut self, by: Duration) {
        self.0.advance(by);
    }

    fn asleep(&mut self) -> Option<usize> {
        Some(self.with(|queue| queue.asleep()))
    }

    /// The wakes of a runtime are seen by the calls that they wake.
    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    fn assert_valid(&mut self) {
        self.with(|queue| queue.assert_valid());
    }

    fn start(&mut self, id: CallId, call: Call) -> bool {
        let begun = self.0.begin(call);
        let started = begun.map(|begun| self.0.calls().start(id, begun));
        started.is_some()
    }

    fn next_unrun(&mut self, action: Action) -> bool {
        self.0.next_unrun(action)
    }

    fn settle(&mut self) -> bool {
        self.0.calls().settle()
    }

    fn answer(&mut self, id: CallId) -> Option<Answer> {
        self.0.calls().answer(id)
    }

    fn cancel(&mut self, id: CallId) {
        self.0.calls().cancel(id);
    }

    fn nudge(&mut self, id: CallId) {
        self.0.calls().nudge(id);
    }
}

/// A runtime for one thread that never waits, and keeps no metrics: core's `WorkQueue` alone.
pub struct Bare<P: Kind, S: Home> {
    queue: Shared<Alone<P, S>>,
    calls: Futures,
}

/// The types of a queue for which no call can wait.
#[derive(Debug)]
pub struct Alone<P, S>(std::marker::PhantomData<(P, S)>);

impl<P: Kind, S: Home> Host for Alone<P, S> {
    type Key = Key;
    type Priorities = P;
    type Limiter = AnyLimiter;
    type Storage = S;
    type Metrics = ();
    type Waiters = FixedWaitList<0>;
    type Clock = HandClock;
    type Lock = Single<State<Self>>;
}

impl<P: Kind, S: Home> Debug for Bare<P, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bare").finish_non_exhaustive()
    }
}

/// A lock for one thread.
pub struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

impl<P: Kind, S: Home> Runtime for Bare<P, S> {
    type Host = Alone<P, S>;
    type Calls = Futures;

    fn new(setup: &Configuration) -> Self {
        let state = State::new(S::build(setup, ()), FixedWaitList::new());
        Self {
            queue: Shared::new(Single(RefCell::new(state)), HandClock::new()),
            calls: Futures::new(),
        }
    }

    fn queue(&self) -> &Shared<Alone<P, S>> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn begin(&self, _: Call) -> Option<LocalCall> {
        None
    }

    fn calls(&mut self) -> &mut Futures {
        &mut self.calls
    }
}
