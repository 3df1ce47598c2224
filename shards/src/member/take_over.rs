//! The work for a shard that was taken over: its keys are listed, its marks are followed.

use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_tokio::binding::{Shared, TaskHost};
use requeue_tokio::{AddOptions, Merge, Rejected};
use tokio::sync::mpsc;
use tokio::task::yield_now;
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use crate::backoff::Backoff;
use crate::engine::{Engine, Mark};
use crate::error::EngineError;
use crate::ownership::{SeenMark, Tenure};
use crate::shard::{Shard, ShardKey, Taken, shard_of};
use crate::shards::FAR;

use super::Parts;

/// How many keys are added before the task yields.
const TURN: usize = 64;

impl<K, E, P, L, S> Parts<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    /// Lists the keys of a shard and adds them on each request, while the shard is owned.
    pub(super) async fn list(&self, tenure: &Tenure<K, E::Session>) {
        let listed = async {
            loop {
                tenure.relist.notified().await;
                self.list_once(tenure).await;
            }
        };
        let _: Option<()> = tenure.closed.run_until_cancelled(listed).await;
    }

    /// Lists the keys of a shard and adds them. Retries until that succeeds.
    async fn list_once(&self, tenure: &Tenure<K, E::Session>) {
        let (config, shard) = (&*self.config, tenure.shard());
        let mut backoff = Backoff::new(config.ttl, config.seed ^ u64::from(shard.0));
        loop {
            // The semaphore is never closed.
            let permit = self.relists.acquire().await;
            match self.call_relist(tenure.taken()).await {
                Ok(keys) => {
                    self.add_listed(shard, keys).await;
                    self.table().counters.relisted += 1;
                    return;
                }
                Err(error) => {
                    self.table().counters.relists_failed += 1;
                    warn!(set = config.set, %shard, error, "cannot list keys; tries again");
                }
            }
            drop(permit);
            sleep(backoff.next()).await;
        }
    }

    async fn call_relist(&self, taken: Taken) -> Result<Vec<K>, String> {
        let limit = self.config.relist_limit;
        let listed = AssertUnwindSafe(async { (self.relist)(taken).await }).catch_unwind();
        match timeout(limit, listed).await {
            Ok(Ok(listed)) => listed,
            Ok(Err(_)) => Err(String::from("it panicked")),
            Err(_) => Err(format!("it has taken longer than {limit:?}")),
        }
    }

    async fn add_listed(&self, shard: Shard, keys: Vec<K>) {
        let options = AddOptions {
            priority: Some(0),
            ..AddOptions::new()
        };
        let keys = keys
            .into_iter()
            .filter(|key| shard_of(key, self.config.count) == shard);
        for (number, key) in keys.enumerate() {
            if self
                .queue
                .add_wait_with(key, options, Duration::MAX)
                .await
                .is_err()
            {
                return;
            }
            if number % TURN == TURN - 1 {
                yield_now().await;
            }
        }
    }

    /// Adds the marked keys of a shard while it is owned.
    pub(super) async fn follow_marks(&self, tenure: &Tenure<K, E::Session>) {
        let (config, shard) = (&*self.config, tenure.shard());
        let followed = async {
            let mut backoff = Backoff::new(config.ttl, config.seed ^ u64::from(shard.0));
            loop {
                let begun = Instant::now();
                let (sender, mut marks) = mpsc::channel(TURN);
                let add = async {
                    while let Some(mark) = marks.recv().await {
                        self.add_marked(tenure, mark).await;
                    }
                };
                let ended = tokio::select! {
                    biased;
                    () = add => Ok(()),
                    ended = config.engine.follow_marks(&config.set, shard, &sender) => ended,
                };
                if let Err(error) = ended {
                    warn!(set = config.set, %shard, %error, "cannot follow marks; tries again");
                    config.report(&error);
                }
                // Marks that were received but not added are sent again.
                sleep(backoff.next_after(begun.elapsed())).await;
            }
        };
        let _: Option<()> = tenure.closed.run_until_cancelled(followed).await;
    }

    async fn add_marked(&self, tenure: &Tenure<K, E::Session>, mark: Mark) {
        let (config, shard) = (&*self.config, tenure.shard());
        let shown = mark.key.escape_ascii();
        if let Some(value) = &mark.unreadable {
            self.unreadable_mark(shard, format!("the mark {shown} = {value} runs at once"));
        }
        let key = K::decode(&mark.key);
        let Some(key) = key.filter(|key| shard_of(key, config.count) == shard) else {
            self.unreadable_mark(
                shard,
                format!("the mark {shown} is no key of shard {shard}"),
            );
            return;
        };
        let now = (config.wall_clock)();
        let left = mark
            .not_before
            .map(|due| due.duration_since(now).unwrap_or_default());
        // Marks from before this ownership go behind new ones.
        let options = AddOptions {
            after: left,
            priority: Some(if mark.is_old { 0 } else { self.fresh() }),
            merge: Merge::Once,
            ..AddOptions::new()
        };
        let seen = SeenMark {
            version: mark.version,
            due: left.map(|left| Instant::now() + left.min(FAR)),
        };
        tenure.see_mark(key.clone(), seen);
        match self.queue.add_wait_with(key, options, Duration::MAX).await {
            Ok(_) | Err(Rejected::Closed(_)) => {}
            Err(rejected) => {
                let why = rejected.to_string();
                warn!(set = config.set, %shard, why, "a mark that the queue does not take");
            }
        }
    }

    fn unreadable_mark(&self, shard: Shard, what: String) {
        self.table().counters.marks_unreadable += 1;
        warn!(set = self.config.set, %shard, what, "a mark that cannot be read");
        self.config.report(&EngineError::Unreadable(what));
    }
}
