//! Tasks that wait, on Tokio's clock, which stands still until the test or the runtime moves it.
//! The twin of requeue-std's `threads`.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use requeue_test_tools::by_hand;
use requeue_tokio::Rejected;
use requeue_tokio::backoff::{Backoff, BackoffUntil, no_jitter};
use requeue_tokio::binding::AsShared;
use requeue_tokio::binding::Guards;
use requeue_tokio::{
    Action, Added, Batch, CancellationToken, Finished, Guard, WaitError, WorkQueue, backoff_until,
};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, advance, sleep, timeout};

type Keys = WorkQueue<u32>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Keys {
    WorkQueue::builder()
        .backoff(SECOND, 100 * SECOND)
        .no_retry_rate()
        .build()
}

fn asleep(queue: &Keys) -> usize {
    queue.as_shared().look(|queue| queue.asleep())
}

/// Waits until nothing is ready and this many tasks wait in `get`.
async fn until_asleep(queue: &Keys, tasks: usize) {
    while (queue.len(), asleep(queue)) != (0, tasks) {
        yield_now().await;
    }
}

fn is_send_and_static<T: Send + 'static>(_: &T) {}
fn is_send<T: Send>(_: &T) {}
fn is_sync<T: Sync>(_: &T) {}

#[tokio::test]
async fn the_queue_its_guards_and_its_futures_cross_threads() {
    let queue = queue();
    is_send_and_static(&queue);
    is_sync(&queue);
    assert!(queue.add_many(1..4).rejected.is_empty());
    let guard: Guard<u32> = queue.get().await.unwrap();
    is_send_and_static(&guard);
    is_sync(&guard);
    let batch: Batch<u32> = queue.get_many(9).await.unwrap();
    is_send_and_static(&batch);
    let guards: Guards<u32> = queue.guards();
    is_send_and_static(&guards);
    is_send(&queue.get());
    is_send(&queue.get_timeout(SECOND));
    is_send(&queue.get_many(3));
    is_send(&queue.wait_drained());
    is_send(&queue.drain());
    is_send(&queue.next(guard, Action::Success));
    assert_eq!(queue.state(&1), None, "the future was dropped");
}

#[tokio::test]
async fn a_guard_outlives_the_handle_and_moves_to_another_task() {
    let queue = queue();
    queue.add(1).unwrap();
    let guard = queue.get().await.unwrap();
    let other = queue.clone();
    drop(queue);
    let finished = tokio::spawn(async move { guard.release() }).await.unwrap();
    assert_eq!(finished, Finished::Idle);
    assert_eq!(other.state(&1), None);
}

#[tokio::test(start_paused = true)]
async fn a_delayed_key_wakes_the_task_that_watches_the_clock() {
    let queue = queue();
    let mut getters = JoinSet::new();
    for _ in 0..3 {
        let queue = queue.clone();
        getters.spawn(async move { queue.get().await.map(|guard| *guard) });
    }
    until_asleep(&queue, 3).await;
    let start = Instant::now();
    for key in 0..3 {
        queue.add_after(key, SECOND).unwrap();
    }
    let mut keys = getters.join_all().await;
    assert_eq!(start.elapsed(), SECOND);
    keys.sort_by_key(|key| key.ok());
    assert_eq!(keys, [Ok(0), Ok(1), Ok(2)]);
}

#[tokio::test(start_paused = true)]
async fn get_timeout_gives_up_when_its_time_has_come_and_not_before() {
    let queue = queue();
    queue.add_after(1, 5 * SECOND).unwrap();
    let mut getter = by_hand(queue.get_timeout(2 * SECOND));
    assert!(getter.is_pending());
    advance(2 * SECOND - Duration::from_millis(1)).await;
    assert!(getter.is_pending());
    advance(Duration::from_millis(1)).await;
    assert_eq!(getter.wakes(), 1);
    assert_eq!(getter.ready().unwrap_err(), WaitError::TimedOut);
    drop(getter);
    assert_eq!(asleep(&queue), 0);
    let late = queue.get_timeout(Duration::ZERO).await;
    assert_eq!(late.unwrap_err(), WaitError::TimedOut);

    let deadline = Instant::now() + 3 * SECOND;
    assert_eq!(
        *queue
            .get_deadline(queue.clock().at(deadline))
            .await
            .unwrap(),
        1
    );
    assert_eq!(Instant::now(), deadline);
    queue.add(2).unwrap();
    let ready = queue
        .get_deadline(queue.clock().at(deadline - SECOND))
        .await;
    assert_eq!(*ready.unwrap(), 2, "a key that is ready is handed out");
}

#[tokio::test(start_paused = true)]
async fn a_getter_that_times_out_passes_its_watch_on() {
    let queue = queue();
    queue.add_after(1, 3 * SECOND).unwrap();
    let mut owner = by_hand(queue.get_timeout(SECOND));
    assert!(owner.is_pending());
    let mut other = by_hand(queue.get());
    assert!(other.is_pending());
    advance(SECOND).await;
    assert_eq!((owner.wakes(), other.wakes()), (1, 0));
    assert_eq!(owner.ready().unwrap_err(), WaitError::TimedOut);
    drop(owner);
    assert_eq!(other.wakes(), 1);
    assert!(other.is_pending());
    advance(2 * SECOND).await;
    assert_eq!(other.wakes(), 2);
    assert_eq!(*other.ready().unwrap(), 1);
}

#[tokio::test]
async fn shutdown_wakes_every_task() {
    let queue = queue();
    let mut getters = JoinSet::new();
    for _ in 0..4 {
        let queue = queue.clone();
        getters.spawn(async move { queue.get().await.is_err() });
    }
    until_asleep(&queue, 4).await;
    queue.shut_down();
    assert_eq!(getters.join_all().await, [true; 4]);
    assert_eq!(queue.add(1), Err(Rejected::Closed(1)));
    let closed = queue.get_timeout(SECOND).await;
    assert_eq!(closed.unwrap_err(), WaitError::Closed);
}

#[tokio::test]
async fn every_task_that_waits_for_the_drain_learns_of_it() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let guard = queue.get().await.unwrap();
    let mut watchers: Vec<_> = (0..3).map(|_| by_hand(queue.wait_drained())).collect();
    assert!(watchers.iter_mut().all(|watcher| watcher.is_pending()));
    let mut drains: Vec<_> = (0..3).map(|_| by_hand(queue.drain())).collect();
    assert!(drains.iter_mut().all(|drain| drain.is_pending()));
    guard.release();
    // One key is still ready: client-go would report the drain as over.
    assert!(drains.iter_mut().all(|drain| drain.is_pending()));
    assert!(watchers.iter_mut().all(|watcher| watcher.is_pending()));
    let before: Vec<_> = drains.iter().map(|drain| drain.wakes()).collect();
    queue.get().await.unwrap().release();
    for (drain, before) in drains.iter_mut().zip(before) {
        assert_eq!(drain.wakes(), before + 1);
        assert_eq!(drain.ready(), Ok(()));
    }
    for watcher in &mut watchers {
        watcher.ready();
    }
    by_hand(queue.wait_drained()).ready();
}

#[tokio::test(start_paused = true)]
async fn a_drain_ends_at_its_timeout_or_when_it_is_interrupted() {
    let queue = queue();
    queue.add(1).unwrap();
    assert!(timeout(Duration::ZERO, queue.drain()).await.is_err());
    let start = Instant::now();
    assert!(timeout(SECOND, queue.drain()).await.is_err());
    assert_eq!(start.elapsed(), SECOND);
    let mut untimed = by_hand(queue.drain());
    let mut watcher = by_hand(queue.wait_drained());
    assert!(untimed.is_pending() && watcher.is_pending());
    queue.shut_down();
    assert_eq!(untimed.ready(), Err(WaitError::Interrupted));
    assert!(watcher.is_pending(), "it waits for what is true");
    let leftovers = queue.leftovers().collect::<Vec<_>>();
    assert_eq!((leftovers.len(), leftovers[0].key), (1, 1));
    watcher.ready();
    assert_eq!(queue.drain().await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_is_dropped_gives_its_key_back_as_failed() {
    let queue = queue();
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    assert!(queue.state(&1).unwrap().active);
    drop(guard);
    let state = queue.state(&1).unwrap();
    assert!(!state.active && !state.ready);
    assert_eq!(queue.failures(&1), 1);
    assert_eq!(queue.get().await.unwrap().failures(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_question_mark_that_returns_early_retries_the_key() {
    async fn work(queue: &Keys) -> Result<(), std::num::ParseIntError> {
        let guard = queue.get().await.unwrap();
        let _: u32 = "no number".parse()?;
        guard.success();
        Ok(())
    }

    let queue = queue();
    queue.add(1).unwrap();
    let start = Instant::now();
    assert!(work(&queue).await.is_err());
    let again = queue.get_timeout(10 * SECOND).await.unwrap();
    assert_eq!(again.attempt(), 2);
    assert_eq!(start.elapsed(), SECOND);
}

#[tokio::test]
async fn a_batch_that_is_dropped_counts_as_failed() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    drop(queue.get_many(2).await.unwrap());
    assert_eq!((queue.failures(&1), queue.failures(&2)), (1, 1));
    assert!(queue.contains(&1) && queue.contains(&2));
}

#[tokio::test]
async fn a_guard_ends_its_run_only_once() {
    let queue = queue();
    queue.add(1).unwrap();
    let guard = queue.get().await.unwrap();
    assert_eq!(queue.release_key(&1), Finished::Idle);
    queue.add(1).unwrap();
    let second = queue.get().await.unwrap();
    drop(guard);
    assert!(
        queue.state(&1).unwrap().active,
        "a stale guard has no effect"
    );
    assert_eq!(second.release(), Finished::Idle);
    assert_eq!(queue.release_key(&1), Finished::Stale);
}

#[tokio::test(start_paused = true)]
async fn a_guard_knows_its_attempts() {
    let queue = queue();
    queue.add(1).unwrap();
    for attempt in 1..4 {
        let guard = queue.get().await.unwrap();
        assert_eq!((guard.attempt(), guard.failures()), (attempt, attempt - 1));
        let delay = SECOND * (1 << (attempt - 1));
        assert_eq!(guard.retry(), Finished::Delayed(delay));
    }
    let guard = queue.get().await.unwrap();
    assert_eq!(guard.snooze(SECOND), Finished::Delayed(SECOND));
    assert_eq!(queue.failures(&1), 3, "no failure was counted");
    queue.get().await.unwrap().success();
    assert_eq!(queue.failures(&1), 0);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_or_is_aborted_gives_its_keys_back() {
    let queue = queue();
    assert!(queue.add_many(1..7).rejected.is_empty());
    let panicking = queue.clone();
    let panicked = tokio::spawn(async move {
        let _guard = panicking.get().await.unwrap();
        let _batch = panicking.get_many(2).await.unwrap();
        panic!("on purpose");
    });
    assert!(panicked.await.unwrap_err().is_panic());
    let aborting = queue.clone();
    let aborted = tokio::spawn(async move {
        let _guard = aborting.get().await.unwrap();
        let _batch = aborting.get_many(2).await.unwrap();
        std::future::pending().await
    });
    while !queue.is_empty() {
        yield_now().await;
    }
    aborted.abort();
    let end: Result<(), _> = aborted.await;
    assert!(end.unwrap_err().is_cancelled());
    for key in 1..7 {
        assert_eq!(queue.failures(&key), 1);
    }
    let batch = queue.get_many(9).await.unwrap();
    let mut keys: Vec<_> = batch.keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3, 4, 5, 6]);
}

#[tokio::test]
async fn a_batch_is_completed_together_or_key_by_key() {
    let queue = queue();
    assert!(queue.add_many(0..4).rejected.is_empty());
    let batch = queue.get_many(2).await.unwrap();
    assert_eq!((batch.len(), queue.len()), (2, 2));
    batch.release();
    let guards = queue.get_many(9).await.unwrap().into_guards();
    let [two, three] = <[_; 2]>::try_from(guards).unwrap();
    assert_eq!((*two, *three), (2, 3));
    assert_eq!(three.retry(), Finished::Delayed(SECOND));
    assert!(queue.state(&2).unwrap().active);
    two.release();
    assert_eq!(queue.state(&2), None);
}

#[tokio::test]
async fn next_completes_a_guard_of_another_queue_there() {
    let queue = queue();
    let other = self::queue();
    other.add(9).unwrap();
    queue.add(1).unwrap();
    let guard = other.get().await.unwrap();
    let guard = queue.next(guard, Action::Retry).await.unwrap();
    assert_eq!(*guard, 1);
    assert_eq!(other.failures(&9), 1);
}

#[tokio::test(start_paused = true)]
async fn next_waits_for_the_key_that_it_has_sent_back() {
    let queue = queue();
    queue.add(1).unwrap();
    let guard = queue.get().await.unwrap();
    let start = Instant::now();
    let guard = queue.next(guard, Action::Retry).await.unwrap();
    assert_eq!((*guard, guard.failures()), (1, 1));
    assert_eq!(start.elapsed(), SECOND);
}

#[test]
fn a_queue_is_made_and_filled_outside_of_any_runtime() {
    let queue = queue();
    queue.add(1).unwrap();
    queue.add_after(2, Duration::from_millis(1)).unwrap();
    assert_eq!(by_hand(queue.get()).ready().map(|guard| *guard), Ok(1));
    queue.forget(&1);
    let runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = { runtime }.enable_time().build().unwrap();
    assert_eq!(*runtime.block_on(queue.get()).unwrap(), 2);
}

#[tokio::test(start_paused = true)]
async fn tokio_moves_the_clock_of_the_queue() {
    let queue = queue();
    let before = queue.now();
    advance(90 * SECOND).await;
    assert_eq!(queue.now(), before + 90 * SECOND);
    let later = Instant::now() + SECOND;
    assert_eq!(queue.clock().at(later), before + 91 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn backoff_until_runs_at_the_times_of_its_backoff() {
    let backoff = Backoff {
        duration: SECOND,
        factor: 2.0,
        steps: 9,
        ..Backoff::default()
    };
    let start = Instant::now();
    let backoff = BackoffUntil::sliding(backoff.delay_func(no_jitter));
    // In a task of its own, as a program would.
    let looping = tokio::spawn(async move {
        let (stop, mut runs) = (CancellationToken::new(), Vec::new());
        backoff_until(backoff, stop.clone(), || {
            runs.push(start.elapsed().as_secs());
            if runs.len() == 4 {
                stop.cancel();
            }
            tokio::time::sleep(SECOND)
        })
        .await;
        runs
    });
    assert_eq!(looping.await.unwrap(), [0, 2, 5, 10]);
    assert_eq!(start.elapsed(), 11 * SECOND, "stopped, it does not pause");
}

#[tokio::test(start_paused = true)]
async fn backoff_until_runs_in_a_task_of_its_own() {
    let stop = CancellationToken::new();
    let (runs, _) = tokio::sync::watch::channel(0);
    let runs = Arc::new(runs);
    let poller = tokio::spawn({
        let (runs, stop) = (Arc::clone(&runs), stop.clone());
        let each_second = Backoff {
            duration: Duration::from_secs(1),
            ..Backoff::default()
        };
        let backoff = BackoffUntil::sliding(each_second.delay_func(no_jitter));
        backoff_until(backoff, stop, move || {
            let runs = Arc::clone(&runs);
            async move { runs.send_modify(|runs| *runs += 1) }
        })
    });
    runs.subscribe().wait_for(|runs| *runs == 3).await.unwrap();
    stop.cancel();
    poller.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn backoff_until_is_stopped_before_its_first_run_and_in_a_pause_without_end() {
    let backoff = Backoff {
        duration: Duration::MAX,
        ..Backoff::default()
    };
    let (stop, runs) = (CancellationToken::new(), Rc::new(Cell::new(0)));
    let mut looping = by_hand(backoff_until(
        BackoffUntil::sliding(backoff.delay_func(no_jitter)),
        stop.clone(),
        || async { runs.set(runs.get() + 1) },
    ));
    assert!(looping.is_pending());
    stop.cancel();
    looping.ready();
    drop(looping);
    let backoff = BackoffUntil::sliding(backoff.delay_func(no_jitter));
    backoff_until(backoff, stop, || async { runs.set(runs.get() + 1) }).await;
    assert_eq!(runs.get(), 1);
}

/// A key whose clone panics when its test says so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Brittle(u32);

thread_local! {
    static CLONE_PANICS_AT: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        if CLONE_PANICS_AT.get() == Some(self.0) {
            CLONE_PANICS_AT.set(None);
            panic!("on purpose");
        }
        Self(self.0)
    }
}

#[tokio::test]
async fn a_key_whose_clone_panics_is_not_taken_and_those_before_it_are_given_back() {
    let queue = WorkQueue::new();
    assert!(
        queue
            .add_many([Brittle(1), Brittle(2), Brittle(3)])
            .rejected
            .is_empty()
    );
    CLONE_PANICS_AT.set(Some(3));
    let mut getter = by_hand(queue.get_many(9));
    let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| getter.poll().is_ready()));
    assert!(unwound.is_err());
    drop(getter);
    assert_eq!(queue.failures(&Brittle(2)), 1);
    assert_eq!(queue.get().await.unwrap().0, 3);
}

#[tokio::test(start_paused = true)]
async fn a_look_that_panics_wakes_another_task() {
    let queue = WorkQueue::new();
    queue.add_after(Brittle(1), SECOND).unwrap();
    let mut owner = by_hand(queue.get());
    let mut other = by_hand(queue.get());
    assert!(owner.is_pending() && other.is_pending());
    advance(SECOND).await;
    CLONE_PANICS_AT.set(Some(1));
    let unwound = std::panic::catch_unwind(AssertUnwindSafe(|| owner.poll().is_ready()));
    assert!(unwound.is_err());
    drop(owner);
    assert_eq!(other.wakes(), 1);
    assert_eq!(other.ready().unwrap().0, 1);
}

#[tokio::test]
async fn a_task_that_always_finds_a_key_lets_others_run() {
    let queue = queue();
    assert!(queue.add_many(0..10_000).rejected.is_empty());
    let others_ran = Rc::new(RefCell::new(None));
    let local = tokio::task::LocalSet::new();
    let ran = Rc::clone(&others_ran);
    let worker = queue.clone();
    let worked = local.run_until(async move {
        let worker = tokio::task::spawn_local(async move {
            while let Ok(guard) = worker.get_timeout(Duration::ZERO).await {
                guard.success();
            }
        });
        tokio::task::spawn_local(async move { *ran.borrow_mut() = Some(queue.len()) });
        worker.await
    });
    worked.await.unwrap();
    let left = others_ran.borrow().unwrap();
    assert!(left > 0, "the worker was done before any other task ran");
}

async fn next(guards: &mut Guards<u32>) -> Option<Guard<u32>> {
    poll_fn(|context| Pin::new(&mut *guards).poll_next(context)).await
}

#[tokio::test(start_paused = true)]
async fn a_stream_with_a_task_for_each_key_drains() {
    let queue = WorkQueue::new();
    queue.add(1).unwrap();
    let mut guards = queue.guards();
    let feeder = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Some(guard) = next(&mut guards).await {
                let queue = queue.clone();
                tokio::spawn(async move {
                    // Refused in the second run.
                    let _ = queue.add(*guard);
                    sleep(SECOND).await;
                    guard.success()
                });
            }
        }
    });
    sleep(SECOND / 2).await;
    let drained = timeout(100 * SECOND, queue.drain()).await;
    assert_eq!(drained, Ok(Ok(())));
    feeder.await.unwrap();
    assert_eq!(queue.leftovers().count(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_loop_around_get_with_a_task_for_each_key_drains() {
    let queue = WorkQueue::new();
    queue.add(1).unwrap();
    let feeder = tokio::spawn({
        let queue = queue.clone();
        async move {
            while let Ok(guard) = queue.get().await {
                tokio::spawn(async move {
                    sleep(SECOND).await;
                    guard.success()
                });
            }
        }
    });
    sleep(SECOND / 2).await;
    assert_eq!(queue.add(1), Ok(Added::Dirty));
    let drained = timeout(100 * SECOND, queue.drain()).await;
    assert_eq!(drained, Ok(Ok(())));
    feeder.await.unwrap();
    assert_eq!(queue.leftovers().count(), 0);
}
