//! The workers of one run.

use std::future::poll_fn;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::{Action, Failure, Leftover, RateLimiter, RunContext, Storage, Workers};
use tokio_util::sync::CancellationToken;

use super::Options;
use crate::queue::{Guard, Shared, WorkQueue};
use crate::sync::JoinSet;

/// What the workers of one run share.
pub(super) struct Crew<K, L, S, E, F>
where
    K: Eq + Hash,
    L: RateLimiter,
    S: Storage,
{
    pub(super) queue: WorkQueue<K, L, S>,
    pub(super) workers: Workers<'static, K, E>,
    pub(super) reconcile: F,
    pub(super) options: Options,
}

impl<K, L, S, E, F, R> Crew<K, L, S, E, F>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<K, L, S>: Send + Sync,
    E: Send + 'static,
    F: Fn(K, RunContext) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    /// Processes keys until the queue is shut down and drained. Returns what is left.
    pub(super) async fn work_off(self: Arc<Self>) -> Vec<Leftover<K>> {
        let mut workers = pin!(self.employ());
        let shut_down_on = &self.options.shut_down_on;
        if shut_down_on
            .run_until_cancelled(workers.as_mut())
            .await
            .is_none()
        {
            // The workers end once the queue has drained, so nothing else waits for the drain here.
            let _ = self.queue.begin_drain();
            workers.await;
        }
        self.queue.leftovers()
    }

    /// Runs the chosen number of workers until the queue is closed and all have ended. Dropping the
    /// future aborts them.
    async fn employ(self: &Arc<Self>) {
        let mut count = self.options.concurrency.0.subscribe();
        let mut tasks = JoinSet::new();
        let mut dismissals: Vec<CancellationToken> = Vec::new();
        loop {
            let count_now = *count.borrow_and_update();
            while dismissals.len() < count_now {
                let dismissed = CancellationToken::new();
                tasks.spawn(Arc::clone(self).work(dismissed.clone()));
                dismissals.push(dismissed);
            }
            for dismissed in dismissals.drain(count_now..) {
                dismissed.cancel();
            }
            let mut recount = pin!(count.changed());
            let ended = poll_fn(|context| match recount.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(Some(Ok(()))),
                Poll::Pending => tasks.poll_join_next(context),
            });
            match ended.await {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    // Only the end of the runtime aborts them.
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                }
                None => return,
            }
        }
    }

    /// One worker's loop: each turn ends a run and takes the next key under one lock.
    async fn work(self: Arc<Self>, dismissed: CancellationToken) {
        let queue = &self.queue;
        let mut next = self.take(&dismissed, queue.get()).await;
        while let Some(guard) = next {
            if self.workers.is_past_drain_deadline(queue) {
                // The key becomes a leftover, without a failure.
                let _ = guard.retry_after(Duration::ZERO);
                return;
            }
            let action = self.reconcile(&guard).await;
            // A worker that is stopped here drops `turn`, which ends the run all the same.
            let turn = queue.next(guard, action);
            next = self.take(&dismissed, turn).await;
        }
    }

    /// Returns the next key, unless the worker is surplus. While the queue drains no worker is: the
    /// others may have ended, and a key that was added during its last run is ready again.
    async fn take(
        &self,
        dismissed: &CancellationToken,
        turn: impl Future<Output = Option<Guard<K, L, S>>>,
    ) -> Option<Guard<K, L, S>> {
        match dismissed.run_until_cancelled(turn).await {
            Some(next) => next,
            None if self.queue.shutting_down() => self.queue.get().await,
            None => None,
        }
    }

    /// One run of one key.
    async fn reconcile(&self, guard: &Guard<K, L, S>) -> Action {
        let queue = guard.queue();
        let begun = self.workers.begin(guard, guard.context(), queue);
        let run = async { (self.reconcile)(guard.key().clone(), begun.context()).await };
        // Dropped inside as well, because its `Drop` may panic.
        let result = match caught(begun.contain(queue.clock(), run)).await {
            Ok(Some(result)) => result.map_err(Failure::Error),
            Ok(None) => Err(Failure::TimedOut(
                self.workers.run_limit().unwrap_or_default(),
            )),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        let (action, report) = self.workers.judge(guard, begun, result, queue);
        if let Some(report) = report {
            // A hook that panics must not end its worker and lose the key.
            let report = AssertUnwindSafe(|| self.workers.report(guard, report));
            let _ = catch_unwind(report);
        }
        action
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
