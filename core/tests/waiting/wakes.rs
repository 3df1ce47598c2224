//! Which calls are woken, in turn and at their time.

use std::cell::Cell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use requeue_core::binding::*;
use requeue_core::{Instant, WaitError};

use crate::waiting::call::{Bell, Call, Key, Keys, add, add_after, sleeping};

with_both_lists! {
    an_add_wakes_the_call_that_has_waited_longest
    a_call_that_is_woken_for_nothing_keeps_its_turn
    a_call_that_never_looked_leaves_nothing_behind
    a_call_that_is_dropped_while_it_sleeps_is_not_woken
    a_call_that_is_dropped_after_its_wake_passes_the_wake_on
    a_call_that_is_dropped_while_it_owns_the_timer_passes_the_timer_on
    a_call_that_times_out_passes_the_timer_on
    a_ready_key_is_taken_even_after_the_deadline
    a_call_that_returns_is_in_the_list_no_longer
    shutdown_wakes_every_call
    a_renewed_waker_replaces_the_old_one
    a_key_that_panics_under_the_lock_wakes_every_call
    a_task_that_is_polled_without_a_wake_does_not_look
}

mod rules {
    use super::*;

    pub(super) fn an_add_wakes_the_call_that_has_waited_longest<W: WaitList>(queue: &Keys<W>) {
        let [mut a, mut b, mut c] = [(); 3].map(|()| Call::asleep(queue));
        add(queue, 1);
        add(queue, 2);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 0, 0], "one is in flight");
        let _run = a.finds(1);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 1, 0], "the baton");
        let _run = b.finds(2);
        add(queue, 3);
        assert_eq!([&a, &b, &c].map(Call::wakes), [1, 1, 1]);
        let _run = c.finds(3);
    }

    pub(super) fn a_call_that_is_woken_for_nothing_keeps_its_turn<W: WaitList>(queue: &Keys<W>) {
        let [mut first, second] = [(); 2].map(|()| Call::asleep(queue));
        add(queue, 1);
        queue.try_get().unwrap().release();
        first.sleeps(None);
        add(queue, 2);
        assert_eq!((first.wakes(), second.wakes()), (2, 0));
    }

    pub(super) fn a_call_that_never_looked_leaves_nothing_behind<W: WaitList>(queue: &Keys<W>) {
        drop(Call::for_key(queue));
        assert_eq!(sleeping(queue), 0);
        let waits = Call::asleep(queue);
        add(queue, 1);
        assert_eq!(waits.wakes(), 1);
    }

    pub(super) fn a_call_that_is_dropped_while_it_sleeps_is_not_woken<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let first = Call::asleep(queue);
        let mut second = Call::asleep(queue);
        let bell = Arc::clone(&first.bell);
        drop(first);
        assert_eq!((sleeping(queue), second.wakes()), (1, 0));
        assert_eq!(Arc::strong_count(&bell), 1, "its waker is dropped");
        add(queue, 1);
        let _run = second.finds(1);
    }

    pub(super) fn a_call_that_is_dropped_after_its_wake_passes_the_wake_on<W: WaitList>(
        queue: &Keys<W>,
    ) {
        let first = Call::asleep(queue);
        let mut second = Call::asleep(queue);
        add(queue, 1);
        assert_eq!((first.wakes(), second.wakes()), (1, 0));
        drop(first);
        assert_eq!(second.wakes(), 1);
        let _run = second.finds(1);
        assert_eq!(sleeping(queue), 0);
    }

    pub(super) fn a_call_that_is_dropped_while_it_owns_the_timer_passes_the_timer_on<W>(
        queue: &Keys<W>,
    ) where
        W: WaitList,
    {
        add_after(queue, 1, 50);
        let [mut owner, mut other] = [(); 2].map(|()| Call::for_key(queue));
        owner.sleeps(Some(50));
        other.sleeps(None);
        drop(owner);
        assert_eq!(other.wakes(), 1);
        other.sleeps(Some(50));
        queue.clock().set(50);
        let _run = other.finds(1);
    }

    pub(super) fn a_call_that_times_out_passes_the_timer_on<W: WaitList>(queue: &Keys<W>) {
        add_after(queue, 1, 50);
        let [mut impatient, mut other] = [(); 2].map(|()| Call::for_key(queue));
        let until = Some(Instant::from_nanos(20));
        assert_eq!(impatient.look_before(20), Look::Sleep { until });
        other.sleeps(None);
        queue.clock().set(20);
        assert_eq!(
            impatient.look_before(20),
            Look::Done(Err(WaitError::TimedOut))
        );
        assert_eq!(other.wakes(), 1);
        other.sleeps(Some(50));
        assert_eq!(sleeping(queue), 1);
    }

    pub(super) fn a_ready_key_is_taken_even_after_the_deadline<W: WaitList>(queue: &Keys<W>) {
        add(queue, 1);
        queue.clock().set(30);
        assert!(matches!(
            Call::for_key(queue).look_before(20),
            Look::Done(Ok(_))
        ));
        let mut late = Call::for_key(queue);
        assert_eq!(late.look_before(30), Look::Done(Err(WaitError::TimedOut)));
        assert_eq!(sleeping(queue), 0);
    }

    pub(super) fn a_call_that_returns_is_in_the_list_no_longer<W: WaitList>(queue: &Keys<W>) {
        let mut served = Call::asleep(queue);
        add(queue, 1);
        // Not woken again: it looks by chance, while its wake is under way.
        let _run = served.finds(1);
        assert_eq!(
            Arc::strong_count(&served.bell),
            2,
            "the bell and its waker here"
        );
        let next = Call::asleep(queue);
        add(queue, 2);
        assert_eq!((served.wakes(), next.wakes()), (1, 1));
    }

    pub(super) fn shutdown_wakes_every_call<W: WaitList>(queue: &Keys<W>) {
        let mut calls = [(); 3].map(|()| Call::asleep(queue));
        queue.shut_down();
        for call in &mut calls {
            assert_eq!(call.wakes(), 1);
            assert_eq!(call.look(), Look::Done(Err(WaitError::Closed)));
        }
    }

    pub(super) fn a_renewed_waker_replaces_the_old_one<W: WaitList>(queue: &Keys<W>) {
        let mut call = Call::for_key(queue);
        assert!(!call.wait.renew(&call.waker), "it has to look first");
        call.sleeps(None);
        assert!(call.wait.renew(&call.waker), "by the same waker");

        let moved = Call::for_key(queue);
        assert!(call.wait.renew(&moved.waker));
        assert_eq!(Arc::strong_count(&call.bell), 2, "the old one is dropped");
        add(queue, 1);
        assert_eq!((call.wakes(), moved.wakes()), (0, 1));
        assert!(
            !call.wait.renew(&call.waker),
            "it was woken, and has to look"
        );
        let _run = call.finds(1);
    }

    /// The wake of the operation is lost with its result, so all calls look for themselves.
    pub(super) fn a_key_that_panics_under_the_lock_wakes_every_call<W: WaitList>(queue: &Keys<W>) {
        let mut calls = [(); 3].map(|()| Call::asleep(queue));
        let panics = catch_unwind(AssertUnwindSafe(|| queue.add(Key(13))));
        assert!(panics.is_err());
        assert_eq!(calls.each_ref().map(Call::wakes), [1; 3]);
        calls.iter_mut().for_each(|call| call.sleeps(None));
        add(queue, 1);
        let _run = calls[0].finds(1);
    }

    pub(super) fn a_task_that_is_polled_without_a_wake_does_not_look<W: WaitList>(queue: &Keys<W>) {
        add_after(queue, 1, 50);
        let looks = Cell::new(0);
        let mut call = Wait::for_key(queue);
        let mut task = pin!(call.wait(None, |session, getter| {
            looks.set(looks.get() + 1);
            session.poll_get(getter)
        }));
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut poll = || task.as_mut().poll(&mut Context::from_waker(&waker));
        assert!(poll().is_pending());
        let first = looks.get();
        assert!(poll().is_pending());
        assert_eq!(looks.get(), first, "neither a wake nor its time");

        queue.wake_all();
        assert_eq!(bell.0.load(Ordering::Relaxed), 1);
        assert!(poll().is_pending());
        assert!(looks.get() > first);
        queue.clock().set(50);
        assert!(matches!(poll(), Poll::Ready(Ok(work)) if work.key == Key(1)));
    }
}
