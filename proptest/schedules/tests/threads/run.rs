//! Workers whose threads end otherwise than they should.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use requeue_schedules::{
    Ending, Fragile, Ledger, Threads, Waits, at_any_moment, explore, is_at_rest,
};
use requeue_std::{Action, WorkQueue, refuse_threads};
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
        assert!(!queue.shutting_down());
        producer.join().unwrap();
        queue.shut_down();
        let leftovers = ledger.run(&queue, ledger.workers(1), |_, _| Ending::Done);
        assert!(leftovers.is_empty());
        ledger.settle_drained(&queue, leftovers);
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
                Ok::<_, &str>(Action::Success)
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
