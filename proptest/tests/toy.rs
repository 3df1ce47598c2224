//! A fourth runtime, bound to the suite in one file: how the author of an adapter does it.
//!
//! It is a runtime of one thread and no allocator for its keys, as one might write it for a bare
//! loop: a lock, a clock with timers, and calls that wait. Core's `Wait` is the loop of each call.
//! Each constant is a fault that such an author might well make; `toy/faults.rs` shows
//! what the suite reports of each.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::future::poll_fn;
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use requeue_core::binding::{self, Clock, Drained, FixedWaitList, Host, Lock, State, Timer, Wait};
use requeue_core::priority::WithPolicy;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Guard, Instant, WaitError};
use requeue_proptest::conformance;
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{
    Call, Configuration, Futures, HandClock, Home, Key, LocalCall, OnWorkQueue, Returned, Runtime,
    Sleep, handed, panicking,
};

#[path = "toy/faults.rs"]
mod faults;

/// The whole suite.
mod conforms {
    use super::*;
    conformance!(OnWorkQueue<Toy>);
}

/// The whole suite on a runtime whose tasks have a budget of polls, as Tokio's have.
mod conforms_with_a_budget {
    use super::*;
    conformance!(OnWorkQueue<Toy<YIELDS>>);
}

// ---- The runtime. ----

// What its author has done wrong.

const NOTHING: u8 = 0;
/// A call that is cancelled does not tell the queue, so its wake is lost.
const LOSES_THE_WAKE: u8 = 1;
/// A call that waits for the drain is not registered to be woken.
const FORGETS_THE_DRAIN: u8 = 2;
/// An alarm that is set is not set again for an earlier deadline.
const KEEPS_THE_OLD_ALARM: u8 = 3;
/// A key stays in the queue during its run, so that it cannot be lost.
const HANDS_OUT_TWICE: u8 = 4;
/// Deadlines of calls are whole milliseconds.
const ROUNDS_TIME_DOWN: u8 = 5;
/// A worker that panics is taken for one that has ended.
const OVERLOOKS_PANICS: u8 = 6;
/// A worker's next call, dropped before it has run, forgets the run that it was to end.
const LEAKS_THE_RUN: u8 = 7;
/// A call yields between taking a key and returning its guard.
const YIELDS_WITH_A_KEY: u8 = 8;
/// A panic while the lock is held poisons it.
const POISONS_ITS_LOCK: u8 = 9;
/// No fault: a call yields before each look.
const YIELDS: u8 = 10;

/// Mutual exclusion.
struct Exclusive<const F: u8, T>(Mutex<T>);

impl<const F: u8, T> Lock for Exclusive<F, T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let state = self.0.lock();
        let mut state = if F == POISONS_ITS_LOCK {
            state.unwrap()
        } else {
            state.unwrap_or_else(PoisonError::into_inner)
        };
        work(&mut state)
    }
}

/// A clock with timers. The loop moves it and rings them; here a test does.
struct Timers<const F: u8>(HandClock);

impl<const F: u8> Clock for Timers<F> {
    fn now(&self) -> Instant {
        self.0.now()
    }
}

impl<const F: u8> Timer for Timers<F> {
    type Alarm = Sleep;

    fn set_alarm(&self, alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        if alarm.is_none() || F != KEEPS_THE_OLD_ALARM {
            self.0.set_alarm(alarm, until);
        }
    }
}

/// How many calls may wait.
const PLACES: usize = 8;

/// What its queue is made of.
struct ToyHost<const F: u8>;

impl<const F: u8> Host for ToyHost<F> {
    type Key = Key;
    type Priorities = WithPolicy;
    type Limiter = AnyLimiter;
    type Storage = Fixed<64>;
    type Metrics = ();
    type Waiters = FixedWaitList<PLACES>;
    type Clock = Timers<F>;
    type Lock = Exclusive<F, State<Self>>;
}

type Shared<const F: u8> = binding::Shared<ToyHost<F>>;
type ToyGuard<const F: u8> = Guard<ToyHost<F>, Rc<Shared<F>>>;
type ToyWait<const F: u8> = Wait<ToyHost<F>, Rc<Shared<F>>>;

/// The queue, as a program has it.
struct Toys<const F: u8>(Rc<Shared<F>>);

impl<const F: u8> Clone for Toys<F> {
    fn clone(&self) -> Self {
        Self(Rc::clone(&self.0))
    }
}

/// A call that waits for a key. Present until it is dropped.
struct Getting<const F: u8>(Option<ToyWait<F>>);

impl<const F: u8> Drop for Getting<F> {
    fn drop(&mut self) {
        if F == LOSES_THE_WAKE {
            mem::forget(self.0.take());
        }
    }
}

impl<const F: u8> Toys<F> {
    async fn get(&self, deadline: Option<Instant>) -> Result<ToyGuard<F>, WaitError> {
        self.wait(Wait::for_key(Rc::clone(&self.0)), deadline).await
    }

    async fn wait(
        &self,
        call: ToyWait<F>,
        deadline: Option<Instant>,
    ) -> Result<ToyGuard<F>, WaitError> {
        let mut call = Getting(Some(call));
        let mut alarm = pin!(None);
        let mut has_yielded = false;
        let work = poll_fn(|context| {
            has_yielded = F == YIELDS && !has_yielded;
            if has_yielded {
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            let call = call.0.as_mut().unwrap();
            call.poll(context, alarm.as_mut(), deadline, |session, getter| {
                session.poll_get(getter)
            })
        });
        let work = work.await?;
        if F == YIELDS_WITH_A_KEY {
            yield_now().await;
        }
        if F == HANDS_OUT_TWICE {
            self.0.release_key(&work.key);
            self.0.add(work.key).unwrap();
        }
        Ok(Guard::new(work, Rc::clone(&self.0)))
    }

    /// Ends a run and waits for the next key. The run ends even if the future is dropped before it
    /// has run.
    fn next(
        &self,
        guard: ToyGuard<F>,
        action: Action,
    ) -> Pin<Box<dyn Future<Output = Result<ToyGuard<F>, WaitError>>>> {
        let toys = self.clone();
        if F == LEAKS_THE_RUN {
            let ticket = guard.into_ticket();
            return Box::pin(async move {
                let _ = ticket.map(|ticket| toys.0.finish(ticket, action));
                toys.get(None).await
            });
        }
        let call = Wait::after(guard, action, Rc::clone(&self.0));
        Box::pin(async move { toys.wait(call, None).await })
    }

    async fn drain(&self, deadline: Option<Instant>) -> Returned {
        let drain = self.0.begin_drain();
        if F == FORGETS_THE_DRAIN && self.0.drain_status(&drain) == Drained::Pending {
            return poll_fn(|_| Poll::Pending).await;
        }
        let mut call = Wait::for_state(&*self.0);
        let ended = call.wait(deadline, |session, _| session.poll_drain(Some(&drain)));
        Returned::from(ended.await.and_then(Drained::into_result))
    }

    fn deadline(&self, limit: Duration) -> Instant {
        let deadline = self.0.clock().now() + limit;
        if F == ROUNDS_TIME_DOWN && !deadline.is_never() {
            let nanos = deadline.as_nanos();
            return Instant::from_nanos(nanos - nanos % 1_000_000);
        }
        deadline
    }
}

/// Lets other tasks run first.
async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|context| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

// ---- The binding. ----

/// The toy under test.
struct Toy<const F: u8 = NOTHING> {
    queue: Toys<F>,
}

impl<const F: u8> Runtime for Toy<F> {
    type Host = ToyHost<F>;
    type Calls = Futures;
    const PLACES: Option<usize> = Some(PLACES);

    fn new(setup: &Configuration) -> Self {
        let state = State::new(Fixed::build(setup, ()), FixedWaitList::new());
        let clock = Timers(HandClock::new());
        let lock = Exclusive(Mutex::new(state));
        let queue = Shared::<F>::new(lock, clock);
        Self {
            queue: Toys(Rc::new(queue)),
        }
    }

    fn queue(&self) -> &Shared<F> {
        &self.queue.0
    }

    fn advance(&mut self, by: Duration) {
        self.queue.0.clock().0.advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let queue = self.queue.clone();
        let deadline = match call {
            Call::GetTimeout(limit) | Call::DrainTimeout(limit) => Some(queue.deadline(limit)),
            _ => None,
        };
        Some(match call {
            Call::Get | Call::GetTimeout(_) => {
                Box::pin(async move { Returned::from(queue.get(deadline).await.map(handed)) })
            }
            Call::Next(action) => {
                let next = queue.next(self.take()?, action);
                Box::pin(async move { Returned::from(next.await.map(handed)) })
            }
            Call::Drain | Call::DrainTimeout(_) => {
                Box::pin(async move { queue.drain(deadline).await })
            }
            // A call of a later version of the suite.
            _ => return None,
        })
    }

    fn panic_at_work(&mut self) -> bool {
        if F == OVERLOOKS_PANICS {
            let guard = self.queue.0.try_get();
            guard.map(Guard::release);
            return true;
        }
        panicking(|| self.queue.0.try_get())
    }

    fn next_unrun(&mut self, action: Action) -> bool {
        let next = self.take().map(|guard| self.queue.next(guard, action));
        next.map(drop).is_some()
    }
}

impl<const F: u8> Toy<F> {
    fn take(&self) -> Option<ToyGuard<F>> {
        let queue = &self.queue.0;
        let work = queue.with(|session| session.try_get())?;
        Some(Guard::new(work, Rc::clone(queue)))
    }
}
