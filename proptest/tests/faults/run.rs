//! Workers whose own code panics, or that of their key, their limiter or their metrics, each at
//! every call in turn.

use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use requeue_core::binding::Reporter;
use requeue_core::binding::{AsShared, Host, Shared};
use requeue_core::limiter::RateLimiter;
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant, Queue, Workers};
use requeue_test_tools::in_time;
use tokio::runtime::Builder;
use tokio::task::{JoinSet, yield_now};

const KEYS: u8 = 6;
const WORKERS: usize = 3;
/// More calls of one kind than a world makes.
const CALLS_MAX: u32 = 200;

/// Where it panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    BeforeAwait,
    BetweenAwaits,
    AfterAwaits,
    GiveUp,
    Clone,
    Drop,
    /// These two must not panic. If they do, the active key may stay there.
    Limiter,
    Metrics,
}

impl Point {
    fn breaks_a_contract(self) -> bool {
        matches!(self, Self::Limiter | Self::Metrics)
    }

    /// What is the worker's own is caught: no other worker notices.
    fn is_caught(self) -> bool {
        matches!(
            self,
            Self::BeforeAwait | Self::BetweenAwaits | Self::AfterAwaits | Self::GiveUp
        )
    }
}

/// What it panics with, without a message on the screen.
#[derive(Debug)]
struct OnPurpose;

#[derive(Debug)]
struct World {
    point: Point,
    /// Which of its calls panics.
    nth: u32,
    calls: AtomicU32,
    is_armed: AtomicBool,
    has_panicked: AtomicBool,
    has_failed: [AtomicBool; KEYS as usize],
    /// Done, or given up.
    is_settled: [AtomicBool; KEYS as usize],
}

impl World {
    fn new(point: Point, nth: u32) -> Arc<Self> {
        Arc::new(Self {
            point,
            nth,
            calls: AtomicU32::new(0),
            is_armed: AtomicBool::new(false),
            has_panicked: AtomicBool::new(false),
            has_failed: Default::default(),
            is_settled: Default::default(),
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

    fn keys(self: &Arc<Self>) -> impl Iterator<Item = Key> {
        (0..KEYS).map(|number| Key(number, Arc::clone(self)))
    }

    fn workers(self: &Arc<Self>) -> Workers<'static, Key, &'static str> {
        let world = Arc::clone(self);
        Workers::new(WORKERS)
            .max_retries(2)
            .on_give_up(move |key: &Key, _| {
                world.is_settled[usize::from(key.0)].store(true, Ordering::SeqCst);
                world.pass(Point::GiveUp);
            })
    }

    fn pass(&self, point: Point) {
        let counts = point == self.point && self.is_armed.load(Ordering::SeqCst);
        if counts
            && !thread::panicking()
            && self.calls.fetch_add(1, Ordering::SeqCst) + 1 == self.nth
        {
            self.has_panicked.store(true, Ordering::SeqCst);
            resume_unwind(Box::new(OnPurpose));
        }
    }

    /// How a run ends: one key fails once, one each time.
    fn end(&self, key: u8) -> Result<Action, &'static str> {
        self.pass(Point::AfterAwaits);
        let has_failed = self.has_failed[usize::from(key)].swap(true, Ordering::SeqCst);
        if key == 2 || (key == 1 && !has_failed) {
            return Err("on purpose");
        }
        self.is_settled[usize::from(key)].store(true, Ordering::SeqCst);
        Ok(Action::Success)
    }

    fn unsettled(&self) -> usize {
        let settled = self.is_settled.iter();
        settled.filter(|key| !key.load(Ordering::SeqCst)).count()
    }

    fn arm(&self, is_armed: bool) {
        self.is_armed.store(is_armed, Ordering::SeqCst);
    }

    /// Others go on with all there is to do, but for a key that foreign code has kept.
    fn is_over(&self) -> bool {
        let has_panicked = self.has_panicked.load(Ordering::SeqCst);
        let kept = usize::from(has_panicked && self.point.breaks_a_contract());
        self.unsettled() <= kept
    }

    fn assert_over<H: Host>(&self, queue: &Shared<H>) {
        queue.as_shared().look(|queue| {
            queue.assert_valid();
            let kept = usize::from(self.point.breaks_a_contract());
            assert!(queue.stats().active <= kept, "{self:?}");
        });
    }

    fn has_panicked(&self) -> bool {
        self.has_panicked.load(Ordering::SeqCst)
    }
}

#[derive(Debug)]
struct Key(u8, Arc<World>);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl Clone for Key {
    fn clone(&self) -> Self {
        self.1.pass(Point::Clone);
        Self(self.0, Arc::clone(&self.1))
    }
}

impl Drop for Key {
    fn drop(&mut self) {
        self.1.pass(Point::Drop);
    }
}

/// A limiter that lets a key come back at once, and metrics that measure nothing.
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

/// Returns whether anything panicked.
fn threads(point: Point, nth: u32) -> bool {
    let world = World::new(point, nth);
    let queue = requeue_std::WorkQueue::from(world.queue());
    assert!(queue.add_many(world.keys()).rejected.is_empty());
    world.arm(true);
    let reconcile = |key: &Key| {
        world.pass(Point::BeforeAwait);
        thread::yield_now();
        world.pass(Point::BetweenAwaits);
        thread::yield_now();
        world.end(key.0)
    };
    let run = || catch_unwind(AssertUnwindSafe(|| queue.run(world.workers(), reconcile)));
    thread::scope(|scope| {
        let run = scope.spawn(run);
        while !world.is_over() {
            thread::yield_now();
        }
        world.arm(false);
        if point.breaks_a_contract() {
            queue.shut_down();
        } else {
            assert_eq!(queue.drain(), Ok(()));
        }
        if let Err(panic) = run.join().unwrap() {
            assert!(!point.is_caught(), "{world:?}");
            assert!(panic.is::<OnPurpose>() || panic.is::<&str>(), "{world:?}");
        }
    });
    world.assert_over(queue.as_shared());
    world.has_panicked()
}

/// A run that a panic has ended is begun again, as a program would.
async fn tasks(point: Point, nth: u32) -> bool {
    let world = World::new(point, nth);
    let queue = requeue_tokio::WorkQueue::from(world.queue());
    assert!(queue.add_many(world.keys()).rejected.is_empty());
    world.arm(true);
    let reconcile = |key: Key| async move {
        let world = &*key.1;
        world.pass(Point::BeforeAwait);
        yield_now().await;
        world.pass(Point::BetweenAwaits);
        yield_now().await;
        world.end(key.0)
    };
    let mut runs = JoinSet::new();
    let begin = || queue.run(world.workers(), reconcile);
    runs.spawn(begin());
    while !world.is_over() {
        yield_now().await;
        if let Some(ended) = runs.try_join_next() {
            let panic = ended.unwrap_err().into_panic();
            assert!(!point.is_caught(), "{world:?}");
            assert!(panic.is::<OnPurpose>(), "{world:?}");
            runs.spawn(begin());
        }
    }
    world.arm(false);
    if point.breaks_a_contract() {
        queue.shut_down();
    } else {
        assert_eq!(queue.drain().await, Ok(()));
    }
    while let Some(ended) = runs.join_next().await {
        if let Err(ended) = ended {
            assert!(!point.is_caught(), "{world:?}");
            assert!(ended.into_panic().is::<OnPurpose>(), "{world:?}");
        }
    }
    world.assert_over(queue.as_shared());
    world.has_panicked()
}

/// Panics at the first call, at the second, and so on, until no more are made.
fn at_every_call(point: Point, world: fn(Point, u32) -> bool) {
    in_time(move || {
        let panicked = (1..CALLS_MAX).take_while(|nth| world(point, *nth)).count();
        let calls = 1..CALLS_MAX as usize - 1;
        assert!(
            calls.contains(&panicked),
            "{point:?} panicked {panicked} times"
        );
    });
}

const POINTS: [Point; 8] = [
    Point::BeforeAwait,
    Point::BetweenAwaits,
    Point::AfterAwaits,
    Point::GiveUp,
    Point::Clone,
    Point::Drop,
    Point::Limiter,
    Point::Metrics,
];

#[test]
fn whatever_panics_in_a_run_of_threads_others_go_on() {
    POINTS
        .into_iter()
        .for_each(|point| at_every_call(point, threads));
}

#[test]
fn whatever_panics_in_a_run_of_tasks_others_go_on() {
    let world = |point, nth| {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(tasks(point, nth))
    };
    POINTS
        .into_iter()
        .for_each(|point| at_every_call(point, world));
}
