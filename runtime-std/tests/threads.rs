//! Threads that wait, on a clock that the test moves. No test sleeps: a test waits until the queue
//! says how many threads are asleep.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::Cell;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use requeue_std::core::binding::Clock;
use requeue_std::core::{Backoff, BackoffUntil, Instant, NoJitter, Rejected};
use requeue_std::{
    Action, Drained, Finished, GetError, ManualClock, Stop, SystemClock, WorkQueue, Workers,
    backoff_until,
};

type Keys = WorkQueue<u32>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> (Keys, ManualClock) {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder()
        .backoff(SECOND, 100 * SECOND)
        .no_retry_rate()
        .clock(clock.clone())
        .build();
    (queue, clock)
}

/// Waits until nothing is ready and this many threads sleep in `get`.
fn until_asleep<K: Eq + Hash>(queue: &WorkQueue<K>, threads: usize) {
    while queue.with(|queue, now| queue.len(now).map(|ready| (ready, queue.asleep())))
        != (0, threads)
    {
        thread::yield_now();
    }
}

fn is_send_and_sync<T: Send + Sync>(_: &T) {}

#[test]
fn the_queue_and_its_guards_cross_threads() {
    let (queue, _) = queue();
    is_send_and_sync(&queue);
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    is_send_and_sync(&guard);
    thread::scope(|scope| {
        scope.spawn(move || guard.release().unwrap());
    });
    assert_eq!(queue.state(&1), None);
}

#[test]
fn a_sleeping_thread_gets_what_another_adds() {
    let (queue, _) = queue();
    thread::scope(|scope| {
        let getter = scope.spawn(|| queue.get().map(|guard| *guard));
        until_asleep(&queue, 1);
        queue.add(7).unwrap();
        assert_eq!(getter.join().unwrap(), Some(7));
    });
}

#[test]
fn a_delayed_key_wakes_the_thread_that_watches_the_clock() {
    let (queue, clock) = queue();
    thread::scope(|scope| {
        let getters: Vec<_> = (0..3)
            .map(|_| scope.spawn(|| queue.get().map(|guard| *guard)))
            .collect();
        until_asleep(&queue, 3);
        for key in 0..3 {
            queue.add_after(key, SECOND).unwrap();
        }
        clock.advance(SECOND);
        queue.clock_moved();
        let mut keys: Vec<_> = getters.into_iter().map(|g| g.join().unwrap()).collect();
        keys.sort();
        assert_eq!(keys, [Some(0), Some(1), Some(2)]);
    });
}

#[test]
fn get_timeout_gives_up_when_its_time_has_come_and_not_before() {
    let (queue, clock) = queue();
    queue.add_after(1, 5 * SECOND).unwrap();
    thread::scope(|scope| {
        let getter = scope.spawn(|| queue.get_timeout(2 * SECOND).map(|guard| *guard));
        until_asleep(&queue, 1);
        clock.advance(SECOND);
        queue.clock_moved();
        until_asleep(&queue, 1);
        assert!(!getter.is_finished());
        clock.advance(SECOND);
        queue.clock_moved();
        assert_eq!(getter.join().unwrap(), Err(GetError::TimedOut));
    });
    until_asleep(&queue, 0);
    assert_eq!(
        queue.get_timeout(Duration::ZERO).err(),
        Some(GetError::TimedOut)
    );
}

#[test]
fn a_getter_that_times_out_passes_its_watch_on() {
    let (queue, clock) = queue();
    queue.add_after(1, 3 * SECOND).unwrap();
    thread::scope(|scope| {
        let keeper = scope.spawn(|| queue.get_timeout(SECOND).map(|guard| *guard));
        until_asleep(&queue, 1);
        let other = scope.spawn(|| queue.get().map(|guard| *guard));
        until_asleep(&queue, 2);
        clock.advance(SECOND);
        queue.clock_moved();
        assert_eq!(keeper.join().unwrap(), Err(GetError::TimedOut));
        clock.advance(2 * SECOND);
        queue.clock_moved();
        assert_eq!(other.join().unwrap(), Some(1));
    });
}

#[test]
fn shutdown_wakes_every_thread() {
    let (queue, _) = queue();
    thread::scope(|scope| {
        let getters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| queue.get().is_none()))
            .collect();
        until_asleep(&queue, 4);
        queue.shut_down();
        assert!(getters.into_iter().all(|getter| getter.join().unwrap()));
    });
    assert_eq!(queue.add(1), Err(Rejected::Closed(1)));
    assert_eq!(queue.get_timeout(SECOND).err(), Some(GetError::Closed));
}

#[test]
fn every_thread_that_waits_for_the_drain_learns_of_it() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    queue.add(2).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let drains: Vec<_> = (0..3).map(|_| scope.spawn(|| queue.drain())).collect();
        while !queue.shutting_down() {
            thread::yield_now();
        }
        guard.release().unwrap();
        // One key is still ready: client-go would report the drain as over.
        assert!(drains.iter().all(|drain| !drain.is_finished()));
        queue.get().unwrap().success().unwrap();
        for drain in drains {
            assert_eq!(drain.join().unwrap(), Drained::Complete);
        }
    });
}

#[test]
fn a_drain_is_told_by_a_worker_that_completes_the_last_key_and_ends() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let drain = scope.spawn(|| queue.drain());
        while !queue.shutting_down() {
            thread::yield_now();
        }
        assert!(queue.next(guard, Action::Success).is_none());
        assert_eq!(drain.join().unwrap(), Drained::Complete);
    });
}

#[test]
fn a_drain_ends_at_its_timeout_or_when_it_is_interrupted() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Pending);
    thread::scope(|scope| {
        let timed = scope.spawn(|| queue.drain_timeout(SECOND));
        let untimed = scope.spawn(|| queue.drain());
        // Whether the thread already waits or not, it sees the new time.
        while !timed.is_finished() {
            clock.advance(SECOND);
            queue.clock_moved();
            thread::yield_now();
        }
        assert_eq!(timed.join().unwrap(), Drained::Pending);
        while !untimed.is_finished() {
            queue.shut_down();
            thread::yield_now();
        }
        assert_eq!(untimed.join().unwrap(), Drained::Interrupted);
    });
    let leftovers = queue.leftovers();
    assert_eq!((leftovers.len(), leftovers[0].key), (1, 1));
    assert_eq!(queue.drain(), Drained::Complete);
}

#[test]
fn a_guard_ends_its_run_only_once() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    queue.release_key(&1).unwrap();
    queue.add(1).unwrap();
    let second = queue.get().unwrap();
    drop(guard);
    assert!(
        queue.state(&1).unwrap().active,
        "a stale guard has no effect"
    );
    assert_eq!(second.release(), Ok(Finished::Idle));
    assert!(queue.release_key(&1).is_err());
}

#[test]
fn a_guard_that_is_dropped_counts_as_failed() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();
    assert!(queue.state(&1).unwrap().active);
    drop(guard);
    let state = queue.state(&1).unwrap();
    assert!(!state.active && !state.ready, "{state:?}");
    assert_eq!(queue.num_requeues(&1), 1);
    clock.advance(SECOND);
    assert_eq!(queue.get().unwrap().attempt(), 2);
}

#[test]
fn a_question_mark_that_returns_early_retries_the_key() {
    fn work(queue: &Keys) -> Result<(), std::num::ParseIntError> {
        let guard = queue.get().unwrap();
        let _: u32 = "no number".parse()?;
        guard.success().unwrap();
        Ok(())
    }

    let (queue, clock) = queue();
    queue.add(1).unwrap();
    assert!(work(&queue).is_err());
    clock.advance(SECOND);
    assert_eq!((queue.len(), queue.num_requeues(&1)), (1, 1));
}

#[test]
fn a_batch_that_is_dropped_counts_as_failed() {
    let (queue, clock) = queue();
    queue.add_many([1, 2], |_| unreachable!());
    drop(queue.get_many(2).unwrap());
    assert_eq!((queue.num_requeues(&1), queue.num_requeues(&2)), (1, 1));
    clock.advance(SECOND);
    assert_eq!(queue.len(), 2);
}

#[test]
fn a_guard_knows_its_attempts() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    for attempt in 1..4 {
        let guard = queue.get().unwrap();
        assert_eq!((guard.attempt(), guard.requeues()), (attempt, attempt - 1));
        let delay = SECOND * (1 << (attempt - 1));
        assert_eq!(guard.retry(), Ok(Finished::Delayed(delay)));
        clock.advance(delay);
    }
    let guard = queue.get().unwrap();
    assert_eq!(guard.retry_after(SECOND), Ok(Finished::Delayed(SECOND)));
    assert_eq!(queue.num_requeues(&1), 3, "no failure was counted");
    clock.advance(SECOND);
    let _ = queue.get().unwrap().success();
    assert_eq!(queue.num_requeues(&1), 0);
}

#[test]
fn a_panicking_worker_gives_its_key_back() {
    let (queue, clock) = queue();
    queue.add_many([1, 2, 3], |_| unreachable!());
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let _guard = queue.get().unwrap();
            let _batch = queue.get_many(2).unwrap();
            panic!("on purpose");
        });
        worker.join()
    });
    assert!(unwound.is_err());
    assert!(queue.is_empty());
    clock.advance(SECOND);
    let batch = queue.get_many(9).unwrap();
    let mut keys: Vec<_> = batch.keys().copied().collect();
    keys.sort_unstable();
    assert_eq!(keys, [1, 2, 3]);
    assert_eq!(queue.num_requeues(&2), 1);
    batch.success().unwrap();
}

#[test]
fn a_batch_is_completed_together_or_key_by_key() {
    let (queue, _) = queue();
    queue.add_many(0..4, |_| unreachable!());
    let batch = queue.get_many(2).unwrap();
    assert_eq!((batch.len(), queue.len()), (2, 2));
    batch.release().unwrap();
    let [two, three] = <[_; 2]>::try_from(queue.get_many(9).unwrap().into_guards()).unwrap();
    assert_eq!((*two, *three), (2, 3));
    assert_eq!(three.retry(), Ok(Finished::Delayed(SECOND)));
    assert!(queue.state(&2).unwrap().active);
    two.success().unwrap();
    assert_eq!(queue.state(&2), None);
}

#[test]
fn next_completes_a_guard_of_another_queue_there() {
    let (queue, _) = queue();
    let (other, _) = self::queue();
    other.add(9).unwrap();
    queue.add(1).unwrap();
    let guard = queue.next(other.get().unwrap(), Action::Retry).unwrap();
    assert_eq!(*guard, 1);
    assert_eq!(other.num_requeues(&9), 1);
}

#[test]
fn run_retries_gives_up_and_survives_panics() {
    let (queue, clock) = queue();
    queue.add_many(0..3, |_| unreachable!());
    let (given_up, gave_up) = mpsc::channel();
    let workers = Workers::new(2)
        .max_retries(2)
        .on_give_up(|key: &u32, failure| {
            given_up.send((*key, failure.to_string())).unwrap();
            panic!("a hook that panics takes nobody with it");
        });
    let runs = AtomicUsize::new(0);
    let leftovers = thread::scope(|scope| {
        let run = scope.spawn(|| {
            queue.run(workers, |key| {
                runs.fetch_add(1, Ordering::SeqCst);
                match key {
                    0 => Ok(Action::Success),
                    1 => Err("no"),
                    _ => panic!("never"),
                }
            })
        });
        for delay in [SECOND, 2 * SECOND] {
            until_asleep(&queue, 2);
            clock.advance(delay);
            queue.clock_moved();
        }
        let mut hooks = [gave_up.recv().unwrap(), gave_up.recv().unwrap()];
        hooks.sort();
        assert_eq!(hooks[0], (1, "no".into()));
        assert_eq!(hooks[1], (2, "panicked: never".into()));
        queue.shut_down();
        run.join().unwrap().unwrap()
    });
    assert_eq!(runs.into_inner(), 1 + 3 + 3);
    assert!(leftovers.is_empty());
    assert_eq!(
        queue.num_requeues(&1),
        0,
        "a key that is given up is as new"
    );
}

#[test]
fn a_key_that_is_put_off_keeps_its_failures() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    let _ = queue.get().unwrap().retry();
    clock.advance(SECOND);
    queue
        .run(1, |_| {
            queue.shut_down();
            Ok::<_, ()>(Action::RetryAfter(SECOND))
        })
        .unwrap();
    assert_eq!(queue.num_requeues(&1), 1);
}

#[test]
fn run_hands_back_what_it_did_not_do() {
    let (queue, clock) = queue();
    queue.add_many(0..5, |_| unreachable!());
    queue.add_after(9, 60 * SECOND).unwrap();
    let workers = Workers::new(1).drain_deadline(2 * SECOND);
    let leftovers = queue
        .run(workers, |key| match key {
            0 => {
                queue.shut_down();
                clock.advance(SECOND);
                Ok(Action::RequeueAfter(30 * SECOND))
            }
            1 => {
                clock.advance(SECOND);
                Err("fails while the queue drains")
            }
            _ => unreachable!("the deadline has passed"),
        })
        .unwrap();
    let mut left: Vec<_> = leftovers
        .iter()
        .map(|leftover| (leftover.key, leftover.left.as_secs(), leftover.requeues))
        .collect();
    left.sort_unstable();
    assert_eq!(
        left,
        [
            (0, 29, 0),
            (1, 1, 1),
            (2, 0, 0),
            (3, 0, 0),
            (4, 0, 0),
            (9, 58, 0)
        ]
    );
}

#[test]
fn a_clock_that_two_threads_move_counts_both() {
    let clock = ManualClock::new();
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| (0..100_000).for_each(|_| clock.advance(Duration::from_nanos(1))));
        }
    });
    assert_eq!(clock.now(), Instant::from_nanos(200_000));
}

#[test]
fn backoff_until_runs_at_the_times_of_its_backoff() {
    // Not sliding, so that the pause is fixed before `work` tells the test of its run.
    let backoff = Backoff {
        duration: SECOND,
        factor: 2.0,
        steps: 9,
        ..Backoff::default()
    };
    let clock = ManualClock::new();
    let stop = Stop::new();
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        let worker_clock = clock.clone();
        let worker_stop = stop.clone();
        scope.spawn(move || {
            let backoff = BackoffUntil::non_sliding(backoff, NoJitter);
            backoff_until(backoff, worker_clock, &worker_stop, || {
                ran.send(()).unwrap()
            });
        });
        for pause in [1, 2, 4] {
            runs.recv().unwrap();
            clock.advance(SECOND * pause - Duration::from_nanos(1));
            stop.clock_moved();
            assert!(runs.try_recv().is_err());
            clock.advance(Duration::from_nanos(1));
            stop.clock_moved();
        }
        runs.recv().unwrap();
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

/// Leaves a token for the next sleep of this thread, as other code in a program may.
fn unpark_this_thread() {
    thread::current().unpark();
}

#[test]
fn a_thread_that_is_woken_for_no_reason_keeps_waiting() {
    let (queue, clock) = queue();
    thread::scope(|scope| {
        let getter = scope.spawn(|| {
            unpark_this_thread();
            queue.get().map(|guard| *guard)
        });
        let timed = scope.spawn(|| {
            unpark_this_thread();
            queue.get_timeout(SECOND).map(|guard| *guard)
        });
        while clock.waiting() != 2 {
            thread::yield_now();
        }
        for thread in [getter.thread(), timed.thread()] {
            thread.unpark();
            thread.unpark();
        }
        until_asleep(&queue, 2);
        clock.advance(SECOND);
        queue.clock_moved();
        assert_eq!(timed.join().unwrap(), Err(GetError::TimedOut));
        queue.add(7).unwrap();
        assert_eq!(getter.join().unwrap(), Some(7));

        queue.add(8).unwrap();
        let guard = queue.get().unwrap();
        let drain = scope.spawn(|| {
            unpark_this_thread();
            queue.drain()
        });
        while clock.waiting() != 1 {
            thread::yield_now();
        }
        drain.thread().unpark();
        guard.success().unwrap();
        assert_eq!(drain.join().unwrap(), Drained::Complete);
    });
}

#[test]
fn a_thread_that_is_woken_for_no_reason_looks_at_the_clock() {
    let (queue, clock) = queue();
    queue.add_after(1, SECOND).unwrap();
    thread::scope(|scope| {
        let getter = scope.spawn(|| queue.get().map(|guard| *guard));
        while clock.waiting() != 1 {
            thread::yield_now();
        }
        clock.advance(SECOND);
        // Without `clock_moved`: the clock alone wakes no thread.
        while !getter.is_finished() {
            getter.thread().unpark();
            thread::yield_now();
        }
        assert_eq!(getter.join().unwrap(), Some(1));
    });
}

#[test]
fn a_loop_that_is_woken_for_no_reason_pauses_on() {
    let (clock, stop) = (ManualClock::new(), Stop::new());
    let backoff = Backoff {
        duration: SECOND,
        ..Backoff::default()
    };
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        let worker_clock = clock.clone();
        let (stop, ran) = (&stop, &ran);
        let looping = scope.spawn(move || {
            let backoff = BackoffUntil::non_sliding(backoff, NoJitter);
            backoff_until(backoff, worker_clock, stop, || {
                unpark_this_thread();
                ran.send(()).unwrap();
            });
        });
        for _ in 0..3 {
            runs.recv().unwrap();
            looping.thread().unpark();
            while clock.waiting() != 1 {
                thread::yield_now();
            }
            assert!(runs.try_recv().is_err());
            clock.advance(SECOND);
            stop.clock_moved();
        }
        runs.recv().unwrap();
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

#[test]
fn one_signal_stops_every_loop_in_its_pause() {
    let stop = Stop::new();
    let backoff = Backoff {
        duration: Duration::MAX,
        ..Backoff::default()
    };
    let (ran, runs) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..3 {
            let (stop, ran) = (stop.clone(), ran.clone());
            scope.spawn(move || {
                let backoff = BackoffUntil::sliding(backoff, NoJitter);
                backoff_until(backoff, SystemClock::new(), &stop, || ran.send(()).unwrap());
            });
        }
        for _ in 0..3 {
            runs.recv().unwrap();
        }
        stop.stop();
    });
    assert!(runs.try_recv().is_err());
}

/// A key whose clone or drop panics when its thread says so.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Brittle(u32);

thread_local! {
    static CLONE_PANICS_AT: Cell<Option<u32>> = const { Cell::new(None) };
    static DROP_PANICS_AT: Cell<Option<u32>> = const { Cell::new(None) };
}

impl Clone for Brittle {
    fn clone(&self) -> Self {
        assert_ne!(CLONE_PANICS_AT.get(), Some(self.0), "on purpose");
        Self(self.0)
    }
}

impl Drop for Brittle {
    fn drop(&mut self) {
        if !thread::panicking() {
            assert_ne!(DROP_PANICS_AT.get(), Some(self.0), "on purpose");
        }
    }
}

#[test]
fn keys_taken_before_one_whose_clone_panics_are_given_back() {
    let queue = WorkQueue::new();
    queue.add_many([Brittle(1), Brittle(2), Brittle(3)], |_| unreachable!());
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            CLONE_PANICS_AT.set(Some(3));
            drop(queue.get_many(9));
        });
        worker.join()
    });
    assert!(unwound.is_err());
    assert_eq!(queue.num_requeues(&Brittle(2)), 1);
    let guard = queue.get().unwrap();
    assert_eq!(guard.0, 3, "it was not taken");
}

#[test]
fn a_panic_in_the_completion_of_a_batch_leaves_no_key_in_work() {
    for is_dropped in [false, true] {
        let queue = WorkQueue::new();
        queue.add_many([Brittle(1), Brittle(2), Brittle(3)], |_| unreachable!());
        let unwound = thread::scope(|scope| {
            let worker = scope.spawn(|| {
                let batch = queue.get_many(9).unwrap();
                DROP_PANICS_AT.set(Some(1));
                if is_dropped {
                    drop(batch);
                } else {
                    let _ = batch.release();
                }
            });
            worker.join()
        });
        assert!(unwound.is_err());
        assert_eq!(queue.drain_timeout(Duration::ZERO), Drained::Complete);
    }
}

#[test]
fn a_guard_whose_key_panics_when_it_is_dropped_leaves_no_key_in_work() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let unwound = thread::scope(|scope| {
        let worker = scope.spawn(|| {
            let guard = queue.get().unwrap();
            DROP_PANICS_AT.set(Some(1));
            drop(queue.next(guard, Action::Release));
        });
        worker.join()
    });
    assert!(unwound.is_err());
    let state = queue.state(&Brittle(1)).unwrap();
    assert!(!state.active && state.requeues == 1, "{state:?}");
}

#[test]
fn a_panic_in_the_completion_that_ends_a_drain_is_no_lost_wake() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let drain = scope.spawn(|| queue.drain());
        let worker = scope.spawn(|| {
            while !queue.shutting_down() {
                thread::yield_now();
            }
            DROP_PANICS_AT.set(Some(1));
            let _ = guard.release();
        });
        assert!(worker.join().is_err());
        assert_eq!(drain.join().unwrap(), Drained::Complete);
    });
}

#[test]
fn a_panic_in_the_clone_of_the_next_key_wakes_who_can_take_it() {
    let queue = WorkQueue::new();
    queue.add(Brittle(1)).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let other = scope.spawn(|| queue.get().map(|guard| guard.0));
        until_asleep(&queue, 1);
        let worker = scope.spawn(|| {
            CLONE_PANICS_AT.set(Some(1));
            queue.add(Brittle(1)).unwrap();
            drop(queue.next(guard, Action::Release));
        });
        assert!(worker.join().is_err());
        assert_eq!(other.join().unwrap(), Some(1));
    });
}
