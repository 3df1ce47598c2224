//! The ownership of a shard: the handle that each run gets, and the member's record.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use requeue_core::RunContext;
use tokio::sync::Notify;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::shard::{Fence, Shard, Taken};

/// This replica's ownership of a shard, passed to each run of its keys.
///
/// Clones are handles to the same ownership.
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

    /// Returns the fence of this ownership. Send it with every write of the run, and let the store
    /// refuse a smaller fence than the greatest it has seen.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Returns the queue's record of the run: the attempt, how long the key waited, its priority.
    pub fn context(&self) -> RunContext {
        self.context
    }

    /// Returns whether the shard may belong to another replica by now. O(1).
    ///
    /// It reads the clock, so it is right even if this process was stopped until now. The process
    /// may also stop after this call, so the store still has to check the fence.
    pub fn is_lost(&self) -> bool {
        self.lost.is_cancelled() || Instant::now() >= self.until.get()
    }

    /// Waits until the shard may belong to another replica.
    ///
    /// This is so when the membership has ended, or when the shard has to move and the run exceeds
    /// the [timeout](crate::Builder::drain_timeout). End the run then. Its result counts as usual.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost.
    pub async fn lost(&self) {
        self.lost.cancelled().await;
    }
}

/// The time until which a session certainly lasts. The driver moves it on, and the runs read it.
#[derive(Clone, Debug)]
pub(crate) struct Expiry(Arc<Mutex<Instant>>);

impl Expiry {
    pub(crate) fn new(until: Instant) -> Self {
        Self(Arc::new(Mutex::new(until)))
    }

    pub(crate) fn get(&self) -> Instant {
        *self.lock()
    }

    /// Moves the time on, never back. Returns false if the time has passed. A passed time is final,
    /// because keys may have been skipped since.
    pub(crate) fn extend(&self, until: Instant) -> bool {
        let mut stored = self.lock();
        // The clock is read under the lock, so that this agrees with earlier reads of the time.
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
    /// Cancelled once no key of the shard may start.
    pub(crate) closed: CancellationToken,
    active: AtomicUsize,
    /// Notified when the keys have to be listed. A request during a list causes one more list.
    pub(crate) relist: Notify,
    /// The marks of the shard, as seen last.
    marks: Mutex<HashMap<K, SeenMark>>,
}

/// A mark, as this replica has seen it last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenMark {
    pub(crate) version: u64,
    /// The time of the mark, by the monotonic clock. `None` means at once.
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

    /// The handle for one run.
    pub(crate) fn owned(&self, context: RunContext) -> Ownership {
        Ownership {
            shard: self.shard,
            fence: self.fence,
            lost: self.lost.clone(),
            until: self.until.clone(),
            context,
        }
    }

    /// Whether a key may start.
    pub(crate) fn is_open(&self, now: Instant) -> bool {
        !self.closed.is_cancelled() && now < self.until.get()
    }

    /// Tells the runs that the shard is lost.
    pub(crate) fn lose(&self) {
        self.lost.cancel();
    }

    /// Counts a run. Call this and [`end`](Self::end) under the lock of the table.
    pub(crate) fn begin(&self) {
        self.active.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns whether it was the last run.
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

    /// Forgets a removed mark, unless a newer version has been seen.
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
