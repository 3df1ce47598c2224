//! A set of shards, and how it is built.

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
/// Clones are handles to the same. A replica that only produces keys does not have to
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
    /// What makes the pauses of this replica differ from those of others.
    pub(crate) seed: u64,
    pub(crate) follows_marks: bool,
    pub(crate) wall_clock: WallClock,
    /// Set once marks are known to be put by the set's number of shards.
    on_error: OnError,
    /// Whether the engine has the number of shards.
    is_opened: AtomicBool,
}

type OnError = Arc<dyn Fn(&EngineError) + Send + Sync>;

/// Longer than a process lives: what it is added to does not overflow.
pub(crate) const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);

pub(crate) type WallClock = Arc<dyn Fn() -> SystemTime + Send + Sync>;

impl<E: Engine> Shards<E> {
    /// Chooses what a set is kept by, and its name: replicas of one set use the same.
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

    /// Opens the set and begins a membership, whose keys are processed by `queue`.
    ///
    /// `relist` returns the keys of a shard, from the source of truth. It is called each time this
    /// member has taken a shard over, because the member before may have lost what it knew. A store
    /// that keeps the greatest fence of each shard stores this one before it lists: from then on it
    /// refuses the writes of the member before, also to keys that are not written again.
    ///
    /// Keys of other shards are passed over, so a source that cannot select may return more. If it
    /// fails, panics, or takes longer than [its limit](Builder::relist_limit), it is called again,
    /// after a growing pause; keys that are added meanwhile run.
    ///
    /// The member owns nothing until [`run`](Member::run) is polled. If that does not happen within
    /// the TTL, the membership ends, and `run` begins another.
    ///
    /// # Errors
    ///
    /// If the set has another number of shards, if a member of that name is there and does not
    /// leave within two TTLs, or if the engine cannot be reached for so long.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future may leave a membership that ends with its TTL.
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

    /// Stores a mark: the owner of the key's shard runs it, whichever replica that is, and the mark
    /// stays until a run has succeeded. For keys that only this replica has heard of.
    ///
    /// Returns once the engine has stored it: then no crash loses it. Marking a key whose run is
    /// under way makes it *dirty*: it runs once more.
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
    /// // Nothing is listed: what is to be done is marked.
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
    /// [`EngineError::CountDiffers`] if the set has another number of shards. Otherwise as the
    /// engine: an [`EngineError::Unreachable`] does not say that the mark is not stored.
    ///
    /// # Cancel safety
    ///
    /// If the future is dropped, the mark may be stored or not.
    pub async fn mark<K: ShardKey>(&self, key: &K) -> Result<(), EngineError> {
        self.put(&[self.new_mark(key, None)]).await
    }

    /// As [`mark`](Self::mark), but the key runs after `delay` at the earliest. Of two delays the
    /// one that ends first counts. If the key runs before that for another reason, it runs then as
    /// well.
    ///
    /// The end of the delay is stored by this machine's clock and read by that of the owner.
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

    /// Marks keys, many in one step of the engine.
    ///
    /// # Errors
    ///
    /// As [`mark`](Self::mark); some of the keys may be marked then.
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
            // By another number they would be stored where no owner looks for them.
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

    /// Returns who owns what, as the engine shows it now.
    ///
    /// # Errors
    ///
    /// If the engine shows nothing within the TTL.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
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
    /// Tells the program of an error. A hook that panics has said enough.
    pub(crate) fn report(&self, error: &EngineError) {
        let report = AssertUnwindSafe(|| (self.on_error)(error));
        let _ = std::panic::catch_unwind(report);
    }

    /// When a delay ends by the wall clock.
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

/// A name that no other process has, of characters that every engine takes.
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
    /// Sets the number of shards, for the life of the set: 64 unless it is set here; zero counts as
    /// one. Some ten for each replica that there may ever be spread the work well.
    pub fn count(mut self, count: u32) -> Self {
        self.config.count = NonZeroU32::new(count).unwrap_or(NonZeroU32::MIN);
        self
    }

    /// Sets how long the shards of a member that died stay with it: five seconds unless it is set
    /// here, and a second at least. The member says that it is alive three times as often.
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

    /// Sets how many shards move away at once while the member works: 16 unless it is set here;
    /// zero counts as one. A member that leaves lets go of all of them.
    pub fn moves_max(mut self, shards: usize) -> Self {
        self.config.moves_max = shards.max(1);
        self
    }

    /// Sets how long one call of `relist` may take: a minute unless it is set here.
    pub fn relist_limit(mut self, limit: Duration) -> Self {
        self.config.relist_limit = limit;
        self
    }

    /// Sets the name of this replica. Unless it is set here, it is made from the name of the host,
    /// the number of the process and a random number, so that a process that starts again does not
    /// have to wait for the TTL of the one before.
    pub fn member(mut self, name: &str) -> Self {
        self.config.member = name.to_owned();
        self.config.seed = fnv1a(name.as_bytes());
        self
    }

    /// Sets whether members of this replica run keys that are [marked](Shards::mark). They do not
    /// unless it is set here: each shard costs a watch.
    pub fn marks(mut self, follows: bool) -> Self {
        self.config.follows_marks = follows;
        self
    }

    /// Sets what is called with each error of the engine that a member meets while it runs: for
    /// standard error, or an alert. Every error is also an event of `tracing`. The call must not
    /// block. Nothing is called unless it is set here.
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

    /// Sets the clock that the delays of marks are stored by. A test sets its own.
    pub fn wall_clock(mut self, now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.config.wall_clock = Arc::new(now);
        self
    }

    /// Builds the set. The engine is not asked for anything yet.
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
