//! Active keys, and how their runs end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{SECOND, Waits, finish, getters, interrupt, is_at_rest, join, next, with};
use requeue_std::Action;
use shuttle::sync::mpsc::channel;

both! {
    explore:
        a_key_that_is_added_while_it_is_active_is_worked_on_again,
        a_worker_completes_a_key_and_takes_the_next,
        a_worker_that_panics_leaves_its_key_to_another;
}

fn a_key_that_is_added_while_it_is_active_is_worked_on_again<Q: Waits>() {
    let queue = Q::new();
    let version = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    let (newest, seen) = channel();
    let workers = (0..2).map(|_| {
        let (version, running) = (Arc::clone(&version), Arc::clone(&running));
        let newest = newest.clone();
        with(&queue, move |queue| {
            let mut next = queue.get();
            while let Ok(guard) = next {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "it runs once");
                if version.load(Ordering::SeqCst) == 2 {
                    newest.send(()).unwrap();
                }
                interrupt();
                running.fetch_sub(1, Ordering::SeqCst);
                next = queue.next(guard, Action::Success);
            }
        })
    });
    let workers: Vec<_> = workers.collect();
    let producers = [(); 2].map(|()| {
        let version = Arc::clone(&version);
        with(&queue, move |queue| {
            version.fetch_add(1, Ordering::SeqCst);
            queue.add(7).unwrap();
        })
    });
    seen.recv().unwrap();
    join(producers);
    assert_eq!(queue.drain(), Ok(()));
    join(workers);
    is_at_rest(&queue);
}

fn a_worker_completes_a_key_and_takes_the_next<Q: Waits>() {
    let queue = Q::new();
    let (sender, taken) = channel();
    let workers = (0..2).map(|_| {
        let sender = sender.clone();
        with(&queue, move |queue| {
            let first = queue.get().unwrap();
            sender.send(*first).unwrap();
            let second = queue.next(first, Action::Success).unwrap();
            sender.send(finish::<Q>(second)).unwrap();
        })
    });
    let mut threads: Vec<_> = workers.collect();
    threads.push(with(&queue, |queue| {
        queue.as_shared().add_many([1, 2], |_| unreachable!());
    }));
    queue.add_after(4, SECOND).unwrap();
    queue.add(3).unwrap();
    assert_eq!(next(&taken), [1, 2, 3]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [4]);
    join(threads);
    is_at_rest(&queue);
}

fn a_worker_that_panics_leaves_its_key_to_another<Q: Waits>() {
    let queue = Q::new();
    let unlucky = with(&queue, |queue| {
        let work = || {
            let _guard = queue.get().unwrap();
            // Without the hook, which would take it for the end of the test.
            resume_unwind(Box::new("unlucky"));
        };
        let _ = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    });
    queue.add(1).unwrap();
    unlucky.join().unwrap();
    let (taken, threads) = getters(&queue, 2, 1);
    queue.add(2).unwrap();
    assert_eq!(next(&taken), [2]);
    Q::advance(SECOND);
    assert_eq!(next(&taken), [1]);
    join(threads);
    is_at_rest(&queue);
}
