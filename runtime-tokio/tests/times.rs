//! When keys run: holds, rates and bursts. The clock jumps to the next deadline when all wait.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_tokio::limiter::{Exponential, NoLimit};
use requeue_tokio::{Action, WorkQueue};
use tokio::time::{Instant, sleep};

const SECOND: Duration = Duration::from_secs(1);

/// When runs began, in seconds.
#[derive(Clone)]
struct Runs(Instant, Arc<Mutex<Vec<u64>>>);

impl Runs {
    fn new() -> Self {
        Self(Instant::now(), Arc::default())
    }

    /// Notes a run, and returns how many there are.
    fn note(&self) -> usize {
        let mut runs = self.1.lock().unwrap();
        runs.push(self.0.elapsed().as_secs());
        runs.len()
    }

    fn seconds(&self) -> Vec<u64> {
        self.1.lock().unwrap().clone()
    }
}

#[tokio::test(start_paused = true)]
async fn a_reconciler_that_adds_its_own_key_and_fails_runs_as_often_as_its_backoff_says() {
    let backoff = Exponential::new(SECOND, 100 * SECOND);
    let queue = WorkQueue::builder().limiter(backoff);
    let queue = queue.hold_failures().build();
    queue.add(1).unwrap();
    let (runs, own) = (Runs::new(), queue.clone());
    let noted = runs.clone();
    let left = queue
        .run(1, move |key| {
            let (own, noted) = (own.clone(), noted.clone());
            async move {
                own.add(key).unwrap();
                if noted.note() == 5 {
                    own.shut_down();
                }
                Err::<Action, _>("no")
            }
        })
        .await;
    assert_eq!(runs.seconds(), [0, 1, 3, 7, 15]);
    assert_eq!((left[0].key, left[0].left), (1, 16 * SECOND));
}

#[tokio::test(start_paused = true)]
async fn a_drain_takes_its_time_at_a_rate_of_runs() {
    let queue = WorkQueue::builder().limiter(NoLimit);
    let queue = queue.run_rate(0.5, 2).build();
    assert!(queue.add_many(0..5).rejected.is_empty());
    queue.shut_down();
    let runs = Runs::new();
    let noted = runs.clone();
    let left = queue
        .run(3, move |_| {
            let noted = noted.clone();
            async move {
                noted.note();
                Action::Success
            }
        })
        .await;
    assert_eq!(runs.seconds(), [0, 0, 2, 4, 6]);
    assert!(left.is_empty());
}

#[tokio::test(start_paused = true)]
async fn five_events_in_a_row_make_one_run_after_the_last() {
    let queue = WorkQueue::builder().limiter(NoLimit).build();
    let runs = Runs::new();
    let events = async {
        for _ in 0..5 {
            queue
                .add_debounced("etc/hosts", SECOND, 60 * SECOND)
                .unwrap();
            sleep(SECOND / 2).await;
        }
    };
    let getter = async {
        let guard = queue.get().await.unwrap();
        runs.note();
        guard.success();
    };
    tokio::join!(events, getter);
    assert_eq!(runs.seconds(), [3]);
    assert!(!queue.contains("etc/hosts"));
}
