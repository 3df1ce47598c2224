//! Timers of embassy-time, whose mock driver a test advances. The driver is one for the process, so
//! the tests of this file run one after another.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use embassy_sync::signal::Signal;
use embassy_time::MockDriver;
use requeue_embassy::Instant;
use requeue_embassy::backoff::{Backoff, BackoffUntil, no_jitter};
use requeue_embassy::binding::{AsShared, timeout_at};
use requeue_embassy::limiter::NoLimit;
use requeue_embassy::metrics::{Metrics, Times};
use requeue_embassy::priority::Plain;
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_embassy::{Guard, Queue, QueueClock, WaitError, WorkQueue, backoff_until};
use requeue_test_tools::by_hand;

type Keys = WorkQueue<CriticalSectionRawMutex, u32, 8, Plain, NoLimit>;

const TICK: Duration = Duration::from_micros(1);
const SECOND: Duration = Duration::from_secs(1);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The driver, for one test alone, with all alarms gone.
struct Alone {
    driver: &'static MockDriver,
    _alone: MutexGuard<'static, ()>,
}

fn alone() -> Alone {
    static DRIVER: Mutex<()> = Mutex::new(());
    let alone = DRIVER.lock().unwrap_or_else(|failed| failed.into_inner());
    let driver = MockDriver::get();
    driver.reset();
    Alone {
        driver,
        _alone: alone,
    }
}

impl Alone {
    fn advance(&self, by: Duration) {
        let ticks = by.as_micros().try_into().unwrap();
        self.driver
            .advance(embassy_time::Duration::from_ticks(ticks));
    }
}

fn finish(guard: Guard<'_, CriticalSectionRawMutex, u32, 8, Plain, NoLimit>) -> u32 {
    let key = *guard;
    guard.success();
    key
}

#[test]
fn a_key_comes_when_its_delay_is_over_and_not_a_tick_before() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, SECOND).unwrap();
    let mut getter = by_hand(async { queue.get().await.map(finish) });
    assert!(getter.is_pending());
    time.advance(SECOND - TICK);
    assert_eq!(getter.wakes(), 0);
    time.advance(TICK);
    assert_eq!(getter.wakes(), 1);
    assert_eq!(getter.ready(), Ok(1));
}

#[test]
fn a_delay_that_ends_between_two_ticks_ends_with_the_later() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, TICK + Duration::from_nanos(1)).unwrap();
    let mut getter = by_hand(async { queue.get().await.map(finish) });
    assert!(getter.is_pending());
    time.advance(TICK);
    assert_eq!(getter.wakes(), 0);
    assert!(getter.is_pending());
    time.advance(TICK);
    assert_eq!(getter.wakes(), 1);
    assert_eq!(getter.ready(), Ok(1));
}

#[test]
fn of_many_that_wait_one_is_woken_by_a_deadline() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, SECOND).unwrap();
    let get = || by_hand(async { queue.get().await.map(finish) });
    let mut getters = [get(), get(), get()];
    for getter in &mut getters {
        assert!(getter.is_pending());
    }
    time.advance(SECOND);
    let wakes = getters.each_ref().map(|getter| getter.wakes());
    assert_eq!(wakes, [1, 0, 0], "one timer for the queue");
    assert_eq!(getters[0].ready(), Ok(1));

    // With no deadline left, no call has a timer.
    time.advance(YEAR);
    let wakes = getters.each_ref().map(|getter| getter.wakes());
    assert_eq!(wakes, [1, 0, 0]);
}

#[test]
fn of_two_keys_that_come_at_once_the_second_wakes_another() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, SECOND).unwrap();
    queue.add_after(2, SECOND).unwrap();
    let mut owner = by_hand(async { queue.get().await.map(finish) });
    let mut other = by_hand(async { queue.get().await.map(finish) });
    assert!(owner.is_pending() && other.is_pending());
    time.advance(SECOND);
    assert_eq!((owner.wakes(), other.wakes()), (1, 0));
    // It is still in the list, because only its timer has woken it. The wake goes to the other.
    assert_eq!(owner.ready(), Ok(1));
    assert_eq!((owner.wakes(), other.wakes()), (1, 1));
    assert_eq!(other.ready(), Ok(2));
}

#[test]
fn a_deadline_that_moves_forward_moves_the_timer() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, 60 * SECOND).unwrap();
    let mut getter = by_hand(async { queue.get().await.map(finish) });
    assert!(getter.is_pending());
    queue.add_after(2, SECOND).unwrap();
    assert_eq!(getter.wakes(), 1, "no call watches the new deadline yet");
    assert!(getter.is_pending());
    time.advance(SECOND);
    assert_eq!(getter.wakes(), 2);
    assert_eq!(getter.ready(), Ok(2));
}

#[test]
fn the_watch_is_passed_on_with_its_timer() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, SECOND).unwrap();
    let mut owner = by_hand(async { queue.get().await.map(finish) });
    let mut other = by_hand(async { queue.get().await.map(finish) });
    assert!(owner.is_pending() && other.is_pending());
    drop(owner);
    assert_eq!(other.wakes(), 1);
    assert!(other.is_pending());
    time.advance(SECOND);
    assert_eq!(other.wakes(), 2);
    assert_eq!(other.ready(), Ok(1));
}

#[test]
fn a_timer_owner_that_moves_to_another_task_is_woken_there() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, SECOND).unwrap();
    let mut owner = by_hand(async { queue.get().await.map(finish) });
    assert!(owner.is_pending());
    assert!(owner.poll_again().is_pending());
    time.advance(SECOND);
    assert_eq!(owner.wakes(), 1, "the timer knows of it too");
    assert_eq!(owner.ready(), Ok(1));
}

#[test]
fn a_timeout_has_a_timer_of_its_own() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, 2 * SECOND).unwrap();
    let mut late = by_hand(async { queue.get_timeout(SECOND).await.map(finish) });
    assert!(late.is_pending());
    time.advance(SECOND);
    assert_eq!(late.wakes(), 1);
    assert_eq!(late.ready(), Err(WaitError::TimedOut));

    let deadline = QueueClock::at(embassy_time::Instant::from_secs(2));
    let mut in_time = by_hand(async { queue.get_deadline(deadline).await.map(finish) });
    assert!(in_time.is_pending());
    time.advance(SECOND);
    assert_eq!(in_time.ready(), Ok(1), "a key is handed out all the same");
}

#[test]
fn a_delay_without_end_sets_no_timer() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add_after(1, Duration::MAX).unwrap();
    let mut getter = by_hand(queue.get_timeout(Duration::MAX));
    assert!(getter.is_pending());
    time.advance(100 * YEAR);
    assert_eq!(getter.wakes(), 0);
    assert!(getter.is_pending());
}

#[test]
fn a_drain_is_waited_for_no_longer_than_asked() {
    let time = alone();
    let queue = Keys::new(NoLimit);
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    let deadline = Some(queue.now() + SECOND);
    let mut drain = by_hand(timeout_at(queue.clock(), deadline, queue.drain()));
    assert!(drain.is_pending());
    time.advance(SECOND - TICK);
    assert_eq!(drain.wakes(), 0);
    time.advance(TICK);
    assert_eq!(drain.wakes(), 1);
    assert_eq!(drain.ready(), None);
    finish(guard);
}

#[test]
fn a_loop_pauses_as_its_backoff_says_and_stops_in_the_middle_of_a_pause() {
    let time = alone();
    let backoff = Backoff {
        duration: SECOND,
        factor: 2.0,
        steps: 5,
        ..Backoff::default()
    };
    let stop: Signal<CriticalSectionRawMutex, ()> = Signal::new();
    let runs = std::cell::RefCell::new(Vec::new());
    let mut poller = by_hand(backoff_until(
        BackoffUntil::sliding(backoff.delay_func(no_jitter)),
        &QueueClock,
        stop.wait(),
        async || runs.borrow_mut().push(QueueClock.now()),
    ));
    assert!(poller.is_pending());
    for seconds in [1, 2] {
        time.advance(seconds * SECOND - TICK);
        assert!(poller.is_pending());
        time.advance(TICK);
        assert!(poller.is_pending());
    }
    let at = [0, 1, 3].map(|seconds| Instant::EPOCH + seconds * SECOND);
    assert_eq!(*runs.borrow(), at);
    let before = poller.wakes();
    stop.signal(());
    assert_eq!(poller.wakes(), before + 1);
    poller.ready();
    assert_eq!(runs.borrow().len(), 3);
}

#[test]
fn a_loop_that_is_stopped_before_it_begins_does_nothing() {
    let _time = alone();
    let mut runs = 0;
    let stopped = std::future::ready(());
    let backoff = BackoffUntil::sliding(Backoff::default().delay_func(no_jitter));
    by_hand(backoff_until(backoff, &QueueClock, stopped, async || {
        runs += 1;
    }))
    .ready();
    assert_eq!(runs, 0);
}

#[test]
fn a_loop_that_is_dropped_ends_within_its_run() {
    let _time = alone();
    let never = std::future::pending::<()>;
    let mut begun = 0;
    {
        let backoff = BackoffUntil::sliding(Backoff::default().delay_func(no_jitter));
        let work = async || {
            begun += 1;
            std::future::pending::<()>().await;
        };
        let mut poller = by_hand(backoff_until(backoff, &QueueClock, never(), work));
        assert!(poller.is_pending() && poller.is_pending());
    }
    assert_eq!(begun, 1);
}

#[test]
fn gauges_are_reported_until_shutdown() {
    #[derive(Default)]
    struct Longest(Duration);

    impl Metrics for Longest {
        type Timestamps = Times;

        fn longest_running(&mut self, longest: Duration) {
            self.0 = longest;
        }
    }

    let time = alone();
    let queue: WorkQueue<CriticalSectionRawMutex, u32, 8, Plain, NoLimit, 3, (Longest,)> =
        WorkQueue::from_queue(Queue::with_metrics(NoLimit, Longest::default()), QueueClock);
    let longest = || queue.as_shared().look(|queue| queue.metrics().0);
    queue.add(1).unwrap();
    let guard = queue.try_get().unwrap();
    let mut reports = by_hand(queue.report_running_every(SECOND));
    assert!(reports.is_pending());
    time.advance(SECOND);
    assert!(reports.is_pending());
    assert_eq!(longest(), SECOND);
    drop(by_hand(queue.report_running_every(SECOND)));
    guard.success();
    queue.shut_down();
    time.advance(SECOND);
    reports.ready();
}

/// A task that never waits lets no other task run.
#[test]
fn gauges_without_a_period_are_reported_every_millisecond() {
    #[derive(Default)]
    struct Reports(u32);

    impl Metrics for Reports {
        type Timestamps = Times;

        fn longest_running(&mut self, _: Duration) {
            self.0 += 1;
            assert!(self.0 < 10, "reports all the time");
        }
    }

    let time = alone();
    let queue: WorkQueue<CriticalSectionRawMutex, u32, 8, Plain, NoLimit, 3, (Reports,)> =
        WorkQueue::from_queue(Queue::with_metrics(NoLimit, Reports::default()), QueueClock);
    let count = || queue.as_shared().look(|queue| queue.metrics().0);
    let mut reports = by_hand(queue.report_running_every(Duration::ZERO));
    assert!(reports.is_pending());
    assert_eq!(count(), 1);
    time.advance(Duration::from_millis(1));
    assert!(reports.is_pending());
    assert_eq!(count(), 2);
}
