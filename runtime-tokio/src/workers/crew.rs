//! The workers of one run.

use std::future::poll_fn;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::binding::Clock;
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
    queue: WorkQueue<K, L, S>,
    workers: Workers<'static, K, E>,
    reconcile: F,
    options: Options,
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
    pub(super) fn new(
        queue: WorkQueue<K, L, S>,
        workers: Workers<'static, K, E>,
        reconcile: F,
        options: Options,
    ) -> Self {
        Self {
            queue,
            workers,
            reconcile,
            options,
        }
    }

    /// Works until the queue is shut down and drained. Returns what is left.
    pub(super) async fn work_off(self: Arc<Self>) -> Vec<Leftover<K>> {
        let mut workers = pin!(self.employ());
        let shut_down_on = &self.options.shut_down_on;
        if shut_down_on
            .run_until_cancelled(workers.as_mut())
            .await
            .is_none()
        {
            // Other calls may wait for the drain; this run waits for it by its workers.
            let _ = self.queue.begin_drain();
            workers.await;
        }
        self.queue.leftovers()
    }

    /// Keeps the chosen number of workers until the queue is closed and all have ended. Dropping
    /// this aborts them.
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
            if self.is_too_late() {
                // It goes back among the leftovers, without a failure.
                let _ = guard.retry_after(Duration::ZERO);
                return;
            }
            let action = self.reconcile(&guard).await;
            // A dismissed worker drops `turn`, which ends the run all the same.
            let turn = queue.next(guard, action);
            next = self.take(&dismissed, turn).await;
        }
    }

    /// The key of this turn, unless the worker is dismissed. Not while the queue drains: the others
    /// may have ended, and a key that was added during its last run is ready again.
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
        let span = self.workers.span(guard, guard.attempt(), guard.waited());
        let run = async { (self.reconcile)(guard.key().clone(), guard.context()).await };
        let result = match span.contain(caught(run)).await {
            Ok(result) => result.map_err(Failure::Error),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        let (action, report) = self.workers.judge(guard.requeues(), result, span);
        if let Some(report) = report {
            // A hook that panics must not take its worker, and the key, with it.
            let report = AssertUnwindSafe(|| self.workers.report(guard, report));
            let _ = catch_unwind(report);
        }
        action
    }

    fn is_too_late(&self) -> bool {
        let Some(limit) = self.workers.drain_limit() else {
            return false;
        };
        let closed_at = self.queue.closed_at();
        closed_at.is_some_and(|closed_at| self.queue.clock().now() >= closed_at + limit)
    }
}

/// Runs a future to its end or its panic. The reconciler's own state is its own affair, as after a
/// panic in any task.
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
