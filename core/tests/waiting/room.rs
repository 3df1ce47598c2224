//! Calls for which there is no place in the list.

use std::task::Waker;

use requeue_core::GetError;
use requeue_core::binding::*;

use crate::call::{Call, Keys, add, add_after, queue, sleeping};

#[test]
fn a_call_without_a_place_gets_an_error_and_changes_nothing() {
    let queue: Keys<FixedWaitList<1>> = queue();
    add_after(&queue, 1, 50);
    let mut waits = Call::for_key(&queue);
    waits.sleeps(Some(50));
    let mut refused = Call::for_key(&queue);
    assert_eq!(refused.look(), Look::Done(Err(GetError::TooManyWaiters)));
    assert_eq!((sleeping(&queue), waits.wakes()), (1, 0), "as before");
    drop(refused);

    let mut drains = Wait::for_state(&queue);
    let look = drains.look(Waker::noop(), None, |queue, _, _| queue.poll_drain(None));
    assert_eq!(look, Look::Done(Err(GetError::TooManyWaiters)));

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
    queue.try_get().unwrap().release().unwrap();
    assert_eq!(
        Call::for_key(&queue).look(),
        Look::Done(Err(GetError::TooManyWaiters))
    );
    add(&queue, 2);
    assert!(waits.wakes() >= 1);
    let _run = waits.finds(2);
}
