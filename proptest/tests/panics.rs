//! Keys, reconcilers, limiters and metrics that panic, each at every call in turn: other threads and
//! tasks go on, and no key is lost.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::collections::BTreeSet;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use requeue_core::binding::{AsShared, Host, Reporter, Shared};
use requeue_core::limiter::RateLimiter;
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Batch, Guard, Instant, Queue, RunContext, Workers};
use requeue_test_tools::{by_hand, in_time};
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};

const HOUR: Duration = Duration::from_secs(60 * 60);
const WORKERS: usize = 3;
/// More calls of one kind than a world makes.
const CALLS_MAX: u32 = 400;

/// Which code panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    Reconcile,
    GiveUp,
    Eq,
    Hash,
    Clone,
    Drop,
    /// These two must not panic, and do so only in runs. The key of the run may then stay active.
    Limiter,
    Metrics,
}

impl Point {
    fn breaks_a_contract(self) -> bool {
        matches!(self, Self::Limiter | Self::Metrics)
    }
}

const POINTS: [Point; 8] = {
    use Point::*;
    [Reconcile, GiveUp, Eq, Hash, Clone, Drop, Limiter, Metrics]
};

/// What it panics with, without a message on the screen.
#[derive(Debug)]
struct OnPurpose;

/// What the code that may panic shares.
#[derive(Debug)]
struct World {
    point: Point,
    /// Which of its calls panics.
    nth: u32,
    calls: AtomicU32,
    is_armed: AtomicBool,
    /// Keys that the queue has accepted.
    accepted: Mutex<BTreeSet<u8>>,
    /// Keys that a worker has finished or given up, or that the queue has handed back.
    settled: Mutex<BTreeSet<u8>>,
}

impl World {
    fn new(point: Point, nth: u32) -> Arc<Self> {
        Arc::new(Self {
            point,
            nth,
            calls: AtomicU32::new(0),
            is_armed: AtomicBool::new(false),
            accepted: Mutex::default(),
            settled: Mutex::default(),
        })
    }

    fn queue(self: &Arc<Self>) -> Queue<Key, Plain, Foreign, Growable, Reporter> {
        let foreign = || Foreign(Arc::clone(self));
        let metrics = Reporter::new(foreign());
        Queue::builder()
            .limiter(foreign())
            .report_to(metrics)
            .build()
    }

    fn key(self: &Arc<Self>, number: u8) -> Key {
        Key(number, Arc::clone(self))
    }

    fn workers(self: &Arc<Self>) -> Workers<'static, Key, &'static str> {
        Workers::new(WORKERS)
            .max_retries(2)
            .on_give_up(|key: &Key, _| {
                key.settle();
                key.1.pass(Point::GiveUp);
            })
    }

    /// The code at `point` is called.
    fn pass(&self, point: Point) {
        let counts = point == self.point && self.is_armed.load(Ordering::SeqCst);
        let is_next = || self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.nth;
        if counts && !thread::panicking() && is_next() {
            resume_unwind(Box::new(OnPurpose));
        }
    }

    /// Ends a run. Key 8 always fails, and key 3 fails once.
    fn end(&self, key: &Key, run: RunContext) -> Result<Action, &'static str> {
        self.pass(Point::Reconcile);
        if key.0 == 8 || (key.0 == 3 && run.attempt == 1) {
            return Err("on purpose");
        }
        key.settle();
        Ok(Action::Success)
    }

    fn arm(&self, is_armed: bool) {
        self.is_armed.store(is_armed, Ordering::SeqCst);
    }

    fn has_panicked(&self) -> bool {
        self.calls.load(Ordering::SeqCst) >= self.nth
    }

    /// How many keys code that breaks its contract may have kept active.
    fn kept(&self) -> usize {
        usize::from(self.has_panicked() && self.point.breaks_a_contract())
    }

    /// A run has ended with a panic. Those of a reconciler and of a hook are caught.
    fn assert_may_end_a_run(&self) {
        let is_caught = matches!(self.point, Point::Reconcile | Point::GiveUp);
        assert!(self.has_panicked() && !is_caught, "{self:?}");
    }

    /// Workers have nothing left to do.
    fn is_over<H: Host>(&self, queue: &Shared<H>) -> bool {
        let stats = queue.look(|queue| queue.stats());
        stats.ready == 0 && stats.active <= self.kept()
    }

    /// Nothing was lost, and the queue is whole.
    fn assert_kept<H: Host<Key = Key>>(&self, queue: &Shared<H>) {
        queue.leftovers().for_each(|left| left.key.settle());
        queue.look(|queue| queue.assert_valid());
        assert!(self.is_over(queue), "{self:?}");
        let (accepted, settled) = (self.accepted.lock().unwrap(), self.settled.lock().unwrap());
        let lost = accepted.difference(&settled).count();
        assert!(lost <= self.kept(), "{self:?}");
    }
}

#[derive(Debug)]
struct Key(u8, Arc<World>);

impl Key {
    fn settle(&self) {
        self.1.settled.lock().unwrap().insert(self.0);
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.1.pass(Point::Eq);
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.1.pass(Point::Hash);
        self.0.hash(state);
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        self.1.pass(Point::Clone);
        self.1.key(self.0)
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.1.pass(Point::Drop);
    }
}

/// A limiter that lets a key run again immediately, and metrics that measure nothing.
#[derive(Debug)]
struct Foreign(Arc<World>);

impl RateLimiter for Foreign {
    type Record = u32;

    fn when(&mut self, failures: &mut u32, _: Instant) -> Duration {
        *failures += 1;
        self.0.pass(Point::Limiter);
        Duration::ZERO
    }

    fn failures(&self, failures: &u32) -> u32 {
        *failures
    }

    fn set_failures(&self, failures: &mut u32, count: u32) {
        self.0.pass(Point::Limiter);
        *failures = count;
    }
}

impl Metrics for Foreign {
    type Timestamps = Times;

    fn depth(&mut self, _: usize) {
        self.0.pass(Point::Metrics);
    }

    fn added(&mut self) {
        self.0.pass(Point::Metrics);
    }

    fn queue_latency(&mut self, _: Duration) {
        self.0.pass(Point::Metrics);
    }

    fn work_duration(&mut self, _: Duration) {
        self.0.pass(Point::Metrics);
    }

    fn retry(&mut self) {
        self.0.pass(Point::Metrics);
    }
}

/// One caller adds, takes and forgets keys, step by step. A step may panic.
fn call<H: Host<Key = Key>, R: Deref<Target = Shared<H>>>(
    world: &Arc<World>,
    queue: &Shared<H>,
    get: impl Fn() -> Option<Guard<H, R>>,
    next: impl Fn(Guard<H, R>) -> Option<Guard<H, R>>,
    get_many: impl Fn() -> Option<Batch<H, R>>,
) {
    let add = |number| {
        let key = world.key(number);
        let is_accepted = match number % 3 {
            0 => queue.add(key).is_ok(),
            1 => queue.add_after(key, HOUR).is_ok(),
            _ => queue.add_rate_limited(key).is_ok(),
        };
        assert!(is_accepted, "there is room");
        world.accepted.lock().unwrap().insert(number);
    };
    let work = |guard: Guard<H, R>| {
        guard.key().settle();
        guard.success();
    };
    (0..6).for_each(|number| attempt(|| add(number)));
    attempt(|| get().into_iter().for_each(work));
    attempt(|| {
        // So that it need not wait.
        add(6);
        if let Some(batch) = get_many() {
            batch.keys().for_each(Key::settle);
            batch.release();
        }
    });
    attempt(|| {
        if let Some(guard) = get() {
            guard.key().settle();
            // The key is dirty, so that there is a next one.
            add(guard.key().0);
            next(guard).into_iter().for_each(work);
        }
    });
    attempt(|| add(3));
    attempt(|| add(8));
    attempt(|| _ = queue.forget(&world.key(8)));
}

fn attempt(step: impl FnOnce()) {
    if let Err(panic) = catch_unwind(AssertUnwindSafe(step)) {
        assert!(panic.is::<OnPurpose>(), "another panic");
    }
}

/// Workers are threads, and begin before the calls or after them. Returns whether anything
/// panicked.
fn threads(point: Point, nth: u32, are_early: bool) -> bool {
    let world = World::new(point, nth);
    let queue = requeue_std::WorkQueue::from(world.queue());
    let shared = queue.as_shared();
    let reconcile = |key: &Key, run: RunContext| {
        world.pass(Point::Reconcile);
        thread::yield_now();
        world.end(key, run)
    };
    let run = || {
        catch_unwind(AssertUnwindSafe(|| {
            queue.run_with(world.workers(), reconcile)
        }))
    };
    thread::scope(|scope| {
        let early = are_early.then(|| scope.spawn(run));
        while are_early && shared.look(|queue| queue.asleep()) < WORKERS {
            thread::yield_now();
        }
        world.arm(!point.breaks_a_contract());
        let get = || queue.get_timeout(Duration::ZERO).ok();
        let next = |guard| queue.next(guard, Action::Release).ok();
        // Beside workers there may be no key left to get.
        let get_many = || (!are_early).then(|| queue.get_many(2).ok()).flatten();
        call(&world, shared, get, next, get_many);
        world.arm(true);
        let run = early.unwrap_or_else(|| scope.spawn(run));
        while !world.is_over(shared) {
            thread::yield_now();
        }
        world.arm(false);
        if point.breaks_a_contract() {
            queue.shut_down();
        } else {
            queue.add(world.key(9)).unwrap();
            assert_eq!(queue.drain(), Ok(()));
        }
        match run.join().unwrap() {
            Ok(left) => left.unwrap().iter().for_each(|left| left.key.settle()),
            Err(panic) => {
                world.assert_may_end_a_run();
                assert!(panic.is::<OnPurpose>() || panic.is::<&str>(), "{world:?}");
            }
        }
    });
    world.assert_kept(shared);
    world.has_panicked()
}

/// The same with tasks. A run that a panic has ended is begun again, as a program would.
async fn tasks(point: Point, nth: u32, are_early: bool) -> bool {
    let world = World::new(point, nth);
    let queue = requeue_tokio::WorkQueue::from(world.queue());
    let shared = queue.as_shared();
    let reconcile = |key: Key, run: RunContext| async move {
        key.1.pass(Point::Reconcile);
        yield_now().await;
        key.1.end(&key, run)
    };
    let mut runs = JoinSet::new();
    let begin = || queue.run_with(world.workers(), reconcile);
    if are_early {
        runs.spawn(begin());
    }
    while are_early && shared.look(|queue| queue.asleep()) < WORKERS {
        yield_now().await;
    }
    world.arm(!point.breaks_a_contract());
    let get = || by_hand(queue.get_timeout(Duration::ZERO)).ended()?.ok();
    let next = |guard| by_hand(queue.next(guard, Action::Release)).ended()?.ok();
    let get_many = || by_hand(queue.get_many(2)).ended()?.ok();
    call(&world, shared, get, next, get_many);
    world.arm(true);
    if !are_early {
        runs.spawn(begin());
    }
    while !world.is_over(shared) {
        yield_now().await;
        if let Some(ended) = runs.try_join_next() {
            world.assert_may_end_a_run();
            assert!(ended.unwrap_err().into_panic().is::<OnPurpose>());
            runs.spawn(begin());
        }
    }
    world.arm(false);
    if point.breaks_a_contract() {
        queue.shut_down();
    } else {
        queue.add(world.key(9)).unwrap();
        runs.spawn(begin());
        assert_eq!(queue.drain().await, Ok(()));
    }
    while let Some(ended) = runs.join_next().await {
        match ended {
            Ok(left) => left.iter().for_each(|left| left.key.settle()),
            Err(ended) => {
                world.assert_may_end_a_run();
                assert!(ended.into_panic().is::<OnPurpose>(), "{world:?}");
            }
        }
    }
    world.assert_kept(shared);
    world.has_panicked()
}

/// Panics at the first call, at the second, and so on, until no more are made.
fn at_every_call(world: fn(Point, u32, bool) -> bool) {
    for point in POINTS {
        for are_early in [false, true] {
            if are_early && point.breaks_a_contract() {
                continue;
            }
            in_time(move || {
                let panicking = (1..CALLS_MAX).take_while(|nth| world(point, *nth, are_early));
                let panicked = panicking.count();
                let calls = 1..CALLS_MAX as usize - 1;
                assert!(calls.contains(&panicked), "{point:?}: {panicked} panics");
            });
        }
    }
}

#[test]
fn whatever_panics_leaves_threads_a_queue_that_works() {
    at_every_call(threads);
}

#[test]
fn whatever_panics_leaves_tasks_a_queue_that_works() {
    at_every_call(|point, nth, are_early| {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(tasks(point, nth, are_early))
    });
}
