//! A worker: the run that it is at, and how that goes on.

use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context as TaskContext, Poll, Wake};

use requeue_core::binding::{BegunRun, Getter, Ticket};
use requeue_core::{Action, Failure, Instant};

use super::World;
use super::shared::Slot;
use crate::caught::caught;

pub(super) struct Worker<W: World> {
    pub(super) state: State<W>,
    /// Set by whatever the run waits for.
    pub(super) bell: Arc<Bell>,
    pub(super) getter: Getter,
    /// When the worker looks again by itself.
    pub(super) alarm: Option<Slot>,
    /// Whether its turn is planned.
    pub(super) has_turn: bool,
}

pub(super) enum State<W: World> {
    /// Looks for a key, or sleeps until there is one.
    Idle,
    Busy(Attempt<W>),
    /// The queue is closed.
    Gone,
}

pub(super) struct Attempt<W: World> {
    pub(super) key: W::Key,
    pub(super) number: u32,
    pub(super) ticket: Ticket,
    pub(super) begun: BegunRun,
    /// What wakes the run at its deadline.
    pub(super) timeout: Option<Slot>,
    pub(super) began: Instant,
    pub(super) polls: u32,
    pub(super) points: Rc<Cell<u32>>,
    pub(super) future: Reconciling<W>,
}

pub(super) type Reconciling<W> = Pin<Box<dyn Future<Output = Result<Action, <W as World>::Error>>>>;

/// How a run ended.
pub(super) type Outcome<W> = Result<Action, Failure<<W as World>::Error>>;

impl<W: World> Attempt<W> {
    pub(super) fn is_overdue(&self, now: Instant) -> bool {
        let deadline = self.begun.context().deadline;
        deadline.is_some_and(|deadline| now >= deadline)
    }
}

impl<W: World> Worker<W> {
    pub(super) fn new() -> Self {
        Self {
            state: State::Idle,
            bell: Arc::new(Bell(AtomicBool::new(false))),
            getter: Getter::new(),
            alarm: None,
            has_turn: false,
        }
    }

    /// Polls the run.
    pub(super) fn poll(run: &mut Attempt<W>, bell: &Arc<Bell>) -> Poll<Outcome<W>> {
        run.polls += 1;
        let waker = Arc::clone(bell).into();
        let mut context = TaskContext::from_waker(&waker);
        match caught(|| run.future.as_mut().poll(&mut context)) {
            Ok(poll) => poll.map(|result| result.map_err(Failure::Error)),
            Err(payload) => Poll::Ready(Err(Failure::Panic(payload))),
        }
    }
}

/// A run's waker.
#[derive(Debug)]
pub(super) struct Bell(AtomicBool);

impl Bell {
    pub(super) fn has_rung(&self) -> bool {
        self.0.swap(false, Ordering::Relaxed)
    }
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}
