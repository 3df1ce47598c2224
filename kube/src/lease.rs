//! Leader election by a Lease, with the rules of client-go's `leaderelection`.

use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::jiff::Timestamp;
use kube::{Api, Client};

use crate::error::Error;

mod elector;
mod holders;
mod record;
mod write;

pub(crate) use elector::Elector;
use holders::Holders;
#[cfg(feature = "shards")]
pub(crate) use record::{Claim, Record};
#[cfg(feature = "shards")]
pub(crate) use write::write;

/// Leader election by a Lease: of several replicas of a controller one works, and the others wait
/// with warm caches.
///
/// The rules and the times are client-go's. Whether a lease has expired is decided by when a
/// replica *observed* its last change, on its own monotonic clock: no replica compares its
/// clock with that of another. The times that are written into the lease are for people.
///
/// The holder renews the lease every [retry period](Self::times). What has no reply after half of
/// the renew deadline is tried again. If it could not renew the lease for the length of the renew
/// deadline, counted from when it *sent* its last successful request, its workers are aborted at
/// their next `await`, and [`run`](crate::Controller::run) returns
/// [`LeaseLost`](Error::LeaseLost). Each poll of a run checks this time as well, so that a process
/// which was stopped for a while does nothing when it goes on. The rest of the lease's duration is
/// the margin for code that does not reach an `await`: while nothing in a run blocks for longer
/// than that, no two replicas work at once. (A request that was sent before may still arrive at the
/// API server: resource versions are what protects an object from that.)
///
/// A machine that is suspended, or a virtual machine that is paused, is the exception: on Linux its
/// monotonic clock stands still meanwhile. A leader that wakes up after its lease has expired works
/// on until its next attempt to renew finds another holder: for one retry period and the time of a
/// request, and until the end of the renew deadline if the API server does not reply. Two replicas
/// can work at once in that time.
///
/// On shutdown the lease is released after the workers have ended, and another replica has it
/// within one retry period.
///
/// **Clones are one candidate.** Give each controller of a process a clone of one `Leader`: they
/// lead together, one of them renews the lease for all, and the last one that stops releases it.
/// Two leaders made by two calls of [`lease`](Self::lease) compete with each other.
///
/// Needs the verbs `get`, `create` and `update` on `leases.coordination.k8s.io`.
///
/// # Examples
///
/// ```no_run
/// use std::time::Duration;
/// use kube::Client;
/// use requeue_kube::Leader;
///
/// # fn leader(client: Client) -> Leader {
/// Leader::lease(client, "default", "web-controller").times(
///     Duration::from_secs(60),
///     Duration::from_secs(40),
///     Duration::from_secs(5),
/// )
/// # }
/// ```
#[derive(Clone)]
#[must_use = "does nothing until it is given to a controller"]
pub struct Leader {
    api: Api<Lease>,
    namespace: String,
    name: String,
    identity: String,
    holders: Holders,
    times: Times,
    wall_clock: Arc<dyn Fn() -> Timestamp + Send + Sync>,
}

#[derive(Clone, Copy, Debug)]
struct Times {
    lease: Duration,
    renew_deadline: Duration,
    retry: Duration,
}

/// The longest lease that the API can store.
const LEASE_MAX: Duration = Duration::from_secs(i32::MAX.unsigned_abs() as u64);

impl Leader {
    /// Elects the leader by this lease, which is created if there is none. The identity is the
    /// name of the host (of the pod, in a cluster) and a random number. The lease lasts for 15 s,
    /// the renew deadline is 10 s, and the retry period 2 s, as in client-go.
    pub fn lease(client: Client, namespace: &str, name: &str) -> Self {
        let host = std::env::var("HOSTNAME").unwrap_or_else(|_| String::from("controller"));
        let random = RandomState::new().hash_one(std::process::id());
        Self {
            api: Api::namespaced(client, namespace),
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: format!("{host}_{random:016x}"),
            holders: Holders::default(),
            times: Times {
                lease: Duration::from_secs(15),
                renew_deadline: Duration::from_secs(10),
                retry: Duration::from_secs(2),
            },
            wall_clock: Arc::new(Timestamp::now),
        }
    }

    /// Sets the name of this replica. **It must not be another's**, and not that of an earlier
    /// process which may still be running: a lease that names it counts as its own. Clones made
    /// before this call are another candidate.
    pub fn identity(mut self, identity: impl Into<String>) -> Self {
        self.identity = identity.into();
        self.holders = Holders::default();
        self
    }

    /// Sets for how long a lease lasts after its last change was observed, after which time without
    /// a renewal the holder stops, and the pause between two attempts. Each has to be shorter than
    /// the one before, or [`run`](crate::Controller::run) returns [`Error::LeaseTimes`]. The lease
    /// is rounded up to seconds, because the API counts in them, up to 2³¹ − 1.
    ///
    /// A replica that waits looks every retry period, but at least twenty times while a lease
    /// lasts. So it takes over from one that was killed after at most the lease, a twentieth of it,
    /// and the time of two requests: with the default times within 16 s. (In client-go, where a
    /// replica that waits looks every 2 to 4.4 s, that depends on when it looked last.)
    pub fn times(mut self, lease: Duration, renew_deadline: Duration, retry: Duration) -> Self {
        self.times = Times {
            lease,
            renew_deadline,
            retry,
        };
        self
    }

    /// Sets the clock whose time is written into the lease. Nothing is decided by it.
    pub fn wall_clock(mut self, clock: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        self.wall_clock = Arc::new(clock);
        self
    }

    /// The lease, as `namespace/name`.
    fn path(&self) -> String {
        format!("{}/{}", self.namespace, self.name)
    }

    fn check(&self) -> Result<(), Error> {
        let Times {
            lease,
            renew_deadline,
            retry,
        } = self.times;
        let is_in_order = retry < renew_deadline && renew_deadline < lease;
        if !retry.is_zero() && is_in_order && lease <= LEASE_MAX {
            Ok(())
        } else {
            Err(Error::LeaseTimes)
        }
    }
}

impl fmt::Debug for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leader")
            .field("lease", &self.path())
            .field("identity", &self.identity)
            .field("times", &self.times)
            .finish_non_exhaustive()
    }
}
