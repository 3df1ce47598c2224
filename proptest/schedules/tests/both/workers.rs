//! Active keys, and how their runs end.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use requeue_schedules::{SECOND, Scene, Waits, finish, interrupt, join, scenarios, with};
use requeue_std::Action;

scenarios! {
    explore:
        a_key_that_is_added_while_it_is_active_is_worked_on_again,
        a_worker_completes_a_key_and_takes_the_next,
        a_worker_that_panics_leaves_its_key_to_another;
}

fn a_key_that_is_added_while_it_is_active_is_worked_on_again<Q: Waits>(scene: &mut Scene<Q>) {
    let version = Arc::new(AtomicUsize::new(0));
    let running = Arc::new(AtomicUsize::new(0));
    for _ in 0..2 {
        let (version, running) = (Arc::clone(&version), Arc::clone(&running));
        let newest = scene.teller();
        scene.also(move |queue| {
            let mut next = queue.get();
            while let Ok(guard) = next {
                assert_eq!(running.fetch_add(1, Ordering::SeqCst), 0, "it runs once");
                if version.load(Ordering::SeqCst) == 2 {
                    newest.send(*guard).unwrap();
                }
                interrupt();
                running.fetch_sub(1, Ordering::SeqCst);
                next = queue.next(guard, Action::Success);
            }
        });
    }
    let producers = [(); 2].map(|()| {
        let version = Arc::clone(&version);
        with(&scene.queue, move |queue| {
            version.fetch_add(1, Ordering::SeqCst);
            queue.add(7).unwrap();
        })
    });
    scene.takes([7]);
    join(producers);
    assert_eq!(scene.queue.drain(), Ok(()));
}

fn a_worker_completes_a_key_and_takes_the_next<Q: Waits>(scene: &mut Scene<Q>) {
    for _ in 0..2 {
        let taken = scene.teller();
        scene.also(move |queue| {
            let first = queue.get().unwrap();
            taken.send(*first).unwrap();
            let second = queue.next(first, Action::Success).unwrap();
            taken.send(finish::<Q>(second)).unwrap();
        });
    }
    scene.adder([1, 2]);
    scene.queue.add_after(4, SECOND).unwrap();
    scene.add([3]);
    scene.takes([1, 2, 3]);
    Q::advance(SECOND);
    scene.takes([4]);
}

fn a_worker_that_panics_leaves_its_key_to_another<Q: Waits>(scene: &mut Scene<Q>) {
    scene.also(|queue| {
        let work = || {
            let _guard = queue.get().unwrap();
            // Without the hook, which would take it for the end of the test.
            resume_unwind(Box::new("unlucky"));
        };
        let _ = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    });
    scene.add([1]);
    scene.others_end();
    scene.getters(2, 1);
    scene.add([2]);
    scene.takes([2]);
    Q::advance(SECOND);
    scene.takes([1]);
}
