//! parking_lot's mutex, the parker and the system's time over [shuttle](::shuttle), which tries
//! many schedules.
//!
//! The time stands still until a test moves it: a schedule in which no thread watches a deadline
//! then ends with all threads asleep, which shuttle reports.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::mem;
use std::sync::{Arc, PoisonError};
use std::task::{Poll, Wake, Waker};
use std::time::Duration;

use shuttle::sync::MutexGuard;

use crate::clock::QueueClock;

pub(crate) mod thread;

pub use thread::refuse_threads;

#[derive(Debug, Default)]
pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) const fn new(value: T) -> Self {
        Self(shuttle::sync::Mutex::new(value))
    }

    /// As parking_lot's, it is not poisoned.
    pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As the one over std, but that it does not wake up for no reason of its own: shuttle's `park`
/// does, and would hide a wake that is lost.
pub(crate) struct Parker {
    token: Arc<Token>,
    waker: Waker,
}

impl Parker {
    pub(crate) fn with<T>(mut act: impl FnMut(&Self) -> T) -> T {
        let token = TOKEN.try_with(Arc::clone).unwrap_or_default();
        let waker = Waker::from(Arc::clone(&token));
        act(&Self { token, waker })
    }

    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    pub(crate) fn park(&self, limit: Option<Duration>) {
        let until = limit.map(|limit| NOW.get().saturating_add(limit));
        let alarm = Alarm::new();
        shuttle::future::block_on(poll_fn(|context| {
            let mut state = self.token.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.sleeper = None;
            let is_late = until.is_some_and(|until| NOW.get() >= until);
            if mem::take(&mut state.is_woken) || is_late {
                return Poll::Ready(());
            }
            state.sleeper = Some(context.waker().clone());
            if until.is_some() {
                alarm.set(context.waker());
            }
            Poll::Pending
        }));
    }
}

/// What a wake leaves for the sleep that it ends, whichever comes first. As std's, it is one for
/// all parkers of a thread: a wake that comes late ends a later sleep.
#[derive(Default)]
struct Token(std::sync::Mutex<TokenState>);

#[derive(Default)]
struct TokenState {
    is_woken: bool,
    /// The thread, while it sleeps.
    sleeper: Option<Waker>,
}

impl Wake for Token {
    fn wake(self: Arc<Self>) {
        schedule();
        let sleeper = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            state.is_woken = true;
            state.sleeper.take()
        };
        if let Some(sleeper) = sleeper {
            sleeper.wake();
        }
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
        NOW.get().saturating_sub(self.0)
    }
}

impl QueueClock {
    /// Moves the time of every clock, and wakes the threads whose deadlines have come.
    pub fn advance(by: Duration) {
        schedule();
        NOW.set(NOW.get().saturating_add(by));
        let alarms = ALARMS.with_borrow(|alarms| alarms.values().cloned().collect::<Vec<_>>());
        alarms.into_iter().for_each(Waker::wake);
    }
}

/// Wakes a thread whenever the time moves, which then sees whether its deadline has come.
struct Alarm(u64);

impl Alarm {
    fn new() -> Self {
        let number = ALARMS_COUNT.get();
        ALARMS_COUNT.set(number.wrapping_add(1));
        Self(number)
    }

    fn set(&self, waker: &Waker) {
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

// All threads of a schedule share one thread of the system, and each test has a time of its own.
std::thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
    static ALARMS: RefCell<BTreeMap<u64, Waker>> = const { RefCell::new(BTreeMap::new()) };
    static ALARMS_COUNT: Cell<u64> = const { Cell::new(0) };
}

shuttle::thread_local! {
    static TOKEN: Arc<Token> = Arc::default();
}
