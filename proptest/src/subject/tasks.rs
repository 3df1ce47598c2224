//! requeue-tokio: its own lock, clock and way of waiting, on Tokio's paused clock.

use std::cell::OnceCell;
use std::time::Duration;

use requeue_core::{Clock, Completion, GetError, Growable, Instant, Queue, Ticket};
use requeue_tokio::{Guard, Locked, Shared, TokioClock, Wakers, WorkQueue};
use tokio::runtime;

use super::futures::poll_once;
use super::shared::{Runtime, handed, panicking};
use super::{Answer, Call, Futures, Handed, Home, Key, LocalCall, Setup, WaitingRuntime};
use crate::Figures;
use crate::trace::limiter::AnyLimiter;

/// requeue-tokio's queue.
#[derive(Debug)]
pub struct Tasks<S: Home = Growable> {
    queue: WorkQueue<Key, AnyLimiter, Figures, S>,
    waits: bool,
    calls: Futures,
}

thread_local! {
    /// A runtime for each thread that tests, whose clock is paused.
    static PAUSED: OnceCell<Option<&'static runtime::Runtime>> = const { OnceCell::new() };
}

/// Enters a new paused runtime for good, since Tokio's clock is that of the runtime one is in. Both
/// the runtime and the guard are leaked, once per thread: no order in which a thread that ends
/// drops them suits Tokio's own thread-local data.
fn enter_for_good() -> Option<&'static runtime::Runtime> {
    let mut builder = runtime::Builder::new_current_thread();
    let runtime = builder.enable_time().start_paused(true).build().ok()?;
    let runtime: &'static _ = Box::leak(Box::new(runtime));
    std::mem::forget(runtime.enter());
    Some(runtime)
}

/// Runs a future on this thread's runtime; nothing if there can be none.
fn paused<F: Future>(future: F) -> Option<F::Output> {
    let runtime = PAUSED.with(|paused| *paused.get_or_init(enter_for_good))?;
    Some(runtime.block_on(future))
}

impl<S: Home> Runtime for Tasks<S> {
    type Storage = S;
    type Metrics = Figures;
    type Lock = Locked<Queue<Key, S, AnyLimiter, Figures>>;
    type Clock = TokioClock;
    type Waker = Wakers;

    fn new(setup: &Setup) -> Self {
        let queue = S::build(setup, Figures::default());
        // Inside the runtime, so that the queue's clock is the paused one.
        let _ = paused(async {});
        Self {
            queue: WorkQueue::from(queue),
            waits: false,
            calls: Futures::new(),
        }
    }

    fn queue(&self) -> &Shared<Key, AnyLimiter, Figures, S> {
        &self.queue
    }

    /// As far as an [`Instant`] reaches: Tokio's own would go on.
    fn advance(&mut self, by: Duration) {
        let left = Instant::NEVER.saturating_since(self.queue.clock().now());
        let _ = paused(tokio::time::advance(by.min(left)));
    }

    /// In turns by asking, and by waiting for no time.
    fn try_get(&mut self) -> Option<Handed<Ticket>> {
        self.waits = !self.waits;
        let guard = if self.waits {
            poll_once(self.queue.get_timeout(Duration::ZERO)).and_then(Result::ok)
        } else {
            self.queue.try_get()
        };
        guard.and_then(handed)
    }

    fn panic_at_work(&mut self) {
        panicking(|| self.queue.try_get());
    }
}

impl<S: Home + 'static> WaitingRuntime for Tasks<S> {
    type Calls = Futures;
    /// Tokio's timers count milliseconds.
    const GRAIN: Duration = Duration::from_millis(1);

    fn begin(&self, call: Call) -> Option<LocalCall> {
        let queue = self.queue.clone();
        Some(match call {
            Call::Get => Box::pin(async move { work(queue.get().await) }),
            Call::GetTimeout(timeout) => {
                Box::pin(async move { work_in_time(queue.get_timeout(timeout).await) })
            }
            Call::Next(completion) => {
                let guard = queue.try_get()?;
                Box::pin(async move { work(queue.next(guard, completion).await) })
            }
            Call::Drain => {
                Box::pin(async move { Answer::Drained(queue.shut_down_with_drain().await) })
            }
            Call::DrainTimeout(timeout) => {
                Box::pin(async move { Answer::Drained(queue.drain_timeout(timeout).await) })
            }
        })
    }

    fn next_unrun(&mut self, completion: Completion) -> bool {
        let guard = self.queue.try_get();
        guard
            .map(|guard| drop(self.queue.next(guard, completion)))
            .is_some()
    }

    fn calls(&mut self) -> &mut Futures {
        &mut self.calls
    }
}

fn work<S: Home>(guard: Option<Guard<Key, AnyLimiter, Figures, S>>) -> Answer<Ticket> {
    work_in_time(guard.ok_or(GetError::Closed))
}

fn work_in_time<S: Home>(
    got: Result<Guard<Key, AnyLimiter, Figures, S>, GetError>,
) -> Answer<Ticket> {
    Answer::from(got.map(handed))
}
