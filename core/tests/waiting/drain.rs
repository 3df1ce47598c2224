//! Calls that wait for the drain, or for another state.

use std::sync::Arc;

use requeue_core::Action;
use requeue_core::binding::Drained;
use requeue_core::binding::*;

use crate::waiting::call::{Call, Keys, add};

with_both_lists! {
    calls_that_wait_for_the_drain_are_not_woken_by_adds
    a_second_shutdown_ends_the_wait_for_a_drain
    a_next_that_finds_nothing_reports_the_end_of_a_drain
    a_dropped_wait_for_a_state_keeps_no_place_and_no_waker
}

mod rules {
    use super::*;

    pub(super) fn calls_that_wait_for_the_drain_are_not_woken_by_adds<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            call.wait
                .look(&call.waker, None, |session, _| session.poll_drain(None))
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        let mut getter = Call::asleep(queue);
        add(queue, 1);
        assert_eq!((drains.wakes(), getter.wakes()), (0, 1));
        let run = getter.finds(1);

        let _drain = queue.begin_drain();
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        queue.finish(run.ticket, Action::Success);
        assert_eq!(drains.wakes(), 2);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Complete)));
    }

    pub(super) fn a_dropped_wait_for_a_state_keeps_no_place_and_no_waker<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        // The fixed list has three places.
        for _ in 0..4 {
            let mut idle = Call::new(Wait::for_state(queue));
            let look = idle
                .wait
                .look(&idle.waker, None, |session, _| session.poll_idle());
            assert_eq!(look, Look::Sleep { until: None });
            let Call { wait, bell, waker } = idle;
            drop((wait, waker));
            assert_eq!(Arc::strong_count(&bell), 1);
        }
    }

    pub(super) fn a_second_shutdown_ends_the_wait_for_a_drain<W: WaitList>(queue: &Keys<W>) {
        add(queue, 1);
        let drain = queue.begin_drain();
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            call.wait.look(&call.waker, None, |session, _| {
                session.poll_drain(Some(&drain))
            })
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        queue.shut_down();
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Interrupted)));
    }

    pub(super) fn a_next_that_finds_nothing_reports_the_end_of_a_drain<W: WaitList>(
        queue: &Keys<W>,
    ) {
        add(queue, 1);
        let guard = queue.try_get().unwrap();
        let drain = queue.begin_drain();
        let mut drains = Call::new(Wait::for_state(queue));
        let look = |call: &mut Call<'_, W>| {
            call.wait.look(&call.waker, None, |session, _| {
                session.poll_drain(Some(&drain))
            })
        };
        assert_eq!(look(&mut drains), Look::Sleep { until: None });
        assert!(queue.try_next(guard, Action::Success).is_none());
        assert_eq!(drains.wakes(), 1);
        assert_eq!(look(&mut drains), Look::Done(Ok(Drained::Complete)));
    }
}
