//! What was observed of a lease, and what follows from it. No clock and no API here.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use tokio::time::Instant;

/// A lease, and when this replica saw its last change.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    lease: Lease,
    observed: Instant,
}

impl Record {
    /// A lease that this replica has read. If it says what is known already, the time of the first
    /// look counts: that is how a holder that does not renew is noticed.
    pub(crate) fn read(lease: Lease, now: Instant, before: Option<&Self>) -> Self {
        let known = before.filter(|before| before.lease.spec == lease.spec);
        let observed = known.map_or(now, |before| before.observed);
        Self { lease, observed }
    }

    /// A lease that this replica has written. The time is that of *sending* the request: another
    /// can have observed it only later.
    pub(crate) fn written(lease: Lease, sent: Instant) -> Self {
        let observed = sent;
        Self { lease, observed }
    }

    /// The lease as it is, to be replaced: with the resource version that was read.
    #[cfg(feature = "shards")]
    pub(crate) fn lease(&self) -> &Lease {
        &self.lease
    }

    pub(crate) fn holder(&self) -> Option<&str> {
        let holder = self.spec()?.holder_identity.as_deref();
        holder.filter(|holder| !holder.is_empty())
    }

    /// When the lease may be taken, if another holds it. The record itself says how long it lasts.
    pub(crate) fn expires(&self) -> Instant {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds);
        let seconds = u64::try_from(seconds.unwrap_or_default()).unwrap_or_default();
        self.observed + Duration::from_secs(seconds)
    }

    /// Whether another than `identity` holds the lease.
    pub(crate) fn is_held_by_another(&self, identity: &str, now: Instant) -> bool {
        self.holder().is_some_and(|holder| holder != identity) && now < self.expires()
    }

    /// When this replica saw the last change.
    #[cfg(feature = "shards")]
    pub(crate) fn observed(&self) -> Instant {
        self.observed
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.lease.spec.as_ref()
    }
}

/// What a replica writes to take, keep or release a lease.
pub(crate) struct Claim<'a> {
    pub(crate) name: &'a str,
    /// Empty to release it.
    pub(crate) identity: &'a str,
    pub(crate) duration: Duration,
    pub(crate) wall_time: Timestamp,
}

impl Claim<'_> {
    /// The lease to write over what there is, or to create. Everything that is not the election's
    /// stays, and so does the resource version, so that the write fails if the lease has changed.
    pub(crate) fn over(&self, before: Option<&Record>) -> Lease {
        let old = before.and_then(Record::spec).cloned().unwrap_or_default();
        let now = MicroTime(self.wall_time);
        let holder = before.and_then(Record::holder);
        let goes_on = holder == Some(self.identity);
        let changes = before.is_some() && !goes_on && !self.identity.is_empty();
        let transitions = old.lease_transitions.unwrap_or_default();
        let spec = LeaseSpec {
            holder_identity: Some(self.identity.to_owned()),
            lease_duration_seconds: Some(whole_seconds(self.duration)),
            acquire_time: if goes_on {
                old.acquire_time
            } else {
                Some(now.clone())
            },
            renew_time: Some(now),
            lease_transitions: Some(transitions.saturating_add(i32::from(changes))),
            ..old
        };
        let metadata = match before {
            Some(before) => before.lease.metadata.clone(),
            None => ObjectMeta {
                name: Some(self.name.to_owned()),
                ..ObjectMeta::default()
            },
        };
        Lease {
            metadata,
            spec: Some(spec),
        }
    }
}

/// Rounded up, at least one: the API knows no shorter lease.
fn whole_seconds(duration: Duration) -> i32 {
    let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
    i32::try_from(seconds.max(1)).unwrap_or(i32::MAX)
}
