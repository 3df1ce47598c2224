//! A fourth runtime, bound to the suite in one file: how the author of an adapter does it.
//!
//! It is a runtime of one thread and no allocator for its keys, as one might write it for a bare
//! loop: a lock, a clock with timers, a line of tasks, and calls that wait. Each part is about as
//! long as it has to be. What stands under [`Plan`] are seven faults that such an author might well
//! make, one switch for each; `toy/faults.rs` shows what the suite says of them.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::marker::PhantomData;
use std::rc::Rc;
use std::task::{self, Context, Poll};
use std::time::Duration;

use requeue_core::{
    Clock, Completion, Drained, Fixed, GetError, Getter, Guard, Instant, Lock, Next, NoMetrics,
    Queue, Ticket, Waker, WorkQueue,
};
use requeue_proptest::conformance;
use requeue_proptest::subject::{
    Answer, AnyLimiter, Call, Futures, Home, Key, LocalCall, OnWorkQueue, Runtime, Setup, handed,
};

#[path = "toy/faults.rs"]
mod faults;

/// The whole suite.
mod conforms {
    use super::*;
    conformance!(OnWorkQueue<Toy>);
}

// ---- The runtime. ----

/// What its author has done wrong.
trait Plan: 'static {
    /// Nobody is woken in place of a call that is cancelled, whoever the queue says it is.
    const LOSES_THE_BATON: bool = false;
    /// Only those who wait for keys are woken by the end of a drain.
    const FORGETS_THE_DRAIN: bool = false;
    /// A timer that is set is not set anew for an earlier deadline.
    const KEEPS_THE_OLD_ALARM: bool = false;
    /// A key stays in the queue while it is worked on, so that it cannot be lost.
    const HANDS_OUT_TWICE: bool = false;
    /// Time is looked at in whole milliseconds.
    const ROUNDS_TIME_DOWN: bool = false;
    /// A worker that panics is taken for one that has ended.
    const OVERLOOKS_PANICS: bool = false;
    /// A worker's next call, dropped before it has run, forgets the key that it was to complete.
    const LEAKS_THE_RUN: bool = false;
}

/// Nothing.
struct Right;
impl Plan for Right {}

/// Mutual exclusion, where there is nobody else.
struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

/// A clock with timers. The loop moves it and rings them; here a test does.
#[derive(Default)]
struct Timers {
    now: Cell<Instant>,
    set: RefCell<BTreeMap<(Instant, u64), task::Waker>>,
    last: Cell<u64>,
}

impl Clock for Timers {
    fn now(&self) -> Instant {
        self.now.get()
    }
}

impl Timers {
    fn advance(&self, by: Duration) {
        self.now.set(self.now() + by);
        let later = self.set.borrow_mut().split_off(&(self.now(), u64::MAX));
        let due = self.set.replace(later);
        due.into_values().for_each(task::Waker::wake);
    }

    /// Sets a timer and answers by what to find it.
    fn ring_at(&self, due: Instant, waker: &task::Waker) -> (Instant, u64) {
        self.last.set(self.last.get() + 1);
        let timer = (due, self.last.get());
        self.set.borrow_mut().insert(timer, waker.clone());
        timer
    }

    fn unset(&self, timer: (Instant, u64)) {
        self.set.borrow_mut().remove(&timer);
    }
}

/// Tasks that wait, in the order in which they came: for keys and for the drain.
struct Line<P> {
    getters: RefCell<BTreeMap<u64, task::Waker>>,
    drains: RefCell<BTreeMap<u64, task::Waker>>,
    last: Cell<u64>,
    plan: PhantomData<P>,
}

impl<P> Default for Line<P> {
    fn default() -> Self {
        Self {
            getters: RefCell::default(),
            drains: RefCell::default(),
            last: Cell::default(),
            plan: PhantomData,
        }
    }
}

impl<P: Plan> Waker for Line<P> {
    fn wake_one(&self) {
        let first = self.getters.borrow_mut().pop_first();
        first.into_iter().for_each(|(_, task)| task.wake());
    }

    fn wake_all(&self) {
        let getters = self.getters.take();
        getters.into_values().for_each(task::Waker::wake);
        if !P::FORGETS_THE_DRAIN {
            let drains = self.drains.take();
            drains.into_values().for_each(task::Waker::wake);
        }
    }

    /// A task that is cancelled drops its guards.
    fn is_abandoned(&self) -> bool {
        !P::OVERLOOKS_PANICS
    }
}

type State = Queue<Key, Fixed<64>, AnyLimiter, NoMetrics>;
type Shared<P> = WorkQueue<Single<State>, Timers, Line<P>>;
type Run<P> = Guard<Key, Rc<Shared<P>>>;

/// The queue, as a program has it.
struct Toys<P: Plan>(Rc<Shared<P>>);

impl<P: Plan> Clone for Toys<P> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

impl<P: Plan> Toys<P> {
    async fn get(&self, deadline: Option<Instant>) -> Result<Run<P>, GetError> {
        let mut waiting = Waiting::new(&self.0);
        poll_fn(|context| waiting.poll(context, deadline)).await
    }

    /// Completes a key as told and waits for the next. The key is completed even if the future is
    /// dropped before it has run.
    fn next(
        &self,
        guard: Run<P>,
        completion: Completion,
    ) -> impl Future<Output = Result<Run<P>, GetError>> + use<P> {
        let turn = Turn {
            queue: self.clone(),
            ticket: guard.into_ticket(),
            completion,
        };
        async move {
            let queue = turn.queue.clone();
            turn.complete();
            queue.get(None).await
        }
    }

    async fn drain(&self, deadline: Option<Instant>) -> Drained {
        let queue = &*self.0;
        let drain = queue.begin_drain();
        let mut waiting = Waiting::new(&self.0);
        poll_fn(|context| {
            let drained = queue.drained(&drain);
            if drained != Drained::Pending || waiting.is_late(deadline) {
                return Poll::Ready(drained);
            }
            let waker = context.waker().clone();
            queue
                .waker()
                .drains
                .borrow_mut()
                .insert(waiting.place, waker);
            waiting.set_timer(deadline, context);
            Poll::Pending
        })
        .await
    }
}

/// A call that waits, from poll to poll.
struct Waiting<P: Plan> {
    queue: Rc<Shared<P>>,
    getter: Getter,
    /// Where it stands in line, and comes back to if it was woken for nothing.
    place: u64,
    timer: Option<(Instant, u64)>,
}

impl<P: Plan> Waiting<P> {
    fn new(queue: &Rc<Shared<P>>) -> Self {
        let last = &queue.waker().last;
        last.set(last.get() + 1);
        Self {
            queue: Rc::clone(queue),
            getter: Getter::new(),
            place: last.get(),
            timer: None,
        }
    }

    fn poll(
        &mut self,
        context: &Context<'_>,
        deadline: Option<Instant>,
    ) -> Poll<Result<Run<P>, GetError>> {
        let queue = Rc::clone(&self.queue);
        queue.waker().getters.borrow_mut().remove(&self.place);
        let until = match queue.poll_get(&mut self.getter) {
            Next::Work(work) => {
                if P::HANDS_OUT_TWICE {
                    queue.done(&work.key).unwrap();
                    queue.add(work.key).unwrap();
                }
                return Poll::Ready(Ok(Guard::new(work, queue)));
            }
            Next::Closed => return Poll::Ready(Err(GetError::Closed)),
            Next::Wait { until } => until,
        };
        if self.is_late(deadline) {
            return Poll::Ready(Err(GetError::TimedOut));
        }
        let waker = context.waker().clone();
        queue.waker().getters.borrow_mut().insert(self.place, waker);
        self.set_timer([until, deadline].into_iter().flatten().min(), context);
        Poll::Pending
    }

    fn is_late(&self, deadline: Option<Instant>) -> bool {
        let ticks = if P::ROUNDS_TIME_DOWN { 1_000_000 } else { 1 };
        let now = self.queue.clock().now().as_nanos() / ticks;
        deadline.is_some_and(|deadline| now >= deadline.as_nanos() / ticks)
    }

    fn set_timer(&mut self, until: Option<Instant>, context: &Context<'_>) {
        let present = self.timer.map(|(due, _)| due);
        self.stop_timer();
        let until = until.filter(|due| !due.is_never());
        let until = if P::KEEPS_THE_OLD_ALARM {
            present.or(until)
        } else {
            until
        };
        self.timer = until.map(|due| self.queue.clock().ring_at(due, context.waker()));
    }

    fn stop_timer(&mut self) {
        if let Some(timer) = self.timer.take() {
            self.queue.clock().unset(timer);
        }
    }
}

/// Whoever goes away steps out of the line, and leaves to another what it was woken for.
impl<P: Plan> Drop for Waiting<P> {
    fn drop(&mut self) {
        self.stop_timer();
        let line = self.queue.waker();
        line.drains.borrow_mut().remove(&self.place);
        line.getters.borrow_mut().remove(&self.place);
        if P::LOSES_THE_BATON {
            let leave = |state: &mut State| state.leave(&mut self.getter);
            let _ = self.queue.lock().with(leave);
        } else {
            self.queue.leave(&mut self.getter);
        }
    }
}

/// A run that its worker has declared over.
struct Turn<P: Plan> {
    queue: Toys<P>,
    ticket: Option<Ticket>,
    completion: Completion,
}

impl<P: Plan> Turn<P> {
    fn complete(mut self) {
        if let Some(ticket) = self.ticket.take() {
            // Somebody may have completed it by name.
            let _ = self.queue.0.complete(ticket, self.completion);
        }
    }
}

impl<P: Plan> Drop for Turn<P> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket.take().filter(|_| !P::LEAKS_THE_RUN) {
            let _ = self.queue.0.complete(ticket, self.completion);
        }
    }
}

// ---- The binding. ----

/// The toy under test.
struct Toy<P: Plan = Right> {
    queue: Toys<P>,
    calls: Futures,
}

impl<P: Plan> Runtime for Toy<P> {
    type Storage = Fixed<64>;
    type Metrics = NoMetrics;
    type Lock = Single<State>;
    type Clock = Timers;
    type Waker = Line<P>;
    type Calls = Futures;

    fn new(setup: &Setup) -> Self {
        let queue = Single(RefCell::new(Fixed::build(setup, NoMetrics)));
        let queue = WorkQueue::from_parts(queue, Timers::default(), Line::default());
        Self {
            queue: Toys(Rc::new(queue)),
            calls: Futures::new(),
        }
    }

    fn queue(&self) -> &Shared<P> {
        &self.queue.0
    }

    fn advance(&mut self, by: Duration) {
        self.queue.0.clock().advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let queue = self.queue.clone();
        let after = |limit: Duration| Some(queue.0.clock().now() + limit);
        let deadline = match call {
            Call::GetTimeout(limit) | Call::DrainTimeout(limit) => after(limit),
            _ => None,
        };
        Some(match call {
            Call::Get | Call::GetTimeout(_) => {
                Box::pin(async move { Answer::from(queue.get(deadline).await.map(handed)) })
            }
            Call::Next(completion) => {
                let next = queue.next(self.take()?, completion);
                Box::pin(async move { Answer::from(next.await.map(handed)) })
            }
            Call::Drain | Call::DrainTimeout(_) => {
                Box::pin(async move { Answer::Drained(queue.drain(deadline).await) })
            }
            // What the suite asks of others.
            _ => return None,
        })
    }

    fn next_unrun(&mut self, completion: Completion) -> bool {
        let next = self.take().map(|guard| self.queue.next(guard, completion));
        next.map(drop).is_some()
    }

    fn calls(&mut self) -> &mut Futures {
        &mut self.calls
    }
}

impl<P: Plan> Toy<P> {
    fn take(&self) -> Option<Run<P>> {
        let queue = &self.queue.0;
        match queue.poll_get(&mut Getter::new()) {
            Next::Work(work) => Some(Guard::new(work, Rc::clone(queue))),
            Next::Wait { .. } | Next::Closed => None,
        }
    }
}
