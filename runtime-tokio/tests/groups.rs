//! Workers of a queue with groups: a group at its limit leaves them to the others.

use std::future::pending;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_tokio::GroupLimits;
use requeue_tokio::{Action, WorkQueue};
use tokio::time::{Instant, sleep};

type Key = (&'static str, u32);

/// Which keys ran, and when.
type Runs = Arc<Mutex<Vec<(Key, Duration)>>>;

#[tokio::test(start_paused = true)]
async fn a_group_that_hangs_leaves_workers_to_the_others() {
    let queue = WorkQueue::builder().build_with_groups(|key: &Key| key.0);
    queue.limit_groups(GroupLimits::new().max_active(2));
    let _ = queue.add_many((0..1000).map(|number| ("hanging", number)));
    let _ = queue.add_many((0..10).map(|number| ("steady", number)));
    let runs = Runs::default();
    let run = queue.run(3, {
        let runs = Arc::clone(&runs);
        move |key: Key| {
            let runs = Arc::clone(&runs);
            async move {
                if key.0 == "hanging" {
                    pending::<()>().await;
                }
                runs.lock().unwrap().push((key, Duration::ZERO));
                Action::Success
            }
        }
    });
    let run = tokio::spawn(run);
    queue.flush(&("steady", 9)).await;
    let steady: Vec<Key> = runs.lock().unwrap().iter().map(|(key, _)| *key).collect();
    assert_eq!(
        steady,
        [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].map(|number| ("steady", number))
    );
    let hanging = queue.group("hanging").unwrap();
    assert_eq!((hanging.active, hanging.ready), (2, 998));
    run.abort();
}

#[tokio::test(start_paused = true)]
async fn a_worker_that_sleeps_is_the_timer_of_a_group_s_rate() {
    const SECOND: Duration = Duration::from_secs(1);

    let queue = WorkQueue::builder().build_with_groups(|key: &Key| key.0);
    let start = Instant::now();
    queue
        .limit_group("rated", GroupLimits::new().rate(1.0, 1))
        .unwrap();
    queue.pause_group("paused").unwrap();
    let _ = queue.add_many([("rated", 0), ("rated", 1), ("rated", 2), ("paused", 0)]);
    let runs = Runs::default();
    let run = queue.run(2, {
        let runs = Arc::clone(&runs);
        move |key: Key| {
            runs.lock().unwrap().push((key, start.elapsed()));
            async { Action::Success }
        }
    });
    let run = tokio::spawn(run);
    sleep(3 * SECOND).await;
    queue.unpause_group("paused");
    assert_eq!(queue.drain().await, Ok(()));
    run.await.unwrap();
    let expected = [
        (("rated", 0), Duration::ZERO),
        (("rated", 1), SECOND),
        (("rated", 2), 2 * SECOND),
        (("paused", 0), 3 * SECOND),
    ];
    assert_eq!(*runs.lock().unwrap(), expected);
}
