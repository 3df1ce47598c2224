//! Virtual time: a clock, and what is planned for which time. Owns the order; never knows what the
//! planned tasks do.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use requeue_core::Instant;
use requeue_core::binding::{Clock, Timer};

/// A clock that moves when nothing else is left to do. Clones show the same time.
#[derive(Clone)]
pub struct VirtualClock(Rc<Agenda>);

struct Agenda {
    now: Cell<Instant>,
    tasks: RefCell<BTreeMap<Due, Task>>,
    /// How many tasks were planned.
    planned: Cell<u64>,
}

pub(super) type Task = Box<dyn FnOnce()>;

/// When a task is due: the time, the rank among those of one time, and the order of planning.
pub(super) type Due = (Instant, u8, u64);

impl VirtualClock {
    pub(super) fn new() -> Self {
        Self(Rc::new(Agenda {
            now: Cell::new(Instant::EPOCH),
            tasks: RefCell::new(BTreeMap::new()),
            planned: Cell::new(0),
        }))
    }

    pub(super) fn set(&self, now: Instant) {
        self.0.now.set(now);
    }

    pub(super) fn plan(&self, at: Instant, rank: u8, task: impl FnOnce() + 'static) -> Due {
        let due = (at, rank, self.0.planned.get());
        self.0.planned.set(due.2 + 1);
        self.0.tasks.borrow_mut().insert(due, Box::new(task));
        due
    }

    /// Cancels a task. Returns whether it was still planned.
    pub(super) fn cancel(&self, due: Due) -> bool {
        // Dropped after the borrow, because a waker in it may be foreign code.
        let cancelled = self.0.tasks.borrow_mut().remove(&due);
        cancelled.is_some()
    }

    /// When the next task is due.
    pub(super) fn next_time(&self) -> Option<Instant> {
        let tasks = self.0.tasks.borrow();
        tasks.first_key_value().map(|(due, _)| due.0)
    }

    pub(super) fn next_task(&self) -> Option<Task> {
        let first = self.0.tasks.borrow_mut().pop_first();
        first.map(|(_, task)| task)
    }

    pub(super) fn alarm(&self, until: Instant, rank: u8) -> Alarm {
        Alarm {
            clock: self.clone(),
            until,
            rank,
            planned: None,
        }
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Instant {
        self.0.now.get()
    }
}

impl Timer for VirtualClock {
    type Alarm = Alarm;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Alarm>>, until: Option<Instant>) {
        alarm.set(until.map(|until| self.alarm(until, 0)));
    }
}

/// Waits until a time, and lets other tasks of that time run first in any case.
pub struct Alarm {
    clock: VirtualClock,
    until: Instant,
    rank: u8,
    planned: Option<Due>,
}

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(due) = self.planned.take()
            && !self.clock.cancel(due)
        {
            return Poll::Ready(());
        }
        let waker = context.waker().clone();
        let due = self.clock.plan(self.until, self.rank, || waker.wake());
        self.planned = Some(due);
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(due) = self.planned {
            self.clock.cancel(due);
        }
    }
}
