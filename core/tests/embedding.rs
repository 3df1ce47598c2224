//! What a runtime and a firmware rely on: a queue in a `static`, a clock that is read only when it
//! matters, and keys whose code panics.
#![cfg(feature = "alloc")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::Duration;

use requeue_core::{
    Added, Clock, Completion, Fixed, Getter, Growable, Instant, ItemExponentialFailure, Lock,
    Metrics, Next, NoLimit, NoMetrics, Queue, Rejected, Storage, Times, Waker, WorkQueue,
    default_item_based,
};

/// The lock of a bare loop.
struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

/// A lock that may stand in a `static`.
struct Shared<T>(Mutex<T>);

impl<T> Lock for Shared<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap())
    }
}

/// A clock that counts how often it is read.
#[derive(Default)]
struct Counting(Cell<u32>);

impl Clock for Counting {
    fn now(&self) -> Instant {
        self.0.set(self.0.get() + 1);
        Instant::from_nanos(1)
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::EPOCH
    }
}

struct Restless;

impl Waker for Restless {
    fn wake_one(&self) {}
    fn wake_all(&self) {}
}

type Sensors = Queue<u16, Fixed<4>, ItemExponentialFailure>;

static SENSORS: WorkQueue<Shared<Sensors>, Stopped, Restless> = WorkQueue::from_parts(
    Shared(Mutex::new(Queue::new(default_item_based()))),
    Stopped,
    Restless,
);

#[test]
fn a_queue_stands_in_a_static() {
    for sensor in 0..4 {
        assert_eq!(SENSORS.add(sensor), Ok(Added::Ready));
    }
    assert_eq!(SENSORS.add(4), Err(Rejected::Full(4)));
    assert_eq!(SENSORS.add(3), Ok(Added::Coalesced));
    assert_eq!(*SENSORS.try_get().unwrap(), 0);
    assert_eq!(SENSORS.add(4), Ok(Added::Ready), "the guard was dropped");
}

type Counted<M> = WorkQueue<Single<Queue<u8, Growable, NoLimit, M>>, Counting, Restless>;

fn with_counting_clock<M: Metrics>(metrics: M) -> Counted<M> {
    let queue = Queue::builder().limiter(NoLimit).metrics(metrics).build();
    WorkQueue::from_parts(Single(RefCell::new(queue)), Counting::default(), Restless)
}

/// Everything a worker does that needs no time.
fn work_without_time<M: Metrics>(queue: &Counted<M>) {
    queue.add(1).unwrap();
    queue.add_many([2, 3], |_| unreachable!());
    assert_eq!(queue.len(), 3);
    drop(queue.try_get());
    let guard = queue.try_get().unwrap();
    assert!(guard.forget().is_ok());
    assert!(matches!(queue.poll_get(&mut Getter::new()), Next::Work(_)));
    queue.done(&3).unwrap();
    let mut getter = Getter::new();
    assert_eq!(queue.poll_get(&mut getter), Next::Wait { until: None });
    queue.leave(&mut getter);
}

#[test]
fn the_clock_is_not_read_while_nothing_is_delayed() {
    let queue = with_counting_clock(NoMetrics);
    work_without_time(&queue);
    assert_eq!(queue.clock().0.get(), 0);

    queue.add_after(9, Duration::MAX).unwrap();
    assert_eq!(queue.clock().0.get(), 1);
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.clock().0.get(), 2, "something is delayed now");
}

#[test]
fn metrics_that_measure_no_time_are_told_of_none() {
    #[derive(Default)]
    struct Longest(Duration);
    impl Metrics for Longest {
        type Stamps = ();
        fn queue_latency(&mut self, latency: Duration) {
            self.0 = self.0.max(latency);
        }
        fn work_duration(&mut self, duration: Duration) {
            self.0 = self.0.max(duration);
        }
    }
    let queue = with_counting_clock(Longest::default());
    queue.add_after(9, Duration::MAX).unwrap();
    queue.add(1).unwrap();
    drop(queue.try_get());
    assert!(queue.clock().0.get() > 0);
    let longest = queue.lock().with(|queue| queue.metrics().0);
    assert_eq!(longest, Duration::ZERO);
}

#[test]
fn the_clock_is_read_for_metrics_that_measure_time() {
    struct Timed;
    impl Metrics for Timed {
        type Stamps = Times;
    }
    struct Untimed;
    impl Metrics for Untimed {
        type Stamps = ();
    }
    let queue = with_counting_clock(Timed);
    work_without_time(&queue);
    assert!(queue.clock().0.get() > 0);
    let queue = with_counting_clock(Untimed);
    work_without_time(&queue);
    assert_eq!(queue.clock().0.get(), 0);
}

/// A key whose code panics when told so: on the n-th call from now.
#[derive(Debug)]
struct Fragile(u8);

thread_local! {
    static FUSE: Cell<u32> = const { Cell::new(0) };
}

fn burn() {
    let left = FUSE.get();
    FUSE.set(left.saturating_sub(1));
    if left == 1 {
        panic!("on purpose");
    }
}

impl PartialEq for Fragile {
    fn eq(&self, other: &Self) -> bool {
        burn();
        self.0 == other.0
    }
}

impl Eq for Fragile {}

impl Hash for Fragile {
    fn hash<H: Hasher>(&self, state: &mut H) {
        burn();
        state.write_u8(self.0 % 2);
    }
}

impl Clone for Fragile {
    fn clone(&self) -> Self {
        burn();
        Self(self.0)
    }
}

impl Drop for Fragile {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            burn();
        }
    }
}

type Step<S> = fn(&mut Queue<Fragile, S, ItemExponentialFailure>, Instant);

/// One of each operation that runs code of the key's.
fn steps<S: Storage>() -> [Step<S>; 9] {
    [
        |queue, now| drop(queue.add(Fragile(1), now)),
        |queue, now| drop(queue.add(Fragile(3), now)),
        |queue, now| drop(queue.add_after(Fragile(5), Duration::from_nanos(1), now)),
        |queue, now| drop(queue.add_rate_limited(Fragile(7), now)),
        |queue, now| {
            if let Some(work) = queue.try_get(now).value {
                drop(queue.complete(work.ticket, Completion::Retry, now));
            }
        },
        |queue, now| drop(queue.try_get(now)),
        |queue, _| {
            let _ = queue.forget(&Fragile(7));
        },
        |queue, now| {
            let _ = queue.shut_down(now);
            drop(queue.take_ready());
        },
        |queue, now| drop(queue.take_delayed(now)),
    ]
}

/// Whatever call of whatever key's code panics, the queue stays valid and goes on working.
fn survives<S: Storage>(new: fn() -> Queue<Fragile, S, ItemExponentialFailure>) {
    let mut panicked = HashSet::new();
    for fuse in 1..60 {
        let mut queue = new();
        FUSE.set(fuse);
        for (number, step) in steps::<S>().into_iter().enumerate() {
            let now = Instant::from_nanos(number as u64);
            if catch_unwind(AssertUnwindSafe(|| step(&mut queue, now))).is_err() {
                panicked.insert(number);
            }
            let left = FUSE.replace(0);
            queue.assert_valid();
            FUSE.set(left);
        }
        FUSE.set(0);
    }
    let all: HashSet<usize> = (0..steps::<S>().len()).collect();
    assert_eq!(panicked, all, "every operation was made to panic");
}

#[test]
fn a_panic_in_a_keys_code_leaves_the_growable_queue_valid() {
    survives::<Growable>(|| Queue::growable(default_item_based()));
}

#[test]
fn a_panic_in_a_keys_code_leaves_the_fixed_queue_valid() {
    survives::<Fixed<4>>(|| Queue::new(default_item_based()));
}

#[test]
fn keys_behind_one_whose_drop_panics_are_completed_by_name() {
    let now = Instant::EPOCH;
    let mut queue: Queue<Fragile, Growable, _> = Queue::growable(default_item_based());
    let _ = queue.add_many([1, 2, 3].map(Fragile), now, |_| {});
    let work: Vec<_> = std::iter::from_fn(|| queue.try_get(now).value).collect();
    let (keys, tickets): (Vec<_>, Vec<_>) =
        work.into_iter().map(|work| (work.key, work.ticket)).unzip();
    // The second key is the second that the queue drops.
    FUSE.set(2);
    let complete = || {
        queue
            .complete_many(tickets, Completion::Succeeded, now)
            .value
    };
    assert!(catch_unwind(AssertUnwindSafe(complete)).is_err());
    FUSE.set(0);
    assert!(!queue.contains(&keys[1]), "its run is over");
    assert_eq!(queue.active_len(), 1);
    assert_eq!(queue.done_key(&keys[2], now).value, Ok(()));
    assert_eq!(queue.held_len(), 0);
    queue.assert_valid();
}
