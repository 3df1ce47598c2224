//! What is logged with the feature `log`.
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::sync::Mutex;

use log::{Log, Metadata, Record};
use requeue_embassy::limiter::default_item_based;
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::NoopRawMutex;
use requeue_embassy::{Rejected, WaitError, WorkQueue};
use requeue_test_tools::by_hand;

static LINES: Lines = Lines(Mutex::new(Vec::new()));

struct Lines(Mutex<Vec<String>>);

impl Log for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        self.0.lock().unwrap().push(record.args().to_string());
    }

    fn flush(&self) {}
}

#[test]
fn a_call_that_finds_no_place_is_logged_whatever_it_waits_for() {
    log::set_logger(&LINES).unwrap();
    log::set_max_level(log::LevelFilter::Trace);
    type Sensors =
        WorkQueue<NoopRawMutex, u16, 1, Plain, requeue_embassy::limiter::DefaultItemBased, 1>;
    let queue: Sensors = WorkQueue::new(default_item_based());
    queue.add(17).unwrap();
    let _active = queue.try_get().unwrap();
    let mut waits = by_hand(queue.get());
    assert!(waits.is_pending());
    assert!(LINES.0.lock().unwrap().is_empty());

    assert_eq!(
        by_hand(queue.get()).ready().unwrap_err(),
        WaitError::TooManyWaiters
    );
    assert_eq!(
        by_hand(queue.wait_idle()).ready(),
        Err(WaitError::TooManyWaiters)
    );
    assert_eq!(
        by_hand(queue.add_wait(18)).ready(),
        Err(Rejected::TooManyWaiters(18))
    );
    assert_eq!(
        by_hand(queue.drain()).ready(),
        Err(WaitError::TooManyWaiters)
    );
    let lines = LINES.0.lock().unwrap();
    assert_eq!(*lines, ["more than 1 calls wait for one queue"; 4]);
}
