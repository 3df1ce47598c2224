//! What is in the Leases of a set, and how they are called. No clock and no API here.

use std::collections::BTreeMap;
use std::error;
use std::time::{Duration, SystemTime};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use requeue_shards::{EngineError, Fence, Membership, Shard, Source};
use tokio::time::Instant;

use crate::lease::{Claim, Record};

/// The label of all Leases of a set.
const SET: &str = "requeue.dev/set";
/// The annotation with the number of shards.
const SHARDS: &str = "requeue.dev/shards";
/// The annotation of a member that is about to leave.
const RETIRING: &str = "requeue.dev/retiring";
/// The longest name of a member: that of its Lease has 253 characters at most.
const MEMBER_MAX: usize = 180;
/// How much greater a fence is if its Lease was created a second later. More than the claims of a
/// shard in a second, so that it rises also if the Lease is deleted.
const FENCES_PER_SECOND: u64 = 1_000_000;

/// What a Lease is for.
pub(super) enum Role<'a> {
    Set,
    Member(&'a str),
    Shard(Shard),
}

/// The name of a Lease. A set has no dot, so that no Lease of another set has this name, nor one of
/// another role.
pub(super) fn name(set: &str, role: &Role<'_>) -> String {
    match role {
        Role::Set => format!("{set}.set"),
        Role::Member(member) => format!("{set}.member.{member}"),
        Role::Shard(shard) => format!("{set}.shard-{shard}"),
    }
}

/// What the Lease of that name is for, `None` if it is no Lease of the set.
pub(super) fn role<'a>(set: &str, name: &'a str) -> Option<Role<'a>> {
    let rest = name.strip_prefix(set)?.strip_prefix('.')?;
    if let Some(member) = rest.strip_prefix("member.") {
        return Some(Role::Member(member));
    }
    let number = rest.strip_prefix("shard-")?.parse().ok()?;
    Some(Role::Shard(Shard(number)))
}

/// Selects the Leases of a set.
pub(super) fn selector(set: &str) -> String {
    format!("{SET}={set}")
}

pub(super) fn is_of(set: &str, lease: &Lease) -> bool {
    let labels = lease.metadata.labels.as_ref();
    labels
        .and_then(|labels| labels.get(SET))
        .map(|label| &**label)
        == Some(set)
}

/// # Errors
///
/// [`EngineError::Refused`] unless it is a label of DNS.
pub(super) fn check_set(set: &str) -> Result<(), EngineError> {
    if is_label(set) && set.len() <= 63 {
        return Ok(());
    }
    let what = "1 to 63 of a-z, 0-9 and -, with a letter or digit at both ends";
    Err(refused(&format!(
        "the name of a set is {what}, not {set:?}"
    )))
}

/// # Errors
///
/// [`EngineError::Refused`] unless it is labels of DNS, joined by dots.
pub(super) fn check_member(member: &str) -> Result<(), EngineError> {
    if member.split('.').all(is_label) && member.len() <= MEMBER_MAX {
        return Ok(());
    }
    let what = "1 to 180 of a-z, 0-9, - and ., with a letter or digit at both ends of each part";
    Err(refused(&format!(
        "the name of a member is {what}, not {member:?}"
    )))
}

fn is_label(word: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let ends = [word.bytes().next(), word.bytes().next_back()];
    word.bytes().all(is_inner)
        && ends
            .into_iter()
            .all(|end| end.is_some_and(|end| end != b'-'))
}

pub(super) fn refused(why: &str) -> EngineError {
    let why: Box<dyn error::Error + Send + Sync> = why.into();
    EngineError::Refused(Source::from(why))
}

/// The number of shards of a set.
pub(super) fn count(lease: &Lease) -> Result<u32, EngineError> {
    let annotation = annotation(lease, SHARDS);
    let count = annotation.and_then(|count| count.parse().ok());
    count.ok_or_else(|| unreadable(lease, "has no number of shards"))
}

/// The Lease of a set that is to be created.
pub(super) fn set(set: &str, count: u32) -> Lease {
    let mut lease = blank(set, &Role::Set);
    lease.metadata.annotations = Some(BTreeMap::from([(SHARDS.to_owned(), count.to_string())]));
    lease
}

/// A Lease that does not exist yet, or has not been claimed.
fn blank(set: &str, role: &Role<'_>) -> Lease {
    Lease {
        metadata: ObjectMeta {
            name: Some(name(set, role)),
            labels: Some(BTreeMap::from([(SET.to_owned(), set.to_owned())])),
            ..ObjectMeta::default()
        },
        spec: Some(LeaseSpec::default()),
    }
}

/// What was found of a Lease, or what it is if there is none.
pub(super) fn record(found: Option<Lease>, set: &str, role: &Role<'_>) -> Record {
    let lease = found.unwrap_or_else(|| blank(set, role));
    Record::read(lease, Instant::now(), None)
}

/// What is written to hold a Lease, or to free it.
pub(super) fn claim<'a>(name: &'a str, identity: &'a str, ttl: Duration) -> Claim<'a> {
    Claim {
        name,
        identity,
        duration: ttl,
        wall_time: Timestamp::now(),
    }
}

/// What changes when a session is kept.
pub(super) fn renewal() -> Lease {
    Lease {
        metadata: ObjectMeta::default(),
        spec: Some(LeaseSpec {
            renew_time: Some(MicroTime(Timestamp::now())),
            ..LeaseSpec::default()
        }),
    }
}

/// What changes when a member is about to leave.
pub(super) fn retirement() -> Lease {
    let annotation = (RETIRING.to_owned(), String::from("true"));
    Lease {
        metadata: ObjectMeta {
            annotations: Some(BTreeMap::from([annotation])),
            ..ObjectMeta::default()
        },
        spec: None,
    }
}

/// What a session owns its shards by.
pub(super) fn holder(member: &str, uid: &str) -> String {
    format!("{member}_{uid}")
}

/// The member and the session of an owner. `None` if it can be no member: then the shard is free.
pub(super) fn parts(holder: &str) -> Option<(&str, &str)> {
    let parts = holder.rsplit_once('_');
    parts.filter(|(member, _)| check_member(member).is_ok())
}

/// What is wrong with the Lease of a shard.
pub(super) fn defect(lease: &Lease) -> Option<String> {
    let holder = lease.spec.as_ref()?.holder_identity.as_deref();
    let holder = holder.filter(|holder| !holder.is_empty());
    if let Some(holder) = holder.filter(|holder| parts(holder).is_none()) {
        return Some(format!("its holderIdentity {holder:?} is no member"));
    }
    let claims = claims(lease);
    (!can_rise(lease)).then(|| format!("its leaseTransitions {claims} leave no greater fence"))
}

pub(super) fn uid(lease: Lease) -> Result<String, EngineError> {
    let missing = unreadable(&lease, "has no uid");
    lease.metadata.uid.ok_or(missing)
}

/// Whether this is the Lease of that session, and is not about to be deleted.
pub(super) fn is_session(lease: &Lease, uid: &str) -> bool {
    let meta = &lease.metadata;
    meta.uid.as_deref() == Some(uid) && meta.deletion_timestamp.is_none()
}

/// The fence of a shard's present or last owner.
pub(super) fn fence(lease: &Lease) -> Result<Fence, EngineError> {
    let missing = || unreadable(lease, "has no time of creation");
    let created = lease
        .metadata
        .creation_timestamp
        .as_ref()
        .ok_or_else(missing)?;
    let second = u64::try_from(created.0.as_second()).map_err(|_| missing())?;
    let claims = u64::from(claims(lease).unsigned_abs());
    Ok(Fence(
        second
            .saturating_mul(FENCES_PER_SECOND)
            .saturating_add(claims),
    ))
}

/// Whether the Lease of a shard can be claimed once more with a greater fence.
pub(super) fn can_rise(lease: &Lease) -> bool {
    (0..i32::MAX).contains(&claims(lease))
}

fn claims(lease: &Lease) -> i32 {
    let spec = lease.spec.as_ref();
    spec.and_then(|spec| spec.lease_transitions)
        .unwrap_or_default()
}

/// What a view shows of a member.
pub(super) fn membership(lease: &Lease) -> Membership {
    let mut shown = Membership::new(since(lease));
    shown.is_retiring = annotation(lease, RETIRING).is_some();
    shown
}

/// When a Lease was taken, by the clock of who took it.
pub(super) fn since(lease: &Lease) -> SystemTime {
    let acquired = lease
        .spec
        .as_ref()
        .and_then(|spec| spec.acquire_time.as_ref());
    acquired.map_or(SystemTime::UNIX_EPOCH, |time| SystemTime::from(time.0))
}

fn annotation<'a>(lease: &'a Lease, name: &str) -> Option<&'a str> {
    let annotations = lease.metadata.annotations.as_ref()?;
    annotations.get(name).map(|value| &**value)
}

pub(super) fn unreadable(lease: &Lease, why: &str) -> EngineError {
    let name = lease.metadata.name.as_deref().unwrap_or_default();
    EngineError::Unreadable(format!("the Lease {name:?} {why}"))
}
