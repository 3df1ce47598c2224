//! requeue-tokio: its own lock, clock and way of waiting, on Tokio's paused clock.

use std::cell::OnceCell;
use std::time::Duration;

use requeue_core::binding::Reporter;
use requeue_core::binding::{AsShared, Shared, timeout_at};
use requeue_core::priority::Plain;
use requeue_core::storage::Growable;
use requeue_core::{Action, Instant, Rejected, WaitError};
use requeue_tokio::WorkQueue;
use requeue_tokio::binding::TaskHost;
use tokio::runtime;

use super::calls::{calls_of_tasks, returned};
use super::work_queue::{Runtime, handed};
use super::{Call, Configuration, Futures, Home, Key, Kind, LocalCall, Returned};
use crate::figures::{Figures, SharedFigures};
use crate::limiter::AnyLimiter;

/// requeue-tokio's queue.
pub struct Tasks<P: Kind = Plain, S: Home = Growable> {
    queue: WorkQueue<Key, P, AnyLimiter, S>,
    figures: Option<SharedFigures>,
}

/// What Tokio's timers count.
const TICK: Duration = Duration::from_millis(1);

/// A runtime whose clock is paused.
#[derive(Clone, Copy)]
struct Paused {
    runtime: &'static runtime::Runtime,
    /// What its clock showed first.
    start: tokio::time::Instant,
}

thread_local! {
    /// One for each thread that tests, and for all of its queues.
    static PAUSED: OnceCell<Option<Paused>> = const { OnceCell::new() };
}

impl Paused {
    /// That of this thread; `None` if there can be none.
    fn here() -> Option<Self> {
        PAUSED.with(|paused| *paused.get_or_init(Self::enter_for_good))
    }

    /// Enters a new one for good, since Tokio's clock is that of the runtime one is in. Both the
    /// runtime and the guard are leaked, once per thread: no order in which a thread that ends
    /// drops them suits Tokio's own thread-local data.
    fn enter_for_good() -> Option<Self> {
        let mut builder = runtime::Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build().ok()?;
        let runtime: &'static _ = Box::leak(Box::new(runtime));
        std::mem::forget(runtime.enter());
        let start = tokio::time::Instant::now();
        Some(Self { runtime, start })
    }

    fn advance(self, by: Duration) {
        self.runtime.block_on(tokio::time::advance(by));
    }

    /// Tokio's timers ring at whole milliseconds after the start of their runtime, and the queue
    /// before may have moved its clock by less: a new one would see its timers ring late.
    fn advance_to_whole_tick(self) {
        let since = self.start.elapsed().as_nanos();
        let ticks = since.div_ceil(TICK.as_nanos());
        let missing = ticks * TICK.as_nanos() - since;
        self.advance(Duration::from_nanos(missing as u64));
    }
}

impl<P: Kind + 'static, S: Home + 'static> Runtime for Tasks<P, S> {
    type Host = TaskHost<Key, P, AnyLimiter, S>;
    type Calls = Futures;
    const GRAIN: Duration = TICK;

    fn new(setup: &Configuration) -> Self {
        let figures = setup.metrics.then(SharedFigures::default);
        let queue = S::build(setup, figures.clone().map_or(Reporter::NONE, Reporter::new));
        // Inside the runtime, so that the queue's clock is the paused one.
        if let Some(paused) = Paused::here() {
            paused.advance_to_whole_tick();
        }
        Self {
            queue: WorkQueue::from(queue),
            figures,
        }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        self.queue.as_shared()
    }

    /// As far as an [`Instant`] reaches: Tokio's own would go on.
    fn advance(&mut self, by: Duration) {
        let left = Instant::NEVER.saturating_since(self.queue.now());
        if let Some(paused) = Paused::here() {
            paused.advance(by.min(left));
        }
    }

    calls_of_tasks! { Ok }

    fn figures(&self) -> Option<Figures> {
        self.figures.as_ref().map(SharedFigures::get)
    }
}
