//! A replica that owns shards.

mod health;
mod run;
mod session;
mod slot;
mod table;
mod take_over;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue_core::limiter::{DefaultController, RateLimiter};
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_tokio::binding::{Shared, TaskHost};
use requeue_tokio::{AddOptions, Added, Rejected, WorkQueue};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::Instant;

use crate::engine::Engine;
use crate::error::EngineError;
use crate::metrics::MemberMetrics;
use crate::shard::{ShardKey, Taken};
use crate::shards::{Config, Shards};
use crate::status::Status;
use crate::view::View;

use health::Condition;
use session::Session;
use table::Table;

pub use table::Counters;

/// Lists the keys of a shard.
pub(crate) type Relist<K> = Box<dyn Fn(Taken) -> Listing<K> + Send + Sync>;

type Listing<K> = Pin<Box<dyn Future<Output = Result<Vec<K>, String>> + Send>>;

/// A replica that owns shards of a set and runs their keys. Returned by [`Shards::join`].
///
/// Clones are handles to the same member.
///
/// # Which keys run
///
/// When the queue hands out a key, the key runs if its shard is owned here. Otherwise it is
/// skipped: it leaves the queue without a run, because the owner has it too. This is also true of
/// keys that you add to the queue directly.
///
/// A key's delays and failures start again when its shard moves, as on any restart. Store a delay
/// that must survive in your source of truth, or as a [mark](Shards::mark_after). Keys of a shard
/// that has moved stay in this queue until it would hand them out.
///
/// # When a shard moves
///
/// No key of the shard starts, and the active runs end. Then the shard is released, and the next
/// owner lists its keys. A run that exceeds the [timeout](crate::Builder::drain_timeout) is told by
/// [`Ownership::lost`](crate::Ownership::lost), and the shard moves anyway.
///
/// # Examples
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use requeue_shards::{EngineError, Memory, Shards};
/// use requeue_tokio::{CancellationToken, WorkQueue};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), EngineError> {
/// let shards = Shards::builder(Memory::new(), "nodes").count(16).build();
/// let relist = |_| async { io::Result::Ok([String::from("node-7")]) };
/// let member = shards.join(&WorkQueue::new(), relist).await?;
/// assert_eq!(member.add(String::from("node-7")), Ok(None), "nothing is owned before it runs");
///
/// let stop = CancellationToken::new();
/// let reconcile = |_, _| async {};
/// let run = member.run(4, stop.clone(), reconcile);
/// let look = async {
///     tokio::time::sleep(Duration::from_secs(1)).await;
///     assert!(member.owns(&String::from("node-7")));
///     assert!(member.add(String::from("node-8")).unwrap().is_some());
///     assert_eq!(member.counters().owned(), 16);
///     println!("{}", member.status());
///     // The source of changes was interrupted.
///     member.relist();
///     stop.cancel();
/// };
/// let (ended, ()) = tokio::join!(run, look);
/// assert!(!member.owns(&String::from("node-7")), "all is handed over");
/// ended
/// # }
/// ```
pub struct Member<K, E, P = Plain, L = DefaultController, S = Growable>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    parts: Arc<Parts<K, E, P, L, S>>,
}

struct Parts<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    config: Arc<Config<E>>,
    queue: WorkQueue<K, P, L, S>,
    relist: Relist<K>,
    table: Mutex<Table<K, E::Session>>,
    /// Notified when the last run of a moving shard has ended.
    drained: Notify,
    relists: Semaphore,
    view: watch::Sender<View>,
    condition: Mutex<Condition>,
    metrics: MemberMetrics,
    /// The session that `join` began, until `run` takes it. Locked while the member runs.
    first: tokio::sync::Mutex<Option<Session<E>>>,
}

/// How many shards are listed at once, so that taking over many shards does not flood the source.
const RELISTS_MAX: usize = 4;

impl<K, E, P, L, S> Member<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + 'static,
    Shared<TaskHost<K, P, L, S>>: Send + Sync,
{
    pub(crate) async fn join(
        config: Arc<Config<E>>,
        queue: WorkQueue<K, P, L, S>,
        relist: Relist<K>,
    ) -> Result<Self, EngineError> {
        let patience = config.ttl.saturating_mul(2);
        let first = session::begin(&config, Some(Instant::now() + patience)).await?;
        let table = Table::new(
            &config.member,
            config.count,
            config.drain_timeout,
            config.moves_max,
        );
        let metrics = MemberMetrics::new(&config.set);
        Ok(Self {
            parts: Arc::new(Parts {
                config,
                queue,
                relist,
                table: Mutex::new(table),
                drained: Notify::new(),
                relists: Semaphore::new(RELISTS_MAX),
                view: watch::Sender::default(),
                condition: Mutex::default(),
                metrics,
                first: tokio::sync::Mutex::new(Some(first)),
            }),
        })
    }

    /// Adds a key if its shard is owned here, and otherwise returns `None`. O(1).
    ///
    /// The owner of another shard adds its keys itself, because every replica watches the same
    /// source. [Mark](Shards::mark) a key that only this replica knows of.
    ///
    /// In a queue with priority levels, the key goes before keys that are listed.
    ///
    /// # Errors
    ///
    /// As [`WorkQueue::add`](WorkQueue::add).
    pub fn add(&self, key: K) -> Result<Option<Added>, Rejected<K>> {
        let priority = Some(self.parts.fresh());
        self.add_with(
            key,
            AddOptions {
                priority,
                ..AddOptions::new()
            },
        )
    }

    /// As [`add`](Self::add), with options. Listed keys have priority 0. O(log n).
    ///
    /// # Errors
    ///
    /// As [`WorkQueue::add_with`](WorkQueue::add_with).
    pub fn add_with(&self, key: K, options: AddOptions) -> Result<Option<Added>, Rejected<K>> {
        if !self.owns(&key) {
            return Ok(None);
        }
        let scheduled = self.parts.queue.add_with(key, options)?;
        Ok(Some(scheduled.added))
    }

    /// Returns whether the key's shard is owned here, so that its keys may start. O(1).
    pub fn owns(&self, key: &K) -> bool {
        let shard = self.shards().shard_of(key);
        self.parts.table().tenure(shard, Instant::now()).is_some()
    }

    /// Lists the keys of all owned shards again. O(S) for S shards.
    ///
    /// Call it when the stream of changes from your source was interrupted. It returns at once. A
    /// shard that is being listed is listed once more.
    pub fn relist(&self) {
        let tenures = self.parts.table().tenures(Instant::now());
        for tenure in tenures {
            tenure.relist.notify_one();
        }
    }

    /// Returns the set, to mark keys.
    pub fn shards(&self) -> Shards<E> {
        Shards {
            config: Arc::clone(&self.parts.config),
        }
    }

    /// Returns the queue.
    pub fn queue(&self) -> &WorkQueue<K, P, L, S> {
        &self.parts.queue
    }

    /// Returns the members and the owner of each shard, as this member saw them last. O(M·S) for M
    /// members and S shards.
    pub fn status(&self) -> Status {
        let config = &self.parts.config;
        Status::new(&config.set, config.count, &self.parts.view.borrow())
    }

    /// Returns what this member has done since it was made. O(1).
    pub fn counters(&self) -> Counters {
        self.parts.table().counters
    }
}

impl<K, E, P, L, S> Parts<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    fn table(&self) -> MutexGuard<'_, Table<K, E::Session>> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lose_all(&self) {
        self.condition().session = None;
        let mut table = self.table();
        table.lose_all();
        self.metrics.report(&table.counters);
    }

    /// The priority of added keys: one above listed keys.
    fn fresh(&self) -> u8 {
        P::LEVELS.saturating_sub(1).min(1)
    }

    /// How long one operation of the engine may take. It leaves time for another within the TTL.
    fn patience(&self) -> Duration {
        self.config.ttl / 3
    }
}

impl<K, E, P, L, S> Clone for Member<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    fn clone(&self) -> Self {
        Self {
            parts: Arc::clone(&self.parts),
        }
    }
}

impl<K, E, P, L, S> fmt::Debug for Member<K, E, P, L, S>
where
    K: ShardKey,
    E: Engine,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member")
            .field("name", &self.parts.config.member)
            .field("counters", &self.parts.table().counters)
            .finish_non_exhaustive()
    }
}
