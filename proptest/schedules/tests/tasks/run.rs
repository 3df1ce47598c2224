//! What changes the workers of a run while they work, and what ends them early.

use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use requeue_schedules::{
    Ending, Fragile, Ledger, Tasks, Waits, at_any_moment, explore, explore_all, stopper, uneven,
    with,
};
use requeue_tokio::binding::{AsShared, Lock};
use requeue_tokio::limiter::RateLimiter;
use requeue_tokio::priority::Plain;
use requeue_tokio::{Action, CancellationToken, Leftover, WorkQueue};
use shuttle::future::{block_on, spawn_local, yield_now};
use shuttle::thread;

#[test]
fn a_worker_is_stopped_at_any_moment() {
    explore_all::<Tasks>("run: a worker, a key, shut down", || {
        let (queue, ledger) = (Tasks::new(), Ledger::default());
        assert!(ledger.add(&queue, 1));
        let stopper = with(&queue, |queue| queue.shut_down());
        let leftovers = ledger.run(&queue, ledger.workers(1), |_, _| Ending::Done);
        assert!(leftovers.is_empty());
        stopper.join().unwrap();
        ledger.settle_drained(&queue, leftovers);
    });
}

#[test]
fn a_run_is_shut_down_by_its_token_at_any_moment() {
    explore::<Tasks>("run: token", || {
        let (queue, ledger) = (Tasks::new(), Ledger::default());
        let producer = ledger.producer(&queue, [1, 2, 3, 1]);
        let token = CancellationToken::new();
        let canceller = canceller(&token);
        let run = queue.run(ledger.workers(2), reconciler(&ledger));
        let leftovers = block_on(run.shut_down_on(token).into_future());
        producer.join().unwrap();
        canceller.join().unwrap();
        ledger.settle_drained(&queue, leftovers);
    });
}

#[test]
fn a_wait_for_the_drain_ends_when_a_token_ends_the_run() {
    explore::<Tasks>("run: token without grace, drained by another", || {
        let (queue, ledger) = (Tasks::new(), Ledger::default());
        let producer = ledger.producer(&queue, [1, 2, 3]);
        let token = CancellationToken::new();
        let drained = ledger.clone();
        let others = [
            producer,
            canceller(&token),
            with(&queue, move |queue| {
                block_on(queue.wait_drained());
                assert!(drained.is_idle());
            }),
            with(&queue, |queue| {
                at_any_moment();
                // Neither interrupts the other.
                assert_eq!(Waits::drain(queue), Ok(()));
            }),
        ];
        let workers = ledger.workers(2).drain_timeout(Duration::ZERO);
        let run = queue.run(workers, reconciler(&ledger));
        let leftovers = block_on(run.shut_down_on(token).into_future());
        requeue_schedules::join(others);
        ledger.settle(&queue, leftovers);
    });
}

#[test]
fn what_a_run_that_is_dropped_has_not_done_is_left_to_the_next() {
    explore::<Tasks>("run: dropped at any moment", || {
        let (queue, ledger) = (Tasks::new(), Ledger::default());
        let producer = ledger.producer(&queue, [1, 2, 3, 1]);
        let (reconcile, dropped) = (reconciler(&ledger), Arc::new(()));
        let held = Arc::clone(&dropped);
        let run = queue.run(ledger.workers(2), move |key| {
            let _held = &held;
            reconcile(key)
        });
        let run = spawn_local(run.into_future());
        at_any_moment();
        run.abort();
        assert!(block_on(run).is_err(), "it is not shut down");
        let others = [producer, stopper(&queue)];
        let leftovers = ledger.run(&queue, ledger.workers(2), uneven);
        requeue_schedules::join(others);
        // The scenario must not end before its workers: their locks cannot be waited for then.
        while Arc::strong_count(&dropped) > 1 {
            thread::yield_now();
        }
        ledger.settle(&queue, leftovers.into_iter().chain(late(&queue)));
    });
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

fn canceller(token: &CancellationToken) -> thread::JoinHandle<()> {
    let token = token.clone();
    thread::spawn(move || {
        at_any_moment();
        token.cancel();
    })
}
