//! The engine that keeps a set in etcd.

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
/// [timeout](Self::timeout), they go to the next one, over a connection of its own: one node that
/// is dead, stopped or cut off from the others is passed over. A watch that breaks or is silent is
/// resumed at the next endpoint, after the last revision that it has seen. If etcd has compacted
/// that revision, everything is listed again.
///
/// # Marks
///
/// Marks that tasks of one replica put at the same time share transactions of up to 128 marks. One
/// that is put alone does not wait.
///
/// # Sessions
///
/// A session is a lease. etcd counts in whole seconds and two at least, so a TTL is rounded up. It
/// looks for leases that are over twice a second, and grants all of them another TTL when it has
/// elected a leader: a member that dies just then is missed later. A session also ends if the key
/// of its member is removed by hand.
///
/// # What is stored
///
/// Everything is below `/requeue/<set>/`. The names of sets are not empty and hold no slash.
///
/// | key | value | of the lease |
/// |---|---|---|
/// | `count` | `2 <shards>`: the version of this format, and the number of shards | |
/// | `member/<name>` | `<since> active` or `<since> retiring` | yes |
/// | `owner/<shard>` | `<since> <fence> <name>` | yes |
/// | `fence/<shard>` | the fence of the last owner | |
/// | `mark/<shard>/<key>` | empty, or `<not before>`; its last revision is its version | |
///
/// Shards are decimal numbers, times are milliseconds since 1970, and keys are the bytes of
/// [`ShardKey::encode`](crate::ShardKey::encode).
///
/// A member or owner that cannot be read counts as missing. If its key has no lease, no session
/// would ever end it: the next member replaces the key. A mark whose time cannot be read runs at
/// once. A last fence that cannot be read counts as none.
///
/// # Fences
///
/// A fence is one more than the last fence of its shard, and at least the microseconds since 1970
/// by the clock of the member that claims. While etcd keeps its data, fences rise whatever the
/// clocks do. If etcd loses its data, fences still rise for your store, as long as no clock was
/// ahead for longer than etcd was away. Otherwise reset the fences at the store. A fence is less
/// than 2⁵³ until the year 2255.
///
/// # If etcd is emptied or restored
///
/// The revision of etcd never goes back, and the identity of a cluster never changes. If a reply
/// shows otherwise, or a watch does and etcd confirms it, [`EngineError::StateLost`] is returned.
/// All sessions have ended then, and members begin again. Give a restored cluster another
/// `--initial-cluster-token`, as etcd recommends: a restore that is noticed by its revision alone
/// could be missed if other clients have written more than the backup lacks.
///
/// # Rights
///
/// With authentication turned on, the user needs to read and write the keys below
/// `/requeue/<set>/`.
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
    /// Marks have connections of their own: what is sent and not yet received must not hold up the
    /// messages that keep a session.
    marks: Calls,
    gathering: Gathering,
}

/// A membership that is kept in [`Etcd`].
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
    /// How long one call may take: there is time for others within the TTL.
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
    /// What the options say of timeouts and of leaders does not count: calls have [the
    /// timeout](Self::timeout) of the engine, and a node that has lost its leader is passed over.
    ///
    /// # Errors
    ///
    /// [`EngineError::Unreachable`] if no node replies, [`EngineError::Denied`] if the user is
    /// refused, [`EngineError::Refused`] if an address is none.
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

    /// Sets how long an operation may take, over all endpoints: four seconds unless it is set here.
    /// Those of a session take a third of its TTL at most. A silent watch is resumed after half the
    /// timeout.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.calls.timeout = timeout.min(FAR);
        self.marks.timeout = self.calls.timeout;
        self
    }

    /// Returns the number of shards of a set, `None` if it was never opened.
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
