//! What changes the workers of a run while they work, and what ends them early.

use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_schedules::{
    Ending, Fragile, Ledger, Tasks, Waits, at_any_moment, explore, scenarios, uneven,
};
use requeue_tokio::binding::{AsShared, Lock};
use requeue_tokio::limiter::RateLimiter;
use requeue_tokio::priority::Plain;
use requeue_tokio::{Action, CancellationToken, Leftover, WorkQueue};
use shuttle::future::{block_on, spawn_local, yield_now};
use shuttle::thread;

use crate::Scene;

scenarios! {
    tasks, Tasks,
    explore:
        a_run_is_shut_down_by_its_token_at_any_moment,
        a_wait_for_the_drain_ends_when_a_token_ends_the_run,
        what_a_run_that_is_dropped_has_not_done_is_left_to_the_next;
    explore_all:
        a_worker_is_stopped_at_any_moment;
}

fn a_worker_is_stopped_at_any_moment(scene: &mut Scene) {
    assert!(scene.ledger.add(&scene.queue, 1));
    scene.also(|queue| queue.shut_down());
    let leftovers = scene.run(scene.ledger.workers(1), |_, _| Ending::Done);
    assert!(leftovers.is_empty());
    scene.settle_drained(leftovers);
}

fn a_run_is_shut_down_by_its_token_at_any_moment(scene: &mut Scene) {
    scene.producer([1, 2, 3, 1]);
    let token = canceller(scene);
    let run = scene
        .queue
        .run(scene.ledger.workers(2), reconciler(&scene.ledger));
    let leftovers = block_on(run.shut_down_on(token).into_future());
    scene.settle_drained(leftovers);
}

fn a_wait_for_the_drain_ends_when_a_token_ends_the_run(scene: &mut Scene) {
    scene.producer([1, 2, 3]);
    let token = canceller(scene);
    let drained = scene.ledger.clone();
    scene.also(move |queue| {
        block_on(queue.wait_drained());
        assert!(drained.is_idle());
    });
    scene.also(|queue| {
        at_any_moment();
        // Neither interrupts the other.
        assert_eq!(Waits::drain(queue), Ok(()));
    });
    let workers = scene.ledger.workers(2).drain_timeout(Duration::ZERO);
    let run = scene.queue.run(workers, reconciler(&scene.ledger));
    let leftovers = block_on(run.shut_down_on(token).into_future());
    scene.settle(leftovers);
}

fn what_a_run_that_is_dropped_has_not_done_is_left_to_the_next(scene: &mut Scene) {
    scene.producer([1, 2, 3, 1]);
    let (reconcile, dropped) = (reconciler(&scene.ledger), Arc::new(()));
    let held = Arc::clone(&dropped);
    let run = scene.queue.run(scene.ledger.workers(2), move |key| {
        let _held = &held;
        reconcile(key)
    });
    let run = spawn_local(run.into_future());
    at_any_moment();
    run.abort();
    assert!(block_on(run).is_err(), "it is not shut down");
    scene.stopper();
    let leftovers = scene.run(scene.ledger.workers(2), uneven);
    scene.others_end();
    // The scenario must not end before its workers: their locks cannot be waited for then.
    while Arc::strong_count(&dropped) > 1 {
        thread::yield_now();
    }
    let late = late(&scene.queue);
    scene.settle(leftovers.into_iter().chain(late));
}

#[test]
fn a_key_that_kills_its_worker_ends_the_run_and_nothing_is_lost() {
    explore::<Tasks>("run: a key that cannot be copied", || {
        let queue: WorkQueue<Fragile> = WorkQueue::new();
        let done = Arc::new(Mutex::new(Vec::new()));
        for name in [1, 2, 3] {
            queue
                .add(Fragile::new(name, usize::from(name == 2)))
                .unwrap();
        }
        let run = |queue: &WorkQueue<Fragile>| {
            let done = Arc::clone(&done);
            let run = queue.run(2, move |key: Fragile| {
                let done = Arc::clone(&done);
                async move {
                    yield_now().await;
                    done.lock().unwrap().push(key.name());
                    Action::Success
                }
            });
            block_on(run.into_future())
        };
        let _ = catch_unwind(AssertUnwindSafe(|| run(&queue))).unwrap_err();
        assert!(!queue.is_shutting_down());
        queue.shut_down();
        let left = run(&queue).into_iter().chain(late(&queue));
        let mut all: Vec<u32> = left.map(|left| left.key.name()).collect();
        all.append(&mut done.lock().unwrap());
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3]);
    });
}

/// Runs in which others may come, and which may be aborted.
fn reconciler(ledger: &Ledger) -> impl Fn(u32) -> Reconciled + Send + Sync + 'static {
    let ledger = ledger.clone();
    move |key| {
        let ledger = ledger.clone();
        Box::pin(async move {
            let run = ledger.begin(key);
            yield_now().await;
            let ending = uneven(key, run.number);
            run.end(ending)
        })
    }
}

type Reconciled = Pin<Box<dyn Future<Output = Result<Action, &'static str>> + Send>>;

/// What the workers of a run that was dropped leave. No caller waits for these workers.
fn late<K: Eq + Hash + Clone, L: RateLimiter>(queue: &WorkQueue<K, Plain, L>) -> Vec<Leftover<K>> {
    while queue
        .as_shared()
        .lock()
        .with(|state| (state.queue().stats().active, state.queue().asleep()) != (0, 0))
    {
        thread::yield_now();
    }
    queue.leftovers().collect()
}

/// A token that is cancelled, sooner or later.
fn canceller(scene: &mut Scene) -> CancellationToken {
    let token = CancellationToken::new();
    let cancelled = token.clone();
    scene.also(move |_| {
        at_any_moment();
        cancelled.cancel();
    });
    token
}
