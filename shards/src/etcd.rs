//! The engine for etcd.

mod calls;
mod format;
mod gather;
mod history;
mod marks;
mod ownership;
mod watches;

use std::collections::hash_map::RandomState;
use std::convert::Infallible;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use etcd_client::ConnectOptions;
use tokio::sync::{mpsc, watch};

use crate::engine::{Engine, Mark, NewMark};
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::shards::FAR;
use crate::view::View;

use calls::Calls;
use gather::Gathering;
use history::History;

/// The engine that keeps a set in etcd 3.4 or later.
///
/// # Faults
///
/// Calls go to one endpoint. If it refuses, or does not reply in a fraction of the
/// [timeout](Self::timeout), they go to the next endpoint, over a connection of its own. So one
/// node that is dead, stopped or cut off from the others does no harm. A watch that breaks or falls
/// silent resumes at the next endpoint, after the last revision that it saw. If etcd has compacted
/// that revision, everything is listed again.
///
/// # Marks
///
/// Marks that the tasks of one replica store at the same time share transactions of up to 128
/// marks. A single mark does not wait for others.
///
/// # Sessions
///
/// A session is a lease. Its TTL is rounded up to whole seconds, and to two at least, because etcd
/// has no shorter ones. etcd checks for expired leases twice a second, and a new leader renews all
/// leases, so a member that dies just then is missed later. Deleting a member's key also ends its
/// session.
///
/// # What is stored
///
/// All keys are below `/requeue/<set>/`. The name of a set is not empty and has no slash.
///
/// | key | value | has the lease |
/// |---|---|---|
/// | `count` | `2 <shards>`: the version of this format, and the number of shards | |
/// | `member/<name>` | `<since> active` or `<since> retiring` | yes |
/// | `owner/<shard>` | `<since> <fence> <name>` | yes |
/// | `fence/<shard>` | the fence of the last owner | |
/// | `mark/<shard>/<key>` | empty, or `<not before>`; the key's last revision is the version | |
///
/// Shards are decimal numbers, times are milliseconds since 1970, and keys are the bytes of
/// [`ShardKey::encode`](crate::ShardKey::encode).
///
/// An unreadable member or owner counts as missing. If its key has no lease, the next member
/// replaces it, because no session would ever remove it. A mark with an unreadable time runs at
/// once. An unreadable fence counts as none.
///
/// # Fences
///
/// A fence is one more than the last fence of its shard, and at least the microseconds since 1970
/// by the clock of the member that claims. While etcd keeps its data, fences rise on any clock. If
/// etcd loses its data, fences still rise, unless the old owner's clock was ahead by more than the
/// time between the two claims. Then reset the fences in your store. A fence is less than 2⁵³
/// until the year 2255.
///
/// # If etcd is emptied or restored
///
/// etcd's revision never goes back, and the identity of a cluster never changes. If a reply shows
/// otherwise, or a watch does and etcd confirms it, the error is [`EngineError::StateLost`]. All
/// sessions have ended then, and members begin again. Give a restored cluster another
/// `--initial-cluster-token`, as etcd recommends. Otherwise only the revision shows the restore,
/// and writes of other clients can hide that.
///
/// # Rights
///
/// With authentication, the user needs to read and write the keys below `/requeue/<set>/`.
///
/// # Examples
///
/// ```no_run
/// use requeue_shards::etcd_client::ConnectOptions;
/// use requeue_shards::{Etcd, Shards};
///
/// # async fn connect() -> Result<(), requeue_shards::EngineError> {
/// let options = ConnectOptions::new().with_user("webhooks", "secret");
/// let nodes = ["http://10.0.0.1:2379", "http://10.0.0.2:2379", "http://10.0.0.3:2379"];
/// let shards = Shards::builder(Etcd::with_options(nodes, options).await?, "webhooks").build();
/// # let _ = shards;
/// # Ok(())
/// # }
/// ```
pub struct Etcd {
    calls: Calls,
    /// Marks have their own connections, so that many unread marks cannot delay the messages that
    /// keep a session.
    marks: Calls,
    gathering: Gathering,
}

/// A membership in [`Etcd`].
#[derive(Clone, Debug)]
pub struct EtcdSession {
    set: String,
    member: String,
    since: SystemTime,
    lease: i64,
    /// The session ends with the era of the history.
    era: u64,
    ttl: Duration,
}

impl EtcdSession {
    /// How long one call may take. It leaves time for others within the TTL.
    fn limit(&self, calls: &Calls) -> Duration {
        calls.timeout.min(self.ttl / 3)
    }
}

impl Etcd {
    /// Connects to the nodes of a cluster, whose addresses begin with `http://`.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unreachable`] if no node replies.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn connect<E: Into<String>>(
        endpoints: impl IntoIterator<Item = E>,
    ) -> Result<Self, EngineError> {
        Self::with_options(endpoints, ConnectOptions::new()).await
    }

    /// Connects to the nodes of a cluster, with a user or with TLS.
    ///
    /// The options for timeouts and for leaders are ignored: calls have [the
    /// timeout](Self::timeout) of the engine, and a node without a leader is skipped.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unreachable`] if no node replies, [`EngineError::Denied`] if the user is
    /// refused, [`EngineError::Refused`] if there is no address or an invalid one.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn with_options<E: Into<String>>(
        endpoints: impl IntoIterator<Item = E>,
        options: ConnectOptions,
    ) -> Result<Self, EngineError> {
        let endpoints: Vec<String> = endpoints.into_iter().map(Into::into).collect();
        // Replicas begin at different nodes.
        let first = RandomState::new().hash_one(&endpoints);
        let options = options
            .with_require_leader(true)
            .with_auto_token_refresh(true);
        let history = Arc::new(History::default());
        let shared = Arc::clone(&history);
        let calls = Calls::new(endpoints.clone(), options.clone(), first, shared)?;
        let marks = Calls::new(endpoints, options, first, history)?;
        let probe = |mut client: etcd_client::Client| async move { client.status().await };
        calls.call(calls.timeout, probe).await?;
        Ok(Self {
            calls,
            marks,
            gathering: Gathering::new(),
        })
    }

    /// Sets how long an operation may take over all endpoints. By default: four seconds.
    ///
    /// An operation of a session takes a third of its TTL at most. A silent watch is resumed after
    /// half the timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.calls.timeout = timeout.min(FAR);
        self.marks.timeout = self.calls.timeout;
        self
    }

    /// Returns the number of shards of a set, or `None` if the set was never opened.
    ///
    /// # Errors
    ///
    /// As [`Engine::open`], without [`EngineError::CountDiffers`].
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    pub async fn count(&self, set: &str) -> Result<Option<u32>, EngineError> {
        ownership::count(&self.calls, set).await
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd")
            .field("endpoints", &self.calls.endpoints)
            .finish_non_exhaustive()
    }
}

impl Engine for Etcd {
    type Session = EtcdSession;

    const MARKS: bool = true;

    async fn open(&self, set: &str, count: u32) -> Result<(), EngineError> {
        ownership::open(&self.calls, set, count).await
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<EtcdSession, EngineError> {
        ownership::join(&self.calls, set, member, ttl).await
    }

    async fn keep(&self, session: &EtcdSession) -> Result<(), EngineError> {
        ownership::keep(&self.calls, session).await
    }

    async fn retire(&self, session: &EtcdSession) -> Result<(), EngineError> {
        ownership::retire(&self.calls, session).await
    }

    async fn leave(&self, session: &EtcdSession) -> Result<(), EngineError> {
        ownership::leave(&self.calls, session).await
    }

    async fn claim(
        &self,
        session: &EtcdSession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        ownership::claim(&self.calls, session, shard).await
    }

    async fn release(
        &self,
        session: &EtcdSession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        ownership::release(&self.calls, session, shard, fence).await
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        watches::follow(&self.calls, set, view).await
    }

    async fn put_marks(&self, set: &str, marks: &[NewMark]) -> Result<(), EngineError> {
        marks::put(&self.calls, &self.gathering, set, marks).await
    }

    async fn end_mark(
        &self,
        session: &EtcdSession,
        fence: Fence,
        mark: &Mark,
        again: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        marks::end(&self.calls, session, fence, mark, again).await
    }

    async fn follow_marks(
        &self,
        set: &str,
        shard: Shard,
        marks: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        marks::follow(&self.marks, set, shard, marks).await
    }
}
