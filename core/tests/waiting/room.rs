//! Calls for which there is no place in the list.

use std::cell::{Cell, RefCell};
use std::task::Waker;

use requeue_core::WaitError;
use requeue_core::binding::*;
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;

use crate::common::clock::Hand;
use crate::waiting::call::{Call, Keys, add, add_after, queue, sleeping};

#[test]
fn a_call_without_a_place_gets_an_error_and_changes_nothing() {
    let queue: Keys<FixedWaitList<1>> = queue();
    add_after(&queue, 1, 50);
    let mut waits = Call::for_key(&queue);
    waits.sleeps(Some(50));
    let mut refused = Call::for_key(&queue);
    assert_eq!(refused.look(), Look::Done(Err(WaitError::TooManyWaiters)));
    assert_eq!((sleeping(&queue), waits.wakes()), (1, 0), "as before");
    drop(refused);

    let mut drains = Wait::for_state(&queue);
    let look = drains.look(Waker::noop(), None, |session, _| session.poll_drain(None));
    assert_eq!(look, Look::Done(Err(WaitError::TooManyWaiters)));

    add(&queue, 2);
    assert_eq!(waits.wakes(), 1);
    let mut served = Call::for_key(&queue);
    let _run = served.finds(2);
    waits.sleeps(Some(50));
    queue.clock().set(50);
    let _run = waits.finds(1);
    let _free = Call::asleep(&queue);
}

#[test]
fn a_call_without_a_place_passes_a_wake_on() {
    let queue: Keys<FixedWaitList<1>> = queue();
    let mut waits = Call::asleep(&queue);
    // The refused call sleeps for a moment: the wake in flight must not be its own.
    add(&queue, 1);
    queue.try_get().unwrap().release();
    assert_eq!(
        Call::for_key(&queue).look(),
        Look::Done(Err(WaitError::TooManyWaiters))
    );
    add(&queue, 2);
    assert!(waits.wakes() >= 1);
    let _run = waits.finds(2);
}

/// Notes for how many places a call was one too many.
struct Reports<T> {
    state: RefCell<T>,
    places: Cell<Option<usize>>,
}

struct Few;

impl Host for Few {
    type Key = u8;
    type Priorities = Plain;
    type Limiter = NoLimit;
    type Storage = Fixed<4>;
    type Metrics = ();
    type Waiters = FixedWaitList<1>;
    type Clock = Hand;
    type Lock = Reports<State<Self>>;
}

impl<T> Lock for Reports<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.state.borrow_mut())
    }

    fn no_place(&self, places: usize) {
        assert!(self.state.try_borrow_mut().is_ok(), "the lock is held");
        self.places.set(Some(places));
    }
}

#[test]
fn a_call_without_a_place_is_reported_once_the_lock_is_released() {
    let state = State::new(Queue::new(NoLimit), FixedWaitList::new());
    let (state, places) = (RefCell::new(state), Cell::new(None));
    let queue: Shared<Few> = Shared::new(Reports { state, places }, Hand::default());

    let mut waits = Wait::for_key(&queue);
    let look = waits.look(Waker::noop(), None, |session, getter| {
        session.poll_get(getter)
    });
    assert_eq!(look, Look::Sleep { until: None });
    assert_eq!(queue.lock().places.get(), None);

    let look =
        Wait::for_state(&queue).look(Waker::noop(), None, |session, _| session.poll_drain(None));
    assert_eq!(look, Look::Done(Err(WaitError::TooManyWaiters)));
    assert_eq!(queue.lock().places.get(), Some(1));
}
