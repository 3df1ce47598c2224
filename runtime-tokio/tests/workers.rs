//! Workers: tasks that work on keys, on a clock that jumps to the next deadline when all wait.

use std::panic::resume_unwind;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use requeue_test_tools::by_hand;
use requeue_tokio::binding::AsShared;
use requeue_tokio::metrics::{Metrics, Times};
use requeue_tokio::{
    Action, AddOptions, Added, CancellationToken, Concurrency, DeadKeys, Failure, Leftover,
    RunContext, WorkQueue, Workers,
};
use tokio::sync::Semaphore;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep};

type Keys = WorkQueue<u32>;

const SECOND: Duration = Duration::from_secs(1);

fn queue() -> Keys {
    WorkQueue::builder()
        .backoff(SECOND, 100 * SECOND)
        .no_retry_rate()
        .build()
}

fn summary(leftovers: &[Leftover<u32>]) -> Vec<(u32, u64, u32)> {
    let mut left: Vec<_> = leftovers
        .iter()
        .map(|leftover| (leftover.key, leftover.left.as_secs(), leftover.failures))
        .collect();
    left.sort_unstable();
    left
}

#[tokio::test(start_paused = true)]
async fn run_retries_gives_up_and_survives_panics() {
    let queue = queue();
    assert!(queue.add_many(0..4).rejected.is_empty());
    let (given_up, gave_up) = mpsc::channel();
    let workers = Workers::new(2)
        .max_retries(2)
        .on_give_up(move |key: &u32, failure| {
            given_up.send((*key, failure.to_string())).unwrap();
            panic!("a hook that panics ends no worker");
        });
    let runs = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&runs);
    let run = queue.run(workers, move |key| {
        counted.fetch_add(1, Ordering::SeqCst);
        assert_ne!(key, 3, "before there is a future");
        async move {
            yield_now().await;
            match key {
                0 => Ok(Action::Success),
                1 => Err("no"),
                _ => panic!("never"),
            }
        }
    });
    let run = tokio::spawn(run);
    let start = Instant::now();
    sleep(10 * SECOND).await;
    let mut hooks: Vec<_> = gave_up.try_iter().collect();
    hooks.sort();
    assert_eq!(hooks[0], (1, "no".into()));
    assert_eq!(hooks[1], (2, "panicked: never".into()));
    assert!(hooks[2].1.contains("before there is a future"));
    assert_eq!(queue.failures(&1), 0, "as new");
    queue.shut_down();
    assert!(run.await.unwrap().is_empty());
    assert_eq!(runs.load(Ordering::SeqCst), 1 + 3 + 3 + 3);
    assert_eq!(start.elapsed(), 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn run_hands_back_what_it_did_not_do() {
    let queue = queue();
    assert!(queue.add_many(0..5).rejected.is_empty());
    queue.add_after(9, 60 * SECOND).unwrap();
    let workers = Workers::new(1).drain_timeout(2 * SECOND);
    let working = queue.clone();
    let run = queue.run(workers, move |key| {
        let queue = working.clone();
        async move {
            match key {
                0 => {
                    queue.shut_down();
                    sleep(SECOND).await;
                    Ok(Action::RequeueAfter(30 * SECOND))
                }
                1 => {
                    sleep(SECOND).await;
                    Err("fails while the queue drains")
                }
                _ => unreachable!("the deadline has passed"),
            }
        }
    });
    let left = [
        (0, 29, 0),
        (1, 1, 1),
        (2, 0, 0),
        (3, 0, 0),
        (4, 0, 0),
        (9, 58, 0),
    ];
    assert_eq!(summary(&run.await), left);
}

#[tokio::test(start_paused = true)]
async fn a_token_shuts_the_queue_down_and_lets_it_drain() {
    let queue = queue();
    assert!(queue.add_many(0..4).rejected.is_empty());
    queue.add_after(9, 60 * SECOND).unwrap();
    let stop = CancellationToken::new();
    let run = queue
        .run(2, |_| async {
            sleep(2 * SECOND).await;
            Action::Success
        })
        .shut_down_on(stop.clone());
    let run = tokio::spawn(run);
    sleep(SECOND).await;
    stop.cancel();
    queue.wait_drained().await;
    assert_eq!(summary(&run.await.unwrap()), [(9, 56, 0)]);
    assert_eq!(queue.drain().await, Ok(()));

    // Cancelled from the start, it does what is ready and no more.
    let late = self::queue();
    late.add(1).unwrap();
    let run = late.run(1, |_| async { Action::RequeueAfter(SECOND) });
    let leftovers = run.shut_down_on(stop).await;
    assert_eq!(summary(&leftovers), [(1, 1, 0)]);
}

/// Counts how many runs there are at once; each ends when the test lets it.
#[derive(Clone)]
struct Runs {
    at_once: Arc<AtomicUsize>,
    may_end: Arc<Semaphore>,
}

impl Runs {
    fn new() -> Self {
        Self {
            at_once: Arc::default(),
            may_end: Arc::new(Semaphore::new(0)),
        }
    }

    async fn run(self) -> Result<Action, ()> {
        self.at_once.fetch_add(1, Ordering::SeqCst);
        self.may_end.acquire().await.unwrap().forget();
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        Ok(Action::Success)
    }

    /// How many runs there are once nothing moves any more.
    async fn settled(&self) -> usize {
        sleep(SECOND).await;
        self.at_once.load(Ordering::SeqCst)
    }
}

#[tokio::test(start_paused = true)]
async fn the_number_of_workers_changes_while_they_work() {
    let queue = queue();
    assert!(queue.add_many(0..100).rejected.is_empty());
    let (runs, concurrency) = (Runs::new(), Concurrency::new(2));
    let running = runs.clone();
    let workers = Workers::new(1).concurrency(&concurrency);
    let run = queue.run(workers, move |_| running.clone().run());
    let run = tokio::spawn(run);
    assert_eq!(runs.settled().await, 2);
    concurrency.set(5);
    assert_eq!(runs.settled().await, 5);
    // No run is interrupted: surplus workers end with their key.
    concurrency.set(1);
    assert_eq!(runs.settled().await, 5);
    runs.may_end.add_permits(5);
    assert_eq!(runs.settled().await, 1);
    // No worker: what runs ends, and nothing is taken.
    concurrency.set(0);
    assert_eq!(runs.settled().await, 1);
    runs.may_end.add_permits(1);
    assert_eq!(runs.settled().await, 0);
    concurrency.set(3);
    assert_eq!(runs.settled().await, 3);
    runs.may_end.add_permits(1000);
    assert_eq!(runs.settled().await, 0);

    // Idle workers are removed while they sleep, and added again.
    let asleep = || queue.as_shared().look(|queue| queue.asleep());
    assert_eq!(asleep(), 3);
    concurrency.set(1);
    runs.settled().await;
    assert_eq!(asleep(), 1);
    concurrency.set(4);
    runs.settled().await;
    assert_eq!(asleep(), 4);
    queue.shut_down();
    assert!(run.await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_dismissed_while_the_queue_drains_leaves_nothing_to_those_who_have_ended() {
    let queue = queue();
    assert!(queue.add_many([0, 1]).rejected.is_empty());
    let gates = Arc::new([Semaphore::new(0), Semaphore::new(0)]);
    let (opened, concurrency) = (Arc::clone(&gates), Concurrency::new(2));
    let workers = Workers::new(1).concurrency(&concurrency);
    let run = queue.run(workers, move |key: u32| {
        let gates = Arc::clone(&opened);
        async move {
            gates[key as usize].acquire().await.unwrap().forget();
            Action::Success
        }
    });
    let run = tokio::spawn(run);
    sleep(SECOND).await;
    assert_eq!(queue.add(1), Ok(Added::Dirty));
    queue.shut_down();
    gates[0].add_permits(1);
    sleep(SECOND).await;
    // The first has ended, the second is one too many, and its key is to run again.
    concurrency.set(1);
    gates[1].add_permits(2);
    assert_eq!(run.await.unwrap(), []);
    assert_eq!(gates[1].available_permits(), 0);
}

#[tokio::test(start_paused = true)]
async fn two_runs_of_one_key_never_overlap() {
    let queue = queue();
    let active = Arc::new(Mutex::new(Vec::new()));
    let working = Arc::clone(&active);
    let run = queue.run(8, move |key: u32| {
        let active = Arc::clone(&working);
        async move {
            assert!(!active.lock().unwrap().contains(&key));
            active.lock().unwrap().push(key);
            sleep(SECOND).await;
            active.lock().unwrap().retain(|other| *other != key);
            Action::Success
        }
    });
    let run = tokio::spawn(run);
    for _ in 0..10 {
        assert!(queue.add_many(0..3).rejected.is_empty());
        sleep(SECOND / 4).await;
    }
    queue.shut_down();
    assert!(
        run.await.unwrap().is_empty(),
        "a run that panics is retried"
    );
}

#[tokio::test(start_paused = true)]
async fn every_failure_is_reported_with_its_attempt_and_a_retry_that_was_asked_for_is_one() {
    let queue = queue();
    assert!(queue.add_many([1, 2, 3]).rejected.is_empty());
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (failed, given_up) = (Arc::clone(&calls), Arc::clone(&calls));
    let workers = Workers::new(1)
        .max_retries(1)
        .on_error(move |key: &u32, failure, attempt| {
            let call = format!("{key}: {failure}, attempt {attempt}");
            failed.lock().unwrap().push(call);
        })
        .on_give_up(move |key, failure| {
            let call = format!("{key}: {failure}, given up");
            given_up.lock().unwrap().push(call);
        });
    let run = queue.run(workers, |key| async move {
        match key {
            1 => Err("no route"),
            2 => Ok(Action::Retry),
            _ => resume_unwind(Box::new("index 3")),
        }
    });
    let run = tokio::spawn(run);
    sleep(10 * SECOND).await;
    assert_eq!(
        *calls.lock().unwrap(),
        [
            "1: no route, attempt 1",
            "2: asked for a retry, attempt 1",
            "3: panicked: index 3, attempt 1",
            "1: no route, attempt 2",
            "1: no route, given up",
            "2: asked for a retry, attempt 2",
            "2: asked for a retry, given up",
            "3: panicked: index 3, attempt 2",
            "3: panicked: index 3, given up",
        ]
    );
    queue.shut_down();
    assert_eq!(run.await.unwrap(), []);
    assert_eq!([1, 2, 3].map(|key| queue.failures(&key)), [0; 3]);
}

struct Timed;

impl Metrics for Timed {
    type Timestamps = Times;
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_learns_its_attempt_its_wait_and_its_priority() {
    let queue = WorkQueue::builder()
        .backoff(SECOND, SECOND)
        .levels::<2>()
        .report_to(Timed)
        .build();
    let urgent = AddOptions {
        priority: Some(1),
        ..AddOptions::new()
    };
    queue.add_with(1, urgent).unwrap();
    sleep(3 * SECOND).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let runs = Arc::clone(&seen);
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    let run = queue.run_with(1, move |_: u32, run: RunContext| {
        runs.lock()
            .unwrap()
            .push((run.attempt, run.waited, run.priority));
        let stop = stopping.clone();
        async move {
            if run.attempt == 1 {
                return Err("fails once");
            }
            stop.cancel();
            Ok(Action::Success)
        }
    });
    assert_eq!(run.shut_down_on(stop).await, []);
    let seen = seen.lock().unwrap();
    assert_eq!(*seen, [(1, 3 * SECOND, 1), (2, Duration::ZERO, 1)]);
}

#[tokio::test]
async fn a_run_that_was_never_polled_leaves_its_queue_as_it_was() {
    let queue = queue();
    queue.add(1).unwrap();
    let stop = CancellationToken::new();
    stop.cancel();
    let run = queue.run(2, |_| async { Action::Success });
    drop(run.shut_down_on(stop));
    assert!(!queue.is_shutting_down());
    assert!(queue.state(&1).unwrap().ready);
}

#[tokio::test]
async fn a_run_that_has_ended_is_pending() {
    let queue = queue();
    queue.add(1).unwrap();
    queue.shut_down();
    let mut run = queue.run(1, |_| async { Action::RequeueAfter(SECOND) });
    let leftovers = (&mut run).await;
    assert_eq!(leftovers.len(), 1);
    let mut ended = by_hand(run);
    assert!(ended.is_pending() && ended.is_pending());
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Uncloneable;

impl Clone for Uncloneable {
    fn clone(&self) -> Self {
        panic!("on purpose")
    }
}

#[tokio::test]
async fn a_key_that_panics_by_itself_is_not_hidden() {
    let queue = WorkQueue::new();
    queue.add(Uncloneable).unwrap();
    let run = tokio::spawn(queue.run(2, |_| async { Action::Success }));
    assert!(run.await.unwrap_err().is_panic());
    assert!(queue.state(&Uncloneable).unwrap().ready);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_is_stopped_and_has_failed() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let calls = Arc::new(Mutex::new(Vec::new()));
    let (errors, given_up) = (Arc::clone(&calls), Arc::clone(&calls));
    let (began, epoch) = (Instant::now(), queue.now());
    let call = move |calls: &Mutex<Vec<_>>, key: u32, what: String| {
        calls
            .lock()
            .unwrap()
            .push((began.elapsed().as_secs(), key, what));
    };
    let workers = Workers::new(1)
        .timeout(5 * SECOND)
        .max_retries(1)
        .on_error(move |key, failure: &Failure<&str>, attempt| {
            call(&errors, *key, format!("{attempt}: {failure}"));
        })
        .on_give_up(move |key, failure| {
            assert!(matches!(failure, Failure::TimedOut(limit) if limit == 5 * SECOND));
            call(&given_up, *key, String::from("given up"));
        });
    let deadlines = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&deadlines);
    let run = queue.run_with(workers, move |key, run: RunContext| {
        let left = run.deadline.unwrap().saturating_since(epoch);
        seen.lock().unwrap().push((key, left.as_secs()));
        async move {
            if key == 1 {
                sleep(60 * SECOND).await;
            }
            Ok(Action::Success)
        }
    });
    let run = tokio::spawn(run);
    sleep(30 * SECOND).await;
    queue.shut_down();
    assert_eq!(run.await.unwrap(), []);
    let expected = [
        (5, 1, "1: took longer than 5s"),
        (11, 1, "2: took longer than 5s"),
        (11, 1, "given up"),
    ];
    assert_eq!(
        *calls.lock().unwrap(),
        expected.map(|(at, key, what)| (at, key, what.into()))
    );
    assert_eq!(*deadlines.lock().unwrap(), [(1, 5), (2, 10), (1, 11)]);
}

#[tokio::test(start_paused = true)]
async fn a_result_that_is_there_counts_however_short_the_timeout() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    queue.shut_down();
    let workers = Workers::new(1)
        .timeout(Duration::ZERO)
        .on_error(|key, failure: &Failure<()>, _| assert!(*key == 2, "{failure:?}"));
    let run = queue.run(workers, |key| async move {
        if key == 2 {
            yield_now().await;
        }
        Ok(Action::Success)
    });
    let leftovers = run.await;
    assert_eq!(summary(&leftovers), [(2, 1, 1)]);
}

/// What a run owns is dropped when it is stopped: a panic there is the run's, and ends no worker.
#[tokio::test(start_paused = true)]
async fn a_run_that_panics_as_it_is_stopped_ends_no_worker() {
    struct Bomb;
    impl Drop for Bomb {
        fn drop(&mut self) {
            resume_unwind(Box::new("as it was dropped"));
        }
    }
    let queue = queue();
    queue.add(1).unwrap();
    let failures = Arc::new(Mutex::new(Vec::new()));
    let reports = Arc::clone(&failures);
    let workers = Workers::new(1)
        .timeout(SECOND)
        .on_error(move |_, failure: &Failure<&str>, _| {
            reports.lock().unwrap().push(failure.to_string());
        });
    let run = queue.run_with(workers, move |_, run: RunContext| async move {
        if run.attempt == 1 {
            let _bomb = Bomb;
            std::future::pending::<()>().await;
        }
        Ok(Action::Success)
    });
    let run = tokio::spawn(run);
    sleep(10 * SECOND).await;
    queue.shut_down();
    assert_eq!(run.await.unwrap(), []);
    assert_eq!(*failures.lock().unwrap(), ["panicked: as it was dropped"]);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_workers_drains_when_it_is_shut_down() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let concurrency = Concurrency::new(0);
    let workers = Workers::new(1).concurrency(&concurrency);
    let mut run = by_hand(queue.run(workers, |_| async { Action::Success }));
    assert!(run.is_pending());
    sleep(SECOND).await;
    assert_eq!(queue.len(), 2);
    queue.shut_down();
    while !run.poll().is_ready() {
        yield_now().await;
    }
    assert!(!queue.contains(&1) && !queue.contains(&2));
}

#[tokio::test(start_paused = true)]
async fn workers_that_looked_between_two_equal_numbers_leave() {
    let queue = queue();
    let concurrency = Concurrency::new(2);
    let workers = Workers::new(1).concurrency(&concurrency);
    let mut run = by_hand(queue.run(workers, |_| async { Action::Success }));
    let asleep = || queue.as_shared().look(|queue| queue.asleep());
    assert!(run.is_pending());
    sleep(SECOND).await;
    assert_eq!(asleep(), 2);
    concurrency.set(0);
    assert!(run.is_pending(), "it has woken the surplus workers");
    concurrency.set(2);
    sleep(SECOND).await;
    assert_eq!(asleep(), 2, "they are no longer surplus");
    concurrency.set(0);
    assert!(run.is_woken() && run.is_pending());
    sleep(SECOND).await;
    assert_eq!(asleep(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_key_that_has_failed_for_too_long_is_dead_and_can_be_retried() {
    let queue = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    let dead = DeadKeys::new(10, |_: u32, _: String| unreachable!());
    let list = dead.clone();
    let workers = Workers::new(2).give_up_after(10 * SECOND).on_give_up(
        move |key, failure: Failure<&str>| {
            list.insert(*key, failure.to_string());
        },
    );
    let is_up = Arc::new(AtomicUsize::new(0));
    let up = Arc::clone(&is_up);
    let run = queue.run_with(workers, move |key, run: RunContext| {
        let is_up = up.load(Ordering::SeqCst) == 1 || (key == 2 && run.attempt > 2);
        async move {
            if is_up {
                Ok(Action::Success)
            } else {
                Err("no route")
            }
        }
    });
    let run = tokio::spawn(run);
    // It fails at 0, 1, 3, 7 and 15 seconds.
    sleep(14 * SECOND).await;
    assert!(dead.is_empty());
    sleep(2 * SECOND).await;
    assert_eq!(
        dead.map(10, |key, why| format!("{key}: {why}")),
        ["1: no route"]
    );
    assert!(!queue.contains(&1) && !queue.contains(&2));

    is_up.store(1, Ordering::SeqCst);
    assert_eq!(dead.retry(&1, &*queue.producer()), Some(Ok(Added::Ready)));
    queue.shut_down();
    assert_eq!(run.await.unwrap(), []);
    assert!(dead.is_empty());
}

/// As many as make the workers drop the times of keys that the queue does not have.
#[tokio::test(start_paused = true)]
async fn of_many_keys_each_is_given_up_in_time() {
    let queue = queue();
    assert!(queue.add_many(0..500).rejected.is_empty());
    let dead = DeadKeys::new(500, |_, _| unreachable!());
    let list = dead.clone();
    let workers = Workers::unbounded()
        .give_up_after(10 * SECOND)
        .on_give_up(move |key, _| {
            let _ = list.insert(*key, ());
        });
    let run = queue.run_with(workers, async |_, _| Err::<Action, _>("no route"));
    let run = tokio::spawn(run);
    // They fail at 0, 1, 3, 7 and 15 seconds.
    sleep(14 * SECOND).await;
    assert!(dead.is_empty());
    sleep(2 * SECOND).await;
    assert!(!dead.is_empty());
    assert_eq!((dead.len(), queue.stats().total), (500, 0));
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn without_a_bound_no_key_waits_for_a_worker() {
    let queue = queue();
    assert!(queue.add_many(0..1000).rejected.is_empty());
    queue.shut_down();
    let began = Instant::now();
    let run = queue.run(Workers::unbounded(), |_| sleep(SECOND));
    assert!(run.await.is_empty());
    assert_eq!(began.elapsed(), SECOND);
}

/// Failures, and runs that are aborted, count as ended: otherwise their workers would be missed.
#[tokio::test(start_paused = true)]
async fn runs_that_fail_leave_no_worker_missing() {
    let queue = queue();
    let workers = Workers::unbounded().on_error(|_, _, _| {});
    let wanted = workers.wanted().clone();
    assert!(queue.add_many(0..100).rejected.is_empty());
    let run = queue.run(workers, |_| async {
        sleep(SECOND).await;
        Err::<(), _>("no")
    });
    let run = tokio::spawn(run);
    sleep(1000 * SECOND).await;
    assert!((101..=200).contains(&wanted.get()), "{}", wanted.get());
    queue.shut_down();
    run.await.unwrap();
}
