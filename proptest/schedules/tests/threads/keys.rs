//! Keys whose `Clone` panics, which happens under the queue's lock.
//!
//! All threads of a schedule share one thread of the system: while one unwinds, the others seem to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use requeue_schedules::{Fragile, Threads, explore, is_at_rest, join};
use requeue_std::{Action, WorkQueue};
use shuttle::sync::mpsc::channel;
use shuttle::thread;

#[test]
fn a_key_that_cannot_be_copied_is_left_to_another() {
    explore::<Threads>("panic under the lock", || {
        let queue: WorkQueue<Fragile> = WorkQueue::new();
        let (sender, taken) = channel();
        let getters = [(); 2].map(|()| {
            let (queue, taken) = (queue.clone(), sender.clone());
            thread::spawn(move || {
                let get = || queue.get().map(|guard| guard.success());
                let got = catch_unwind(AssertUnwindSafe(get)).map_err(drop);
                taken.send(got.is_ok()).unwrap();
            })
        });
        queue.add(Fragile::new(7, 1)).unwrap();
        let got = [(); 2].map(|()| taken.recv().unwrap());
        assert!(got.contains(&true) && got.contains(&false));
        join(getters);
        is_at_rest(&queue);
    });
}

#[test]
fn a_key_that_cannot_be_copied_again_is_left_to_another() {
    explore::<Threads>(
        "panic under the lock of a worker that asks for more",
        || {
            let queue: WorkQueue<Fragile> = WorkQueue::new();
            queue.add(Fragile::new(7, 2)).unwrap();
            let guard = queue.get().unwrap();
            queue.add(Fragile::new(7, 2)).unwrap();
            let other = {
                let queue = queue.clone();
                thread::spawn(move || _ = queue.get().unwrap().success())
            };
            let step = || queue.next(guard, Action::Success).is_ok();
            let _ = catch_unwind(AssertUnwindSafe(step)).unwrap_err();
            other.join().unwrap();
            is_at_rest(&queue);
        },
    );
}
