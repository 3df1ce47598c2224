//! What a runtime and a firmware rely on: a queue in a `static`, a clock that is read only when it
//! matters, and keys whose code panics.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::task::Waker;
use std::time::Duration;

use crate::common::lock::Single;
use requeue_core::binding::*;
use requeue_core::limiter::{Exponential, NoLimit, default_item_based};
use requeue_core::metrics::{Metrics, Times};
use requeue_core::priority::Plain;
use requeue_core::storage::{Fixed, Growable, Storage};
use requeue_core::{Action, Added, Finished, Instant, Rejected};

/// A lock that can be in a `static`.
struct Locked<T>(Mutex<T>);

impl<T> Lock for Locked<T> {
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

struct Sensors;

impl Host for Sensors {
    type Key = u16;
    type Priorities = Plain;
    type Limiter = Exponential;
    type Storage = Fixed<4>;
    type Metrics = ();
    type Waiters = FixedWaitList<1>;
    type Clock = Stopped;
    type Lock = Locked<State<Self>>;
}

static SENSORS: Shared<Sensors> = Shared::new(
    Locked(Mutex::new(State::new(
        Queue::new(default_item_based()),
        FixedWaitList::new(),
    ))),
    Stopped,
);

#[test]
fn a_queue_can_be_in_a_static() {
    for sensor in 0..4 {
        assert_eq!(SENSORS.add(sensor), Ok(Added::Ready));
    }
    assert_eq!(SENSORS.add(4), Err(Rejected::Full(4)));
    assert_eq!(SENSORS.add(3), Ok(Added::Coalesced));
    let guard = SENSORS.try_get().unwrap();
    assert_eq!(*guard, 0);
    guard.success();
    assert_eq!(SENSORS.add(4), Ok(Added::Ready), "key 0 has left");
}

struct Counts<M>(PhantomData<M>);

impl<M: Metrics> Host for Counts<M> {
    type Key = u8;
    type Priorities = Plain;
    type Limiter = NoLimit;
    type Storage = Growable;
    type Metrics = M;
    type Waiters = GrowableWaitList;
    type Clock = Counting;
    type Lock = Single<State<Self>>;
}

type Counted<M> = Shared<Counts<M>>;

fn with_counting_clock<M: Metrics>(metrics: M) -> Counted<M> {
    let queue = Queue::builder().limiter(NoLimit).report_to(metrics).build();
    let state = State::new(queue, GrowableWaitList::new());
    Shared::new(Single::new(state), Counting::default())
}

/// Everything a worker does that needs no time.
fn work_without_time<M: Metrics>(queue: &Counted<M>) {
    let look = |wait: &mut Wait<_, _>| {
        wait.look(Waker::noop(), None, |session, getter| {
            session.poll_get(getter)
        })
    };
    queue.add(1).unwrap();
    queue.add_many([2, 3, 4], |_| unreachable!());
    assert_eq!(queue.len(), 4);
    queue.try_get().unwrap().release();
    let guard = queue.try_get().unwrap();
    let Look::Done(Ok(_)) = look(&mut Wait::after(guard, Action::Success, queue)) else {
        panic!("key 3 is ready");
    };
    assert!(matches!(look(&mut Wait::for_key(queue)), Look::Done(Ok(_))));
    assert_eq!(queue.release_key(&3), Finished::Idle);
    assert_eq!(queue.release_key(&4), Finished::Idle);
    let mut wait = Wait::for_key(queue);
    assert_eq!(look(&mut wait), Look::Sleep { until: None });
}

#[test]
fn the_clock_is_not_read_while_nothing_is_delayed() {
    let queue = with_counting_clock(());
    work_without_time(&queue);
    assert_eq!(queue.clock().0.get(), 0);

    queue.add_after(9, Duration::MAX).unwrap();
    assert_eq!(queue.clock().0.get(), 1);
    assert_eq!(queue.len(), 0);
    assert_eq!(queue.clock().0.get(), 2, "something is delayed now");
}

#[test]
fn metrics_that_measure_no_time_receive_none() {
    #[derive(Default)]
    struct Longest(Duration);
    impl Metrics for Longest {
        type Timestamps = ();
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
    queue.try_get().unwrap().release();
    assert!(queue.clock().0.get() > 0);
    let longest = queue.lock().with(|state| state.queue().metrics().0);
    assert_eq!(longest, Duration::ZERO);
}

#[test]
fn the_clock_is_read_for_metrics_that_measure_time() {
    struct Timed;
    impl Metrics for Timed {
        type Timestamps = Times;
    }
    struct Untimed;
    impl Metrics for Untimed {
        type Timestamps = ();
    }
    let queue = with_counting_clock(Timed);
    work_without_time(&queue);
    assert!(queue.clock().0.get() > 0);
    let queue = with_counting_clock(Untimed);
    work_without_time(&queue);
    assert_eq!(queue.clock().0.get(), 0);
}

/// A key whose code panics when the fuse burns down: on the n-th call from now.
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

type Operation<S> = fn(&mut Queue<Fragile, Plain, Exponential, S>, Instant);

/// One of each operation that runs a key's code.
fn operations<S: Storage>() -> [Operation<S>; 9] {
    [
        |queue, now| drop(queue.at(now).add(Fragile(1))),
        |queue, now| drop(queue.at(now).add(Fragile(3))),
        |queue, now| drop(queue.at(now).add_after(Fragile(5), Duration::from_nanos(1))),
        |queue, now| drop(queue.at(now).add_rate_limited(Fragile(7))),
        |queue, now| {
            if let Some(work) = queue.at(now).try_get() {
                queue.at(now).finish(work.ticket, Action::Retry);
            }
        },
        |queue, now| drop(queue.at(now).try_get()),
        |queue, _| {
            let _ = queue.at(Instant::EPOCH).forget(&Fragile(7));
        },
        |queue, now| {
            queue.at(now).shut_down();
            drop(queue.at(now).take_ready());
        },
        |queue, now| drop(queue.at(now).take_delayed()),
    ]
}

/// Whichever call of a key's code panics, the queue stays valid and goes on working.
fn survives<S: Storage>(new: fn() -> Queue<Fragile, Plain, Exponential, S>) {
    let mut panicked = HashSet::new();
    for fuse in 1..60 {
        let mut queue = new();
        FUSE.set(fuse);
        for (number, operation) in operations::<S>().into_iter().enumerate() {
            let now = Instant::from_nanos(number as u64);
            if catch_unwind(AssertUnwindSafe(|| operation(&mut queue, now))).is_err() {
                panicked.insert(number);
            }
            let left = FUSE.replace(0);
            queue.assert_valid();
            FUSE.set(left);
        }
        FUSE.set(0);
    }
    let all: HashSet<usize> = (0..operations::<S>().len()).collect();
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
fn runs_after_one_whose_drop_panics_are_ended_by_their_keys() {
    let now = Instant::EPOCH;
    let mut queue: Queue<Fragile, Plain, _, Growable> = Queue::growable(default_item_based());
    let _ = queue.at(now).add_many([1, 2, 3].map(Fragile), |_| {});
    let work: Vec<_> = std::iter::from_fn(|| queue.at(now).try_get()).collect();
    let (keys, tickets): (Vec<_>, Vec<_>) =
        work.into_iter().map(|work| (work.key, work.ticket)).unzip();
    // The second key is the second that the queue drops.
    FUSE.set(2);
    let finish = || queue.at(now).finish_many(tickets, Action::Success);
    assert!(catch_unwind(AssertUnwindSafe(finish)).is_err());
    FUSE.set(0);
    assert!(!queue.contains(&keys[1]), "its run is over");
    assert_eq!(queue.stats().active, 1);
    assert_eq!(queue.at(now).release_key(&keys[2]), Finished::Idle);
    assert_eq!(queue.stats().total, 0);
    queue.assert_valid();
}
