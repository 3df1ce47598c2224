//! requeue-bare: its own lock and way of sleeping, each call on a thread that stands for a core.

use std::cell::Cell;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::task::{Wake, Waker};
use std::time::Duration;

use requeue_bare::binding::BareHost;
use requeue_bare::{Board, WorkQueue};
use requeue_core::Instant;
use requeue_core::binding::{AsShared, Clock, Shared};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;

use super::thread_calls::{CallsOf, Sleeping, ThreadCall, ThreadCalls};
use super::work_queue::{Runtime, handed, panicking};
use super::{Call, Configuration, Home, Key, Kind, Returned, Taken};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// How many calls may wait at once: more than there are. Which of two cores gets the last place is
/// for them to decide.
const WAITERS: usize = 64;

type Inner<const N: usize, P> = WorkQueue<Cores, Key, N, P, AnyLimiter, WAITERS, Figures, u16>;

/// requeue-bare's queue, with room for `N` keys, on as many cores as there are calls.
pub struct Loops<const N: usize, P: Kind + 'static = Plain> {
    queue: Arc<Inner<N, P>>,
    calls: ThreadCalls<Arc<Inner<N, P>>>,
}

impl<const N: usize, P: Kind + 'static> Runtime for Loops<N, P>
where
    Inner<N, P>: Send + Sync,
{
    type Host = BareHost<Cores, Key, N, P, AnyLimiter, WAITERS, Figures, u16>;
    type Calls = ThreadCalls<Arc<Inner<N, P>>>;

    fn new(setup: &Configuration) -> Self {
        let queue = Fixed::build(setup, Figures::default());
        let queue = Arc::new(WorkQueue::from_queue(queue, Cores::default()));
        Self {
            calls: ThreadCalls::new(Arc::clone(&queue)),
            queue,
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.queue.board().advance(by);
    }

    fn get_at_once(&mut self) -> Option<Taken> {
        self.queue.get_timeout(Duration::ZERO).ok().and_then(handed)
    }

    fn panic_at_work(&mut self) -> bool {
        panicking(|| self.queue.try_get())
    }

    /// The calls that a bare loop has.
    fn begin(&self, call: Call) -> Option<ThreadCall> {
        let queue = Arc::clone(&self.queue);
        Some(match call {
            Call::Get => Box::new(move || Returned::from(queue.get().map(handed))),
            Call::GetTimeout(timeout) => {
                Box::new(move || Returned::from(queue.get_timeout(timeout).map(handed)))
            }
            Call::Next(action) => Box::new(move || {
                let next = queue.try_get().map(|guard| queue.next(guard, action));
                next.map_or(Returned::Closed, |next| Returned::from(next.map(handed)))
            }),
            Call::Drain => Box::new(move || Returned::from(queue.drain())),
            _ => return None,
        })
    }

    fn figures(&self) -> Option<Figures> {
        let queue = self.queue.as_shared();
        Some(queue.look(|queue| queue.metrics().clone()))
    }

    fn calls(&mut self) -> &mut Self::Calls {
        &mut self.calls
    }
}

impl<const N: usize, P: Kind + 'static> CallsOf for Arc<Inner<N, P>> {
    fn seen(&self) -> Sleeping {
        let (asleep, deadline) = self
            .as_shared()
            .look(|queue| (queue.asleep(), queue.next_deadline()));
        let state = self.board().state();
        Sleeping {
            asleep,
            deadline,
            waiting: state.sleeping().count(),
            alarm: state.sleeping().filter_map(|core| core.alarm).min(),
            now: state.now,
        }
    }

    fn end(&self) {
        let queue: &Inner<N, P> = self;
        queue.shut_down();
        queue.clear();
    }

    fn release(&self, key: Key) -> bool {
        let queue: &Inner<N, P> = self;
        let _ = queue.release_key(&key);
        queue.stats().active > 0
    }
}

impl<const N: usize, P: Kind + 'static> fmt::Debug for Loops<N, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}

/// A board of any number of cores, each a thread, with one clock that a test moves.
#[derive(Debug, Default)]
pub struct Cores {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    now: Instant,
    /// The cores that sleep.
    cores: Vec<Asleep>,
}

#[derive(Debug)]
struct Asleep {
    alarm: Option<Instant>,
    line: Arc<Line>,
}

impl State {
    /// The cores that no interrupt has woken.
    fn sleeping(&self) -> impl Iterator<Item = &Asleep> {
        self.cores
            .iter()
            .filter(|core| !*lock(&core.line.is_pending))
    }
}

/// The interrupt line of a core.
#[derive(Debug, Default)]
struct Line {
    is_pending: Mutex<bool>,
    raised: Condvar,
}

thread_local! {
    static LINE: Arc<Line> = Arc::default();
    static ALARM: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Line {
    fn raise(&self) {
        *lock(&self.is_pending) = true;
        self.raised.notify_one();
    }

    fn wait(&self) {
        let mut is_pending = lock(&self.is_pending);
        while !std::mem::take(&mut *is_pending) {
            let waited = self.raised.wait(is_pending);
            is_pending = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Wake for Line {
    fn wake(self: Arc<Self>) {
        self.raise();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cores {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Moves the clock, and raises the lines of the cores whose alarms ring.
    fn advance(&self, by: Duration) {
        let mut state = self.state();
        state.now = state.now + by;
        let now = state.now;
        let rings = |core: &&Asleep| core.alarm.is_some_and(|alarm| alarm <= now);
        state
            .cores
            .iter()
            .filter(rings)
            .for_each(|core| core.line.raise());
    }
}

impl Clock for Cores {
    fn now(&self) -> Instant {
        self.state().now
    }
}

impl Board for Cores {
    fn arm(&self, at: Option<Instant>) {
        ALARM.set(at.filter(|at| !at.is_never()));
    }

    fn idle(&self) {
        let line = LINE.with(Arc::clone);
        let alarm = ALARM.get();
        let mut state = self.state();
        if alarm.is_some_and(|alarm| alarm <= state.now) {
            return;
        }
        let core = Asleep {
            alarm,
            line: Arc::clone(&line),
        };
        state.cores.push(core);
        drop(state);
        line.wait();
        let mut state = self.state();
        state.cores.retain(|core| !Arc::ptr_eq(&core.line, &line));
    }

    /// The interrupts of a thread are its line alone, which stays pending.
    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    fn waker(&self) -> Waker {
        Waker::from(LINE.with(Arc::clone))
    }
}
