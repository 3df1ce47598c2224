//! The run that ends as the next key is taken.

use std::task::Waker;

use requeue_core::binding::*;
use requeue_core::{Action, Guard};

use crate::waiting::call::{Call, Key, Keys, add, queue, sleeping};

with_both_lists! {
    the_next_key_is_taken_in_the_look_that_ends_the_run
    a_call_that_never_looked_ends_its_run_when_it_is_dropped
    the_run_of_another_queue_ends_there
    a_next_that_does_not_wait_wakes_no_call_for_its_own_key
    a_next_that_does_not_wait_leaves_the_wake_of_a_sleeping_call
}

mod rules {
    use super::*;

    pub(super) fn the_next_key_is_taken_in_the_look_that_ends_the_run<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        add(queue, 2);
        let guard = queue.try_get().unwrap();
        let mut next = Call::new(Wait::after(guard, Action::Retry, queue));
        assert_eq!(queue.stats().active, 1, "not before it looks");
        let run = next.finds(2);
        assert_eq!((queue.stats().active, queue.stats().delayed), (1, 1));
        assert_eq!(queue.failures(&Key(1)), 1);

        // The key that comes next is the one whose run has ended.
        add(queue, 2);
        let guard = Guard::new(run, queue);
        let mut next = Call::new(Wait::after(guard, Action::Success, queue));
        let _run = next.finds(2);
    }

    pub(super) fn a_call_that_never_looked_ends_its_run_when_it_is_dropped<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let end = |action| {
            add(queue, 1);
            drop(Wait::after(queue.try_get().unwrap(), action, queue));
            assert_eq!((queue.stats().active, sleeping(queue)), (0, 0));
            queue.failures(&Key(1))
        };
        assert_eq!(end(Action::Retry), 1, "by its action");
        assert_eq!(end(Action::Release), 1);
        assert_eq!(end(Action::Success), 0);
    }

    pub(super) fn the_run_of_another_queue_ends_there<W: WaitList>(queue: &Keys<W>) {
        let other: Keys<FixedWaitList<1>> = super::queue();
        let elsewhere: Keys<FixedWaitList<1>> = super::queue();
        add(&elsewhere, 1);
        add(&other, 2);
        add(queue, 3);
        let guard = elsewhere.try_get().unwrap();
        let mut wait = Wait::after(guard, Action::Retry, &other);
        assert_eq!(elsewhere.failures(&Key(1)), 1, "already");
        let look = wait.look(Waker::noop(), None, |session, getter| {
            session.poll_get(getter)
        });
        assert!(matches!(look, Look::Done(Ok(work)) if work.key == Key(2)));
    }

    pub(super) fn a_next_that_does_not_wait_wakes_no_call_for_its_own_key<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let sleeper = Call::asleep(queue);
        add(queue, 1);
        let guard = queue.try_next(guard, Action::Release).unwrap();
        assert_eq!((*guard, sleeper.wakes()), (Key(1), 0));

        add(queue, 1);
        let mut next = Call::new(Wait::after(guard, Action::Success, queue));
        let _run = next.wait.try_get().unwrap();
        assert_eq!((sleeper.wakes(), sleeping(queue)), (0, 1));
        queue.lock().with(|state| state.queue().assert_valid());
    }

    pub(super) fn a_next_that_does_not_wait_leaves_the_wake_of_a_sleeping_call<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let mut sleeper = Call::asleep(queue);
        add(queue, 2);
        // It takes the key for which the call was woken.
        let guard = queue.try_next(guard, Action::Success).unwrap();
        assert_eq!((*guard, sleeper.wakes()), (Key(2), 1));
        assert!(queue.try_next(guard, Action::Success).is_none());
        sleeper.sleeps(None);
        add(queue, 3);
        assert_eq!(sleeper.wakes(), 2);
        let _run = sleeper.finds(3);
    }
}
