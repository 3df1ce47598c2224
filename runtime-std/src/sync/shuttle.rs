//! parking_lot's names and the system's time over [shuttle](::shuttle), which tries many schedules.
//!
//! shuttle's condition variable knows no time limit. This one does, in a time that stands still
//! until a test moves it: a schedule in which nobody watches a deadline then ends with everybody
//! asleep, which shuttle reports.
#![allow(clippy::expect_used, reason = "compiled for tests alone")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::task;
use std::task::Poll;
use std::time::Duration;

use crate::clock::SystemClock;

pub(crate) mod thread;

pub(crate) use shuttle::sync::RwLock;
pub use thread::refuse_threads;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard {
            mutex: self,
            held: Some(self.acquire()),
        }
    }

    /// As parking_lot's, it is not poisoned.
    fn acquire(&self) -> shuttle::sync::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As parking_lot's.
#[derive(Debug)]
pub struct MutexGuard<'m, T> {
    mutex: &'m Mutex<T>,
    /// Absent while its owner waits.
    held: Option<shuttle::sync::MutexGuard<'m, T>>,
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect(HELD)
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect(HELD)
    }
}

/// As parking_lot's, but that the schedule chooses which of those who wait a signal reaches: all of
/// them run, and the first takes it.
#[derive(Debug, Default)]
pub struct Condvar(std::sync::Mutex<Waiters>);

#[derive(Debug, Default)]
struct Waiters {
    /// Numbers those who wait, in the order in which they come.
    next: u64,
    /// Those who wait and sleep.
    asleep: BTreeMap<u64, task::Waker>,
    /// Signals that nobody has taken. Each is for one of those whose numbers are less.
    signals: Vec<u64>,
    /// Everybody whose number is less has been woken.
    woken: u64,
}

impl Waiters {
    /// Whether one who waits has been woken. Takes the signal.
    fn take_signal(&mut self, number: u64) -> bool {
        if number < self.woken {
            return true;
        }
        let signal = self.signals.iter().position(|&signal| number < signal);
        signal.map(|at| self.signals.remove(at)).is_some()
    }

    fn rouse(&mut self) {
        for (_, waker) in std::mem::take(&mut self.asleep) {
            waker.wake();
        }
    }
}

impl Condvar {
    pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        self.wait_until(guard, None);
    }

    pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, limit: Duration) {
        self.wait_until(guard, Some(Instant::now().0 + limit));
    }

    pub(crate) fn notify_one(&self) {
        schedule();
        let mut waiters = self.waiters();
        let signal = waiters.next;
        waiters.signals.push(signal);
        waiters.rouse();
    }

    pub(crate) fn notify_all(&self) {
        schedule();
        let mut waiters = self.waiters();
        waiters.woken = waiters.next;
        waiters.rouse();
    }

    fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Option<Duration>) {
        // Whoever locks the mutex from here on finds somebody who waits.
        let number = {
            let mut waiters = self.waiters();
            waiters.next += 1;
            waiters.next - 1
        };
        guard.held = None;
        let alarm = Alarm::new();
        shuttle::future::block_on(poll_fn(|context| {
            let mut waiters = self.waiters();
            waiters.asleep.remove(&number);
            let is_late = until.is_some_and(|until| Instant::now().0 >= until);
            if waiters.take_signal(number) || is_late {
                return Poll::Ready(());
            }
            waiters.asleep.insert(number, context.waker().clone());
            if until.is_some() {
                alarm.set(context.waker());
            }
            Poll::Pending
        }));
        guard.held = Some(guard.mutex.acquire());
    }

    fn waiters(&self) -> std::sync::MutexGuard<'_, Waiters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A moment of the time that stands still.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Instant(Duration);

impl Instant {
    pub(crate) fn now() -> Self {
        Self(NOW.get())
    }

    pub(crate) fn elapsed(self) -> Duration {
        NOW.get() - self.0
    }
}

impl SystemClock {
    /// Moves the time of every clock, and wakes those whose deadlines have come.
    pub fn advance(by: Duration) {
        schedule();
        NOW.set(NOW.get() + by);
        let alarms = ALARMS.with_borrow(|alarms| alarms.values().cloned().collect::<Vec<_>>());
        for waker in alarms {
            waker.wake();
        }
    }
}

/// Wakes somebody whenever the time moves, who then sees whether it is enough.
struct Alarm(u64);

impl Alarm {
    fn new() -> Self {
        let number = ALARMS_COUNT.get();
        ALARMS_COUNT.set(number + 1);
        Self(number)
    }

    fn set(&self, waker: &task::Waker) {
        ALARMS.with_borrow_mut(|alarms| alarms.insert(self.0, waker.clone()));
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        ALARMS.with_borrow_mut(|alarms| alarms.remove(&self.0));
    }
}

/// Lets another thread come first: shuttle does so before each of its own operations.
fn schedule() {
    shuttle::thread::sleep(Duration::ZERO);
}

const HELD: &str = "a guard is used by its owner, who does not wait meanwhile";

// All threads of a schedule share one thread of the system, and a test of another has its own time.
thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static ALARMS: RefCell<BTreeMap<u64, task::Waker>> = const { RefCell::new(BTreeMap::new()) };
    static ALARMS_COUNT: Cell<u64> = const { Cell::new(0) };
}
