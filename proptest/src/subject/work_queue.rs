//! Queues behind a lock: core's `Shared`, whatever its runtime.

use std::cell::RefCell;
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use requeue_core::binding::{Clock, FixedWaitList, Host, Lock, Machine, Shared, State, Wake};
use requeue_core::priority::Priorities;
use requeue_core::{Action, Finished, Guard, Instant};

use super::direct::{Home, figures};
use super::held::{Held, Taken};
use super::{
    Abilities, Answer, Call, CallId, Configuration, Drive, Futures, HandClock, Handed, Key, Kind,
    LocalCall, Operation, Returned, Scheduled, Subject, in_order, map_next,
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
    fn try_get(&mut self) -> Option<Taken> {
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
pub fn handed<H, R>(guard: Guard<H, R>) -> Option<Taken>
where
    H: Host<Key = Key>,
    R: std::ops::Deref<Target = Shared<H>>,
{
    let (key, failures, priority) = (*guard.key(), guard.failures(), guard.priority());
    let timed_out = guard.timed_out();
    let ticket = guard.into_ticket()?;
    Some(Taken {
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
pub struct OnWorkQueue<R, const MAX: usize = { usize::MAX }> {
    runtime: R,
    held: Held,
}

/// Where the queue of a runtime keeps its keys.
type StorageOf<R> = <<R as Runtime>::Host as Host>::Storage;

/// The priorities of the queue of a runtime.
type KindOf<R> = <<R as Runtime>::Host as Host>::Priorities;

impl<R: Runtime, const MAX: usize> OnWorkQueue<R, MAX> {
    fn queue(&self) -> &Shared<R::Host> {
        self.runtime.queue()
    }

    fn with<T>(&self, work: impl FnOnce(&Machine<R::Host>) -> T) -> T {
        self.queue().look(work)
    }
}

impl<R: Runtime, const MAX: usize> Subject for OnWorkQueue<R, MAX> {
    fn new(setup: &Configuration) -> Self {
        // A call may look several times, which the model cannot count.
        Self {
            runtime: R::new(&Configuration {
                due_keys_max: u8::MAX,
                ..setup.for_at_most(MAX)
            }),
            held: Held::default(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.with(|queue| queue.stats().max_keys)
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            levels: KindOf::<R>::LEVELS,
            groups: KindOf::<R>::GROUPS,
            ages: KindOf::<R>::AGES,
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

    fn apply(&mut self, operation: &Operation) -> Answer {
        let Self { runtime, held } = self;
        let queue = runtime.queue();
        match *operation {
            Operation::Add(key) => Answer::Added(queue.add(key)),
            Operation::AddAfter(key, delay) => Answer::Added(queue.add_after(key, delay)),
            Operation::AddAt(key, due) => Answer::Added(queue.add_at(key, due)),
            Operation::AddRateLimited(key) => {
                Answer::Scheduled(queue.add_rate_limited(key).map(Scheduled::from))
            }
            Operation::AddWith(key, options) => {
                Answer::Scheduled(queue.add_with(key, options).map(Scheduled::from))
            }
            Operation::AddDisplacing(key, options) => {
                let added = queue.add_displacing(key, options);
                Answer::Displaced(added.map(|(scheduled, left)| (scheduled.into(), left)))
            }
            Operation::AddDebounced(key, quiet, max) => {
                Answer::Added(queue.timed(true, |session| {
                    StorageOf::<R>::add_debounced(session, key, [quiet, max])
                }))
            }
            Operation::AddMany(ref keys) => {
                let mut rejected = Vec::new();
                let many = queue.add_many(keys.iter().copied(), |key| rejected.push(key));
                Answer::AddedMany(many, rejected)
            }
            Operation::Restore(left) => Answer::Restored(queue.restore(left)),
            Operation::Forget(key) => Answer::Count(queue.forget(&key) as usize),
            Operation::CancelKey(key) => Answer::State(queue.cancel(&key)),
            Operation::CancelDelay(key) => Answer::Due(queue.cancel_delay(&key)),
            Operation::Expedite(key) => Answer::Is(queue.expedite(&key)),
            Operation::ExpediteAll => {
                queue.expedite_all();
                Answer::Done
            }
            Operation::RetainBelow(0) => Answer::Count(queue.clear()),
            Operation::RetainBelow(key) => Answer::Count(queue.retain(|other| *other < key)),
            Operation::Pause => {
                queue.pause();
                Answer::Done
            }
            Operation::Unpause => {
                queue.unpause();
                Answer::Done
            }
            Operation::Suspend(key, timeout) => Answer::Is(queue.timed(true, |session| {
                StorageOf::<R>::suspend(session, key, Some(timeout))
            })),
            Operation::Resume(key) => {
                Answer::Is(queue.with(|session| StorageOf::<R>::suspend(session, key, None)))
            }
            Operation::Order(ref order) => {
                queue.with(|session| KindOf::<R>::order(session, order));
                Answer::Done
            }
            Operation::AgeAfter(after) => {
                queue.with(|session| KindOf::<R>::age(session, after));
                Answer::Done
            }
            Operation::LimitKeys(keys) => {
                queue.with(|session| StorageOf::<R>::limit_keys(session, keys));
                Answer::Done
            }
            Operation::SetPolicy(ref policy) => {
                queue.with(|session| StorageOf::<R>::set_policy(session, policy.build()));
                Answer::Done
            }
            Operation::TryGet => Answer::Work(runtime.try_get().map(|taken| held.hand(taken))),
            Operation::Get(sleeper) => {
                let mut getter = held.getter(sleeper);
                let next = queue.with(|session| session.poll_get(&mut getter));
                held.keep(sleeper, getter, &next);
                Answer::Next(held.hand_next(next))
            }
            Operation::GetMany(max, sleeper) => {
                let (mut getter, mut taken) = (held.getter(sleeper), Vec::new());
                let next = queue.with(|session| {
                    session.poll_get_many(max, &mut getter, |work| taken.push(work))
                });
                held.keep(sleeper, getter, &next);
                let hand = |work| held.hand(work);
                Answer::NextMany(map_next(next, |_| taken.into_iter().map(hand).collect()))
            }
            Operation::Next(run, action, sleeper) => {
                let (mut getter, ticket) = (held.getter(sleeper), held.ticket(run));
                let (finished, next) = queue.timed(true, |session| {
                    let finish = |ticket| session.finish(ticket, action);
                    let finished = ticket.map_or(Finished::Stale, finish);
                    (finished, session.poll_get(&mut getter))
                });
                held.keep(sleeper, getter, &next);
                Answer::Turn(finished, held.hand_next(next))
            }
            Operation::Leave(sleeper) => {
                let mut getter = held.getter(sleeper);
                queue.with(|session| session.leave(&mut getter));
                Answer::Done
            }
            Operation::DoneKey(key) => Answer::Finished(queue.release_key(&key)),
            Operation::Done(run) => {
                let finish = |ticket| queue.finish(ticket, Action::Release);
                Answer::Finished(held.ticket(run).map_or(Finished::Stale, finish))
            }
            Operation::Complete(run, action) => {
                let finish = |ticket| queue.finish(ticket, action);
                Answer::Finished(held.ticket(run).map_or(Finished::Stale, finish))
            }
            Operation::CompleteMany(ref runs, action) => {
                let tickets = held.tickets(runs);
                let used = runs.len() - tickets.len();
                Answer::Count(used + queue.finish_many(tickets, action))
            }
            Operation::PanicAtWork => Answer::Is(runtime.panic_at_work()),
            Operation::PanicUnderLock => {
                let lock = queue.lock();
                let panic = || resume_unwind(Box::new("a panic while the lock is held"));
                Answer::Is(panicking(|| lock.with(|_| panic())))
            }
            Operation::ReportRunning => {
                queue.report_running();
                Answer::Done
            }
            Operation::ShutDown => {
                queue.shut_down();
                Answer::Done
            }
            Operation::BeginDrain => Answer::Drain(held.keep_drain(queue.begin_drain())),
            Operation::Drained(drain) => match held.drain(drain) {
                Some(drain) => Answer::Drained(queue.drain_status(drain)),
                None => Answer::Lacking,
            },
            Operation::TakeDelayed => Answer::Left(queue.take_delayed()),
            Operation::TakeReady => Answer::Left(queue.take_ready()),
            Operation::Len => Answer::Count(queue.len()),
            Operation::Snapshot => Answer::Snapshot(in_order(queue.snapshot())),
            Operation::State(key) => Answer::State(queue.state(&key)),
            Operation::Contains(key) => Answer::Is(queue.contains(&key)),
            Operation::Failures(key) => Answer::Count(queue.failures(&key) as usize),
            Operation::Why(key) => Answer::Why(queue.with(|session| session.why(&key))),
            Operation::Stats => Answer::Stats(queue.look(|queue| queue.stats())),
            Operation::Group(group) => {
                let state = queue.look(|queue| KindOf::<R>::group(queue, group));
                Answer::Group(state.and_then(figures))
            }
            Operation::IsPaused => Answer::Is(queue.is_paused()),
            Operation::IsIdle => Answer::Is(queue.is_idle()),
            Operation::IsSettled => Answer::Is(queue.is_settled()),
            Operation::IsShuttingDown => Answer::Is(queue.is_shutting_down()),
            _ => Answer::Lacking,
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        self.runtime.figures()
    }

    fn now(&self) -> Instant {
        self.queue().clock().now()
    }

    fn advance(&mut self, by: Duration) {
        self.runtime.advance(by);
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
        let begun = self.runtime.begin(call);
        let started = begun.map(|begun| self.runtime.calls().start(id, begun));
        started.is_some()
    }

    fn next_unrun(&mut self, action: Action) -> bool {
        self.runtime.next_unrun(action)
    }

    fn settle(&mut self) -> bool {
        self.runtime.calls().settle()
    }

    fn answer(&mut self, id: CallId) -> Option<Returned<Handed>> {
        let returned = self.runtime.calls().answer(id)?;
        Some(returned.map(|taken| self.held.hand(taken)))
    }

    fn cancel(&mut self, id: CallId) {
        self.runtime.calls().cancel(id);
    }

    fn nudge(&mut self, id: CallId) {
        self.runtime.calls().nudge(id);
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
