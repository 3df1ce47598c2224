//! A runtime with faults, bound to the suite in one file: what the author of an adapter may do wrong,
//! and what the suite reports of each.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::future::{pending, poll_fn};
use std::mem::ManuallyDrop;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::task::Poll;
use std::time::Duration;

use requeue_core::binding::{self, Clock, FixedWaitList, Host, Lock, State, Timer};
use requeue_core::priority::WithPolicy;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Guard, Instant};
use requeue_proptest::conformance;
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{
    Call, Configuration, Futures, HandClock, Home, Key, LocalCall, OnWorkQueue, Returned, Runtime,
    Sleep, call_on, panicking,
};
use requeue_test_tools::by_hand;
use tokio::task::yield_now;

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

// ---- What its author has done wrong. ----

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
/// A call yields between taking a key and returning it.
const YIELDS_WITH_A_KEY: u8 = 8;
/// A panic while the lock is held poisons it.
const POISONS_ITS_LOCK: u8 = 9;
/// No fault: a call yields before each look.
const YIELDS: u8 = 10;

// ---- The runtime: its lock, its timer, and what its queue is made of. ----

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

// ---- The binding. ----

struct Toy<const F: u8 = NOTHING> {
    queue: Rc<Shared<F>>,
}

impl<const F: u8> Runtime for Toy<F> {
    type Host = ToyHost<F>;
    type Calls = Futures;
    const PLACES: Option<usize> = Some(PLACES);

    fn new(setup: &Configuration) -> Self {
        let state = State::new(Fixed::build(setup, ()), FixedWaitList::new());
        let queue = Shared::new(Exclusive(Mutex::new(state)), Timers(HandClock::new()));
        Self {
            queue: Rc::new(queue),
        }
    }

    fn queue(&self) -> &Shared<F> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().0.advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        Some(Box::pin(wait(Rc::clone(&self.queue), call)))
    }

    fn panic_at_work(&mut self) -> bool {
        if F == OVERLOOKS_PANICS {
            self.queue.try_get().map(Guard::release);
            return true;
        }
        panicking(|| self.queue.try_get())
    }

    fn next_unrun(&mut self, action: Action) -> bool {
        let guard = self.queue.try_get();
        let next = guard.map(|guard| match F {
            LEAKS_THE_RUN => drop(guard.into_ticket()),
            _ => drop(self.queue.next(guard, action)),
        });
        next.is_some()
    }
}

/// A call of the toy, from its first poll to its last.
async fn wait<const F: u8>(queue: Rc<Shared<F>>, call: Call) -> Returned {
    let is_drain = call == Call::Drain;
    let call = match call {
        Call::GetTimeout(limit) => Call::GetTimeout(limit_of(&queue, limit)),
        Call::DrainTimeout(limit) => Call::DrainTimeout(limit_of(&queue, limit)),
        other => other,
    };
    let mut call = call_on(Rc::clone(&queue), call);
    let returned = match F {
        LOSES_THE_WAKE => (&mut *ManuallyDrop::new(call)).await,
        FORGETS_THE_DRAIN if is_drain => match by_hand(call).ended() {
            Some(drained) => drained,
            None => pending().await,
        },
        YIELDS => {
            let mut has_yielded = false;
            poll_fn(|context| {
                has_yielded = !has_yielded;
                if has_yielded {
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                call.as_mut().poll(context)
            })
            .await
        }
        _ => call.await,
    };
    if let Returned::Work(taken) = &returned {
        if F == YIELDS_WITH_A_KEY {
            yield_now().await;
        }
        if F == HANDS_OUT_TWICE {
            queue.release_key(&taken.key());
            queue.add(taken.key()).unwrap();
        }
    }
    returned
}

/// How long a call may wait until its deadline.
fn limit_of<const F: u8>(queue: &Shared<F>, limit: Duration) -> Duration {
    if F != ROUNDS_TIME_DOWN || limit == Duration::MAX {
        return limit;
    }
    let now = queue.now();
    let deadline = (now + limit).as_nanos();
    Instant::from_nanos(deadline - deadline % 1_000_000).saturating_since(now)
}
