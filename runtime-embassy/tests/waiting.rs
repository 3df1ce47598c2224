//! Which calls are woken, in which order, and what becomes of a future that is dropped: each is
//! polled by hand, on a clock that stands still.

use std::cell::Cell;
use std::time::Duration;

use requeue_embassy::Instant;
use requeue_embassy::backoff::{Backoff, BackoffUntil, no_jitter};
use requeue_embassy::binding::{AsShared, timeout_at};
use requeue_embassy::limiter::{Exponential, NoLimit, default_item_based};
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::{CriticalSectionRawMutex, NoopRawMutex};
use requeue_embassy::{
    Action, AddOptions, Added, Finished, Guard, ManualClock, Producer, Queue, Rejected, WaitError,
    WorkQueue, backoff_until,
};
use requeue_test_tools::{ByHand, by_hand};

type Clock = ManualClock<NoopRawMutex>;
type OnClock<'c> = ((), u8, &'c Clock);
type Of<'c, L, const WAITERS: usize> =
    WorkQueue<NoopRawMutex, u32, 8, Plain, L, WAITERS, OnClock<'c>>;
type Keys<'c, const WAITERS: usize = 3> = Of<'c, NoLimit, WAITERS>;

const SECOND: Duration = Duration::from_secs(1);

fn queue<const WAITERS: usize>(clock: &Clock) -> Keys<'_, WAITERS> {
    WorkQueue::from_queue(Queue::new(NoLimit), clock)
}

fn asleep<const WAITERS: usize>(queue: &Keys<'_, WAITERS>) -> usize {
    queue.as_shared().look(|queue| queue.asleep())
}

fn finish<const WAITERS: usize>(
    guard: Guard<'_, NoopRawMutex, u32, 8, Plain, NoLimit, WAITERS, OnClock<'_>>,
) -> u32 {
    let key = *guard;
    guard.success();
    key
}

/// Waits for one second of the queue's clock at most.
async fn within<T, const WAITERS: usize>(
    queue: &Keys<'_, WAITERS>,
    call: impl Future<Output = T>,
) -> Option<T> {
    timeout_at(queue.clock(), Some(queue.now() + SECOND), call).await
}

/// Getters that wait, in the order in which they came. Each returns the key that it gets.
fn getters<'q, const N: usize, const WAITERS: usize>(
    queue: &'q Keys<'_, WAITERS>,
) -> [ByHand<impl Future<Output = Result<u32, WaitError>> + 'q>; N] {
    std::array::from_fn(|_| {
        let mut getter = by_hand(async { queue.get().await.map(finish) });
        assert!(getter.is_pending());
        getter
    })
}

#[test]
fn a_queue_lives_in_a_static_and_may_be_reached_from_anywhere() {
    static QUEUE: WorkQueue<CriticalSectionRawMutex, u16, 16> =
        WorkQueue::new(default_item_based());
    fn is_shared(_: &(impl Send + Sync)) {}
    is_shared(&QUEUE);
    QUEUE.add(7).unwrap();
    let key = by_hand(QUEUE.get()).ready().unwrap();
    let finished = key.finish(Action::Release);
    assert_eq!(finished, Finished::Idle);
}

#[test]
fn an_event_source_needs_a_producer_and_no_more() {
    static QUEUE: WorkQueue<CriticalSectionRawMutex, u16, 2> = WorkQueue::new(default_item_based());
    struct Pin {
        edges: &'static (dyn Producer<u16> + Sync),
    }

    let pin = Pin { edges: &QUEUE };
    assert_eq!(pin.edges.add(7), Ok(Added::Ready));
    assert_eq!(pin.edges.add_after(8, SECOND), Ok(Added::Delayed));
    assert_eq!(pin.edges.add(9), Err(Rejected::Full(9)));
    let key = QUEUE.try_get().unwrap();
    assert_eq!(*key, 7);
    key.success();
}

#[test]
fn two_idle_getters_cause_no_polls() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [first, second] = getters(&queue);
    for _ in 0..100 {
        clock.advance(SECOND);
        assert!(queue.is_empty() && !queue.contains(&1));
    }
    assert_eq!((first.wakes(), second.wakes()), (0, 0));
    assert_eq!(asleep(&queue), 2);
}

#[test]
fn getters_are_woken_in_the_order_in_which_they_came() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [mut first, mut second, mut third] = getters(&queue);
    for (turn, key) in [7, 8, 9].into_iter().enumerate() {
        queue.add(key).unwrap();
        let woken = [first.wakes(), second.wakes(), third.wakes()];
        assert_eq!(woken, std::array::from_fn(|at| usize::from(at <= turn)));
        // Polled for another reason, those who were not woken keep their places.
        let getter = match turn {
            0 => {
                assert!(third.is_pending() && second.is_pending());
                &mut first
            }
            1 => {
                assert!(third.is_pending());
                &mut second
            }
            _ => &mut third,
        };
        assert_eq!(getter.ready(), Ok(key));
    }
}

#[test]
fn a_getter_that_was_woken_for_nothing_goes_back_to_its_place() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [mut first, mut second] = getters(&queue);
    queue.add(1).unwrap();
    assert_eq!(
        queue.try_get().map(finish),
        Some(1),
        "another call was faster"
    );
    assert!(first.is_pending());
    queue.add(2).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (2, 0));
    assert_eq!(first.ready(), Ok(2));
    queue.add(3).unwrap();
    assert_eq!(second.ready(), Ok(3));
}

#[test]
fn a_getter_that_moves_to_another_task_is_woken_there() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [mut first, second] = getters(&queue);
    assert!(first.poll_again().is_pending());
    queue.add(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0), "its place is kept");
    assert_eq!(first.ready(), Ok(1));
}

#[test]
fn one_wake_is_under_way_and_the_woken_wakes_the_next() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [mut first, mut second, third] = getters(&queue);
    queue.add_many([1, 2], |_| unreachable!());
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(first.ready(), Ok(1));
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    assert_eq!(second.ready(), Ok(2));
    assert_eq!(third.wakes(), 0);
}

#[test]
fn one_call_too_many_is_an_error_and_disturbs_no_other() {
    let clock = Clock::new();
    let queue: Keys<'_, 2> = queue(&clock);
    let [mut first, mut second] = getters(&queue);
    let refused = by_hand(queue.get()).ready().map(finish);
    assert_eq!(refused, Err(WaitError::TooManyWaiters));
    let patient = by_hand(queue.get_timeout(SECOND)).ready().map(finish);
    assert_eq!(patient, Err(WaitError::TooManyWaiters));
    let impatient = by_hand(queue.get_timeout(Duration::ZERO)).ready();
    assert_eq!(
        impatient.map(finish),
        Err(WaitError::TimedOut),
        "it does not wait"
    );
    assert_eq!(asleep(&queue), 2);

    // A key is handed out without a place, and the two calls that have one were not disturbed.
    assert_eq!((first.wakes(), second.wakes()), (0, 0));
    queue.add_many([1, 2, 3], |_| unreachable!());
    assert_eq!(by_hand(queue.get()).ready().map(finish), Ok(1));
    assert_eq!(first.ready(), Ok(2));
    assert_eq!(second.ready(), Ok(3));
}

#[test]
fn a_call_that_was_woken_still_has_its_place() {
    let clock = Clock::new();
    let queue: Keys<'_, 1> = queue(&clock);
    let [mut only] = getters(&queue);
    queue.add(1).unwrap();
    assert_eq!(queue.try_get().map(finish), Some(1));
    // It is about to look again, and its place is not free.
    let refused = by_hand(queue.get()).ready().map(finish);
    assert_eq!(refused, Err(WaitError::TooManyWaiters));
    assert!(only.is_pending());
    drop(only);
    assert!(by_hand(queue.get()).is_pending(), "now it is free");
}

#[test]
fn one_that_is_refused_passes_the_timer_on() {
    let clock = Clock::new();
    let queue: Keys<'_, 1> = queue(&clock);
    let [mut only] = getters(&queue);
    // The sleeper has been woken to watch the deadline. The call that looks first would become the
    // timer owner, if there were a place for it.
    queue.add_after(1, SECOND).unwrap();
    assert_eq!(only.wakes(), 1);
    let refused = by_hand(queue.get()).ready().map(finish);
    assert_eq!(refused, Err(WaitError::TooManyWaiters));
    assert!(only.is_pending());
    clock.advance(SECOND);
    assert_eq!(only.ready(), Ok(1));
}

#[test]
fn a_dropped_getter_passes_its_wake_on() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [first, mut second] = getters(&queue);
    queue.add(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.wakes(), 1);
    assert_eq!(second.ready(), Ok(1));
    assert_eq!(asleep(&queue), 0);
}

#[test]
fn a_getter_that_is_dropped_unpolled_leaves_nothing_behind() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    drop(by_hand(queue.get()));
    drop(by_hand(queue.get_timeout(SECOND)));
    assert_eq!(asleep(&queue), 0);
    queue.add(1).unwrap();
    assert_eq!(queue.len(), 1);
}

#[test]
fn places_are_given_back_however_a_call_ends() {
    let clock = Clock::new();
    let queue: Keys<'_, 2> = queue(&clock);
    // Many more rounds than there are places.
    for round in 0..1000 {
        let [mut first, second] = getters(&queue);
        queue.add(round).unwrap();
        assert_eq!(first.ready(), Ok(round));
        drop(second);
    }
    assert_eq!(asleep(&queue), 0);
    let drain = by_hand(queue.drain()).ready();
    assert_eq!(drain, Ok(()));
}

#[test]
fn a_timeout_is_judged_by_the_clock() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let mut late = by_hand(async { queue.get_timeout(SECOND).await.map(finish) });
    assert!(late.is_pending());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert!(late.is_pending());
    clock.advance(Duration::from_nanos(1));
    assert_eq!(late.ready(), Err(WaitError::TimedOut));

    // A key that is ready is handed out even so.
    queue.add(1).unwrap();
    let in_time = by_hand(queue.get_timeout(Duration::ZERO)).ready();
    assert_eq!(in_time.map(finish), Ok(1));
}

#[test]
fn a_call_that_times_out_passes_its_wake_on() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let mut impatient = by_hand(async { queue.get_timeout(SECOND).await.map(finish) });
    assert!(impatient.is_pending());
    queue.add_after(1, 2 * SECOND).unwrap();
    assert!(impatient.is_pending(), "it watches the deadline");
    let [mut patient] = getters(&queue);
    clock.advance(SECOND);
    assert!(patient.is_pending());
    assert_eq!(impatient.ready(), Err(WaitError::TimedOut));
    assert_eq!(patient.wakes(), 1, "the watch is its own now");
    assert!(patient.is_pending());
    clock.advance(SECOND);
    assert_eq!(patient.ready(), Ok(1));
}

#[test]
fn shutdown_wakes_every_call() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [mut first, mut second, mut third] = getters(&queue);
    queue.shut_down();
    for getter in [&mut first, &mut second, &mut third] {
        assert_eq!(getter.wakes(), 1);
        assert_eq!(getter.ready(), Err(WaitError::Closed));
    }
}

#[test]
fn the_last_key_ends_every_wait_for_the_drain() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    let mut first = by_hand(queue.drain());
    let mut second = by_hand(queue.wait_drained());
    let mut third = by_hand(within(&queue, queue.drain()));
    assert!(first.is_pending() && second.is_pending() && third.is_pending());
    let refused = by_hand(queue.wait_drained()).ready();
    assert_eq!(refused, Err(WaitError::TooManyWaiters));

    clock.advance(SECOND);
    assert_eq!(third.ready(), None, "it waits no longer");
    finish(guard);
    assert_eq!(first.ready(), Ok(()));
    assert_eq!(second.ready(), Ok(()));
}

#[test]
fn a_dropped_drain_gives_its_place_back_and_changes_nothing_else() {
    let clock = Clock::new();
    let queue: Keys<'_, 1> = queue(&clock);
    queue.add(1).unwrap();
    drop(by_hand(queue.drain()));
    assert!(!queue.is_shutting_down(), "it was never polled");
    {
        let mut drain = by_hand(queue.drain());
        assert!(drain.is_pending());
    }
    {
        let mut late = by_hand(within(&queue, queue.drain()));
        assert!(late.is_pending());
    }
    let mut drained = by_hand(queue.wait_drained());
    assert!(queue.is_shutting_down() && drained.is_pending());
    assert_eq!(queue.try_get().map(finish), Some(1));
    assert_eq!(drained.ready(), Ok(()));
}

#[test]
fn a_wake_for_a_key_does_not_go_to_a_drainer() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let mut drained = by_hand(queue.wait_drained());
    assert!(drained.is_pending());
    let [mut getter] = getters(&queue);
    queue.add(1).unwrap();
    assert_eq!((drained.wakes(), getter.wakes()), (0, 1));
    assert_eq!(getter.ready(), Ok(1));
}

#[test]
fn next_completes_its_key_even_if_it_is_dropped_at_once() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    drop(queue.next(guard, Action::Success));
    assert!(!queue.contains(&1));

    queue.add_many([1, 2], |_| unreachable!());
    let guard = queue.try_get().unwrap();
    let mut next = by_hand(async { queue.next(guard, Action::Release).await.map(finish) });
    assert_eq!(next.ready(), Ok(2));
    assert_eq!(queue.stats().total, 0);
}

#[test]
fn next_that_waits_and_is_dropped_leaves_no_sleeper() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    let mut next = by_hand(queue.next(guard, Action::Snooze(SECOND)));
    assert!(next.is_pending());
    assert_eq!(asleep(&queue), 1);
    drop(next);
    assert_eq!(asleep(&queue), 0);
    clock.advance(SECOND);
    assert_eq!(queue.try_get().map(finish), Some(1));
}

#[test]
fn a_guard_of_another_queue_is_completed_there() {
    let clock = Clock::new();
    let (queue, other): (Keys<'_>, Keys<'_>) = (queue(&clock), queue(&clock));
    queue.add(1).unwrap();
    other.add(2).unwrap();
    let guard = other.try_get().unwrap();
    let next = by_hand(queue.next(guard, Action::Success)).ready();
    assert_eq!(next.map(finish), Ok(1));
    assert!(!other.contains(&2));
}

#[test]
fn a_guard_that_is_dropped_counts_as_failed() {
    let clock = Clock::new();
    let limiter = Exponential::new(SECOND, 60 * SECOND);
    let queue: Of<'_, _, 3> = WorkQueue::from_queue(Queue::new(limiter), &clock);
    queue.add(1).unwrap();
    let mut worker = by_hand(async {
        let _guard = queue.get().await.unwrap();
        std::future::pending::<()>().await;
    });
    assert!(worker.is_pending());
    drop(worker);
    assert_eq!(queue.failures(&1), 1);
    clock.advance(SECOND);
    assert_eq!(queue.len(), 1);
}

#[test]
fn a_question_mark_that_returns_early_retries_the_key() {
    async fn work(queue: &Of<'_, Exponential, 3>) -> Result<(), core::num::ParseIntError> {
        let guard = queue.get().await.unwrap();
        let _: u32 = "no number".parse()?;
        guard.success();
        Ok(())
    }

    let clock = Clock::new();
    let limiter = Exponential::new(SECOND, 60 * SECOND);
    let queue: Of<'_, _, 3> = WorkQueue::from_queue(Queue::new(limiter), &clock);
    queue.add(1).unwrap();
    assert!(by_hand(work(&queue)).ready().is_err());
    clock.advance(SECOND);
    assert_eq!((queue.len(), queue.failures(&1)), (1, 1));
}

#[test]
fn the_debug_text_shows_what_the_queue_holds() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add(1).unwrap();
    let shown = format!("{queue:?}");
    assert_eq!(
        shown,
        "WorkQueue(State { total: 1, active: 0, delayed: 0, is_shutting_down: false })"
    );
}

#[test]
fn calls_give_up_at_their_time_and_hand_back_what_they_have() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_many(1..=8, |_| unreachable!());
    let guard = queue.try_get().unwrap();
    let options = AddOptions::new();
    let mut added = by_hand(queue.add_wait_with(9, options, SECOND));
    let mut idle = by_hand(within(&queue, queue.wait_idle()));
    let mut flushed = by_hand(within(&queue, queue.flush(&1)));
    assert!(added.is_pending() && idle.is_pending() && flushed.is_pending());
    let mut refused = by_hand(queue.wait_idle());
    assert_eq!(refused.ready(), Err(WaitError::TooManyWaiters));
    let mut refused = by_hand(queue.add_wait(10));
    assert_eq!(refused.ready(), Err(Rejected::TooManyWaiters(10)));
    clock.advance(SECOND);
    assert_eq!(added.ready(), Err(Rejected::TimedOut(9)));
    assert_eq!((idle.ready(), flushed.ready()), (None, None));

    guard.success();
    let mut flushed = by_hand(within(&queue, queue.flush(&1)));
    assert_eq!(flushed.ready(), Some(Ok(())));
    let mut added = by_hand(queue.add_wait(9));
    assert_eq!(added.ready(), Ok(Added::Ready));
}

#[test]
fn a_clock_that_moves_wakes_the_task_whose_deadline_has_passed() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_after(1, SECOND).unwrap();
    let [mut owner, other] = getters(&queue);
    let mut late = by_hand(async { queue.get_timeout(2 * SECOND).await.map(finish) });
    assert!(late.is_pending());
    clock.advance(SECOND - Duration::from_nanos(1));
    assert_eq!((owner.wakes(), other.wakes(), late.wakes()), (0, 0, 0));
    clock.advance(Duration::from_nanos(1));
    assert_eq!((owner.wakes(), other.wakes(), late.wakes()), (1, 0, 0));
    assert_eq!(owner.ready(), Ok(1));
    clock.set(Instant::EPOCH + 2 * SECOND);
    assert_eq!((other.wakes(), late.wakes()), (0, 1));
    assert_eq!(late.ready(), Err(WaitError::TimedOut));
}

#[test]
fn a_clock_that_moves_wakes_the_task_that_polled_last() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    queue.add_after(1, SECOND).unwrap();
    let [mut owner] = getters(&queue);
    assert!(owner.poll_again().is_pending());
    clock.advance(SECOND);
    assert_eq!(owner.wakes(), 1);
    assert_eq!(owner.ready(), Ok(1));
}

/// A task that finds no place pushes out another, which is woken and comes back for a place.
#[test]
fn a_clock_that_moves_wakes_more_tasks_than_it_has_places_for() {
    let clock = Clock::new();
    let queue: Keys<'_, 32> = queue(&clock);
    let mut waiting: Vec<_> = (1..=32)
        .map(|seconds| by_hand(queue.get_timeout(seconds * SECOND)))
        .collect();
    for seconds in 1..=32 {
        for _ in 0..4 {
            let woken = waiting.iter_mut().filter(|call| call.is_woken());
            woken.for_each(|call| assert!(call.is_pending()));
        }
        clock.advance(SECOND);
        let mut first = waiting.remove(0);
        assert!(first.is_woken(), "after {seconds} s");
        assert!(matches!(first.ready(), Err(WaitError::TimedOut)));
    }
}

#[test]
fn a_clock_that_moves_wakes_loops_that_pause() {
    let clock = &Clock::new();
    let hourly = Backoff {
        duration: 3600 * SECOND,
        ..Backoff::default()
    };
    let runs = Cell::new(0);
    let mut poller = by_hand(backoff_until(
        BackoffUntil::sliding(hourly.delay_func(no_jitter)),
        &clock,
        std::future::pending::<()>(),
        async || runs.set(runs.get() + 1),
    ));
    assert!(poller.is_pending());
    clock.advance(3600 * SECOND);
    assert_eq!(poller.wakes(), 1);
    assert!(poller.is_pending());
    assert_eq!(runs.get(), 2);
}

#[test]
fn every_task_looks_again_after_a_clock_was_moved_otherwise() {
    let clock = Clock::new();
    let queue: Keys<'_> = queue(&clock);
    let [first, second] = getters(&queue);
    queue.wake_all();
    assert_eq!((first.wakes(), second.wakes()), (1, 1));
}
