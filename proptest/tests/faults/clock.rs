//! Who waits on a clock that jumps, stands still or goes back sleeps, and looks no more often than
//! there is a reason to.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{self, Context, Poll};
use std::thread;
use std::time::Duration;

use requeue_core::binding::{AsShared, Clock, Timer};
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::{Instant, Queue};
use requeue_embassy::raw::NoopRawMutex;
use requeue_test_tools::in_time;

const HOUR: Duration = Duration::from_secs(60 * 60);
const YEAR: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// A clock that counts who reads it, and whose next readings may be lies.
#[derive(Clone, Default)]
struct Own(Rc<Hands>);

#[derive(Default)]
struct Hands {
    now: Cell<Instant>,
    lies: Cell<u32>,
    reads: Cell<u32>,
}

impl Own {
    fn set(&self, now: Instant) {
        self.0.now.set(now);
    }

    fn reads(&self) -> u32 {
        self.0.reads.get()
    }
}

impl Clock for Own {
    fn now(&self) -> Instant {
        self.0.reads.set(self.reads() + 1);
        let lies = self.0.lies.get();
        self.0.lies.set(lies.saturating_sub(1));
        if lies > 0 {
            Instant::EPOCH
        } else {
            self.0.now.get()
        }
    }
}

impl Timer for Own {
    type Alarm = Ring;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Ring>>, until: Option<Instant>) {
        alarm.set(until.map(|due| Ring(Rc::clone(&self.0), due)));
    }
}

/// Has rung once the clock shows its time; a test polls every getter itself.
struct Ring(Rc<Hands>, Instant);

impl Future for Ring {
    type Output = ();

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if self.0.now.get() >= self.1 {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    }
}

fn poll<F: Future>(future: &mut Pin<Box<F>>) -> Poll<F::Output> {
    let mut context = Context::from_waker(task::Waker::noop());
    future.as_mut().poll(&mut context)
}

type Unhurried = requeue_embassy::WorkQueue<NoopRawMutex, u8, 4, Plain, NoLimit, 3, ((), u8, Own)>;

/// A queue with a key that is due in an hour.
fn with_a_delayed_key() -> (Own, Unhurried) {
    let clock = Own::default();
    let queue = Unhurried::from_queue(Queue::new(NoLimit), clock.clone());
    queue.add_after(7, HOUR).unwrap();
    (clock, queue)
}

#[test]
fn getters_on_a_clock_that_goes_back_and_forth_do_not_look_again_and_again() {
    let (clock, queue) = with_a_delayed_key();
    let mut getters = [Box::pin(queue.get()), Box::pin(queue.get())];
    assert!(getters.iter_mut().all(|getter| poll(getter).is_pending()));
    let reads = clock.reads();
    for minute in (0..60).chain((0..60).rev()).cycle().take(1000) {
        clock.set(Instant::EPOCH + minute * HOUR / 60);
        assert!(getters.iter_mut().all(|getter| poll(getter).is_pending()));
    }
    assert_eq!(clock.reads(), reads, "none of this was their time");

    clock.set(Instant::EPOCH + HOUR);
    let got = getters.iter_mut().filter_map(|getter| match poll(getter) {
        Poll::Ready(guard) => {
            let guard = guard.unwrap();
            let key = *guard;
            guard.success();
            Some(key)
        }
        Poll::Pending => None,
    });
    assert_eq!(got.collect::<Vec<_>>(), [7]);
}

#[test]
fn a_timer_that_rings_before_its_clock_is_asked_again_and_no_more() {
    const LIES: u32 = 100;
    let (clock, queue) = with_a_delayed_key();
    let mut getter = Box::pin(queue.get());
    assert!(poll(&mut getter).is_pending());
    let reads = clock.reads();
    clock.set(Instant::EPOCH + HOUR);
    clock.0.lies.set(LIES);
    let Poll::Ready(Ok(guard)) = poll(&mut getter) else {
        panic!("the clock is right again, and the key is due");
    };
    assert_eq!(*guard, 7);
    assert_eq!(clock.reads() - reads, LIES + 1, "one reading for each look");
}

#[test]
fn getters_on_a_clock_that_stands_still_wait_and_cost_nothing() {
    let (clock, queue) = with_a_delayed_key();
    let mut patient = Box::pin(queue.get());
    let mut impatient = Box::pin(queue.get_timeout(2 * HOUR));
    assert!(poll(&mut patient).is_pending() && poll(&mut impatient).is_pending());
    let reads = clock.reads();
    for _ in 0..1000 {
        assert!(poll(&mut patient).is_pending() && poll(&mut impatient).is_pending());
    }
    assert_eq!(clock.reads(), reads);
    queue.add(8).unwrap();
    let Poll::Ready(Ok(guard)) = poll(&mut patient) else {
        panic!("what is ready needs no clock");
    };
    assert_eq!(*guard, 8);
    guard.success();
    drop((patient, impatient));
    queue.as_shared().look(|queue| {
        queue.assert_valid();
        assert_eq!(queue.asleep(), 0);
    });
}

#[test]
fn threads_on_a_clock_that_goes_back_and_forth_get_a_key_when_it_is_due() {
    in_time(|| {
        let clock = requeue_std::ManualClock::new();
        let queue: &requeue_std::WorkQueue<_> = &requeue_std::WorkQueue::builder()
            .clock(clock.clone())
            .build();
        queue.add_after(7, HOUR).unwrap();
        let asleep = || queue.as_shared().look(|queue| queue.asleep());
        thread::scope(|scope| {
            let work = || {
                queue.get().map(|guard| {
                    let got = (*guard, queue.clock().now());
                    guard.success();
                    got
                })
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
            let due = Instant::EPOCH + 100 * YEAR;
            clock.set(due);
            queue.wake_all();
            while queue.as_shared().look(|queue| queue.stats().total) > 0 {
                thread::yield_now();
            }
            // A getter that still waits does so for no time.
            clock.set(Instant::EPOCH);
            queue.shut_down();
            let got = workers.map(|worker| worker.join().unwrap());
            let got: Vec<_> = got.into_iter().flatten().collect();
            assert_eq!(got, [(7, due)]);
        });
    });
}
