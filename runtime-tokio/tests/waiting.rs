//! Which calls are woken, in which order, and what becomes of a future that is dropped: each is
//! polled by hand, on a clock that stands still.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::Stream;
use requeue_test_tools::{ByHand, by_hand};
use requeue_tokio::binding::{AsShared, sleep_until};
use requeue_tokio::binding::{Guards, Reporter};
use requeue_tokio::limiter::NoLimit;
use requeue_tokio::priority::Plain;
use requeue_tokio::storage::Fixed;
use requeue_tokio::{
    Action, AddOptions, Added, GroupLimits, Queue, QueueClock, Rejected, WaitError, WorkQueue,
    Workers,
};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, advance, timeout};

type Keys = WorkQueue<u32, Plain, NoLimit>;

const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

fn queue() -> Keys {
    WorkQueue::builder().limiter(NoLimit).build()
}

fn asleep(queue: &Keys) -> usize {
    queue.as_shared().look(|queue| queue.asleep())
}

/// Getters that wait, in the order in which they came. Each returns the key that it gets.
fn getters<const N: usize>(
    queue: &Keys,
) -> [ByHand<impl Future<Output = Result<u32, WaitError>>>; N] {
    std::array::from_fn(|_| {
        let mut getter = by_hand(async { Ok(finish(queue.get().await?)) });
        assert!(getter.is_pending());
        getter
    })
}

fn finish(guard: requeue_tokio::Guard<u32, Plain, NoLimit>) -> u32 {
    let key = *guard;
    guard.success();
    key
}

async fn next_of(guards: &mut Guards<u32, Plain, NoLimit>) -> Option<u32> {
    let next = poll_fn(|context| Pin::new(&mut *guards).poll_next(context));
    next.await.map(finish)
}

#[tokio::test]
async fn getters_are_woken_in_the_order_in_which_they_came() {
    let queue = queue();
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

#[tokio::test]
async fn a_getter_that_was_woken_for_nothing_goes_back_to_its_place() {
    let queue = queue();
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

#[tokio::test(start_paused = true)]
async fn a_getter_that_moves_to_another_task_is_woken_there() {
    let queue = queue();
    let [mut first, mut second] = getters(&queue);
    assert!(first.poll_again().is_pending());
    queue.add(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0), "its place is kept");
    assert_eq!(first.ready(), Ok(1));

    queue.add_after(2, SECOND).unwrap();
    assert!(second.is_pending());
    assert!(second.poll_again().is_pending());
    advance(SECOND).await;
    assert_eq!(second.wakes(), 1, "the timer knows of it too");
    assert_eq!(second.ready(), Ok(2));
}

#[tokio::test]
async fn one_wake_is_under_way_and_the_woken_wakes_the_next() {
    let queue = queue();
    let [mut first, mut second, third] = getters(&queue);
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    assert_eq!(first.ready(), Ok(1));
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    assert_eq!(second.ready(), Ok(2));
    assert_eq!(third.wakes(), 0);
}

#[tokio::test(start_paused = true)]
async fn of_a_thousand_getters_one_is_woken_by_a_deadline() {
    const GETTERS: usize = 1000;
    let queue = queue();
    let polls = Arc::new(AtomicUsize::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..GETTERS {
        let (queue, polls) = (queue.clone(), Arc::clone(&polls));
        tasks.spawn(async move {
            let mut get = Box::pin(queue.get());
            let counted = poll_fn(|context| {
                polls.fetch_add(1, Ordering::SeqCst);
                get.as_mut().poll(context)
            });
            counted.await.map(finish)
        });
    }
    while asleep(&queue) != GETTERS {
        yield_now().await;
    }
    assert_eq!(polls.swap(0, Ordering::SeqCst), GETTERS);

    queue.add_after(7, 60 * SECOND).unwrap();
    let start = Instant::now();
    assert_eq!(tasks.join_next().await.unwrap().unwrap(), Ok(7));
    assert_eq!(start.elapsed(), 60 * SECOND);
    // One poll to take over the watch, one when the time has come.
    assert_eq!(polls.load(Ordering::SeqCst), 2);
    assert_eq!(asleep(&queue), GETTERS - 1);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_farther_than_the_timer_reaches_is_slept_in_pieces() {
    let queue = queue();
    queue.add_after(1, 20 * YEAR).unwrap();
    let start = Instant::now();
    assert_eq!(queue.get().await.map(finish), Ok(1));
    assert_eq!(start.elapsed(), 20 * YEAR);

    let start = Instant::now();
    let late = queue.get_timeout(5 * YEAR).await;
    assert_eq!(late.unwrap_err(), WaitError::TimedOut);
    assert_eq!(start.elapsed(), 5 * YEAR);

    let clock = QueueClock::new();
    sleep_until(&clock, clock.at(Instant::now() + 5 * YEAR)).await;
    assert_eq!(start.elapsed(), 10 * YEAR);
}

#[tokio::test(start_paused = true)]
async fn a_delay_without_end_arms_no_timer() {
    let queue = queue();
    queue.add_after(1, Duration::MAX).unwrap();
    let mut unlimited = by_hand(queue.get_timeout(Duration::MAX));
    let [mut getter] = getters(&queue);
    assert!(unlimited.is_pending());
    // If anything had been armed, the paused clock would go there instead.
    let start = Instant::now();
    tokio::time::sleep(YEAR).await;
    assert_eq!(start.elapsed(), YEAR);
    assert_eq!((unlimited.wakes(), getter.wakes()), (0, 0));
    queue.shut_down();
    assert_eq!(getter.ready(), Err(WaitError::Closed));
    assert_eq!(unlimited.ready().unwrap_err(), WaitError::Closed);
    let leftovers = queue.leftovers().collect::<Vec<_>>();
    assert_eq!(leftovers[0].left, Duration::MAX);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_comes_forward_is_watched_by_a_call_that_is_woken_for_it() {
    let queue = queue();
    queue.add_after(1, 50 * SECOND).unwrap();
    let [mut owner, mut other] = getters(&queue);
    queue.add_after(2, 20 * SECOND).unwrap();
    assert_eq!((owner.wakes(), other.wakes()), (1, 0));
    assert!(owner.is_pending());
    advance(20 * SECOND).await;
    assert_eq!((owner.wakes(), other.wakes()), (2, 0));
    assert_eq!(owner.ready(), Ok(2));
    assert_eq!(other.wakes(), 1, "the watch is handed over");
    assert!(other.is_pending());
    advance(30 * SECOND).await;
    assert_eq!(other.ready(), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn keys_due_at_once_reach_as_many_getters() {
    let queue = queue();
    let [mut first, mut second, third] = getters(&queue);
    queue.add_after(1, SECOND).unwrap();
    queue.add_after(2, SECOND).unwrap();
    assert!(first.is_pending());
    advance(SECOND).await;
    assert_eq!(first.ready(), Ok(1));
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    assert_eq!(second.ready(), Ok(2));
    assert_eq!(third.wakes(), 0);
}

// Cancel safety: each method that waits, dropped before its first poll, while it waits, and after
// it was woken.

#[tokio::test(start_paused = true)]
async fn get_dropped_passes_on_its_wake_and_its_watch() {
    let queue = queue();
    drop(queue.get());
    let [first, mut second] = getters(&queue);
    queue.add(1).unwrap();
    assert_eq!((first.wakes(), second.wakes()), (1, 0));
    drop(first);
    assert_eq!(second.ready(), Ok(1));

    queue.add_after(2, SECOND).unwrap();
    let [owner, mut other] = getters(&queue);
    drop(owner);
    assert_eq!(other.wakes(), 1);
    assert!(other.is_pending());
    advance(SECOND).await;
    assert_eq!(other.ready(), Ok(2));
    assert_eq!(asleep(&queue), 0);
}

#[tokio::test]
async fn get_dropped_while_it_waits_takes_no_wake_with_it() {
    let queue = queue();
    let [first, mut second, third] = getters(&queue);
    drop(first);
    assert_eq!(asleep(&queue), 2);
    queue.add(1).unwrap();
    assert_eq!((second.wakes(), third.wakes()), (1, 0));
    assert_eq!(second.ready(), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn get_timeout_and_get_deadline_dropped_take_nothing() {
    let queue = queue();
    drop(queue.get_timeout(SECOND));
    drop(queue.get_deadline(queue.now()));
    let mut timeout = by_hand(queue.get_timeout(SECOND));
    let mut deadline = by_hand(queue.get_deadline(queue.now() + SECOND));
    let [mut other] = getters(&queue);
    assert!(timeout.is_pending() && deadline.is_pending());
    queue.add(1).unwrap();
    drop(timeout);
    drop(deadline);
    assert_eq!((asleep(&queue), other.ready()), (1, Ok(1)));
}

#[tokio::test]
async fn get_many_dropped_takes_nothing() {
    let queue = queue();
    drop(queue.get_many(2));
    let mut many = by_hand(queue.get_many(2));
    assert!(many.is_pending());
    assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
    assert_eq!(many.wakes(), 1);
    drop(many);
    let batch = queue.get_many(9).await.unwrap();
    assert!(batch.keys().eq(&[1, 2, 3]));
}

#[tokio::test]
async fn next_dropped_ends_its_run_and_takes_no_other_key() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let guard = queue.get().await.unwrap();
    drop(queue.next(guard, Action::RequeueAfter(Duration::MAX)));
    let state = queue.state(&1).unwrap();
    assert!(!state.active && state.due.is_some());

    let guard = queue.get().await.unwrap();
    let mut next = by_hand(queue.next(guard, Action::Success));
    assert!(next.is_pending());
    assert_eq!(queue.state(&2), None);
    queue.add(3).unwrap();
    assert_eq!(next.wakes(), 1);
    drop(next);
    assert_eq!(queue.get().await.map(finish), Ok(3));
}

#[tokio::test]
async fn next_dropped_for_want_of_budget_ends_its_run() {
    let queue = queue();
    queue.add(1).unwrap();
    let guard = queue.get().await.unwrap();
    while tokio::task::coop::has_budget_remaining() {
        queue.add(2).unwrap();
        queue.get().await.map(finish).unwrap();
    }
    let mut next = by_hand(queue.next(guard, Action::Success));
    assert!(next.is_pending());
    assert!(queue.state(&1).unwrap().active);
    drop(next);
    assert_eq!(queue.state(&1), None);
}

#[tokio::test]
async fn a_stream_or_its_next_dropped_loses_no_key() {
    let queue = queue();
    let mut guards = queue.guards();
    let [mut other] = getters(&queue);
    // The stream comes second, and first again once the getter has gone.
    let mut next = by_hand(next_of(&mut guards));
    assert!(next.is_pending());
    queue.add(1).unwrap();
    assert_eq!((other.wakes(), next.wakes()), (1, 0));
    assert_eq!(other.ready(), Ok(1));
    queue.add(2).unwrap();
    assert_eq!(next.wakes(), 1);
    drop(next);
    assert_eq!(next_of(&mut guards).await, Some(2));

    let mut next = by_hand(next_of(&mut guards));
    assert!(next.is_pending());
    drop(next);
    let [mut other] = getters(&queue);
    queue.add(3).unwrap();
    assert_eq!(other.wakes(), 0, "the stream waits, polled or not");
    drop(guards);
    assert_eq!(other.ready(), Ok(3));
}

#[tokio::test]
async fn a_stream_ends_with_its_queue() {
    let queue = queue();
    let mut guards = queue.guards();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    queue.shut_down();
    assert_eq!(next_of(&mut guards).await, Some(1));
    assert_eq!(next_of(&mut guards).await, Some(2));
    assert_eq!(next_of(&mut guards).await, None);
    assert_eq!(next_of(&mut guards).await, None);
}

#[tokio::test(start_paused = true)]
async fn drains_dropped_leave_the_others_waiting() {
    let queue = queue();
    queue.add(1).unwrap();
    drop(queue.drain());
    assert!(
        !queue.is_shutting_down(),
        "nothing happens before it is polled"
    );
    let mut dropped = by_hand(queue.drain());
    let mut timed = by_hand(timeout(SECOND, queue.drain()));
    let mut watcher = by_hand(queue.wait_drained());
    let mut other = by_hand(queue.drain());
    assert!(dropped.is_pending() && timed.is_pending());
    assert!(watcher.is_pending() && other.is_pending());
    drop(dropped);
    drop(timed);
    drop(watcher);
    assert!(queue.is_shutting_down());
    finish(queue.get().await.unwrap());
    assert_eq!(other.ready(), Ok(()));
}

#[tokio::test]
async fn run_dropped_requeues_what_was_active() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let workers = Workers::new(2);
    let mut run = by_hand(queue.run(workers, |_| std::future::pending::<Result<Action, ()>>()));
    assert!(run.is_pending());
    while !queue.is_empty() {
        yield_now().await;
    }
    assert!(queue.state(&1).unwrap().active);
    drop(run);
    // Tokio drops an aborted task when its turn comes.
    while queue.len() < 2 {
        yield_now().await;
    }
    assert!(!queue.is_shutting_down());
    assert_eq!(queue.get().await.map(finish), Ok(1));
}

#[tokio::test(start_paused = true)]
async fn reports_and_sleeps_end_when_they_are_dropped() {
    let queue = queue();
    let mut reports = by_hand(queue.report_running_every(SECOND));
    let clock = QueueClock::new();
    let mut sleep = by_hand(sleep_until(&clock, clock.at(Instant::now() + SECOND)));
    assert!(reports.is_pending() && sleep.is_pending());
    drop(reports);
    drop(sleep);
    let mut reports = by_hand(queue.report_running_every(SECOND));
    assert!(reports.is_pending());
    queue.shut_down();
    advance(SECOND).await;
    reports.ready();
}

#[tokio::test(start_paused = true)]
async fn calls_give_up_at_their_time_and_hand_back_what_they_have() {
    let queue: WorkQueue<u32, Plain, NoLimit, Fixed<1>> =
        Queue::with_metrics(NoLimit, Reporter::NONE).into();
    queue.add(1).unwrap();
    let guard = queue.get().await.unwrap();

    let begin = Instant::now();
    let options = AddOptions::new();
    let added = queue.add_wait_with(3, options, SECOND).await;
    assert_eq!(added, Err(Rejected::TimedOut(3)));
    assert_eq!(begin.elapsed(), SECOND);
    assert!(timeout(SECOND, queue.wait_idle()).await.is_err());
    assert!(timeout(SECOND, queue.wait_settled()).await.is_err());
    assert!(timeout(SECOND, queue.flush(&1)).await.is_err());
    assert!(timeout(SECOND, queue.cancel_and_wait(&1)).await.is_err());
    assert_eq!(begin.elapsed(), 5 * SECOND);

    guard.success();
    assert!(timeout(SECOND, queue.wait_settled()).await.is_ok());
    assert_eq!(queue.add_wait(2).await, Ok(Added::Ready));
}

/// Three calls wait: for a key, for room and for a state. Each change concerns one of them.
#[tokio::test(start_paused = true)]
async fn a_change_wakes_no_call_that_waits_for_something_else() {
    let queue = queue();
    queue.limit_keys(3);
    let _ = queue.add_many([1, 2]);
    let _running = queue.get().await.unwrap();
    let run = queue.get().await.unwrap();
    queue.add_after(3, SECOND).unwrap();
    let mut getter = by_hand(queue.get());
    let mut adder = by_hand(queue.add_wait(4));
    let mut flush = by_hand(queue.flush(&2));
    assert!(getter.is_pending() && adder.is_pending() && flush.is_pending());
    run.finish(Action::RequeueAfter(YEAR));
    assert_eq!((getter.wakes(), adder.wakes(), flush.wakes()), (0, 0, 1));
    flush.ready();

    let mut idle = by_hand(queue.wait_idle());
    assert!(idle.is_pending());
    assert!(queue.cancel(&2).is_some());
    assert_eq!((getter.wakes(), adder.wakes(), idle.wakes()), (0, 1, 0));
    assert_eq!(adder.ready(), Ok(Added::Ready));
}

/// The key of a group at its limit may run, and another key has room.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_run_wakes_a_getter_and_a_call_that_waits_for_room() {
    let queue = WorkQueue::builder().build_with_groups(|key: &(u8, u8)| key.0);
    queue.limit_groups(GroupLimits::new().max_active(1));
    queue.limit_keys(2);
    let _ = queue.add_many([(1, 1), (1, 2)]);
    let run = queue.get().await.unwrap();
    let mut getter = by_hand(queue.get());
    let mut adder = by_hand(queue.add_wait((2, 1)));
    assert!(getter.is_pending() && adder.is_pending());
    run.success();
    assert_eq!((getter.wakes(), adder.wakes()), (1, 1));
    assert_eq!(*getter.ready().unwrap(), (1, 2));
    assert_eq!(adder.ready(), Ok(Added::Ready));
}
