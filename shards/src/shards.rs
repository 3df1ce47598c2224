//! A set of shards, and its builder.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use requeue_tokio::WorkQueue;
use requeue_tokio::binding::{Shared, TaskHost};
use requeue_tokio::limiter::RateLimiter;
use requeue_tokio::priority::Priorities;
use requeue_tokio::storage::Storage;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::engine::{Engine, NewMark};
use crate::error::{EngineError, Source};
use crate::member::{Member, Relist};
use crate::shard::{Shard, ShardKey, Taken, fnv1a, shard_of};
use crate::status::Status;
use crate::view::View;

/// A set of shards: a key space in a fixed number of parts, each owned by one member at a time.
///
/// Clones are handles to the same set. A replica that only [marks](Self::mark) keys need not
/// [join](Self::join).
///
/// # Examples
///
/// ```
/// use std::io;
/// use std::time::Duration;
/// use requeue_shards::{Memory, Ownership, Shards, Taken};
/// use requeue_tokio::{CancellationToken, WorkQueue, Workers};
///
/// /// Lists the keys of a shard from the source of truth, each time the shard is taken over.
/// async fn relist(_taken: Taken) -> io::Result<Vec<String>> {
///     Ok(vec![String::from("node-7")])
/// }
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), requeue_shards::EngineError> {
/// let shards = Shards::builder(Memory::new(), "webhooks").build();
/// let queue = WorkQueue::builder().levels::<2>().build();
/// let member = shards.join(&queue, relist).await?;
///
/// let stop = CancellationToken::new();
/// let stopped = stop.clone();
/// let run = member.run(Workers::new(8), stop, move |key: String, owned: Ownership| {
///     let stopped = stopped.clone();
///     async move {
///         println!("{key} is written with the fence {}", owned.fence());
///         stopped.cancel();
///     }
/// });
/// run.await
/// # }
/// ```
pub struct Shards<E> {
    pub(crate) config: Arc<Config<E>>,
}

pub(crate) struct Config<E> {
    pub(crate) engine: E,
    pub(crate) set: String,
    pub(crate) count: NonZeroU32,
    pub(crate) ttl: Duration,
    pub(crate) drain_timeout: Duration,
    pub(crate) moves_max: usize,
    pub(crate) relist_limit: Duration,
    pub(crate) member: String,
    /// So that replicas do not retry in lockstep.
    pub(crate) seed: u64,
    pub(crate) follows_marks: bool,
    pub(crate) wall_clock: WallClock,
    on_error: OnError,
    /// Whether the engine is known to have this number of shards, so that marks can be stored.
    is_opened: AtomicBool,
}

type OnError = Arc<dyn Fn(&EngineError) + Send + Sync>;

/// Longer than a process lives. Adding it to a time does not overflow.
pub(crate) const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

impl<E: Engine> Shards<E> {
    /// Creates a builder for a set with this name, kept by this engine. Every replica of the set
    /// uses the same name.
    pub fn builder(engine: E, set: &str) -> Builder<E> {
        let member = own_name();
        let config = Config {
            engine,
            set: set.to_owned(),
            count: NonZeroU32::MIN.saturating_add(63),
            ttl: Duration::from_secs(5),
            drain_timeout: Duration::from_secs(30),
            moves_max: 16,
            relist_limit: Duration::from_secs(60),
            seed: fnv1a(member.as_bytes()),
            member,
            follows_marks: false,
            wall_clock: Arc::new(SystemTime::now),
            on_error: Arc::new(|_| {}),
            is_opened: AtomicBool::new(false),
        };
        Builder { config }
    }

    /// Returns the number of shards.
    pub fn count(&self) -> NonZeroU32 {
        self.config.count
    }

    /// Returns the shard of a key.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_shards::{Memory, Shard, Shards};
    ///
    /// let shards = Shards::builder(Memory::new(), "webhooks").count(64).build();
    /// assert_eq!(shards.shard_of(&String::from("node-7")), Shard(53));
    /// ```
    pub fn shard_of<K: ShardKey>(&self, key: &K) -> Shard {
        shard_of(key, self.config.count)
    }

    /// Opens the set and joins it as a member, which runs its keys from `queue`.
    ///
    /// `relist` returns the keys of one shard from your source of truth. It is called each time
    /// this member takes a shard over, because a previous owner's queue may be lost. If your store
    /// keeps the greatest fence of each shard, store the new fence before you list. From then on
    /// the store refuses late writes of previous owners, even to keys that you never write.
    ///
    /// Keys of other shards are ignored, so a source that cannot select by shard may return more.
    /// If `relist` fails, panics, or exceeds [its limit](Builder::relist_limit), it is called again
    /// after a growing pause. Keys that are added meanwhile run.
    ///
    /// The member owns nothing until you poll [`run`](Member::run). If you do not within the TTL,
    /// the membership ends, and `run` begins another.
    ///
    /// # Errors
    ///
    /// If the set has another number of shards, if a member of the same name does not leave within
    /// two TTLs, or if the engine cannot be reached for as long.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a membership behind. It ends after the TTL.
    pub async fn join<K, P, L, S, R, F, I, X>(
        &self,
        queue: &WorkQueue<K, P, L, S>,
        relist: R,
    ) -> Result<Member<K, E, P, L, S>, EngineError>
    where
        K: ShardKey,
        P: Priorities + 'static,
        L: RateLimiter + 'static,
        S: Storage + 'static,
        Shared<TaskHost<K, P, L, S>>: Send + Sync,
        R: Fn(Taken) -> F + Send + Sync + 'static,
        F: Future<Output = Result<I, X>> + Send + 'static,
        I: IntoIterator<Item = K>,
        X: fmt::Display,
    {
        let relist: Relist<K> = Box::new(move |taken| {
            let keys = relist(taken);
            Box::pin(async move {
                let keys = keys.await.map_err(|error| error.to_string())?;
                Ok(keys.into_iter().collect())
            })
        });
        Member::join(Arc::clone(&self.config), queue.clone(), relist).await
    }

    /// Marks a key, so that the owner of its shard runs it.
    ///
    /// Use it for a key that only this replica knows of. Once `mark` has returned, no crash loses
    /// the mark. It stays in the engine until a run succeeds or gives up. A key that you mark
    /// during its run is *dirty*: it runs once more.
    ///
    /// # Examples
    ///
    /// A producer, which does not join, and a member that runs what is marked:
    ///
    /// ```
    /// use std::io;
    /// use requeue_shards::{EngineError, Memory, Ownership, Shards};
    /// use requeue_tokio::{CancellationToken, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), EngineError> {
    /// let engine = Memory::new();
    /// let shards = Shards::builder(engine.clone(), "orders").marks(true).build();
    /// // There is nothing to list: all work is marked.
    /// let nothing = |_| async { io::Result::Ok([]) };
    /// let member = shards.join(&WorkQueue::new(), nothing).await?;
    ///
    /// let producer = Shards::builder(engine, "orders").build();
    /// producer.mark(&String::from("order-1")).await?;
    ///
    /// let stop = CancellationToken::new();
    /// let stopped = stop.clone();
    /// let reconcile = move |key: String, _: Ownership| {
    ///     assert_eq!(key, "order-1");
    ///     stopped.cancel();
    ///     async {}
    /// };
    /// member.run(1, stop, reconcile).await
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`EngineError::CountDiffers`] if the set has another number of shards. Otherwise the error
    /// of the engine. After [`EngineError::Unreachable`] the mark may be stored or not.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the mark may be stored or not.
    pub async fn mark<K: ShardKey>(&self, key: &K) -> Result<(), EngineError> {
        self.put(&[self.new_mark(key, None)]).await
    }

    /// Marks a key that runs after `delay` at the earliest. If you mark it with two delays, the
    /// earlier deadline wins. If the key runs earlier for another reason, it also runs on time.
    ///
    /// The deadline is stored by this machine's wall clock, and compared with the owner's.
    ///
    /// # Errors
    ///
    /// As [`mark`](Self::mark).
    ///
    /// # Cancel safety
    ///
    /// As [`mark`](Self::mark).
    pub async fn mark_after<K: ShardKey>(
        &self,
        key: &K,
        delay: Duration,
    ) -> Result<(), EngineError> {
        let due = (!delay.is_zero()).then(|| self.config.due(delay));
        self.put(&[self.new_mark(key, due)]).await
    }

    /// Marks keys, many in one operation of the engine.
    ///
    /// # Errors
    ///
    /// As [`mark`](Self::mark). Some of the keys may be marked even so.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, some of the keys may be marked.
    pub async fn mark_many<'k, K: ShardKey>(
        &self,
        keys: impl IntoIterator<Item = &'k K>,
    ) -> Result<(), EngineError> {
        let marks = keys.into_iter().map(|key| self.new_mark(key, None));
        self.put(&marks.collect::<Vec<_>>()).await
    }

    async fn put(&self, marks: &[NewMark]) -> Result<(), EngineError> {
        let Config { engine, set, .. } = &*self.config;
        let is_opened = &self.config.is_opened;
        if E::MARKS && !is_opened.load(Ordering::Relaxed) {
            // With another number of shards, no owner would find the marks.
            engine.open(set, self.config.count.get()).await?;
            is_opened.store(true, Ordering::Relaxed);
        }
        let put = engine.put_marks(set, marks).await;
        if let Err(EngineError::StateLost(_)) = put {
            is_opened.store(false, Ordering::Relaxed);
        }
        put
    }

    fn new_mark<K: ShardKey>(&self, key: &K, not_before: Option<SystemTime>) -> NewMark {
        let shard = self.shard_of(key);
        let key = key.encode().into_owned();
        NewMark {
            shard,
            key,
            not_before,
        }
    }

    /// Returns the members and the owner of each shard, as the engine shows them now.
    ///
    /// # Errors
    ///
    /// If the engine fails, or shows nothing within the TTL.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn status(&self) -> Result<Status, EngineError> {
        let config = &*self.config;
        let (sender, mut view) = watch::channel(View::default());
        let complete = async {
            let view = view.wait_for(|view| view.is_complete).await;
            view.map(|view| view.clone()).unwrap_or_default()
        };
        let shown = async {
            tokio::select! {
                biased;
                view = complete => Ok(Status::new(&config.set, config.count, &view)),
                ended = config.engine.follow(&config.set, &sender) => match ended {
                    Ok(never) => match never {},
                    Err(error) => Err(error),
                },
            }
        };
        let late = |_| Err(EngineError::Unreachable(late("shown nothing", config.ttl)));
        timeout(config.ttl, shown).await.unwrap_or_else(late)
    }
}

impl<E> Config<E> {
    /// Calls the hook with an error. A panic of the hook is ignored.
    pub(crate) fn report(&self, error: &EngineError) {
        let report = AssertUnwindSafe(|| (self.on_error)(error));
        let _ = std::panic::catch_unwind(report);
    }

    /// The end of a delay by the wall clock.
    pub(crate) fn due(&self, delay: Duration) -> SystemTime {
        let now = (self.wall_clock)();
        now.checked_add(delay.min(FAR)).unwrap_or(now)
    }
}

pub(crate) fn late(what: &str, after: Duration) -> Source {
    Arc::from(Box::<dyn std::error::Error + Send + Sync>::from(format!(
        "it has {what} for {after:?}"
    )))
}

/// A name that no other process has, in characters that every engine accepts.
fn own_name() -> String {
    let host = std::fs::read_to_string("/etc/hostname").unwrap_or_default();
    let host = host.trim().to_ascii_lowercase();
    let host = host.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let host = match host.trim_matches('-') {
        "" => "replica",
        host => host,
    };
    let random = RandomState::new().hash_one(process::id());
    format!("{host}-{}-{:04x}", process::id(), random & 0xffff)
}

impl<E> Clone for Shards<E> {
    fn clone(&self) -> Self {
        Self {
            config: Arc::clone(&self.config),
        }
    }
}

impl<E> fmt::Debug for Shards<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let config = &*self.config;
        f.debug_struct("Shards")
            .field("set", &config.set)
            .field("count", &config.count)
            .field("member", &config.member)
            .finish_non_exhaustive()
    }
}

/// Builds [`Shards`].
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_shards::{Memory, Shards};
///
/// let shards = Shards::builder(Memory::new(), "webhooks")
///     .count(256)
///     .ttl(Duration::from_secs(10))
///     .member("replica-1")
///     .marks(true)
///     .build();
/// assert_eq!(shards.count().get(), 256);
/// ```
#[must_use = "nothing is built without `build`"]
pub struct Builder<E> {
    config: Config<E>,
}

impl<E: Engine> Builder<E> {
    /// Sets the number of shards, for the life of the set. By default: 64. Zero counts as one.
    ///
    /// Ten shards for each replica that you may ever have spread the work well.
    pub fn count(mut self, count: u32) -> Self {
        self.config.count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        self
    }

    /// Sets how long a dead member keeps its shards. By default: five seconds. The least is one
    /// second. A member renews its session three times per TTL.
    pub fn ttl(mut self, ttl: Duration) -> Self {
        self.config.ttl = ttl.clamp(Duration::from_secs(1), FAR);
        self
    }

    /// Sets how long a shard waits for its runs before it moves: 30 seconds by default. After that
    /// the shard moves anyway, and [`Ownership::lost`](crate::Ownership::lost) tells the runs.
    /// [`Duration::MAX`] waits without a limit.
    pub fn drain_timeout(mut self, timeout: Duration) -> Self {
        self.config.drain_timeout = timeout.min(FAR);
        self
    }

    /// Sets how many shards may move away at the same time. By default: 16. Zero counts as one.
    /// The limit does not apply to a member that leaves.
    pub fn moves_max(mut self, shards: usize) -> Self {
        self.config.moves_max = shards.max(1);
        self
    }

    /// Sets how long one call of `relist` may take. By default: a minute.
    pub fn relist_limit(mut self, limit: Duration) -> Self {
        self.config.relist_limit = limit;
        self
    }

    /// Sets the name of this replica, which no other member may have.
    ///
    /// By default it contains the host's name, the process id and a random number. So a restarted
    /// process does not wait for the TTL of the previous one.
    pub fn member(mut self, name: &str) -> Self {
        self.config.member = name.to_owned();
        self.config.seed = fnv1a(name.as_bytes());
        self
    }

    /// Sets whether this replica runs [marked](Shards::mark) keys. By default it does not, because
    /// each shard costs a watch.
    pub fn marks(mut self, follows: bool) -> Self {
        self.config.follows_marks = follows;
        self
    }

    /// Sets a hook that is called with each error of the engine while a member runs, for example
    /// to raise an alert. It must not block. Each error is also a `tracing` event.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_shards::{EngineError, Memory, Shards};
    ///
    /// let shards = Shards::builder(Memory::new(), "webhooks")
    ///     .on_error(|error| match error {
    ///         EngineError::StateLost(_) => eprintln!("ALERT: {error}"),
    ///         error => eprintln!("{error}"),
    ///     })
    ///     .build();
    /// # let _ = shards;
    /// ```
    pub fn on_error(mut self, call: impl Fn(&EngineError) + Send + Sync + 'static) -> Self {
        self.config.on_error = Arc::new(call);
        self
    }

    /// Sets the clock that the delays of marks are stored by, for tests.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.config.wall_clock = Arc::new(now);
        self
    }

    /// Builds the set, without calling the engine.
    pub fn build(self) -> Shards<E> {
        Shards {
            config: Arc::new(self.config),
        }
    }
}

impl<E> fmt::Debug for Builder<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("set", &self.config.set)
            .finish_non_exhaustive()
    }
}
