//! The engine of `requeue-shards` that keeps a set of shards in Leases.

mod calls;
mod follow;
mod format;
mod shown;

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt;
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use requeue_shards::{Engine, EngineError, Fence, Mark, NewMark, Shard, View};
use tokio::sync::{mpsc, watch};

use crate::lease::Record;

use format::Role;

/// The engine that keeps a set of shards in Leases of one namespace, for controllers whose cluster
/// is the only thing that replicas share.
///
/// It keeps no marks: a controller lists its objects.
///
/// # Sessions
///
/// A member has a Lease, and its session is that one object: it lasts as long as the Lease with
/// that uid exists. [`keep`](Engine::keep) is one update of it, every third of the TTL; shards are
/// written only when they move. The API counts in seconds: a TTL is rounded up.
///
/// Kubernetes ends no Lease. The members do it for each other, by the rule of client-go's leader
/// election: a member that has seen no change of a Lease for its duration, **on its own monotonic
/// clock**, deletes it, on condition that it still has the resource version that was seen. So a
/// session that was kept in the meantime goes on, and one that has been ended cannot be kept. No
/// clock is compared with that of another machine; the times in a Lease are for people.
///
/// A member that was killed is missed after its TTL and a twentieth, counted from its last renewal.
/// A replica that has just started has seen nothing yet: if no replica is left that saw the last
/// renewal, it takes one TTL from the first look. If the API server cannot be reached for more than
/// a third of a TTL, sessions may end; after a TTL all have ended, and work stops until it is back.
///
/// # What a fence is worth
///
/// A [`Fence`] protects a store of yours that compares it. **Kubernetes compares no fence:** a
/// write to another object, by a replica that was stopped for longer than its TTL and goes on, is
/// accepted. A precondition by resource version protects one object from a write that is based on
/// an old state of it, and server-side apply from fields of other managers; nothing protects
/// several objects together.
///
/// The fence is the second in which the API server created the Lease of the shard, times a million,
/// plus its `leaseTransitions`, which each claim raises by one. So it rises also if that Lease is
/// deleted, unless that happens in the second in which it was created, or the clock of the API
/// server goes back. It is less than 2⁵³ until the year 2255. After a restore of the cluster's etcd
/// from a backup, use another name for the set, or reset the fences at the store.
///
/// # What is stored
///
/// All Leases have the label `requeue.dev/set`. The `acquireTime` says since when a member is
/// there, or owns the shard.
///
/// | Lease | holds |
/// |---|---|
/// | `<set>.set` | annotation `requeue.dev/shards`: the number of shards |
/// | `<set>.member.<member>` | `leaseDurationSeconds`: the TTL; annotation `requeue.dev/retiring` |
/// | `<set>.shard-<number>` | `holderIdentity`: `<member>_<uid of its Lease>`, or empty |
///
/// The Lease of a shard is not renewed: it counts as long as that of its member exists. Deleting
/// the Lease of a member ends its session; deleting that of a shard frees the shard, and its owner
/// learns of it from the watch. Deleting `<set>.set` lets the next member choose another number of
/// shards: stop all members before.
///
/// A shard whose `holderIdentity` is no member counts as free, and is shown in
/// [`View::unreadable`].
///
/// # Names
///
/// The name of a set is a label of DNS: 1 to 63 lower-case letters, digits and `-`, which begins
/// and ends with a letter or digit. That of a member is such labels, joined by dots, of 180
/// characters together. Other names are [`Refused`](EngineError::Refused).
///
/// # Load
///
/// One request per member and third of a TTL, and one event of it to each watch: with *M* members
/// and a TTL of *t* seconds 3·*M*/*t* writes and 3·*M*²/*t* events a second: 20 and 2,000 for 100
/// members and 15 s. A claim is three requests, and five if a session has to be ended first; a
/// release is two. A write that is refused because another came first is decided again, eight times
/// at most.
///
/// The watch is served from the API server's cache and may lag: a view is old, while claims and
/// releases read what is stored. A watch that lags by a TTL is begun again.
///
/// # Rights
///
/// `get`, `list`, `watch`, `create`, `update`, `patch` and `delete` on `leases.coordination.k8s.io`
/// in the namespace. To show a [status](requeue_shards::Shards::status), `list` and `watch` are
/// enough.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use kube::Client;
/// use requeue_kube::Leases;
/// use requeue_shards::Shards;
///
/// # fn shards(client: Client) -> Shards<Leases> {
/// Shards::builder(Leases::new(client, "default"), "web-controller")
///     .count(64)
///     .ttl(Duration::from_secs(15))
///     .member("web-controller-0")
///     .build()
/// # }
/// ```
pub struct Leases {
    api: Api<Lease>,
    namespace: String,
    /// The Leases of members, and when each was seen to change.
    observed: Mutex<HashMap<String, Record>>,
}

/// A membership that is kept in [`Leases`].
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use requeue_kube::{LeaseSession, Leases};
/// use requeue_shards::{Engine, EngineError};
///
/// async fn join(leases: &Leases) -> Result<LeaseSession, EngineError> {
///     leases.open("web", 64).await?;
///     leases.join("web", "web-0", Duration::from_secs(15)).await
/// }
/// ```
#[derive(Clone, Debug)]
pub struct LeaseSession {
    set: String,
    member: String,
    /// The uid of the member's Lease.
    uid: String,
    ttl: Duration,
}

impl Leases {
    /// Creates an engine whose Leases are in this namespace. Sends nothing yet.
    pub fn new(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            observed: Mutex::default(),
        }
    }
}

impl fmt::Debug for Leases {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leases")
            .field("namespace", &self.namespace)
            .finish_non_exhaustive()
    }
}

/// How often an operation begins again because another has written first. Of one shard few members
/// believe that it is theirs, and a member writes its Lease alone.
const ATTEMPTS: usize = 8;

impl Engine for Leases {
    type Session = LeaseSession;

    const MARKS: bool = false;

    async fn open(&self, set: &str, asked: u32) -> Result<(), EngineError> {
        format::check_set(set)?;
        let role = Role::Set;
        for _ in 0..ATTEMPTS {
            let Some(lease) = self.look(set, &role).await? else {
                if self.create_set(set, asked).await? {
                    return Ok(());
                }
                continue;
            };
            let stored = format::count(&lease)?;
            if stored == asked {
                return Ok(());
            }
            let set = set.to_owned();
            return Err(EngineError::CountDiffers { set, stored, asked });
        }
        Err(contended(set, &role))
    }

    async fn join(
        &self,
        set: &str,
        member: &str,
        ttl: Duration,
    ) -> Result<LeaseSession, EngineError> {
        format::check_set(set)?;
        format::check_member(member)?;
        let role = Role::Member(member);
        for _ in 0..ATTEMPTS {
            if let Some(lease) = self.create_member(set, member, ttl).await? {
                self.observe(lease.clone());
                return Ok(LeaseSession {
                    set: set.to_owned(),
                    member: member.to_owned(),
                    uid: format::uid(lease)?,
                    ttl,
                });
            }
            let Some(lease) = self.look(set, &role).await? else {
                continue;
            };
            if self.goes_on(lease).await? {
                let member = member.to_owned();
                return Err(EngineError::NameTaken { member });
            }
        }
        Err(contended(set, &role))
    }

    async fn keep(&self, session: &LeaseSession) -> Result<(), EngineError> {
        self.change(session, format::renewal()).await
    }

    async fn retire(&self, session: &LeaseSession) -> Result<(), EngineError> {
        self.change(session, format::retirement()).await
    }

    async fn leave(&self, session: &LeaseSession) -> Result<(), EngineError> {
        let name = format::name(&session.set, &Role::Member(&session.member));
        // False if it is another's, or gone.
        self.delete(&name, &session.uid, None).await.map(drop)
    }

    async fn claim(
        &self,
        session: &LeaseSession,
        shard: Shard,
    ) -> Result<Option<Fence>, EngineError> {
        let role = Role::Shard(shard);
        let own = format::holder(&session.member, &session.uid);
        for _ in 0..ATTEMPTS {
            let lease = self.look_as(session, &role).await?;
            let record = format::record(lease, &session.set, &role);
            match record.holder() {
                Some(holder) if holder == own => return format::fence(record.lease()).map(Some),
                Some(holder) if self.lasts(&session.set, holder).await? => return Ok(None),
                _ => {}
            }
            if let Some(lease) = self.hand_to(&own, session.ttl, &record).await? {
                return format::fence(&lease).map(Some);
            }
        }
        Err(contended(&session.set, &role))
    }

    async fn release(
        &self,
        session: &LeaseSession,
        shard: Shard,
        fence: Fence,
    ) -> Result<(), EngineError> {
        let role = Role::Shard(shard);
        let own = format::holder(&session.member, &session.uid);
        for _ in 0..ATTEMPTS {
            let Some(lease) = self.look(&session.set, &role).await? else {
                return Ok(());
            };
            let owned = format::fence(&lease)?;
            let record = format::record(Some(lease), &session.set, &role);
            if record.holder() != Some(&*own) || owned != fence {
                return Ok(());
            }
            if self.hand_to("", session.ttl, &record).await?.is_some() {
                return Ok(());
            }
        }
        Err(contended(&session.set, &role))
    }

    async fn follow(
        &self,
        set: &str,
        view: &watch::Sender<View>,
    ) -> Result<Infallible, EngineError> {
        format::check_set(set)?;
        follow::follow(self, set, view).await
    }

    async fn put_marks(&self, _: &str, _: &[NewMark]) -> Result<(), EngineError> {
        Err(EngineError::Unsupported("marks"))
    }

    async fn end_mark(
        &self,
        _: &LeaseSession,
        _: Fence,
        _: &Mark,
        _: Option<SystemTime>,
    ) -> Result<bool, EngineError> {
        Err(EngineError::Unsupported("marks"))
    }

    async fn follow_marks(
        &self,
        _: &str,
        _: Shard,
        _: &mpsc::Sender<Mark>,
    ) -> Result<(), EngineError> {
        Err(EngineError::Unsupported("marks"))
    }
}

fn contended(set: &str, role: &Role<'_>) -> EngineError {
    let name = format::name(set, role);
    format::refused(&format!(
        "others have written the Lease {name} first, {ATTEMPTS} times"
    ))
}
