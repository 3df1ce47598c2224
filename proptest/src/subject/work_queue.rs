//! Queues behind a lock: core's `WorkQueue`, whatever its runtime.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use requeue_core::{
    AddOptions, Added, AddedMany, Clock, Completion, Drained, Finished, Getter, Guard, Instant,
    Lock, Next, NoMetrics, NotActive, Priorities, Queue, Rejected, Step, Storage, Wake, Waker,
    WorkQueue,
};

use super::direct::{Home, Note};
use super::{
    Abilities, Answer, Call, CallId, Drain, Drive, Futures, HandClock, Handed, Key, Known, Left,
    LocalCall, Retried, Setup, Subject, Ticket, Totals, Turn, map_next,
};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// A runtime's queue under test: where its [`WorkQueue`] is, and how to move its clock.
///
/// This is all that an adapter has to say for itself. [`OnWorkQueue`] does the rest.
pub trait Runtime {
    /// Where the queue keeps its keys.
    type Storage: Storage;
    /// What the queue reports to.
    type Metrics: Note;
    /// The runtime's lock.
    type Lock: Lock<State = Queue<Key, Self::Storage, AnyLimiter, Self::Metrics>>;
    /// The runtime's clock.
    type Clock: Clock;
    /// The runtime's waker.
    type Waker: Waker;
    /// What keeps the calls that have begun.
    type Calls: Drive;

    /// Whether the runtime calls a guard [abandoned](Waker::is_abandoned) that is dropped while its
    /// thread panics.
    const GIVES_BACK: bool = true;
    /// As [`Abilities::grain`].
    const GRAIN: Duration = Duration::from_nanos(1);
    /// As [`Abilities::places`].
    const PLACES: Option<usize> = None;

    /// Makes an empty queue.
    fn new(setup: &Setup) -> Self;

    /// The queue.
    fn queue(&self) -> &WorkQueue<Self::Lock, Self::Clock, Self::Waker>;

    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);

    /// A call of the runtime's own, about to begin; `None` if the queue has no such call.
    fn begin(&self, call: Call) -> Option<<Self::Calls as Drive>::Begun>;

    /// The calls that have begun.
    fn calls(&mut self) -> &mut Self::Calls;

    /// As [`Subject::next_unrun`].
    fn next_unrun(&mut self, completion: Completion) -> bool {
        let _ = completion;
        false
    }

    /// Whom the queue has woken since this was last asked; nothing if that cannot be seen.
    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    /// Takes the first ready key without waiting, in the runtime's own way.
    fn try_get(&mut self) -> Option<Handed> {
        let guard = self.queue().try_get()?;
        handed(guard)
    }

    /// A worker takes the first ready key, in the runtime's own way, panics with it, and is caught.
    fn panic_at_work(&mut self) {
        panicking(|| self.queue().try_get());
    }
}

/// Panics with what `take` hands out, and catches that, without a word on the test's output.
pub fn panicking<G>(take: impl FnOnce() -> G) {
    let work = || {
        let _guard = take();
        resume_unwind(Box::new("a worker panics with a key"));
    };
    // A panic is what was asked for.
    let _ = catch_unwind(AssertUnwindSafe(work));
}

/// Takes a guard apart, so that a test can complete the key when it likes. Nothing if its run has
/// been completed before.
pub fn handed<H>(guard: Guard<Key, H>) -> Option<Handed>
where
    H: std::ops::Deref<Target: requeue_core::Complete>,
{
    let (key, requeues, priority) = (*guard.key(), guard.requeues(), guard.priority());
    let ticket = Ticket::Core(guard.into_ticket()?);
    Some(Handed {
        key,
        ticket,
        requeues,
        priority,
    })
}

/// A [`Subject`] for every queue that is a [`WorkQueue`] of core.
#[derive(Debug)]
pub struct OnWorkQueue<R>(R);

impl<R: Runtime> OnWorkQueue<R> {
    fn queue(&self) -> &WorkQueue<R::Lock, R::Clock, R::Waker> {
        self.0.queue()
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Queue<Key, R::Storage, AnyLimiter, R::Metrics>) -> T,
    ) -> T {
        self.queue().lock().with(work)
    }
}

impl<R: Runtime> Subject for OnWorkQueue<R> {
    fn new(setup: &Setup) -> Self {
        Self(R::new(setup))
    }

    fn capacity(&self) -> Option<usize> {
        <R::Storage as Storage>::CAPACITY
    }

    fn levels(&self) -> u8 {
        <R::Storage as Storage>::Priorities::LEVELS
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            gives_back: R::GIVES_BACK,
            runs_by_itself: R::Calls::RUNS_BY_ITSELF,
            cancels: R::Calls::CANCELS,
            grain: R::GRAIN,
            places: R::PLACES,
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

    fn add_rate_limited(&mut self, key: Key) -> Result<Retried, Rejected<Key>> {
        self.queue().add_rate_limited(key).map(Retried::from)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Retried, Rejected<Key>> {
        self.queue().add_with(key, options).map(Retried::from)
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

    fn try_get(&mut self) -> Option<Handed> {
        self.0.try_get()
    }

    fn get(&mut self, getter: &mut Getter) -> Next<Handed> {
        map_next(self.queue().poll_get(getter), Handed::from)
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed>> {
        let mut taken = Vec::new();
        let next = self.queue().act(|queue, now| {
            queue.get_many(max, now, getter, |work| taken.push(Handed::from(work)))
        });
        map_next(next, |_| taken)
    }

    fn next(&mut self, ticket: Ticket, completion: Completion, getter: &mut Getter) -> Turn {
        let Ok(ticket) = ticket.core() else {
            return (Err(NotActive), self.get(getter));
        };
        let Step { finished, next, .. } = self
            .queue()
            .act_now(|queue, now| queue.next(ticket, completion, now, getter));
        (finished, map_next(next, Handed::from))
    }

    fn leave(&mut self, getter: &mut Getter) {
        self.queue().leave(getter);
    }

    fn done_key(&mut self, key: Key) -> Result<(), NotActive> {
        self.queue().done(&key)
    }

    fn done(&mut self, ticket: Ticket) -> Result<(), NotActive> {
        self.complete(ticket, Completion::Done).map(|_| ())
    }

    fn complete_many(
        &mut self,
        tickets: Vec<Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        let tickets = tickets.into_iter().filter_map(|ticket| ticket.core().ok());
        self.queue().complete_many(tickets, completion)
    }

    fn complete(&mut self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        self.queue().complete(ticket.core()?, completion)
    }

    fn panic_at_work(&mut self) {
        self.0.panic_at_work();
    }

    fn shut_down(&mut self) {
        self.queue().shut_down();
    }

    fn begin_drain(&mut self) -> Drain {
        Drain::Core(self.queue().begin_drain())
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        match drain {
            Drain::Core(drain) => self.queue().drained(drain),
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

    fn state(&mut self, key: Key) -> Option<Known> {
        self.queue().state(&key).map(Known::from)
    }

    fn contains(&mut self, key: Key) -> bool {
        self.queue().contains(&key)
    }

    fn num_requeues(&mut self, key: Key) -> u32 {
        self.queue().num_requeues(&key)
    }

    fn totals(&mut self) -> Totals {
        self.with(|queue| Totals {
            active: queue.active_len(),
            delayed: queue.delayed_len(),
            held: queue.held_len(),
            next_deadline: queue.next_deadline(),
        })
    }

    fn shutting_down(&mut self) -> bool {
        self.queue().shutting_down()
    }

    fn report_running(&mut self) {
        self.queue().report_running();
    }

    fn figures(&mut self) -> Option<Figures> {
        self.with(|queue| queue.metrics().figures())
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

    fn wakes(&mut self) -> Option<Wake> {
        self.0.wakes()
    }

    fn assert_valid(&mut self) {
        self.with(|queue| queue.assert_valid());
    }

    fn start(&mut self, id: CallId, call: Call) -> bool {
        let begun = self.0.begin(call);
        let started = begun.map(|begun| self.0.calls().start(id, begun));
        started.is_some()
    }

    fn next_unrun(&mut self, completion: Completion) -> bool {
        self.0.next_unrun(completion)
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
pub struct Bare<S: Home> {
    queue: WorkQueue<Alone<S>, HandClock, Bell>,
    calls: Futures,
}

type Alone<S> = Single<Queue<Key, S, AnyLimiter, NoMetrics>>;

impl<S: Home> Debug for Bare<S> {
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

/// Takes note of whom it had to wake.
#[derive(Default)]
pub struct Bell(Cell<Wake>);

impl Waker for Bell {
    fn wake_one(&self) {
        if self.0.get() == Wake::None {
            self.0.set(Wake::One);
        }
    }

    fn wake_all(&self) {
        self.0.set(Wake::All);
    }
}

impl<S: Home> Runtime for Bare<S> {
    const GIVES_BACK: bool = false;
    type Storage = S;
    type Metrics = NoMetrics;
    type Lock = Alone<S>;
    type Clock = HandClock;
    type Waker = Bell;
    type Calls = Futures;

    fn new(setup: &Setup) -> Self {
        let lock = Single(RefCell::new(S::build(setup, NoMetrics)));
        Self {
            queue: WorkQueue::from_parts(lock, HandClock::new(), Bell::default()),
            calls: Futures::new(),
        }
    }

    fn queue(&self) -> &WorkQueue<Self::Lock, HandClock, Bell> {
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

    fn wakes(&mut self) -> Option<Wake> {
        Some(self.queue.waker().0.take())
    }
}
