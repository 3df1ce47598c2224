//! Workers whose threads end otherwise than they should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_schedules::{
    Ending, Fragile, SECOND, Scene, Threads, Waits, at_any_moment, explore, is_at_rest, scenarios,
};
use requeue_std::{Action, Concurrency, WorkQueue, Workers, refuse_threads};
use shuttle::sync::mpsc::channel;
use shuttle::thread;

scenarios! {
    threads, Threads,
    explore:
        if_a_thread_cannot_be_started_none_works,
        if_a_thread_cannot_be_started_later_the_others_finish_and_nothing_is_lost,
        a_run_that_is_overdue_is_reported_while_it_goes_on;
}

fn if_a_thread_cannot_be_started_none_works(scene: &mut Scene<Threads>) {
    scene.producer([1, 2]);
    refuse_threads(Some(2));
    let refused = scene.queue.run(3, |_| -> Result<Action, &str> {
        unreachable!("no worker runs")
    });
    refuse_threads(None);
    let _ = refused.unwrap_err();
    all_is_done_by_another(scene);
}

fn if_a_thread_cannot_be_started_later_the_others_finish_and_nothing_is_lost(
    scene: &mut Scene<Threads>,
) {
    let concurrency = Concurrency::new(2);
    scene.producer([1, 2, 3]);
    let growing = concurrency.clone();
    scene.also(move |_| {
        at_any_moment();
        growing.set(3);
    });
    refuse_threads(Some(2));
    let workers = scene.ledger.workers(1).concurrency(&concurrency);
    let working = scene.ledger.clone();
    let refused = scene.queue.run(workers, move |&key| {
        let run = working.begin(key);
        thread::sleep(Duration::ZERO);
        run.end(Ending::Done)
    });
    refuse_threads(None);
    let _ = refused.unwrap_err();
    all_is_done_by_another(scene);
}

fn all_is_done_by_another(scene: &mut Scene<Threads>) {
    assert!(!scene.queue.is_shutting_down());
    scene.others_end();
    scene.queue.shut_down();
    let leftovers = scene.run(scene.ledger.workers(1), |_, _| Ending::Done);
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

/// The run ends only once it is reported, so that a deadline that no thread watches shows.
fn a_run_that_is_overdue_is_reported_while_it_goes_on(scene: &mut Scene<Threads>) {
    let (began, begins) = channel();
    let (reported, reports) = channel();
    let reports = Mutex::new(reports);
    let began = Mutex::new(began);
    scene.also(move |_| {
        assert_eq!(begins.recv(), Ok(1));
        Threads::advance(SECOND);
        assert_eq!(begins.recv(), Ok(2));
        Threads::advance(SECOND);
    });
    scene.also(|queue| {
        queue.add(1).unwrap();
        at_any_moment();
        queue.add(2).unwrap();
    });
    let workers = Workers::new(1)
        .timeout(SECOND)
        .on_overdue(move |key: &u32, _| reported.send(*key).unwrap());
    let leftovers = scene.queue.run(workers, |key| {
        began.lock().unwrap().send(*key).unwrap();
        assert_eq!(reports.lock().unwrap().recv(), Ok(*key));
        if *key == 2 {
            scene.queue.shut_down();
        }
        Action::Success
    });
    assert!(leftovers.unwrap().is_empty());
}

#[test]
fn a_worker_that_a_key_kills_leaves_all_keys_to_the_others() {
    explore::<Threads>("run: a key that cannot be copied", || {
        let queue: WorkQueue<Fragile> = WorkQueue::new();
        let done = Arc::new(Mutex::new(Vec::new()));
        for name in [1, 2, 3] {
            let breaks_at = if name == 2 { 1 } else { 0 };
            queue.add(Fragile::new(name, breaks_at)).unwrap();
        }
        let stopper = {
            let queue = queue.clone();
            thread::spawn(move || {
                at_any_moment();
                queue.shut_down();
            })
        };
        let run = || {
            queue.run(2, |key| {
                done.lock().unwrap().push(key.name());
                Action::Success
            })
        };
        // Once the other has ended.
        let _ = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
        stopper.join().unwrap();
        let mut done = done.lock().unwrap();
        done.sort_unstable();
        assert_eq!(*done, [1, 2, 3]);
        is_at_rest(&queue);
    });
}
