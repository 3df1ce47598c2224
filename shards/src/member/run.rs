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
    /// shut down. Then no key begins to run, each shard is released when its last run has ended,
    /// the member leaves, and the queue is shut down and drained.
    ///
    /// What `reconcile` returns means the same as in
    /// [`WorkQueue::run_with`](requeue_tokio::WorkQueue::run_with). A [mark](crate::Shards::mark)
    /// of the key is ended by `Success` and `Release` and given another time by `RequeueAfter`, if
    /// it is the one that was there when the run began; otherwise it stays. If the engine cannot do
    /// that, the key is retried. A mark whose [time](crate::Shards::mark_after) had not come when
    /// the run began stays too, unless `RequeueAfter` gives it an earlier one, and the key runs
    /// again at that time.
    ///
    /// If the membership ends, because the engine was not reached for the TTL, all runs
    /// learn of it from [`Ownership::lost`], and the member joins again as soon as it can. Nothing runs
    /// meanwhile.
    ///
    /// A queue can be run once. Of two calls at the same time the second begins when the first has
    /// ended.
    ///
    /// # Errors
    ///
    /// If the membership has ended and cannot begin again: the engine denies access, or the set was
    /// made with another number of shards. Then the queue is shut down and drained.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts the runs, as with `run_with`, and shards that are owned are free
    /// after the TTL.
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
        // Also cancelled by the end of the queue.
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

/// By how much an engine may round the time of a mark up: a run at that time is not early.
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

    /// Ends the mark that the run has worked on, and returns how the run ends.
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
            // Otherwise this version has ended before, or the key is marked again or its shard has
            // moved, and it runs again.
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

    /// The run began before the time of its mark, for another reason: the key runs then as well.
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

/// Tells what still runs that nothing is owned any more, also if the future is dropped.
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
