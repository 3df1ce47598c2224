//! The workers of one run. Owns their tasks, and what becomes of a run that is dropped or panics;
//! which key comes next is the queue's.

use std::convert::Infallible;
use std::future::poll_fn;
use std::mem;
use std::ops::ControlFlow::{Break, Continue};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Poll, ready};

use requeue_core::binding::{
    GrowableWaitList, Host, Next, Shared, Slots, Wait, Worker, try_in_turn,
};
use requeue_core::{Action, Failure, Guard, IntoAction, Leftover, RunContext, Workers};
use tokio_util::sync::CancellationToken;

use crate::clock::QueueClock;
use crate::sync::{JoinSet, Mutex};

/// What the workers of one run share.
pub(super) struct Supervised<H: Host, E, F> {
    pub(super) queue: Arc<Shared<H>>,
    pub(super) workers: Workers<'static, H::Key, E>,
    pub(super) reconcile: F,
    pub(super) slots: Mutex<Slots>,
}

impl<H, E, F, R> Supervised<H, E, F>
where
    H: Host<Key: Clone + Send + Sync, Waiters = GrowableWaitList, Clock = QueueClock> + 'static,
    Shared<H>: Send + Sync,
    E: Send + 'static,
    F: Fn(H::Key, RunContext) -> R + Send + Sync + 'static,
    R: Future<Output: IntoAction<Error = E>> + Send + 'static,
{
    /// Processes keys until the queue is shut down, by `shut_down_on` or otherwise, and drained.
    /// Returns what is left.
    pub(super) async fn supervise(
        self: Arc<Self>,
        shut_down_on: &CancellationToken,
    ) -> Vec<Leftover<H::Key>> {
        let mut workers = pin!(self.work_off());
        if shut_down_on
            .run_until_cancelled(workers.as_mut())
            .await
            .is_none()
        {
            // The workers end once the queue has drained, so nothing else waits for the drain here.
            let _ = self.queue.begin_drain();
            workers.await;
        }
        self.queue.leftovers().collect()
    }

    /// Runs the chosen number of workers until the queue is closed and all have ended. Dropping the
    /// future aborts them.
    async fn work_off(self: &Arc<Self>) {
        let mut changes = self.workers.wanted().changes();
        let mut tasks = JoinSet::new();
        loop {
            let wanted = changes.wanted(self.queue.is_shutting_down());
            let mut missing = Vec::new();
            let Ok(has_surplus) = self.slots.lock().fill(wanted, |number| {
                missing.push(number);
                Ok::<_, Infallible>(())
            });
            for number in missing {
                tasks.spawn(Arc::clone(self).work(number));
            }
            if has_surplus {
                // Those that wait for a key see that they are surplus, and pass on their wake.
                self.queue.wake_all();
            }
            let mut closed = pin!(self.queue.watch(|session| {
                if session.is_shutting_down() {
                    Next::Work(())
                } else {
                    Next::Wait { until: None }
                }
            }));
            let news = poll_fn(|context| {
                if changes.poll_set(context.waker()).is_ready() {
                    return Poll::Ready(Continue(Ok(())));
                }
                match ready!(tasks.poll_join_next(context)) {
                    Some(ended) => Poll::Ready(Continue(ended)),
                    None if self.slots.lock().is_over() => Poll::Ready(Break(())),
                    // Only shutdown and another number concern a run without workers.
                    None => closed.as_mut().poll(context).map(|_| Continue(Ok(()))),
                }
            });
            match news.await {
                Continue(Ok(())) => {}
                Continue(Err(error)) => {
                    // Only the end of the runtime aborts them.
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                }
                Break(()) => return,
            }
        }
    }

    /// One worker's loop: each turn ends a run and takes the next key under one lock.
    async fn work(self: Arc<Self>, number: usize) {
        let mut present = Present {
            slots: &self.slots,
            worker: Worker::new(number).drain_limit(self.workers.drain_limit()),
        };
        let mut call = Wait::for_key(&*self.queue);
        while let Some(guard) = self.take(&mut present.worker, call).await {
            let action = self.reconcile(&guard).await;
            call = Wait::after(guard, action, &*self.queue);
        }
    }

    /// Returns the next key, and ends a run before, if that is part of the call. `None` if there is
    /// none any more, or the worker is surplus. The run ends in any case, even if the future is
    /// dropped.
    async fn take(
        &self,
        worker: &mut Worker,
        mut call: Wait<H, &Shared<H>>,
    ) -> Option<Guard<H, Arc<Shared<H>>>> {
        let (queue, wanted) = (&self.queue, self.workers.wanted());
        let mut work =
            try_in_turn::<QueueClock, _>(|| worker.try_get(wanted.get(), &mut call)).await;
        if work.is_none() {
            let taken = call.wait(None, |session, getter| {
                worker.poll_get(wanted.get(), session, queue.clock(), getter)
            });
            work = taken.await.ok();
        }
        Some(Guard::new(work?, Arc::clone(queue)))
    }

    /// One run of one key.
    async fn reconcile(&self, guard: &Guard<H, Arc<Shared<H>>>) -> Action {
        let queue = guard.queue();
        let begun = self.workers.begin(guard, guard.context(), queue);
        let aborted = Aborted {
            workers: &self.workers,
            key: guard.key(),
        };
        let run = async {
            (self.reconcile)(guard.key().clone(), begun.context())
                .await
                .into_action()
        };
        // Dropped inside as well, because its `Drop` may panic.
        let result = match caught(begun.contain(queue.clock(), run)).await {
            Ok(Some(result)) => result.map_err(Failure::Error),
            Ok(None) => Err(Failure::TimedOut(
                self.workers.run_limit().unwrap_or_default(),
            )),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        mem::forget(aborted);
        self.workers.end(guard, begun, result, queue)
    }
}

/// A worker that has a slot, which it leaves when this is dropped.
struct Present<'c> {
    slots: &'c Mutex<Slots>,
    worker: Worker,
}

impl Drop for Present<'_> {
    fn drop(&mut self) {
        self.slots.lock().leave(&self.worker);
    }
}

/// Reports a run that is dropped before it ends.
struct Aborted<'c, K, E> {
    workers: &'c Workers<'static, K, E>,
    key: &'c K,
}

impl<K, E> Drop for Aborted<'_, K, E> {
    fn drop(&mut self) {
        self.workers.aborted(self.key);
    }
}

/// Runs a future until it ends or panics. The reconciler answers for its own state, as after any
/// panic in a task.
pub(crate) async fn caught<R: Future>(run: R) -> std::thread::Result<R::Output> {
    let mut run = pin!(run);
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| run.as_mut().poll(context));
        match catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}
