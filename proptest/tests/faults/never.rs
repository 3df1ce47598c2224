//! A limiter by which a key never runs again.

use std::time::Duration;

use requeue_core::binding::{AsShared, Getter, Host, Next, Shared};
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Added, Instant, Queue};
use requeue_embassy::raw::NoopRawMutex;

/// Never.
struct Never;

impl RateLimiter for Never {
    type Record = u32;

    fn when(&mut self, record: &mut u32, _: Instant) -> Duration {
        *record += 1;
        Duration::MAX
    }

    fn failures(&self, record: &u32) -> u32 {
        *record
    }

    fn set_failures(&self, failures: &mut u32, count: u32) {
        *failures = count;
    }
}

/// `advance` moves the clock as far as it goes.
fn is_held_back<H>(queue: &Shared<H>, advance: impl FnOnce())
where
    H: Host<Key = u32, Limiter = Never>,
{
    let limited = queue.add_rate_limited(1).unwrap();
    assert_eq!(
        (limited.delay, limited.added),
        (Duration::MAX, Added::Delayed)
    );

    let mut getter = Getter::new();
    assert_eq!(
        queue.with(|session| session.poll_get(&mut getter)),
        Next::Wait { until: None },
        "no timer"
    );
    assert_eq!(queue.as_shared().look(|queue| queue.next_deadline()), None);
    advance();
    assert_eq!(
        queue.with(|session| session.poll_get(&mut getter)),
        Next::Wait { until: None },
        "not now, either"
    );
    assert_eq!(queue.state(&1).unwrap().due, Some(Instant::NEVER));
    queue.with(|session| session.leave(&mut getter));

    // The caller that adds it gets it all the same.
    queue.add(1).unwrap();
    queue.try_get().unwrap().release();

    queue.shut_down();
    let left = queue.take_delayed().unwrap();
    assert_eq!((left.key, left.left, left.failures), (1, Duration::MAX, 1));
    assert!(queue.take_delayed().is_none());
    queue.as_shared().look(|queue| queue.assert_valid());
}

const EVER: Duration = Duration::from_nanos(u64::MAX);

#[test]
fn a_key_that_is_held_back_for_ever_is_handed_back_to_threads() {
    let clock = requeue_std::ManualClock::new();
    let parts = requeue_std::WorkQueue::builder().limiter(Never);
    let queue = parts.clock(clock.clone()).build();
    is_held_back(queue.as_shared(), || clock.advance(EVER));
}

#[tokio::test(start_paused = true)]
async fn a_key_that_is_held_back_for_ever_is_handed_back_to_tasks() {
    let queue = requeue_tokio::WorkQueue::builder().limiter(Never).build();
    tokio::time::advance(Duration::from_secs(1_000_000_000)).await;
    is_held_back(queue.as_shared(), || {});
}

#[test]
fn a_key_that_is_held_back_for_ever_is_handed_back_to_embassy() {
    type Keys = requeue_embassy::WorkQueue<
        NoopRawMutex,
        u32,
        4,
        Plain,
        Never,
        3,
        ((), u8, requeue_embassy::ManualClock<NoopRawMutex>),
    >;
    let queue = Keys::from_queue(
        Queue::<_, Plain, _, Fixed<4>>::new(Never),
        requeue_embassy::ManualClock::new(),
    );
    is_held_back(queue.as_shared(), || queue.clock().advance(EVER));
}
