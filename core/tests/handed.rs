//! Guards and batches, as whoever works on keys sees them.
#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::{Cell, RefCell};
use std::time::Duration;

use requeue_core::{
    Batch, Clock, Getter, Growable, Guard, Instant, Lock, Metrics, NoLimit, NotActive, Queue,
    Times, Waker, WorkQueue, Workers,
};

/// Metrics that keep times, so that a guard knows how long its key has waited.
#[derive(Default)]
struct Stopwatch;

impl Metrics for Stopwatch {
    type Stamps = Times;
}

type State = Queue<u32, Growable, NoLimit, Stopwatch>;

struct Single(RefCell<State>);

impl Lock for Single {
    type State = State;

    fn with<R>(&self, work: impl FnOnce(&mut State) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

#[derive(Default)]
struct Hand(Cell<Instant>);

impl Clock for Hand {
    fn now(&self) -> Instant {
        self.0.get()
    }
}

struct Restless;

impl Waker for Restless {
    fn wake_one(&self) {}
    fn wake_all(&self) {}
}

type Keys = WorkQueue<Single, Hand, Restless>;

fn queue() -> Keys {
    let state = Queue::builder().limiter(NoLimit).metrics(Stopwatch).build();
    WorkQueue::from_parts(Single(RefCell::new(state)), Hand::default(), Restless)
}

fn batch(queue: &Keys) -> Batch<u32, &Keys> {
    let mut work = Vec::new();
    let mut getter = Getter::new();
    let _ = queue.act(|queue, now| queue.get_many(9, now, &mut getter, |one| work.push(one)));
    Batch::new(work, queue)
}

#[test]
fn a_guard_says_how_long_its_key_has_waited() {
    let queue = queue();
    queue.add(7).unwrap();
    queue.clock().0.set(Instant::from_nanos(1500));
    let guard = queue.try_get().unwrap();
    assert_eq!(guard.waited(), Duration::from_nanos(1500));
}

#[test]
fn a_batch_says_whether_a_key_was_completed_by_name() {
    let queue = queue();
    queue.add_many([1, 2, 3], |_| {});
    let handed = batch(&queue);
    assert!(!handed.is_empty());
    queue.done(&2).unwrap();
    assert_eq!(handed.done(), Err(NotActive));
    let active = queue.lock().with(|queue| queue.active_len());
    assert_eq!(active, 0, "the others are completed all the same");

    queue.add(1).unwrap();
    assert_eq!(batch(&queue).done(), Ok(()));
    assert!(batch(&queue).is_empty());
}

#[test]
fn what_is_handed_out_and_what_hands_it_out_can_be_shown() {
    let queue = queue();
    queue.add_many([1, 2, 3], |_| {});
    let guard: Guard<u32, _> = queue.try_get().unwrap();
    assert_eq!(format!("{guard:?}"), "Guard { key: 1, requeues: 0, .. }");
    assert_eq!(format!("{:?}", batch(&queue)), "[2, 3]");

    let workers: Workers<'_, u32, String> = Workers::new(4);
    assert!(format!("{workers:?}").starts_with("Workers { count: 4, retries: "));
    let told = NotActive.to_string();
    assert_eq!(
        told,
        "the key is not being worked on, or not under this ticket"
    );
}
