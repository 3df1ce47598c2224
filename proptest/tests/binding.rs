//! The binding of the README, and a runtime for it: one thread, whose tasks wait for keys.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::{FixedWaitList, State, WorkQueue};
use requeue_core::{Fixed, NoMetrics};
use requeue_proptest::subject::{
    Answer, Call, Futures, HandClock, Home, LocalCall, OnWorkQueue, Runtime, Setup, handed,
};

use my_runtime::{Guarded, Shared, Single, get};

struct Bound {
    queue: Rc<Shared>,
    calls: Futures,
}

impl Runtime for Bound {
    type Storage = Fixed<8>;
    type Metrics = NoMetrics;
    type Waiters = FixedWaitList<4>;
    type Lock = Single<Guarded>;
    type Clock = HandClock;
    type Calls = Futures;
    const PLACES: Option<usize> = Some(4);

    fn new(setup: &Setup) -> Self {
        let state = State::new(Fixed::build(setup, NoMetrics), FixedWaitList::new());
        let queue = WorkQueue::new(Single(RefCell::new(state)), HandClock::new());
        let (queue, calls) = (Rc::new(queue), Futures::new());
        Self { queue, calls }
    }

    fn queue(&self) -> &Shared {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let queue = Rc::clone(&self.queue);
        match call {
            Call::Get => Some(Box::pin(async {
                Answer::from(get(queue).await.map(handed))
            })),
            // It has no calls with a time limit, and none that wait for the drain.
            _ => None,
        }
    }

    fn calls(&mut self) -> &mut Futures {
        &mut self.calls
    }
}

requeue_proptest::conformance!(OnWorkQueue<Bound>);

/// The runtime: its lock, and its way of waiting.
mod my_runtime {
    use std::cell::RefCell;
    use std::rc::Rc;

    use requeue_core::binding::{FixedWaitList, Lock, State, Wait, WorkQueue};
    use requeue_core::{Fixed, GetError, Guard, NoMetrics, Queue};
    use requeue_proptest::limiter::AnyLimiter;
    use requeue_proptest::subject::{HandClock, Key};

    pub(super) struct Single<T>(pub(super) RefCell<T>);

    impl<T> Lock for Single<T> {
        type State = T;

        fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
            work(&mut self.0.borrow_mut())
        }
    }

    pub(super) type Guarded = State<Key, Fixed<8>, AnyLimiter, NoMetrics, FixedWaitList<4>>;
    pub(super) type Shared = WorkQueue<Single<Guarded>, HandClock>;

    /// Waits for a key.
    pub(super) async fn get(queue: Rc<Shared>) -> Result<Guard<Key, Rc<Shared>>, GetError> {
        let work = Wait::for_key(&*queue).wait(None, Queue::poll_get).await?;
        Ok(Guard::new(work, queue))
    }
}

#[test]
#[allow(clippy::unwrap_used, reason = "a test that panics has failed")]
fn the_readme_shows_this_binding() {
    let (this, readme) = (include_str!("binding.rs"), include_str!("../README.md"));
    let begins = this.find("struct Bound").unwrap();
    let ends = this.find("/// The runtime: its lock").unwrap();
    let binding = this[begins..ends].trim();
    assert!(readme.contains(binding), "the README shows another binding");
    assert!(binding.lines().count() <= 60);
}
