//! Workers whose threads end otherwise than they should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_schedules::{
    Ending, Fragile, Ledger, SECOND, Threads, Waits, at_any_moment, explore, is_at_rest, with,
};
use requeue_std::{Action, Concurrency, WorkQueue, Workers, refuse_threads};
use shuttle::sync::mpsc::channel;
use shuttle::thread;

#[test]
fn if_a_thread_cannot_be_started_none_works() {
    explore::<Threads>("run: the last of three threads is refused", || {
        let (queue, ledger) = (Threads::new(), Ledger::default());
        let producer = ledger.producer(&queue, [1, 2]);
        refuse_threads(Some(2));
        let refused = queue.run(3, |_| -> Result<Action, &str> {
            unreachable!("no worker runs")
        });
        refuse_threads(None);
        let _ = refused.unwrap_err();
        assert!(!queue.is_shutting_down());
        producer.join().unwrap();
        queue.shut_down();
        let leftovers = ledger.run(&queue, ledger.workers(1), |_, _| Ending::Done);
        assert!(leftovers.is_empty());
        ledger.settle_drained(&queue, leftovers);
    });
}

#[test]
fn if_a_thread_cannot_be_started_later_the_others_finish_and_nothing_is_lost() {
    explore::<Threads>("run: a third thread is refused", || {
        let (queue, ledger) = (Threads::new(), Ledger::default());
        let concurrency = Concurrency::new(2);
        let producer = ledger.producer(&queue, [1, 2, 3]);
        let grower = {
            let concurrency = concurrency.clone();
            thread::spawn(move || {
                at_any_moment();
                concurrency.set(3);
            })
        };
        refuse_threads(Some(2));
        let (working, workers) = (ledger.clone(), ledger.workers(1).concurrency(&concurrency));
        let refused = queue.run(workers, move |&key| {
            let run = working.begin(key);
            thread::sleep(Duration::ZERO);
            run.end(Ending::Done)
        });
        refuse_threads(None);
        let _ = refused.unwrap_err();
        assert!(!queue.is_shutting_down());
        producer.join().unwrap();
        grower.join().unwrap();
        queue.shut_down();
        let leftovers = ledger.run(&queue, ledger.workers(1), |_, _| Ending::Done);
        assert!(leftovers.is_empty());
        ledger.settle_drained(&queue, leftovers);
    });
}

/// The run ends only once it is reported, so that a deadline that no thread watches shows.
#[test]
fn a_run_that_is_overdue_is_reported_while_it_goes_on() {
    explore::<Threads>("run: overdue", || {
        let queue = Threads::new();
        let (began, begins) = channel();
        let (reported, reports) = channel();
        let reports = Mutex::new(reports);
        let began = Mutex::new(began);
        let others = [
            with(&queue, move |_| {
                assert_eq!(begins.recv(), Ok(1));
                Threads::advance(SECOND);
                assert_eq!(begins.recv(), Ok(2));
                Threads::advance(SECOND);
            }),
            with(&queue, |queue| {
                queue.add(1).unwrap();
                at_any_moment();
                queue.add(2).unwrap();
            }),
        ];
        let workers = Workers::new(1)
            .timeout(SECOND)
            .on_overdue(move |key: &u32, _| reported.send(*key).unwrap());
        let stopping = queue.clone();
        let leftovers = queue.run(workers, |key| {
            began.lock().unwrap().send(*key).unwrap();
            assert_eq!(reports.lock().unwrap().recv(), Ok(*key));
            if *key == 2 {
                stopping.shut_down();
            }
            Action::Success
        });
        assert!(leftovers.unwrap().is_empty());
        requeue_schedules::join(others);
        is_at_rest(&queue);
    });
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
