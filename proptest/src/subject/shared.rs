//! Queues behind a lock: core's `WorkQueue`, whatever its runtime.

use std::cell::{Cell, RefCell};
use std::fmt::{self, Debug};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use requeue_core::{
    AddOptions, Added, AddedMany, Clock, Completion, Drain, Drained, Finished, Getter, Guard,
    Instant, Lock, Next, NoMetrics, NotActive, Priorities, Queue, Rejected, Step, Storage, Ticket,
    Wake, Waker, WorkQueue,
};

use super::direct::{Home, Note};
use super::{HandClock, Handed, Key, Known, Left, Retried, Setup, Subject, Totals, Turn, map_next};
use crate::Figures;
use crate::trace::limiter::AnyLimiter;

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

    /// Makes an empty queue.
    fn new(setup: &Setup) -> Self;

    /// The queue.
    fn queue(&self) -> &WorkQueue<Self::Lock, Self::Clock, Self::Waker>;

    /// Moves the clock, and does nothing else.
    fn advance(&mut self, by: Duration);

    /// Whom the queue has woken since this was last asked; nothing if that cannot be seen.
    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    /// Takes the first ready key without waiting, in the runtime's own way.
    fn try_get(&mut self) -> Option<Handed<Ticket>> {
        let guard = self.queue().try_get()?;
        handed(guard)
    }

    /// Whether the runtime calls a guard [abandoned](Waker::is_abandoned) that is dropped while its
    /// thread panics.
    const GIVES_BACK: bool = true;

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
pub fn handed<H>(guard: Guard<Key, H>) -> Option<Handed<Ticket>>
where
    H: std::ops::Deref<Target: requeue_core::Complete>,
{
    let (key, requeues, priority) = (*guard.key(), guard.requeues(), guard.priority());
    let ticket = guard.into_ticket()?;
    Some(Handed {
        key,
        ticket,
        requeues,
        priority,
    })
}

/// A [`Subject`] for every queue that is a [`WorkQueue`] of core.
#[derive(Debug)]
pub struct OnWorkQueue<R>(pub(super) R);

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
    type Ticket = Ticket;
    type Getter = Getter;
    type Drain = Drain;
    const GIVES_BACK: bool = R::GIVES_BACK;

    fn new(setup: &Setup) -> Self {
        Self(R::new(setup))
    }

    fn capacity(&self) -> Option<usize> {
        <R::Storage as Storage>::CAPACITY
    }

    fn levels(&self) -> u8 {
        <R::Storage as Storage>::Priorities::LEVELS
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

    fn try_get(&mut self) -> Option<Handed<Ticket>> {
        self.0.try_get()
    }

    fn get(&mut self, getter: &mut Getter) -> Next<Handed<Ticket>> {
        map_next(self.queue().poll_get(getter), Handed::from)
    }

    fn get_many(&mut self, max: usize, getter: &mut Getter) -> Next<Vec<Handed<Ticket>>> {
        let mut taken = Vec::new();
        let next = self.queue().act(|queue, now| {
            queue.get_many(max, now, getter, |work| taken.push(Handed::from(work)))
        });
        map_next(next, |_| taken)
    }

    fn next(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        getter: &mut Getter,
    ) -> Turn<Ticket> {
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
        self.queue().complete(ticket, Completion::Done).map(|_| ())
    }

    fn complete_many(
        &mut self,
        tickets: Vec<Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        self.queue().complete_many(tickets, completion)
    }

    fn complete(&mut self, ticket: Ticket, completion: Completion) -> Result<Finished, NotActive> {
        self.queue().complete(ticket, completion)
    }

    fn panic_at_work(&mut self) {
        self.0.panic_at_work();
    }

    fn shut_down(&mut self) {
        self.queue().shut_down();
    }

    fn begin_drain(&mut self) -> Drain {
        self.queue().begin_drain()
    }

    fn drained(&mut self, drain: &Drain) -> Drained {
        self.queue().drained(drain)
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
}

/// A runtime for one thread that never waits, and keeps no metrics: core's `WorkQueue` alone.
pub struct Bare<S: Home> {
    queue: WorkQueue<Alone<S>, HandClock, Bell>,
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

    fn new(setup: &Setup) -> Self {
        let lock = Single(RefCell::new(S::build(setup, NoMetrics)));
        Self {
            queue: WorkQueue::from_parts(lock, HandClock::new(), Bell::default()),
        }
    }

    fn queue(&self) -> &WorkQueue<Self::Lock, HandClock, Bell> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn wakes(&mut self) -> Option<Wake> {
        Some(self.queue.waker().0.take())
    }
}
