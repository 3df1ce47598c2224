//! Workers that end. What they have done and what is handed back is together what was accepted:
//! nothing is lost, nothing stands in both, and no key is worked on twice at once.

use std::ops::RangeInclusive;
use std::time::Duration;

use requeue_schedules::{Ending, Runs, SECOND, Scene, at_any_moment, scenarios, uneven, with};
use requeue_std::binding::Lock;
use requeue_std::{Concurrency, WaitError};
use shuttle::rand::{Rng, thread_rng};
use shuttle::sync::Barrier;
use shuttle::thread::{self, JoinHandle};

scenarios! {
    [Threads, Tasks]
    explore:
        a_batch_leaves_the_rest_to_the_next,
        a_worker_is_stopped_at_any_moment,
        what_workers_have_not_done_is_handed_back,
        what_is_ready_when_there_is_no_grace_is_handed_back,
        what_is_ready_when_the_grace_is_over_is_handed_back,
        a_wait_for_the_drain_ends_when_workers_end,
        a_drain_may_be_interrupted_while_workers_end,
        two_runs_share_what_there_is,
        workers_add_keys_while_they_are_stopped,
        a_key_that_is_given_up_is_not_handed_back,
        workers_that_are_dismissed_lose_no_key,
        there_come_as_many_workers_as_were_last_asked_for,
        after_a_storm_of_changes_the_last_number_works,
        after_a_storm_of_changes_surplus_workers_leave,
        a_run_without_workers_drains_when_it_is_shut_down;
}

fn a_worker_is_stopped_at_any_moment<Q: Runs>(scene: &mut Scene<Q>) {
    // With the thread that supervises there are more schedules than can all be tried.
    assert!(scene.ledger.add(&scene.queue, 1));
    scene.also(|queue| queue.as_shared().shut_down());
    let leftovers = scene.run(scene.ledger.workers(1), |_, _| Ending::Done);
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

fn what_workers_have_not_done_is_handed_back<Q: Runs>(scene: &mut Scene<Q>) {
    scene.producer([1, 2, 3, 1, 4]);
    scene.stopper();
    scene.also(|_| time_passes::<Q>());
    let leftovers = scene.run(scene.ledger.workers(2), uneven);
    scene.settle_drained(leftovers);
}

fn what_is_ready_when_there_is_no_grace_is_handed_back<Q: Runs>(scene: &mut Scene<Q>) {
    scene.producer([1, 2, 3]);
    scene.producer([4, 2, 1]);
    scene.stopper();
    let workers = scene.ledger.workers(2).drain_timeout(Duration::ZERO);
    let leftovers = scene.run(workers, uneven);
    scene.settle(leftovers);
}

/// Adds keys before anyone works.
fn added<Q: Runs>(scene: &Scene<Q>, keys: RangeInclusive<u32>) {
    for key in keys {
        assert!(scene.ledger.add(&scene.queue, key));
    }
}

fn what_is_ready_when_the_grace_is_over_is_handed_back<Q: Runs>(scene: &mut Scene<Q>) {
    added(scene, 1..=4);
    scene.stopper();
    scene.also(|_| {
        time_passes::<Q>();
        time_passes::<Q>();
    });
    let workers = scene.ledger.workers(2).drain_timeout(SECOND);
    let leftovers = scene.run(workers, uneven);
    scene.settle(leftovers);
}

fn a_wait_for_the_drain_ends_when_workers_end<Q: Runs>(scene: &mut Scene<Q>) {
    added(scene, 1..=3);
    for _ in 0..2 {
        let ledger = scene.ledger.clone();
        scene.also(move |queue| {
            at_any_moment();
            assert_eq!(queue.drain(), Ok(()));
            assert!(ledger.is_idle());
        });
    }
    let workers = scene.ledger.workers(2).drain_timeout(Duration::ZERO);
    let leftovers = scene.run(workers, uneven);
    scene.settle(leftovers);
}

fn a_drain_may_be_interrupted_while_workers_end<Q: Runs>(scene: &mut Scene<Q>) {
    let drained = scene.ledger.clone();
    scene.producer([1, 2, 3]);
    scene.also(move |queue| {
        at_any_moment();
        match queue.drain() {
            Ok(()) => assert!(drained.is_idle()),
            other => assert_eq!(other, Err(WaitError::Interrupted)),
        }
    });
    scene.stopper();
    let leftovers = scene.run(scene.ledger.workers(2), uneven);
    scene.settle_drained(leftovers);
}

fn two_runs_share_what_there_is<Q: Runs>(scene: &mut Scene<Q>) {
    let runs = [None, Some(Duration::ZERO)].map(|grace| {
        let ledger = scene.ledger.clone();
        with(&scene.queue, move |queue| {
            let workers = ledger.workers(1);
            let workers = match grace {
                Some(grace) => workers.drain_timeout(grace),
                None => workers,
            };
            ledger.run(queue, workers, uneven)
        })
    });
    scene.producer([1, 2, 3, 1]);
    scene.stopper();
    let leftovers = runs.map(|run| run.join().unwrap());
    scene.settle(leftovers.into_iter().flatten());
}

fn workers_add_keys_while_they_are_stopped<Q: Runs>(scene: &mut Scene<Q>) {
    added(scene, 1..=1);
    scene.stopper();
    let (adding, adder) = (scene.queue.clone(), scene.ledger.clone());
    let leftovers = scene.run(scene.ledger.workers(2), move |key, number| {
        if number == 1 && key < 4 {
            adder.add(&adding, key);
            adder.add(&adding, key + 1);
        }
        uneven(key, number)
    });
    scene.settle_drained(leftovers);
}

fn a_key_that_is_given_up_is_not_handed_back<Q: Runs>(scene: &mut Scene<Q>) {
    scene.producer([2, 3, 2, 3]);
    scene.stopper();
    let leftovers = scene.run(scene.ledger.workers(2).max_retries(0), uneven);
    scene.settle_drained(leftovers);
}

fn workers_that_are_dismissed_lose_no_key<Q: Runs>(scene: &mut Scene<Q>) {
    let concurrency = Concurrency::new(2);
    scene.producer([1, 2, 3, 4, 1]);
    let changer = changer(&concurrency, [1, 3, 0, 1]);
    scene.stopper();
    let workers = scene.ledger.workers(1).concurrency(&concurrency);
    let leftovers = scene.run(workers, uneven);
    changer.join().unwrap();
    scene.settle_drained(leftovers);
}

fn there_come_as_many_workers_as_were_last_asked_for<Q: Runs>(scene: &mut Scene<Q>) {
    let concurrency = Concurrency::new(1);
    let changer = changer(&concurrency, [3, 0, 2]);
    run_two_keys_at_once(scene, &concurrency);
    changer.join().unwrap();
}

fn after_a_storm_of_changes_the_last_number_works<Q: Runs>(scene: &mut Scene<Q>) {
    let concurrency = Concurrency::new(thread_rng().gen_range(0..=2));
    let storm = storm(&concurrency, 2);
    run_two_keys_at_once(scene, &concurrency);
    storm.join().unwrap();
}

/// Runs two keys that wait for each other, so that it ends only with two workers.
fn run_two_keys_at_once<Q: Runs>(scene: &mut Scene<Q>, concurrency: &Concurrency) {
    added(scene, 1..=2);
    let (together, stopping) = (Barrier::new(2), scene.queue.clone());
    let workers = scene.ledger.workers(1).concurrency(concurrency);
    let leftovers = scene.run(workers, move |_, _| {
        together.wait();
        stopping.as_shared().shut_down();
        Ending::Done
    });
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

fn after_a_storm_of_changes_surplus_workers_leave<Q: Runs>(scene: &mut Scene<Q>) {
    let concurrency = Concurrency::new(2);
    let workers = scene.ledger.workers(1).concurrency(&concurrency);
    scene.also(move |queue| {
        wait_until_asleep(queue, 2);
        storm(&concurrency, 0).join().unwrap();
        wait_until_asleep(queue, 0);
        queue.as_shared().shut_down();
    });
    let leftovers = scene.run(workers, |_, _| Ending::Done);
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

fn wait_until_asleep<Q: Runs>(queue: &Q, count: usize) {
    while queue
        .as_shared()
        .lock()
        .with(|state| state.queue().asleep())
        != count
    {
        thread::yield_now();
    }
}

fn a_run_without_workers_drains_when_it_is_shut_down<Q: Runs>(scene: &mut Scene<Q>) {
    let concurrency = Concurrency::new(0);
    scene.producer([1, 2]);
    let changer = changer(&concurrency, [1, 0]);
    scene.stopper();
    let workers = scene.ledger.workers(1).concurrency(&concurrency);
    let leftovers = scene.run(workers, |_, _| Ending::Done);
    changer.join().unwrap();
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

fn changer<const N: usize>(concurrency: &Concurrency, to: [usize; N]) -> JoinHandle<()> {
    let concurrency = concurrency.clone();
    thread::spawn(move || {
        for workers in to {
            at_any_moment();
            concurrency.set(workers);
        }
    })
}

/// Sets numbers in a row, zero among them, and at last this one.
fn storm(concurrency: &Concurrency, last: usize) -> JoinHandle<()> {
    let concurrency = concurrency.clone();
    thread::spawn(move || {
        for _ in 0..STORM {
            if thread_rng().gen_bool(0.3) {
                at_any_moment();
            }
            concurrency.set(thread_rng().gen_range(0..=2));
        }
        at_any_moment();
        concurrency.set(last);
    })
}

const STORM: usize = 6;

/// By as much as the first retry takes, sooner or later.
fn time_passes<Q: Runs>() {
    at_any_moment();
    Q::advance(SECOND);
}

fn a_batch_leaves_the_rest_to_the_next<Q: Runs>(scene: &mut Scene<Q>) {
    for _ in 0..2 {
        let taken = scene.teller();
        scene.also(move |queue| {
            let batch = queue.get_many(2).unwrap();
            let keys: Vec<u32> = batch.keys().copied().collect();
            batch.release();
            for key in keys {
                taken.send(key).unwrap();
            }
        });
    }
    scene.add([1, 2, 3]);
    scene.takes([1, 2, 3]);
}
