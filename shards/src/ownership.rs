//! What a run knows of the shard of its key.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use requeue_core::RunContext;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::shard::{Fence, Shard, Taken};

/// The shard of a key that runs, as this replica owns it.
///
/// Clones are handles to the same.
///
/// # Examples
///
/// ```
/// use requeue_shards::Ownership;
///
/// async fn work(key: &str, owned: &Ownership) -> Result<(), String> {
///     tokio::select! {
///         written = write(key, owned.fence().0) => written,
///         () = owned.lost() => Err(String::from("the shard has moved")),
///     }
/// }
///
/// /// UPDATE … SET …, fence = $fence WHERE key = $key AND fence <= $fence
/// async fn write(key: &str, fence: u64) -> Result<(), String> {
///     # let _ = (key, fence);
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Ownership {
    shard: Shard,
    fence: Fence,
    lost: CancellationToken,
    until: Expiry,
    context: RunContext,
}

impl Ownership {
    /// Returns the shard of the key.
    pub fn shard(&self) -> Shard {
        self.shard
    }

    /// Returns the fence of this replica's ownership: what the run writes has to carry it, and the
    /// store has to refuse a smaller one than it has seen.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Returns what the queue knows of the run: the attempt, how long the key waited, its priority.
    pub fn context(&self) -> RunContext {
        self.context
    }

    /// Returns whether the shard may belong to another replica by now. O(1); it reads the clock, so
    /// it is exact even if this process has just gone on after it was stopped. A store that checks
    /// the fence is needed all the same.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || Instant::now() >= self.until.get()
    }

    /// Waits until the shard may belong to another replica: its membership has ended, or the shard
    /// was to move and the run took longer than the
    /// [limit](crate::Builder::drain_timeout). The run should end then; what it returns counts as
    /// ever.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// Until when a session lasts for certain, shared by the driver, which moves it on, and the runs.
#[derive(Clone, Debug)]
pub(crate) struct Expiry(Arc<Mutex<Instant>>);

impl Expiry {
    pub(crate) fn new(until: Instant) -> Self {
        Self(Arc::new(Mutex::new(until)))
    }

    pub(crate) fn get(&self) -> Instant {
        *self.lock()
    }

    /// Moves it on, never back. Returns false if it has passed, and stays so: keys have been passed
    /// over since.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        let mut stored = self.lock();
        // Read under the lock, and so later than by a caller that has found it to have passed.
        if Instant::now() >= *stored {
            return false;
        }
        *stored = until.max(*stored);
        true
    }

    fn lock(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One ownership of a shard, from claim to release.
pub(crate) struct Tenure<K, N> {
    pub(crate) session: Arc<N>,
    shard: Shard,
    fence: Fence,
    until: Expiry,
    lost: CancellationToken,
    /// Cancelled when the shard is not worked on any more, or no new key of it is.
    pub(crate) closed: CancellationToken,
    active: AtomicUsize,
    /// Notified when its keys are to be listed. What is asked for during a list is one list more.
    pub(crate) relist: Notify,
    /// Each mark that was seen.
    marks: Mutex<HashMap<K, SeenMark>>,
}

/// A mark, as this replica has seen it last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenMark {
    pub(crate) version: u64,
    /// When its time comes, by the monotonic clock; `None` if it is for at once.
    pub(crate) due: Option<Instant>,
}

impl<K: Eq + Hash, N> Tenure<K, N> {
    pub(crate) fn new(session: Arc<N>, shard: Shard, fence: Fence, until: Expiry) -> Self {
        let lost = CancellationToken::new();
        Self {
            session,
            shard,
            fence,
            until,
            closed: lost.child_token(),
            lost,
            active: AtomicUsize::new(0),
            relist: Notify::new(),
            marks: Mutex::new(HashMap::new()),
        }
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    pub(crate) fn fence(&self) -> Fence {
        self.fence
    }

    pub(crate) fn taken(&self) -> Taken {
        Taken {
            shard: self.shard,
            fence: self.fence,
        }
    }

    /// What a run gets.
    pub(crate) fn owned(&self, context: RunContext) -> Ownership {
        Ownership {
            shard: self.shard,
            fence: self.fence,
            lost: self.lost.clone(),
            until: self.until.clone(),
            context,
        }
    }

    /// Whether a key may begin to run.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        !self.closed.is_cancelled() && now < self.until.get()
    }

    /// Tells the runs that the shard is lost.
    pub(crate) fn lose(&self) {
        self.lost.cancel();
    }

    /// Counts a run. Called, as is [`end`](Self::end), under the lock of the table.
    pub(crate) fn begin(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether it was the last.
    pub(crate) fn end(&self) -> bool {
        self.active.fetch_sub(1, Ordering::Relaxed) == 1
    }

    pub(crate) fn is_active(&self) -> bool {
        self.active.load(Ordering::Relaxed) > 0
    }

    pub(crate) fn see_mark(&self, key: K, mark: SeenMark) {
        self.marks().insert(key, mark);
    }

    pub(crate) fn mark(&self, key: &K) -> Option<SeenMark> {
        self.marks().get(key).copied()
    }

    /// Forgets a mark that was ended, unless another version has been seen.
    pub(crate) fn forget_mark(&self, key: &K, version: u64) {
        let mut marks = self.marks();
        if marks.get(key).is_some_and(|mark| mark.version == version) {
            marks.remove(key);
        }
    }

    fn marks(&self) -> MutexGuard<'_, HashMap<K, SeenMark>> {
        self.marks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
