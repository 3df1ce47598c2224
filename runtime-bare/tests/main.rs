//! A loop on a board of the host, with interrupts between its steps.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Wake, Waker};
use std::time::Duration;

use requeue_bare::limiter::{Exponential, NoLimit, default_item_based};
use requeue_bare::priority::{Groups, Plain, WithPolicy};
use requeue_bare::{
    Action, Board, Clock, GroupLimits, Instant, ManualClock, Next, Policy, Queue, WaitError,
    WorkQueue,
};

const SECOND: Duration = Duration::from_secs(1);

/// A board whose interrupts come while it sleeps, and which counts what the queue asks of it.
struct Desk {
    time: ManualClock,
    /// What happens during each sleep, in order. After the last, sleeping waits for the alarm.
    interrupts: RefCell<Vec<Box<dyn FnOnce()>>>,
    sleeps: Cell<u32>,
    alarms: RefCell<Vec<Option<Duration>>>,
    masked: Cell<bool>,
}

impl Desk {
    fn new() -> &'static Self {
        leak(Self {
            time: ManualClock::new(),
            interrupts: RefCell::default(),
            sleeps: Cell::new(0),
            alarms: RefCell::default(),
            masked: Cell::new(false),
        })
    }

    fn interrupt(&self, handler: impl FnOnce() + 'static) {
        self.interrupts.borrow_mut().insert(0, Box::new(handler));
    }
}

impl Clock for Desk {
    fn now(&self) -> Instant {
        self.time.now()
    }
}

impl Board for Desk {
    fn arm(&self, at: Option<Instant>) {
        assert!(
            self.masked.get(),
            "the alarm is set while interrupts are masked"
        );
        self.alarms
            .borrow_mut()
            .push(at.map(|at| at - Instant::EPOCH));
        self.time.arm(at);
    }

    fn idle(&self) {
        assert!(
            self.masked.get(),
            "an interrupt before the sleep would be missed"
        );
        self.sleeps.set(self.sleeps.get() + 1);
        if self.interrupts.borrow().is_empty() {
            self.time.idle();
        }
    }

    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        assert!(!self.masked.replace(true));
        let value = work();
        self.masked.set(false);
        // What is pending is served once interrupts are enabled again.
        let handler = self.interrupts.borrow_mut().pop();
        if let Some(handler) = handler {
            handler();
        }
        value
    }
}

type Keys = WorkQueue<&'static Desk, u16, 8>;

/// As what is in a `static`.
fn leak<T>(value: T) -> &'static T {
    Box::leak(Box::new(value))
}

#[test]
fn an_interrupt_between_the_look_and_the_sleep_is_not_missed() {
    let desk = Desk::new();
    let queue: &Keys = leak(WorkQueue::new(default_item_based(), desk));
    desk.interrupt(move || {
        queue.add(17).unwrap();
    });
    let guard = queue.get().unwrap();
    assert_eq!((*guard, desk.sleeps.get()), (17, 1));
    assert_eq!(*desk.alarms.borrow(), [None], "nothing is delayed");
    guard.success();
}

#[test]
fn a_loop_sleeps_until_the_first_deadline_and_no_longer() {
    let desk = Desk::new();
    let queue: &Keys = leak(WorkQueue::new(default_item_based(), desk));
    queue.add_after(17, 2 * SECOND).unwrap();
    queue.add_after(18, 5 * SECOND).unwrap();
    let first = queue.get().unwrap();
    assert_eq!((*first, desk.time.elapsed()), (17, 2 * SECOND));
    let second = queue.next(first, Action::Success).unwrap();
    assert_eq!((*second, desk.time.elapsed()), (18, 5 * SECOND));
    assert_eq!(*desk.alarms.borrow(), [Some(2 * SECOND), Some(5 * SECOND)]);
    second.success();
}

#[test]
fn a_timeout_ends_a_wait_at_its_deadline_and_a_key_ends_it_earlier() {
    let desk = Desk::new();
    let queue: &Keys = leak(WorkQueue::new(default_item_based(), desk));
    queue.add_after(17, 5 * SECOND).unwrap();
    let timed_out = queue.get_timeout(2 * SECOND).unwrap_err();
    assert_eq!(timed_out, WaitError::TimedOut);
    assert_eq!(desk.time.elapsed(), 2 * SECOND);

    let guard = queue.get_timeout(60 * SECOND).unwrap();
    assert_eq!((*guard, desk.time.elapsed()), (17, 5 * SECOND));
    assert_eq!(*desk.alarms.borrow(), [Some(2 * SECOND), Some(5 * SECOND)]);
    guard.success();

    queue.add(18).unwrap();
    queue.get_deadline(Instant::EPOCH).unwrap().success();
    queue.shut_down();
    assert_eq!(queue.get_timeout(SECOND).unwrap_err(), WaitError::Closed);
}

#[test]
fn a_timeout_is_the_same_where_several_cores_sleep() {
    let queue: WorkQueue<_, u16, 8, Plain, Exponential, 1> =
        WorkQueue::new(default_item_based(), ManualClock::new());
    queue.add_after(17, 5 * SECOND).unwrap();
    let timed_out = queue.get_timeout(2 * SECOND).unwrap_err();
    assert_eq!(timed_out, WaitError::TimedOut);
    assert_eq!(queue.board().elapsed(), 2 * SECOND);
}

#[test]
fn a_loop_sleeps_beside_keys_that_are_ready_and_may_not_run() {
    // The bus allows one run a second.
    let desk = Desk::new();
    let policy = Policy::new().run_rate(1.0, 1);
    let queue: WorkQueue<_, u16, 8, WithPolicy> =
        WorkQueue::from_queue(Queue::new(default_item_based()).with_policy(policy), desk);
    queue.add_many([17, 18, 19], |_| {});
    for at in 0..3 {
        let guard = queue.get().unwrap();
        assert_eq!(desk.time.elapsed(), at * SECOND);
        guard.success();
    }
    assert_eq!(desk.sleeps.get(), 2, "one sleep for each token");
}

#[test]
fn a_loop_sleeps_while_its_group_is_at_its_limit() {
    let desk = Desk::new();
    let groups = Queue::with_groups(NoLimit, (), |(bus, _): &(u8, u8)| *bus);
    let queue: &WorkQueue<_, (u8, u8), 8, Groups<u8>, NoLimit> =
        leak(WorkQueue::from_queue(groups, desk));
    queue.limit_groups(GroupLimits::new().max_active(1));
    queue.add_many([(1, 40), (1, 41)], |_| {});
    let first = queue.get().unwrap();
    assert!(matches!(queue.look(), Next::Wait { until: None }));
    desk.interrupt(move || {
        // The transfer of the first one is over.
        first.success();
    });
    let second = queue.get().unwrap();
    assert_eq!((second.1, desk.sleeps.get()), (41, 1));
    second.success();
}

#[test]
fn a_look_never_sleeps_and_says_until_when_there_is_nothing() {
    let desk = Desk::new();
    let queue: &Keys = leak(WorkQueue::new(default_item_based(), desk));
    assert!(matches!(queue.look(), Next::Wait { until: None }));
    queue.add_after(17, SECOND).unwrap();
    let Next::Wait { until } = queue.look() else {
        panic!("the key is delayed");
    };
    assert_eq!(until, Some(Instant::EPOCH + SECOND));
    desk.time.advance(SECOND);
    let Next::Work(guard) = queue.look() else {
        panic!("the delay is over");
    };
    guard.success();
    queue.shut_down();
    assert!(matches!(queue.look(), Next::Closed));
    assert_eq!(desk.sleeps.get(), 0);
}

#[test]
fn a_run_ends_with_the_queue_and_hands_back_what_is_delayed() {
    let desk = Desk::new();
    let limiter = Exponential::new(SECOND, 60 * SECOND);
    let queue: &Keys = leak(WorkQueue::new(limiter, desk));
    queue.add_many([17, 18], |_| {});
    let mut runs = Vec::new();
    let ended = queue.run(|key| {
        runs.push((*key, desk.time.elapsed()));
        if runs.len() == 4 {
            queue.shut_down();
        }
        if *key == 17 { Err("no reply") } else { Ok(()) }
    });
    assert_eq!(ended, Ok(()));
    let seconds = [(17, 0), (18, 0), (17, 1), (17, 3)];
    assert_eq!(runs, seconds.map(|(key, at)| (key, at * SECOND)));
    let left: Vec<_> = queue.leftovers().map(|left| left.key).collect();
    assert_eq!(left, [17], "its fourth attempt was still to come");
}

#[test]
fn a_drain_waits_for_runs_that_interrupts_end() {
    let desk = Desk::new();
    let queue: &Keys = leak(WorkQueue::new(default_item_based(), desk));
    queue.add(17).unwrap();
    let guard = queue.get().unwrap();
    desk.interrupt(move || {
        guard.success();
    });
    assert_eq!(queue.drain(), Ok(()));
    assert_eq!((desk.sleeps.get(), queue.wait_drained()), (1, Ok(())));
    assert_eq!(queue.get().unwrap_err(), WaitError::Closed);
}

/// One of two cores. It is interrupted by its waker alone.
struct Core {
    time: ManualClock,
    wakes: Arc<Wakes>,
    asleep: RefCell<Option<Box<dyn FnOnce()>>>,
}

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Clock for Core {
    fn now(&self) -> Instant {
        self.time.now()
    }
}

impl Board for Core {
    fn arm(&self, at: Option<Instant>) {
        self.time.arm(at);
    }

    fn idle(&self) {
        let other = self.asleep.borrow_mut().take();
        let Some(other) = other else {
            panic!("it is woken once, and so sleeps once");
        };
        other();
        assert_eq!(
            self.wakes.0.load(Ordering::Relaxed),
            1,
            "the other core's add wakes this one"
        );
    }

    fn waker(&self) -> Waker {
        Waker::from(Arc::clone(&self.wakes))
    }
}

#[test]
fn an_add_of_another_core_wakes_the_one_that_sleeps() {
    let core = Core {
        time: ManualClock::new(),
        wakes: Arc::default(),
        asleep: RefCell::new(None),
    };
    let queue: &WorkQueue<Core, u16, 8, Plain, Exponential, 1> =
        leak(WorkQueue::new(default_item_based(), core));
    *queue.board().asleep.borrow_mut() = Some(Box::new(move || {
        queue.add(17).unwrap();
    }));
    let guard = queue.get().unwrap();
    assert_eq!(*guard, 17);
    guard.success();
}
