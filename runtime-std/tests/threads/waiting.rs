//! Getters and drains that wait, and who wakes them.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use requeue_std::{Action, ManualClock, WaitError, WorkQueue};
use requeue_std::{AddOptions, Added, Instant, Rejected};
use requeue_test_tools::in_time;

/// A drain that has not ended in time.
const LATE: Result<(), WaitError> = Err(WaitError::TimedOut);

use super::{Keys, SECOND, queue, unpark_this_thread, until_asleep};

#[test]
fn wait_drained_returns_when_the_last_run_has_ended_and_not_before() {
    let (queue, clock) = queue();
    queue.add(7).unwrap();
    let guard = queue.get().unwrap();
    queue.shut_down();
    thread::scope(|scope| {
        let drained = scope.spawn(|| queue.wait_drained());
        while clock.waiting() != 1 {
            assert!(!drained.is_finished());
            thread::yield_now();
        }
        guard.success();
        drained.join().unwrap();
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
        until_asleep(&queue, 1);
        assert!(!getter.is_finished());
        clock.advance(SECOND);
        assert_eq!(getter.join().unwrap(), Err(WaitError::TimedOut));
    });
    until_asleep(&queue, 0);
    assert_eq!(
        queue.get_timeout(Duration::ZERO).err(),
        Some(WaitError::TimedOut)
    );
}

#[test]
fn shutdown_wakes_every_thread() {
    let (queue, _) = queue();
    thread::scope(|scope| {
        let getters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| queue.get().is_err()))
            .collect();
        until_asleep(&queue, 4);
        queue.shut_down();
        assert!(getters.into_iter().all(|getter| getter.join().unwrap()));
    });
    assert_eq!(queue.add(1), Err(Rejected::Closed(1)));
    assert_eq!(queue.get_timeout(SECOND).err(), Some(WaitError::Closed));
}

#[test]
fn every_thread_that_waits_for_the_drain_learns_of_it() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    queue.add(2).unwrap();
    let guard = queue.get().unwrap();
    thread::scope(|scope| {
        let drains: Vec<_> = (0..3).map(|_| scope.spawn(|| queue.drain())).collect();
        while !queue.is_shutting_down() {
            thread::yield_now();
        }
        guard.release();
        // One key is still ready: client-go would report the drain as over.
        assert!(drains.iter().all(|drain| !drain.is_finished()));
        queue.get().unwrap().success();
        for drain in drains {
            assert_eq!(drain.join().unwrap(), Ok(()));
        }
    });
}

#[test]
fn a_drain_ends_at_its_timeout_or_when_it_is_interrupted() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    assert_eq!(queue.drain_timeout(Duration::ZERO), LATE);
    thread::scope(|scope| {
        let timed = scope.spawn(|| queue.drain_timeout(SECOND));
        let untimed = scope.spawn(|| queue.drain());
        // Whether the thread already waits or not, it sees the new time.
        while !timed.is_finished() {
            clock.advance(SECOND);
            thread::yield_now();
        }
        assert_eq!(timed.join().unwrap(), LATE);
        while !untimed.is_finished() {
            queue.shut_down();
            thread::yield_now();
        }
        assert_eq!(untimed.join().unwrap(), Err(WaitError::Interrupted));
    });
    let leftovers = queue.leftovers().collect::<Vec<_>>();
    assert_eq!((leftovers.len(), leftovers[0].key), (1, 1));
    assert_eq!(queue.drain(), Ok(()));
}

/// Makes a call on another thread, and moves the clock until it has returned.
fn at_its_time<T: Send>(clock: &ManualClock, call: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| {
        let call = scope.spawn(call);
        // Whether the thread already waits or not, it sees the new time.
        while !call.is_finished() {
            clock.advance(SECOND);
            thread::yield_now();
        }
        call.join().unwrap()
    })
}

#[test]
fn calls_give_up_at_their_time_and_hand_back_what_they_have() {
    let clock = ManualClock::new();
    let queue: Keys = WorkQueue::builder()
        .max_keys(1)
        .clock(clock.clone())
        .build();
    queue.add(1).unwrap();
    let guard = queue.get().unwrap();

    let add = || queue.add_wait_with(3, AddOptions::new(), SECOND);
    assert_eq!(at_its_time(&clock, add), Err(Rejected::TimedOut(3)));

    let hour = 3600 * SECOND;
    assert!(at_its_time(&clock, || queue.wait_idle_timeout(hour)).is_err());
    assert!(at_its_time(&clock, || queue.wait_settled_timeout(hour)).is_err());
    assert!(at_its_time(&clock, || queue.flush_timeout(&1, hour)).is_err());
    assert!(clock.now() >= Instant::EPOCH + 3 * hour);
    guard.success();
    assert!(queue.flush_timeout(&1, Duration::ZERO).is_ok());
    assert!(queue.wait_settled_timeout(Duration::ZERO).is_ok());
    let added = queue.add_wait_with(2, AddOptions::new(), Duration::ZERO);
    assert_eq!(added.unwrap().added, Added::Ready);
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
fn a_thread_that_is_woken_for_no_reason_keeps_waiting() {
    in_time(|| {
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
            assert_eq!(timed.join().unwrap(), Err(WaitError::TimedOut));
            queue.add(7).unwrap();
            assert_eq!(getter.join().unwrap(), Ok(7));

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
            guard.success();
            assert_eq!(drain.join().unwrap(), Ok(()));
        });
    });
}

#[test]
fn moving_the_clock_wakes_each_thread_whose_deadline_has_passed() {
    in_time(|| {
        let (queue, clock) = queue();
        queue.add_after(1, 3 * SECOND).unwrap();
        thread::scope(|scope| {
            let getter = scope.spawn(|| queue.get().map(|guard| *guard));
            let room = scope.spawn(|| queue.wait_settled_timeout(2 * SECOND));
            until_waiting(&clock, 2);
            let timed = scope.spawn(|| queue.get_timeout(SECOND).map(|guard| *guard));
            until_waiting(&clock, 3);
            clock.advance(SECOND);
            assert_eq!(timed.join().unwrap(), Err(WaitError::TimedOut));
            assert_eq!(clock.waiting(), 2, "nothing else is due");
            clock.set(Instant::EPOCH + 2 * SECOND);
            assert!(room.join().unwrap().is_err());
            clock.advance(SECOND);
            assert_eq!(getter.join().unwrap(), Ok(1));
        });
    });
}

#[test]
fn moving_the_clock_wakes_the_workers_of_a_run() {
    in_time(|| {
        let (queue, clock) = queue();
        queue.add_after(1, SECOND).unwrap();
        thread::scope(|scope| {
            let run = scope.spawn(|| {
                queue.run(2, |_| {
                    queue.shut_down();
                    Action::Success
                })
            });
            // Two workers and the supervisor.
            until_waiting(&clock, 3);
            clock.advance(SECOND);
            assert_eq!(run.join().unwrap().unwrap(), []);
        });
    });
}

fn until_waiting(clock: &ManualClock, threads: usize) {
    while clock.waiting() != threads {
        thread::yield_now();
    }
}

/// The stores and loads are relaxed, so that only the queue orders them: a run that overlapped
/// another one would lose an increment, and so would one that did not see the run before it.
#[test]
fn an_add_happens_before_its_run_and_a_run_before_the_next_run_of_its_key() {
    const ADDS: u32 = if cfg!(miri) { 20 } else { 1_000 };
    let (queue, _) = queue();
    let (written, seen) = (AtomicU32::new(0), AtomicU32::new(0));
    let (runs, counted) = (AtomicU32::new(0), AtomicU32::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Ok(guard) = queue.get() {
                    runs.fetch_add(1, Relaxed);
                    let before = counted.load(Relaxed);
                    seen.store(written.load(Relaxed), Relaxed);
                    thread::yield_now();
                    counted.store(before + 1, Relaxed);
                    guard.success();
                }
            });
        }
        for add in 1..=ADDS {
            written.store(add, Relaxed);
            queue.add(7).unwrap();
            if add % 4 == 0 {
                queue.wait_idle();
                assert_eq!(
                    seen.load(Relaxed),
                    add,
                    "the run saw what was written before"
                );
            }
        }
        queue.shut_down();
    });
    assert_eq!(counted.load(Relaxed), runs.load(Relaxed));
}
