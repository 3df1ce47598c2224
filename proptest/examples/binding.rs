//! A runtime of one thread, and all that binds it to the suite.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::{FixedWaitList, Host, Lock, Shared, State, Wait};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Guard, WaitError};
use requeue_proptest::subject::{
    AnyLimiter, Call, Configuration, Futures, HandClock, Home, Key, LocalCall, OnWorkQueue,
    Returned, Runtime, handed,
};

// ---- The runtime: its lock, what its queue is made of, and its way of waiting. ----

struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

struct Loop;

impl Host for Loop {
    type Key = Key;
    type Priorities = Plain;
    type Limiter = AnyLimiter;
    type Storage = Fixed<8>;
    type Metrics = ();
    type Waiters = FixedWaitList<4>;
    type Clock = HandClock;
    type Lock = Single<State<Self>>;
}

type Keys = Shared<Loop>;

/// Waits for a key.
async fn get(queue: Rc<Keys>) -> Result<Guard<Loop, Rc<Keys>>, WaitError> {
    let work = Wait::for_key(&*queue)
        .wait(None, |session, getter| session.poll_get(getter))
        .await?;
    Ok(Guard::new(work, queue))
}

// ---- The binding. ----

struct Bound {
    queue: Rc<Keys>,
}

impl Runtime for Bound {
    type Host = Loop;
    type Calls = Futures;
    const PLACES: Option<usize> = Some(4);

    fn new(setup: &Configuration) -> Self {
        let state = State::new(Fixed::build(setup, ()), FixedWaitList::new());
        let queue = Shared::new(Single(RefCell::new(state)), HandClock::new());
        Self {
            queue: Rc::new(queue),
        }
    }

    fn queue(&self) -> &Keys {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let queue = Rc::clone(&self.queue);
        match call {
            Call::Get => Some(Box::pin(async {
                Returned::from(get(queue).await.map(handed))
            })),
            // It has no calls with a time limit, and none that wait for the drain.
            _ => None,
        }
    }
}

requeue_proptest::conformance!(OnWorkQueue<Bound>);

// An example is a program, too: this one prints which rules are not tried, and why.
fn main() {
    for not_tried in requeue_proptest::conformance::rules_not_tried::<OnWorkQueue<Bound>>() {
        println!("{not_tried}");
    }
}
