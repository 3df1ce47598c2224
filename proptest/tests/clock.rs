//! Calls that wait on a clock that is wrong, or goes back: they sleep, and look only when there is a
//! reason to.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::thread;
use std::time::Duration;

use requeue_core::binding::{AsShared, Clock, Timer};
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::{Instant, Queue};
use requeue_embassy::raw::NoopRawMutex;
use requeue_proptest::subject::{HandClock, Sleep};
use requeue_test_tools::{ByHand, by_hand, in_time};

const HOUR: Duration = Duration::from_secs(60 * 60);

/// A clock that counts its readings, and whose next readings may be wrong. Its alarms are right.
#[derive(Clone, Default)]
struct Wrong {
    right: HandClock,
    wrong_readings: Rc<Cell<u32>>,
    readings: Rc<Cell<u32>>,
}

impl Clock for Wrong {
    fn now(&self) -> Instant {
        self.readings.set(self.readings.get() + 1);
        let wrong = self.wrong_readings.get();
        self.wrong_readings.set(wrong.saturating_sub(1));
        match wrong {
            0 => self.right.now(),
            _ => Instant::EPOCH,
        }
    }
}

impl Timer for Wrong {
    type Alarm = Sleep;

    fn set_alarm(&self, alarm: Pin<&mut Option<Sleep>>, until: Option<Instant>) {
        self.right.set_alarm(alarm, until);
    }
}

type Unhurried =
    requeue_embassy::WorkQueue<NoopRawMutex, u8, 4, Plain, NoLimit, 3, ((), u8, Wrong)>;

#[test]
fn a_getter_reads_the_clock_once_each_time_its_alarm_rings() {
    const WRONG: u32 = 100;
    let clock = Wrong::default();
    let queue = Unhurried::from_queue(Queue::new(NoLimit), clock.clone());
    queue.add_after(7, HOUR).unwrap();
    let mut getters = [by_hand(queue.get()), by_hand(queue.get())];
    let mut poll_all = || {
        let ended = getters.iter_mut().filter_map(ByHand::ended);
        ended.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert!(poll_all().is_empty());
    let readings = clock.readings.get();
    for _ in 0..1000 {
        clock.right.advance(HOUR / 1001);
        assert!(poll_all().is_empty(), "not due");
    }
    assert_eq!(clock.readings.get(), readings, "they looked for no reason");

    clock.right.advance(HOUR);
    clock.wrong_readings.set(WRONG);
    let guards = poll_all();
    assert_eq!(clock.readings.get() - readings, WRONG + 1);
    assert!(matches!(&guards[..], [guard] if **guard == 7));
}

#[test]
fn threads_on_a_clock_that_goes_back_and_forth_get_a_key_when_it_is_due() {
    in_time(|| {
        let clock = requeue_std::ManualClock::new();
        let builder = requeue_std::WorkQueue::builder().clock(clock.clone());
        let queue: &requeue_std::WorkQueue<_> = &builder.build();
        queue.add_after(7, HOUR).unwrap();
        let asleep = || queue.as_shared().look(|queue| queue.asleep());
        thread::scope(|scope| {
            let work = || {
                let guard = queue.get().ok()?;
                let got = (*guard, queue.clock().now());
                guard.success();
                Some(got)
            };
            let workers = [scope.spawn(work), scope.spawn(work)];
            while asleep() < 2 {
                thread::yield_now();
            }
            for minute in [59, 0, 30, 1, 58, 0, 0, 59] {
                clock.set(Instant::EPOCH + minute * HOUR / 60);
                queue.wake_all();
                assert_eq!(asleep(), 2, "nothing is due at minute {minute}");
            }
            let late = Instant::EPOCH + 100 * HOUR;
            clock.set(late);
            queue.wake_all();
            while queue.as_shared().look(|queue| queue.stats().total) > 0 {
                thread::yield_now();
            }
            // The other still waits, for no time.
            clock.set(Instant::EPOCH);
            queue.shut_down();
            let got = workers.map(|worker| worker.join().unwrap());
            assert_eq!(got.into_iter().flatten().collect::<Vec<_>>(), [(7, late)]);
        });
    });
}
