//! requeue-bare: its own lock and way of sleeping, each call on a thread that stands for a core.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use requeue_bare::binding::BareHost;
use requeue_bare::{Board, WorkQueue};
use requeue_core::Instant;
use requeue_core::binding::{AsShared, Clock, Shared};
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;

use super::thread_calls::{Sleeps, ThreadCall, ThreadCalls};
use super::work_queue::{Runtime, handed};
use super::{Call, Configuration, HandClock, Home, Key, Kind, Returned};
use crate::Figures;
use crate::limiter::AnyLimiter;

/// How many calls may wait at once: more than there are. Which of two cores gets the last place is
/// for them to decide.
const WAITERS: usize = 64;

type Inner<const N: usize, P> = WorkQueue<Cores, Key, N, P, AnyLimiter, WAITERS, Figures, u16>;

/// requeue-bare's queue, with room for `N` keys, on as many cores as there are calls.
pub struct Loops<const N: usize, P: Kind + 'static = Plain> {
    queue: Arc<Inner<N, P>>,
}

impl<const N: usize, P: Kind + 'static> Runtime for Loops<N, P>
where
    Inner<N, P>: Send + Sync,
{
    type Host = BareHost<Cores, Key, N, P, AnyLimiter, WAITERS, Figures, u16>;
    type Calls = ThreadCalls;

    fn new(setup: &Configuration) -> Self {
        let queue = Fixed::build(setup, Figures::default());
        let queue = Arc::new(WorkQueue::from_queue(queue, Cores::default()));
        Self { queue }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    fn advance(&mut self, by: Duration) {
        self.queue.board().clock.advance(by);
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
        Some(self.queue.as_shared().look(|queue| queue.metrics().clone()))
    }
}

impl<const N: usize, P: Kind + 'static> Sleeps for Loops<N, P> {
    fn sleeping(&self) -> (usize, Option<Instant>) {
        let cores = self.queue.board().cores();
        // An interrupt has woken the others.
        let asleep = cores.iter().filter(|core| !core.line.is_pending());
        let alarms = asleep.clone().filter_map(|core| core.alarm);
        (asleep.count(), alarms.min())
    }
}

/// A board of any number of cores, each a thread, with one clock that a test moves.
#[derive(Debug, Default)]
pub struct Cores {
    clock: HandClock,
    asleep: Mutex<Vec<Asleep>>,
}

#[derive(Debug)]
struct Asleep {
    alarm: Option<Instant>,
    line: Arc<Line>,
}

/// The interrupt line of a core.
#[derive(Debug)]
struct Line {
    is_pending: AtomicBool,
    core: Thread,
}

thread_local! {
    static LINE: Arc<Line> = Arc::new(Line {
        is_pending: AtomicBool::new(false),
        core: thread::current(),
    });
    static ALARM: Cell<Option<Instant>> = const { Cell::new(None) };
}

impl Line {
    fn is_pending(&self) -> bool {
        self.is_pending.load(Ordering::SeqCst)
    }

    fn wait(&self) {
        while !self.is_pending.swap(false, Ordering::SeqCst) {
            thread::park();
        }
    }
}

impl Wake for Line {
    fn wake(self: Arc<Self>) {
        self.is_pending.store(true, Ordering::SeqCst);
        self.core.unpark();
    }
}

impl Cores {
    fn cores(&self) -> MutexGuard<'_, Vec<Asleep>> {
        self.asleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for Cores {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl Board for Cores {
    fn arm(&self, at: Option<Instant>) {
        ALARM.set(at.filter(|at| !at.is_never()));
    }

    fn idle(&self) {
        let (line, alarm) = (LINE.with(Arc::clone), ALARM.get());
        let waker = self.waker();
        let mut sleep = alarm.map(|alarm| Box::pin(self.clock.sleep_until(alarm)));
        let mut context = Context::from_waker(&waker);
        let rings = sleep
            .as_mut()
            .map(|sleep| sleep.as_mut().poll(&mut context));
        if rings.is_some_and(|rings| rings.is_ready()) {
            return;
        }
        let core = Asleep {
            alarm,
            line: Arc::clone(&line),
        };
        self.cores().push(core);
        line.wait();
        self.cores().retain(|core| !Arc::ptr_eq(&core.line, &line));
    }

    /// The interrupts of a thread are its line alone, which stays pending.
    fn masked<T>(&self, work: impl FnOnce() -> T) -> T {
        work()
    }

    fn waker(&self) -> Waker {
        Waker::from(LINE.with(Arc::clone))
    }
}
