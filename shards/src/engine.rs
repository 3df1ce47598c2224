//! The trait of engines, which keep members, owners and marks.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};

use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::View;

/// Keeps the members of a set, the owner of each shard, and the marks.
///
/// Every change is a compare-and-swap: if the caller's belief is out of date, nothing changes.
/// Every operation can be repeated, because a reply can be lost after the change. So a session may
/// claim a shard that it owns, release one that it does not own, and end twice.
///
/// An engine does no placement, and measures no time except that of sessions. It spawns no task:
/// the members poll its futures.
///
/// # What an engine promises
///
/// - A shard has at most one owner. The [`Fence`] of each owner is greater than all fences before,
///   for the life of the set.
/// - A session ends when it has not been kept for its TTL, and not sooner. Then its shards are
///   free.
/// - [`follow`](Self::follow) never shows an older state than it has shown before.
/// - An unreadable value hides no other value. It counts as missing, and is reported in
///   [`View::unreadable`] or [`Mark::unreadable`].
/// - Only [`end_mark`](Self::end_mark) with the stored version removes a mark.
///
/// The module [`conformance`](crate::conformance) checks all promises.
///
/// # If the engine loses acknowledged writes
///
/// This happens if a disk is replaced or a backup is restored. An engine that notices returns
/// [`EngineError::StateLost`] once, from the next operation, and from [`follow`](Self::follow). All
/// earlier sessions have ended: their operations return [`EngineError::SessionEnded`].
///
/// # Cancel safety
///
/// An operation whose future is dropped may have taken effect or not. It is safe to repeat, and a
/// session that nobody keeps ends with its TTL.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_shards::{Engine, Memory, Shard};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), requeue_shards::EngineError> {
/// let engine = Memory::new();
/// engine.open("webhooks", 64).await?;
/// let first = engine.join("webhooks", "replica-1", Duration::from_secs(5)).await?;
/// let second = engine.join("webhooks", "replica-2", Duration::from_secs(5)).await?;
///
/// let fence = engine.claim(&first, Shard(7)).await?.unwrap();
/// assert_eq!(engine.claim(&second, Shard(7)).await?, None);
/// engine.release(&first, Shard(7), fence).await?;
/// assert!(engine.claim(&second, Shard(7)).await? > Some(fence));
/// # Ok(())
/// # }
/// ```
pub trait Engine: Send + Sync + 'static {
    /// A membership, ended by [`leave`](Self::leave) or by the TTL.
    type Session: Send + Sync + 'static;

    /// Whether the engine keeps marks. Without them the methods on marks return
    /// [`EngineError::Unsupported`].
    const MARKS: bool;

    /// Stores the number of shards of a set, or compares it with what is stored.
    ///
    /// # Errors
    ///
    /// [`EngineError::CountDiffers`] if another number is stored.
    fn open(&self, set: &str, count: u32) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Begins a session under a name that no other member has.
    ///
    /// # Errors
    ///
    /// [`EngineError::NameTaken`] if a session of that name has not ended.
    fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> impl Future<Output = Result<Self::Session, EngineError>> + Send;

    /// Renews a session for another TTL, counted from when the engine gets the message.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if it has ended.
    fn keep(&self, session: &Self::Session)
    -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Announces that a member is about to leave, so that placement skips it. It keeps its shards
    /// until it releases them.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if its session has ended.
    fn retire(
        &self,
        session: &Self::Session,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Ends a session. Its name and its shards are free then.
    fn leave(
        &self,
        session: &Self::Session,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Takes a shard if it is free. Returns its fence, also if the session already owns the shard,
    /// and `None` if another session does.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if the session has ended.
    fn claim(
        &self,
        session: &Self::Session,
        shard: Shard,
    ) -> impl Future<Output = Result<Option<Fence>, EngineError>> + Send;

    /// Frees a shard if the session owns it with this fence. Otherwise nothing changes.
    fn release(
        &self,
        session: &Self::Session,
        shard: Shard,
        fence: Fence,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Keeps `view` up to date until the future is dropped. The first stored state is complete.
    ///
    /// The engine itself resumes a broken stream where it broke.
    ///
    /// # Errors
    ///
    /// An error that the engine cannot recover from, such as [`EngineError::Denied`] or
    /// [`EngineError::StateLost`]. You may call it again.
    fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> impl Future<Output = Result<Infallible, EngineError>> + Send;

    /// Stores marks. An existing mark gets a new version, and the earlier of the two times.
    ///
    /// The engine may store the marks of one call in several steps. If it fails, some of them may
    /// be stored.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unsupported`] if the engine keeps no marks.
    fn put_marks(
        &self,
        set: &str,
        marks: &[NewMark],
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Removes a mark, or gives it another time, if it still has the version of `mark` and the
    /// session still owns the shard with this fence. Returns whether it did.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unsupported`] if the engine keeps no marks.
    fn end_mark(
        &self,
        session: &Self::Session,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// Sends the stored marks of a shard, and then each new version, until the future or the
    /// receiver is dropped. Versions in quick succession may be sent as one.
    ///
    /// # Errors
    ///
    /// As [`follow`](Self::follow). [`EngineError::Unsupported`] if the engine keeps no marks.
    fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;
}

/// A mark to store. See [`Engine::put_marks`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewMark {
    /// The shard of the key.
    pub shard: Shard,
    /// The [encoded](crate::ShardKey::encode) key.
    pub key: Vec<u8>,
    /// When the key may run first, `None` for at once.
    pub not_before: Option<SystemTime>,
}

impl NewMark {
    /// Creates a mark whose key may run at once.
    pub const fn new(shard: Shard, key: Vec<u8>) -> Self {
        Self {
            shard,
            key,
            not_before: None,
        }
    }
}

/// A mark as it is stored. See [`Engine::follow_marks`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Mark {
    /// The shard of the key.
    pub shard: Shard,
    /// The [encoded](crate::ShardKey::encode) key.
    pub key: Vec<u8>,
    /// Rises each time the mark is stored.
    pub version: u64,
    /// When the key may run first, `None` for at once.
    pub not_before: Option<SystemTime>,
    /// Whether the mark was stored before `follow_marks` was called.
    pub is_old: bool,
    /// The stored value, if it cannot be read. Then the key may run at once.
    pub unreadable: Option<String>,
}

impl Mark {
    /// Creates a new, readable mark whose key may run at once.
    pub const fn new(shard: Shard, key: Vec<u8>, version: u64) -> Self {
        Self {
            shard,
            key,
            version,
            not_before: None,
            is_old: false,
            unreadable: None,
        }
    }
}
