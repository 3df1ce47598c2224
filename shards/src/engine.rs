//! What keeps members, owners and marks: the trait that an engine implements.

use std::convert::Infallible;
use std::time::{Duration, SystemTime};

use tokio::sync::{mpsc, watch};

use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::View;

/// Keeps who is a member of a set of shards, who owns each shard, and the marks.
///
/// Every change is a compare-and-swap: it takes place if what the caller believes is still true,
/// and otherwise changes nothing. Every operation can be repeated, because a reply can be lost
/// after the change has taken place: to claim what the session owns, to release what it does not
/// own and to end a session that has ended all succeed.
///
/// An engine does no placement and keeps no time but that of the sessions. Its futures are polled
/// by the members: an engine spawns no task.
///
/// # What an engine promises
///
/// - Of one shard there is at most one owner, and the [`Fence`] of each owner is greater than those
///   of all before it, for the life of the set.
/// - A session ends when nothing has kept it for its TTL, not sooner. Its shards are free then.
/// - [`follow`](Self::follow) never shows a state that is older than one it has shown.
/// - One value that cannot be read hides no other. It counts as missing and is reported, in
///   [`View::unreadable`] or [`Mark::unreadable`].
/// - A mark is removed only by [`end_mark`](Self::end_mark) with the version that is stored.
///
/// The module [`conformance`](crate::conformance) checks all of that.
///
/// # If the engine loses what it acknowledged
///
/// A disk is replaced, or a backup is restored. An engine that notices returns
/// [`EngineError::StateLost`] from the next operation, once, and from [`follow`](Self::follow). The
/// sessions that began before have ended: their operations return [`EngineError::SessionEnded`].
///
/// # Cancel safety
///
/// An operation whose future is dropped may have taken place or not. What it left behind is ended
/// by the end of its session, or by repeating it.
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

    /// Makes a session last for another TTL, counted from when the engine gets the message.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if it has ended.
    fn keep(&self, session: &Self::Session)
    -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Announces that a member is about to leave, so that placement passes over it. It owns what it
    /// owns until it releases that.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if its session has ended.
    fn retire(
        &self,
        session: &Self::Session,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Ends a session: its name and its shards are free.
    fn leave(
        &self,
        session: &Self::Session,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Takes a shard if it is free. Returns its fence, also if the session owns it already. `None`
    /// if another session owns it.
    ///
    /// # Errors
    ///
    /// [`EngineError::SessionEnded`] if the session has ended.
    fn claim(
        &self,
        session: &Self::Session,
        shard: Shard,
    ) -> impl Future<Output = Result<Option<Fence>, EngineError>> + Send;

    /// Frees a shard that the session owns with this fence. If it does not, nothing changes.
    fn release(
        &self,
        session: &Self::Session,
        shard: Shard,
        fence: Fence,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Keeps `view` up to date until the future is dropped. The first state that it stores is
    /// complete.
    ///
    /// A stream that breaks is resumed where it broke, by the engine itself.
    ///
    /// # Errors
    ///
    /// Returns what it cannot recover from, such as [`EngineError::Denied`] or
    /// [`EngineError::StateLost`]. It may be called again.
    fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> impl Future<Output = Result<Infallible, EngineError>> + Send;

    /// Stores marks: each one that exists gets a new version, and the earlier of the two times.
    ///
    /// The marks of one call are stored in steps of a size that suits the engine. If it fails, some
    /// of them may be stored.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unsupported`] if the engine keeps no marks.
    fn put_marks(
        &self,
        set: &str,
        marks: &[NewMark],
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Ends a mark, or gives it another time, if it has the version of `mark` and the session still
    /// owns the shard with this fence. Returns whether that was so.
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

    /// Sends the marks of a shard that are stored, and each version that is stored from then on,
    /// until the future is dropped or the receiver is. What comes in quick succession may be one
    /// version.
    ///
    /// # Errors
    ///
    /// As [`follow`](Self::follow); and [`EngineError::Unsupported`] if the engine keeps no marks.
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
    /// The value that is stored, if it cannot be read. The key may run at once then.
    pub unreadable: Option<String>,
}

impl Mark {
    /// Creates a mark that can be read, was stored after `follow_marks` was called, and whose key
    /// may run at once.
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
