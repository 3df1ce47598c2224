//! Members and owners, changed by transactions that compare before they write.

use std::error;
use std::time::{Duration, SystemTime};

use etcd_client::{
    Client, Compare, CompareOp, Error, KeyValue, PutOptions, Txn, TxnOp, TxnOpResponse, TxnResponse,
};

use super::calls::Calls;
use super::{EtcdSession, format};
use crate::error::{EngineError, Source};
use crate::shard::{Fence, Shard};

pub(super) async fn open(calls: &Calls, set: &str, asked: u32) -> Result<(), EngineError> {
    let key = format::count_key(set)?;
    let txn = Txn::new()
        .when([is_absent(&key)])
        .and_then([TxnOp::put(key.as_str(), format::count_value(asked), None)])
        .or_else([TxnOp::get(key.as_str(), None)]);
    let reply = run(calls, calls.timeout, txn).await?;
    let [stored] = read(&reply, [format::read_count])?;
    match stored {
        Some(stored) if stored != asked => {
            let set = set.to_owned();
            Err(EngineError::CountDiffers { set, stored, asked })
        }
        _ => Ok(()),
    }
}

pub(super) async fn count(calls: &Calls, set: &str) -> Result<Option<u32>, EngineError> {
    let get = Txn::new().and_then([TxnOp::get(format::count_key(set)?, None)]);
    let reply = run(calls, calls.timeout, get).await?;
    let [stored] = read(&reply, [format::read_count])?;
    Ok(stored)
}

/// How often an operation is tried if others write first.
const ATTEMPTS: usize = 8;

pub(super) async fn join(
    calls: &Calls,
    set: &str,
    member: &str,
    ttl: Duration,
) -> Result<EtcdSession, EngineError> {
    let limit = calls.timeout;
    let era = calls.history.now().era;
    let key = format::member_key(set, member)?;
    let since = SystemTime::now();
    // If the reply is lost, so is the lease's id, and the lease expires.
    let seconds = i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
    let grant = |mut client: Client| async move { client.lease_grant(seconds.max(1), None).await };
    let lease = calls.call(limit, grant).await?.id();
    let session = EtcdSession {
        set: set.to_owned(),
        member: member.to_owned(),
        since,
        lease,
        era,
        ttl,
    };
    let value = format::member_value(since, false);
    let mut known = 0;
    for _ in 0..ATTEMPTS {
        let options = PutOptions::new().with_lease(lease);
        let txn = Txn::new()
            .when([is_unchanged(&key, known)])
            .and_then([TxnOp::put(key.as_str(), value.as_str(), Some(options))])
            .or_else([TxnOp::get(key.as_str(), None)]);
        let reply = run(calls, limit, txn).await?;
        if reply.succeeded() {
            return Ok(session);
        }
        let [stored] = read(&reply, [|pair| Ok((pair.lease(), pair.mod_revision()))])?;
        known = match stored {
            // The reply to the first attempt was lost.
            Some((stored, _)) if stored == lease => return Ok(session),
            Some((stored, _)) if stored != 0 => {
                // If this fails, the lease expires.
                let _ = leave(calls, &session).await;
                let member = member.to_owned();
                return Err(EngineError::NameTaken { member });
            }
            // A key without a lease is replaced, because no session would ever remove it.
            Some((_, revision)) => revision,
            None => 0,
        };
    }
    Err(contended(&key))
}

/// Renews the lease. The message has its own stream, so there is no stream to resume.
pub(super) async fn keep(calls: &Calls, session: &EtcdSession) -> Result<(), EngineError> {
    let member = format::member_key(&session.set, &session.member)?;
    let lease = session.lease;
    let keep = |mut client: Client| async move {
        match client.lease_keep_alive(lease).await {
            Ok(_) => Ok(true),
            // The client's error for a reply without a time to live.
            Err(Error::LeaseKeepAliveError(why)) if why == "lease not found" => Ok(false),
            Err(error) => Err(error),
        }
    };
    let is_kept = calls.call(session.limit(calls), keep).await?;
    // The lease outlives a key that was deleted by hand, so the key is compared too. The `get`
    // makes etcd agree on the reply: without an operation, one node replies, which may be out of
    // date.
    let is_member = Txn::new()
        .when([is_of(&member, lease)])
        .and_then([TxnOp::get(member, None)]);
    // Called even if the lease has ended, because the reply may show that more was lost.
    match run_as(session, calls, is_member).await?.succeeded() && is_kept {
        true => Ok(()),
        false => Err(EngineError::SessionEnded),
    }
}

pub(super) async fn retire(calls: &Calls, session: &EtcdSession) -> Result<(), EngineError> {
    let key = format::member_key(&session.set, &session.member)?;
    let value = format::member_value(session.since, true);
    let options = PutOptions::new().with_lease(session.lease);
    let txn = Txn::new()
        .when([is_of(&key, session.lease)])
        .and_then([TxnOp::put(key, value, Some(options))]);
    match run_as(session, calls, txn).await?.succeeded() {
        true => Ok(()),
        false => Err(EngineError::SessionEnded),
    }
}

pub(super) async fn leave(calls: &Calls, session: &EtcdSession) -> Result<(), EngineError> {
    const NOT_FOUND: i32 = 5;
    let lease = session.lease;
    let revoke = |mut client: Client| async move {
        match client.lease_revoke(lease).await {
            Ok(_) => Ok(()),
            Err(Error::GRpcStatus(status)) if i32::from(status.code()) == NOT_FOUND => Ok(()),
            Err(error) => Err(error),
        }
    };
    calls.call(session.limit(calls), revoke).await
}

/// Reads the owner of the shard and the last fence, and swaps both.
pub(super) async fn claim(
    calls: &Calls,
    session: &EtcdSession,
    shard: Shard,
) -> Result<Option<Fence>, EngineError> {
    let owner = format::owner_key(&session.set, shard)?;
    let member = format::member_key(&session.set, &session.member)?;
    let fence = format::fence_key(&session.set, shard)?;
    for _ in 0..ATTEMPTS {
        let keys = [&owner, &member, &fence];
        let look = Txn::new().and_then(keys.map(|key| TxnOp::get(key.as_str(), None)));
        let reply = run_as(session, calls, look).await?;
        let stored = |pair: &KeyValue| {
            let fence = format::read_owner(pair).map(|owner| owner.fence);
            Ok((
                pair.lease(),
                pair.mod_revision(),
                fence.or(format::read_fence(pair)),
            ))
        };
        let [owned, joined, last] = read(&reply, [stored; 3])?;
        if joined.is_none_or(|(lease, ..)| lease != session.lease) {
            return Err(EngineError::SessionEnded);
        }
        match owned {
            Some((lease, _, fence)) if lease == session.lease && fence.is_some() => {
                return Ok(fence);
            }
            // A key without a lease is replaced, because no session would ever remove it.
            Some((lease, ..)) if lease != 0 && lease != session.lease => return Ok(None),
            _ => {}
        }
        let known = |stored: Option<(i64, i64, _)>| stored.map_or(0, |(_, revision, _)| revision);
        let now = SystemTime::now();
        let next = format::next_fence(last.and_then(|(.., fence)| fence), now);
        let value = format::owner_value(now, next, &session.member);
        let options = PutOptions::new().with_lease(session.lease);
        let swap = Txn::new()
            .when([
                is_unchanged(&owner, known(owned)),
                is_unchanged(&fence, known(last)),
                is_of(&member, session.lease),
            ])
            .and_then([
                TxnOp::put(owner.as_str(), value, Some(options)),
                TxnOp::put(fence.as_str(), format::fence_value(next), None),
            ]);
        if run_as(session, calls, swap).await?.succeeded() {
            return Ok(Some(next));
        }
    }
    Err(contended(&owner))
}

pub(super) async fn release(
    calls: &Calls,
    session: &EtcdSession,
    shard: Shard,
    fence: Fence,
) -> Result<(), EngineError> {
    let owner = format::owner_key(&session.set, shard)?;
    let txn = Txn::new()
        .when(owns(session, shard, fence)?)
        .and_then([TxnOp::delete(owner, None)]);
    run(calls, session.limit(calls), txn).await?;
    Ok(())
}

/// Commits a transaction of a session, if the session's era has not ended.
async fn run_as(
    session: &EtcdSession,
    calls: &Calls,
    txn: Txn,
) -> Result<TxnResponse, EngineError> {
    if calls.history.now().era != session.era {
        return Err(EngineError::SessionEnded);
    }
    run(calls, session.limit(calls), txn).await
}

/// Commits a transaction that can be committed twice.
pub(super) async fn run(
    calls: &Calls,
    limit: Duration,
    txn: Txn,
) -> Result<TxnResponse, EngineError> {
    let commit = |mut client: Client| {
        let txn = txn.clone();
        async move { client.txn(txn).await }
    };
    let before = calls.history.now();
    let reply = calls.call(limit, commit).await?;
    calls.history.check(before, reply.header())?;
    Ok(reply)
}

type Read<T> = fn(&KeyValue) -> Result<T, EngineError>;

/// Reads the replies of a transaction: a pair or none for each `get`, and none for each `put`.
pub(super) fn read<T, const N: usize>(
    reply: &TxnResponse,
    read: [Read<T>; N],
) -> Result<[Option<T>; N], EngineError> {
    let mut found = [const { None }; N];
    let replies = reply.op_responses();
    for ((found, read), reply) in found.iter_mut().zip(read).zip(replies) {
        if let TxnOpResponse::Get(got) = reply {
            *found = got.kvs().first().map(read).transpose()?;
        }
    }
    Ok(found)
}

/// Whether a session owns a shard with this fence.
pub(super) fn owns(
    session: &EtcdSession,
    shard: Shard,
    fence: Fence,
) -> Result<[Compare; 2], EngineError> {
    let owner = format::owner_key(&session.set, shard)?;
    let key = format::fence_key(&session.set, shard)?;
    let last = Compare::value(key, CompareOp::Equal, format::fence_value(fence));
    Ok([is_of(&owner, session.lease), last])
}

fn is_absent(key: &str) -> Compare {
    is_unchanged(key, 0)
}

/// Whether a key was last changed by this revision. Zero means that it is absent.
fn is_unchanged(key: &str, revision: i64) -> Compare {
    Compare::mod_revision(key, CompareOp::Equal, revision)
}

/// Whether a key belongs to a session. Unlike a revision, the id of a lease is not repeated if etcd
/// is replaced.
fn is_of(key: &str, lease: i64) -> Compare {
    Compare::lease(key, CompareOp::Equal, lease)
}

fn contended(key: &str) -> EngineError {
    let why = format!("others have written {key} first, {ATTEMPTS} times");
    let why: Box<dyn error::Error + Send + Sync> = why.into();
    EngineError::Refused(Source::from(why))
}
