//! Whole runs of workers.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;
use std::time::Duration;

use requeue_std::Instant;
use requeue_std::limiter::{Exponential, NoLimit};
use requeue_std::{Action, Concurrency, ManualClock, RunContext, WorkQueue, Workers};
use requeue_test_tools::in_time;

use super::{SECOND, queue, until_asleep};

#[test]
fn run_retries_gives_up_and_survives_panics() {
    let (queue, clock) = queue();
    assert!(queue.add_many(0..3).rejected.is_empty());
    let (given_up, gave_up) = mpsc::channel();
    let workers = Workers::new(2)
        .max_retries(2)
        .on_give_up(|key: &u32, failure| {
            given_up.send((*key, failure.to_string())).unwrap();
            panic!("a hook that panics ends no worker");
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
    assert_eq!(queue.failures(&1), 0, "a key that is given up is as new");
}

#[test]
fn a_key_that_is_retried_later_keeps_its_failures() {
    let (queue, clock) = queue();
    queue.add(1).unwrap();
    queue.get().unwrap().retry();
    clock.advance(SECOND);
    queue
        .run(1, |_| {
            queue.shut_down();
            Action::Snooze(SECOND)
        })
        .unwrap();
    assert_eq!(queue.failures(&1), 1);
}

#[test]
fn run_hands_back_what_it_did_not_do() {
    let (queue, clock) = queue();
    assert!(queue.add_many(0..5).rejected.is_empty());
    queue.add_after(9, 60 * SECOND).unwrap();
    let workers = Workers::new(1).drain_timeout(2 * SECOND);
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
        .map(|leftover| (leftover.key, leftover.left.as_secs(), leftover.failures))
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

/// Counts how many runs there are at once; each ends when the test lets it.
struct Runs {
    began: mpsc::Sender<u32>,
    may_end: Mutex<mpsc::Receiver<()>>,
}

impl Runs {
    fn run(&self, key: u32) -> Result<Action, ()> {
        self.began.send(key).unwrap();
        self.may_end.lock().unwrap().recv().unwrap();
        Ok(Action::Success)
    }
}

#[test]
fn the_number_of_workers_changes_while_they_work() {
    let (queue, _) = queue();
    assert!(queue.add_many(0..6).rejected.is_empty());
    let (began, begins) = mpsc::channel();
    let (let_end, may_end) = mpsc::channel();
    let runs = Runs {
        began,
        may_end: Mutex::new(may_end),
    };
    let concurrency = Concurrency::new(1);
    let workers = Workers::new(4).concurrency(&concurrency);
    thread::scope(|scope| {
        let run = scope.spawn(|| queue.run(workers, |key| runs.run(*key)).unwrap());
        assert_eq!(begins.recv(), Ok(0));
        concurrency.set(3);
        let mut both = [begins.recv().unwrap(), begins.recv().unwrap()];
        both.sort_unstable();
        assert_eq!(both, [1, 2]);
        // No run is interrupted, and no other begins.
        concurrency.set(0);
        for _ in 0..3 {
            let_end.send(()).unwrap();
        }
        while queue.stats().active != 0 {
            thread::yield_now();
        }
        assert_eq!(queue.len(), 3);
        concurrency.set(2);
        let mut both = [begins.recv().unwrap(), begins.recv().unwrap()];
        both.sort_unstable();
        assert_eq!(both, [3, 4]);
        for _ in 0..3 {
            let_end.send(()).unwrap();
        }
        assert_eq!(begins.recv(), Ok(5));
        // Idle workers are removed while they sleep.
        until_asleep(&queue, 2);
        concurrency.set(1);
        until_asleep(&queue, 1);
        queue.shut_down();
        assert_eq!(run.join().unwrap(), []);
    });
}

#[test]
fn a_run_without_workers_drains_when_it_is_shut_down() {
    let (queue, clock) = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let workers = Workers::new(1).concurrency(&Concurrency::new(0));
    thread::scope(|scope| {
        let run = scope.spawn(|| queue.run(workers, |_| Action::Success).unwrap());
        // The supervisor sleeps.
        while clock.waiting() != 1 {
            thread::yield_now();
        }
        assert_eq!(queue.len(), 2);
        queue.shut_down();
        assert_eq!(run.join().unwrap(), []);
    });
    assert!(!queue.contains(&1) && !queue.contains(&2));
}

#[test]
fn workers_come_back_after_numbers_in_a_row() {
    for _ in 0..20 {
        in_time(|| {
            let (queue, clock) = queue();
            let concurrency = Concurrency::new(0);
            let workers = Workers::new(1).concurrency(&concurrency);
            let (ran, runs) = mpsc::channel();
            thread::scope(|scope| {
                let run = scope.spawn(|| {
                    queue.run(workers, |key| {
                        ran.send(*key).unwrap();
                        Action::Success
                    })
                });
                while clock.waiting() != 1 {
                    thread::yield_now();
                }
                concurrency.set(1);
                concurrency.set(0);
                // The supervisor may look before the last change, and most often does.
                (0..100).for_each(|_| thread::yield_now());
                concurrency.set(4);
                queue.add(1).unwrap();
                assert_eq!(runs.recv(), Ok(1));
                queue.shut_down();
                assert_eq!(run.join().unwrap().unwrap(), []);
            });
        });
    }
}

#[test]
fn a_run_that_is_overdue_is_reported_once_and_goes_on() {
    let (queue, clock) = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let (began, begins) = mpsc::channel();
    let (let_end, may_end) = mpsc::channel();
    let runs = Runs {
        began,
        may_end: Mutex::new(may_end),
    };
    let (reported, reports) = mpsc::channel();
    let workers = Workers::new(1)
        .timeout(2 * SECOND)
        .on_overdue(|key, limit| {
            reported.send((*key, limit)).unwrap();
            resume_unwind(Box::new("a hook that panics ends no run"));
        });
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            let reconcile = |key: &u32, run: RunContext| {
                assert_eq!(run.deadline, Some(clock.now() + 2 * SECOND));
                runs.run(*key)
            };
            queue.run_with(workers, reconcile).unwrap()
        });
        let advance = |by| clock.advance(by);
        let asleep_until = |alarm| {
            while (clock.waiting(), clock.next_alarm()) != (1, alarm) {
                thread::yield_now();
            }
        };
        let at = |seconds| Some(Instant::EPOCH + seconds * SECOND);
        assert_eq!(begins.recv(), Ok(1));
        asleep_until(at(2));
        advance(SECOND);
        assert!(reports.try_recv().is_err(), "it is in time");
        advance(SECOND);
        assert_eq!(reports.recv(), Ok((1, 2 * SECOND)));
        // It is reported once, and its result counts.
        asleep_until(None);
        advance(60 * SECOND);
        let_end.send(()).unwrap();
        assert_eq!(begins.recv(), Ok(2));
        asleep_until(at(64));
        advance(SECOND);
        let_end.send(()).unwrap();
        until_asleep(&queue, 1);
        advance(SECOND);
        queue.shut_down();
        assert_eq!(run.join().unwrap(), []);
    });
    assert_eq!(reports.try_recv().ok(), None, "the second was in time");
}

/// Without holds it runs as fast as it can, because each run is added before it fails.
#[test]
fn a_reconciler_that_adds_its_own_key_and_fails_runs_as_often_as_its_backoff_says() {
    let clock = ManualClock::new();
    let backoff = Exponential::new(SECOND, 100 * SECOND);
    let queue = WorkQueue::builder()
        .limiter(backoff)
        .hold_failures()
        .clock(clock.clone())
        .build();
    queue.add(1).unwrap();
    let runs = AtomicUsize::new(0);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            queue.run(1, |key| {
                runs.fetch_add(1, Ordering::SeqCst);
                queue.add(*key).unwrap();
                Err::<Action, _>("no")
            })
        });
        for (done, delay) in [1, 2, 4, 8].into_iter().enumerate() {
            until_asleep(&queue, 1);
            assert_eq!(runs.load(Ordering::SeqCst), done + 1);
            clock.advance(delay * SECOND - Duration::from_nanos(1));
            until_asleep(&queue, 1);
            assert_eq!(runs.load(Ordering::SeqCst), done + 1);
            clock.advance(Duration::from_nanos(1));
        }
        until_asleep(&queue, 1);
        assert_eq!(runs.load(Ordering::SeqCst), 5);
        queue.shut_down();
        let left = run.join().unwrap().unwrap();
        assert_eq!((left[0].key, left[0].left), (1, 16 * SECOND));
    });
}

#[test]
fn a_drain_takes_its_time_at_a_rate_of_runs() {
    let clock = ManualClock::new();
    let queue = WorkQueue::builder()
        .limiter(NoLimit)
        .run_rate(1.0, 2)
        .clock(clock.clone())
        .build();
    assert!(queue.add_many(0..4).rejected.is_empty());
    queue.shut_down();
    let runs = AtomicUsize::new(0);
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            queue.run(3, |_| {
                runs.fetch_add(1, Ordering::SeqCst);
                Action::Success
            })
        });
        for done in [2, 3] {
            while runs.load(Ordering::SeqCst) < done {
                thread::yield_now();
            }
            clock.advance(SECOND);
        }
        assert!(run.join().unwrap().unwrap().is_empty());
    });
    assert_eq!(runs.into_inner(), 4);
}
