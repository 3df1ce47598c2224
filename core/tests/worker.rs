//! When a worker of a `run` takes a key, waits and ends.

use std::cell::Cell;
use std::time::Duration;

use requeue_core::binding::{Clock, Getter, Next, Wake, Work, Worker};
use requeue_core::limiter::NoLimit;
use requeue_core::priority::WithPolicy;
use requeue_core::storage::Fixed;
use requeue_core::{Instant, Policy, Queue};

const SECOND: Duration = Duration::from_secs(1);

type Keys = Queue<u8, WithPolicy, NoLimit, Fixed<8>>;

fn at(seconds: u32) -> Instant {
    Instant::EPOCH + SECOND * seconds
}

/// A clock that stands still and counts how often it is read.
struct Stopped(Instant, Cell<u32>);

impl Clock for Stopped {
    fn now(&self) -> Instant {
        self.1.set(self.1.get() + 1);
        self.0
    }
}

/// Two keys, and a worker that drains for ten seconds.
fn drained_by(policy: Policy) -> (Keys, Worker) {
    let mut queue = Keys::new(NoLimit).with_policy(policy);
    let _ = queue.at(at(0)).add_many([1, 2], |_| {});
    (queue, Worker::new(0).drain_limit(Some(10 * SECOND)))
}

/// A look of the worker at a queue that may not need the time, and so passes none on.
fn look(
    worker: &mut Worker,
    queue: &mut Keys,
    now: Instant,
    getter: &mut Getter,
) -> Next<Work<u8>> {
    let clock = Stopped(now, Cell::new(0));
    let given = if queue.needs_time() {
        now
    } else {
        Instant::EPOCH
    };
    let next = worker.poll_get(1, &mut queue.at(given), &clock, getter);
    assert_eq!(
        clock.1.get(),
        u32::from(queue.is_shutting_down()),
        "it is not read without need"
    );
    next
}

#[test]
fn a_worker_takes_keys_until_the_time_for_draining_is_over() {
    let (mut queue, mut worker) = drained_by(Policy::new());
    let mut take = |queue: &mut Keys, now| {
        let next = look(&mut worker, queue, now, &mut Getter::new());
        match next {
            Next::Work(work) => Some(work),
            Next::Closed => None,
            Next::Wait { .. } => unreachable!("a key is ready"),
        }
    };
    queue.at(at(5)).shut_down();
    let just_before = Instant::from_nanos(at(15).as_nanos() - 1);
    let work = take(&mut queue, just_before).unwrap();
    assert_eq!(take(&mut queue, at(15)), None);
    queue.at(at(15)).release(work.ticket);
    let left = queue.at(at(0)).take_ready().unwrap();
    assert_eq!(left.key, 2, "it is still ready");
}

#[test]
fn a_worker_that_waits_looks_again_when_the_time_for_draining_is_over() {
    let (mut queue, mut worker) = drained_by(Policy::new().run_rate(0.001, 1));
    let mut getter = Getter::new();
    let first = look(&mut worker, &mut queue, at(0), &mut getter);
    assert!(matches!(first, Next::Work(_)));
    let token = Some(at(1000));
    let next = look(&mut worker, &mut queue, at(1), &mut getter);
    assert_eq!(next, Next::Wait { until: token });

    let mut session = queue.at(at(5));
    session.shut_down();
    assert_eq!(session.close(), Wake::ALL);
    let end = Some(at(15));
    let next = look(&mut worker, &mut queue, at(5), &mut getter);
    assert_eq!(next, Next::Wait { until: end });
    let mut other = Getter::new();
    let next = queue.at(at(5)).poll_get(&mut other);
    assert_eq!(next, Next::Wait { until: None }, "the worker is the timer");
    let left = look(&mut worker, &mut queue, at(15), &mut getter);
    assert_eq!(left, Next::Closed);
    assert_eq!(
        queue.at(at(15)).close(),
        Wake::ONE,
        "another call becomes the timer"
    );
    let next = queue.at(at(15)).poll_get(&mut other);
    assert_eq!(next, Next::Wait { until: token });
    queue.at(at(0)).leave(&mut other);
    queue.assert_valid();
}

#[test]
fn a_rate_of_zero_has_no_next_token_to_wait_for() {
    let mut queue = Keys::new(NoLimit).with_policy(Policy::new().run_rate(0.0, 1));
    let _ = queue.at(at(0)).add_many([1, 2], |_| {});
    assert!(queue.at(at(0)).try_get().is_some());
    assert_eq!(queue.next_deadline(), None);
    assert!(queue.at(Instant::NEVER).try_get().is_none());
}

#[test]
fn a_limit_without_end_ends_no_wait() {
    let mut queue = Keys::new(NoLimit).with_policy(Policy::new().run_rate(0.0, 0));
    let _ = queue.at(at(0)).add(1);
    queue.at(at(5)).shut_down();
    let mut worker = Worker::new(0).drain_limit(Some(Duration::MAX));
    let mut getter = Getter::new();
    let next = look(&mut worker, &mut queue, at(6), &mut getter);
    let Next::Wait { until } = next else {
        unreachable!("it has no token: {next:?}")
    };
    assert!(until.is_none_or(Instant::is_never));
    queue.at(at(0)).leave(&mut getter);
}
