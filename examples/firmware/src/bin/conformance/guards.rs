//! A guard that is dropped unreported counts as failed, on a board as on every other runtime.

use core::future::pending;
use core::pin::pin;
use core::time::Duration;

use requeue_embassy::{ManualClock, Queue, WorkQueue};
use requeue_firmware::println;

use crate::figures::Figures;
use crate::limiter::Limiter;
use crate::player::Keys;
use crate::poll;

const KEY: u8 = 1;
const MILLISECOND: Duration = Duration::from_millis(1);

/// Panics if it is not so.
pub fn check() {
    let clock = ManualClock::new();
    let limiter = Limiter::exponential(MILLISECOND, Duration::MAX);
    // Of the recordings' type, because the smallest board has no flash for another.
    let queue: Keys<'_> =
        WorkQueue::from_queue(Queue::with_metrics(limiter, Figures::default()), &clock);
    queue.add(KEY).expect("room for a key");

    drop(queue.try_get().expect("the key is ready"));
    assert_is_delayed(&queue, 1);

    clock.advance(MILLISECOND);
    {
        let work = async {
            let _guard = queue.get().await;
            pending::<()>().await;
        };
        let mut work = pin!(work);
        assert!(poll(work.as_mut()).is_pending());
        assert_eq!(queue.stats().active, 1, "the task holds the key");
    }
    assert_is_delayed(&queue, 2);

    clock.advance(2 * MILLISECOND);
    let guard = queue.try_get().expect("the second retry is due");
    guard.success();
    assert_eq!(queue.failures(&KEY), 0);
    println!("guards that were dropped, by hand and with their task, counted as failed");
}

fn assert_is_delayed(queue: &Keys<'_>, failures: u32) {
    assert_eq!(queue.failures(&KEY), failures);
    assert_eq!((queue.stats().active, queue.stats().delayed), (0, 1));
}
