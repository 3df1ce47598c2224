//! The runs of a member's keys.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use requeue_core::RunContext;
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_tokio::binding::{Shared, TaskHost};
use requeue_tokio::{Action, AddOptions, CancellationToken, IntoAction, Workers};
use tokio::time::Instant;
use tracing::warn;

use crate::engine::{Engine, Mark};
use crate::error::EngineError;
use crate::ownership::{Ownership, SeenMark, Tenure};
use crate::shard::{ShardKey, shard_of};

use super::{Member, Parts, session};

impl<K, E, P, L, S> Member<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    /// Takes shards and runs `reconcile` for their keys, until `stop` is cancelled or the queue is
    /// shut down.
    ///
    /// Then no key starts, each shard is released after its last run, the member leaves, and the
    /// queue is shut down and drained.
    ///
    /// If the engine is not reached for the TTL, the membership ends and all runs are told by
    /// [`Ownership::lost`]. The member joins again as soon as it can. Nothing runs meanwhile.
    ///
    /// The result of `reconcile` has the same meaning as in
    /// [`WorkQueue::run_with`](requeue_tokio::WorkQueue::run_with).
    ///
    /// A queue can be run once. A second call waits for the end of the first.
    ///
    /// # Marks
    ///
    /// `Success`, `GiveUp` and `Release` remove the key's [mark](crate::Shards::mark), and
    /// `RequeueAfter` gives it another time, if the mark has not changed since the run began. If
    /// the engine fails to do so, the key is retried.
    ///
    /// If the run began before the [time](crate::Shards::mark_after) of its mark, the mark stays,
    /// and the key runs again on time. A `RequeueAfter` that ends before that time replaces it.
    ///
    /// # Errors
    ///
    /// If the membership has ended and cannot begin again: the engine denies access, or the set has
    /// another number of shards. Then the queue is shut down and drained.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the runs, as with `run_with`. The owned shards are free after the
    /// TTL.
    ///
    /// # Panics
    ///
    /// As [`WorkQueue::run_with`](requeue_tokio::WorkQueue::run_with).
    pub async fn run<X, F, R>(
        &self,
        workers: impl Into<Workers<'static, K, X>>,
        stop: CancellationToken,
        reconcile: F,
    ) -> Result<(), EngineError>
    where
        X: Send + 'static,
        F: Fn(K, Ownership) -> R + Send + Sync + 'static,
        R: Future<Output: IntoAction<Error = X>> + Send + 'static,
    {
        let mut first = self.parts.first.lock().await;
        // The end of the queue cancels it too.
        let stop = stop.child_token();
        let idle = CancellationToken::new();
        let parts = Arc::clone(&self.parts);
        let work = move |key: K, context| {
            let run = Run::begin(&parts, &key, context);
            let work = run
                .as_ref()
                .map(|run| reconcile(key.clone(), run.owned.clone()));
            async move {
                match (run, work) {
                    (Some(run), Some(work)) => {
                        let result = work.await.into_action();
                        run.end_mark(&key, result).await
                    }
                    _ => Ok(Action::Success),
                }
            }
        };
        let work = self.parts.queue.run_with(workers, work);
        let _loses_all = LosesAll(&self.parts);
        let mut work = pin!(work.shut_down_on(idle.clone()));
        let mut sessions = pin!(session::drive(&self.parts, first.take(), &stop));
        tokio::select! {
            biased;
            ended = &mut sessions => {
                idle.cancel();
                work.await;
                ended
            }
            _ = &mut work => {
                stop.cancel();
                sessions.await
            }
        }
    }
}

/// A run of a key. Dropping it ends it.
struct Run<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    parts: Arc<Parts<K, E, P, L, S>>,
    tenure: Arc<Tenure<K, E::Session>>,
    owned: Ownership,
    /// The key's mark when the run began.
    mark: Option<SeenMark>,
}

/// How far an engine may round the time of a mark up. A run that early is on time.
const ROUNDED: Duration = Duration::from_millis(1);

impl<K, E, P, L, S> Run<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    /// `None` if the shard of the key is not owned.
    fn begin(parts: &Arc<Parts<K, E, P, L, S>>, key: &K, context: RunContext) -> Option<Self> {
        let shard = shard_of(key, parts.config.count);
        let mut table = parts.table();
        let Some(tenure) = table.tenure(shard, Instant::now()).map(Arc::clone) else {
            table.counters.skipped += 1;
            return None;
        };
        tenure.begin();
        drop(table);
        let (owned, mut mark) = (tenure.owned(context), tenure.mark(key));
        if let Some(mark) = &mut mark {
            mark.due = mark.due.filter(|due| *due > Instant::now() + ROUNDED);
        }
        let parts = Arc::clone(parts);
        Some(Self {
            parts,
            tenure,
            owned,
            mark,
        })
    }

    /// Removes or moves the mark that the run has worked on. Returns how the run ends.
    async fn end_mark<X>(&self, key: &K, result: Result<Action, X>) -> Result<Action, X> {
        let Some(SeenMark { version, due }) = self.mark else {
            return result;
        };
        let config = &self.parts.config;
        let delay = match &result {
            Ok(Action::Success | Action::GiveUp | Action::Release) => None,
            Ok(Action::RequeueAfter(delay)) => Some(*delay),
            _ => return result,
        };
        let left = due.map(|due| due.saturating_duration_since(Instant::now()));
        if let Some(left) = left.filter(|left| delay.is_none_or(|delay| *left <= delay)) {
            self.wait_for_mark(key, left);
            return result;
        }
        let again = delay.map(|delay| config.due(delay));
        let mark = Mark {
            shard: self.owned.shard(),
            key: key.encode().into_owned(),
            version,
            not_before: None,
            is_old: false,
            unreadable: None,
        };
        let session = &*self.tenure.session;
        let ended = config
            .engine
            .end_mark(session, self.owned.fence(), &mark, again);
        let ended = tokio::select! {
            biased;
            ended = session::in_time(ended, self.parts.patience()) => ended,
            () = self.owned.lost() => Ok(false),
        };
        match ended {
            // `false` means that this version was removed before, or that the key runs again,
            // because it was marked again or its shard has moved.
            Ok(_) => {
                self.tenure.forget_mark(key, version);
                result
            }
            Err(error) => {
                warn!(set = config.set, shard = %mark.shard, %error, "cannot end a mark");
                config.report(&error);
                Ok(Action::Retry)
            }
        }
    }

    /// The run began before the time of its mark, for another reason. The key also runs on time.
    fn wait_for_mark(&self, key: &K, left: Duration) {
        let options = AddOptions {
            after: Some(left),
            priority: Some(self.parts.fresh()),
            ..AddOptions::new()
        };
        // A queue that is shut down leaves it to the next owner.
        let _ = self.parts.queue.add_with(key.clone(), options);
    }
}

impl<K, E, P, L, S> Drop for Run<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    fn drop(&mut self) {
        let table = self.parts.table();
        let is_last = self.tenure.end();
        drop(table);
        if is_last && self.tenure.closed.is_cancelled() {
            self.parts.drained.notify_one();
        }
    }
}

/// Tells remaining runs that nothing is owned any more, also if the future is dropped.
struct LosesAll<'p, K, E, P, L, S>(&'p Parts<K, E, P, L, S>)
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage;

impl<K, E, P, L, S> Drop for LosesAll<'_, K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    fn drop(&mut self) {
        self.0.lose_all();
    }
}
