//! Members and owners: transactions that change what is stored if it is as the caller believes.

use std::time::{Duration, SystemTime};

use etcd_client::{
    Client, Compare, CompareOp, Error, KeyValue, PutOptions, ResponseHeader, Txn, TxnOp,
    TxnOpResponse, TxnResponse,
};

use super::calls::Calls;
use super::{EtcdSession, format};
use crate::error::EngineError;
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

pub(super) async fn join(
    calls: &Calls,
    set: &str,
    member: &str,
    ttl: Duration,
) -> Result<EtcdSession, EngineError> {
    let limit = calls.timeout;
    let key = format::member_key(set, member)?;
    let since = SystemTime::now();
    // A lease whose id was lost with the reply ends by itself.
    let seconds = i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
    let grant = |mut client: Client| async move { client.lease_grant(seconds.max(1), None).await };
    let lease = calls.call(limit, grant).await?.id();
    let mut session = EtcdSession {
        set: set.to_owned(),
        member: member.to_owned(),
        since,
        lease,
        created: 0,
        ttl,
    };
    let value = format::member_value(since, false);
    let put = TxnOp::put(
        key.as_str(),
        value,
        Some(PutOptions::new().with_lease(lease)),
    );
    let txn = Txn::new()
        .when([is_absent(&key)])
        .and_then([put])
        .or_else([TxnOp::get(key.as_str(), None)]);
    let reply = run(calls, limit, txn).await?;
    if reply.succeeded() {
        session.created = revision(&reply)?;
        return Ok(session);
    }
    let [stored] = read(&reply, [|pair| Ok((pair.lease(), pair.create_revision()))])?;
    match stored {
        // The reply to the first attempt was lost.
        Some((stored, created)) if stored == lease => {
            session.created = created;
            Ok(session)
        }
        _ => {
            // Otherwise it ends by itself.
            let _ = leave(calls, &session).await;
            let member = member.to_owned();
            Err(EngineError::NameTaken { member })
        }
    }
}

/// One message and its reply on a stream of their own: there is no stream to resume.
pub(super) async fn keep(calls: &Calls, session: &EtcdSession) -> Result<(), EngineError> {
    let member = format::member_key(&session.set, &session.member)?;
    let lease = session.lease;
    let keep = |mut client: Client| async move {
        match client.lease_keep_alive(lease).await {
            Ok(_) => Ok(true),
            // Said when the reply holds no time to live.
            Err(Error::LeaseKeepAliveError(why)) if why == "lease not found" => Ok(false),
            Err(error) => Err(error),
        }
    };
    if !calls.call(session.limit(calls), keep).await? {
        return Err(EngineError::SessionEnded);
    }
    // A lease goes on without its key, which is removed if the set is emptied by hand.
    let is_member = Txn::new().when([is_created(&member, session.created)]);
    if run(calls, session.limit(calls), is_member)
        .await?
        .succeeded()
    {
        Ok(())
    } else {
        Err(EngineError::SessionEnded)
    }
}

pub(super) async fn retire(calls: &Calls, session: &EtcdSession) -> Result<(), EngineError> {
    let key = format::member_key(&session.set, &session.member)?;
    let value = format::member_value(session.since, true);
    let options = PutOptions::new().with_lease(session.lease);
    let txn = Txn::new()
        .when([is_created(&key, session.created)])
        .and_then([TxnOp::put(key, value, Some(options))]);
    match run(calls, session.limit(calls), txn).await?.succeeded() {
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

pub(super) async fn claim(
    calls: &Calls,
    session: &EtcdSession,
    shard: Shard,
) -> Result<Option<Fence>, EngineError> {
    let owner = format::owner_key(&session.set, shard)?;
    let member = format::member_key(&session.set, &session.member)?;
    let value = format::owner_value(SystemTime::now(), &session.member);
    let options = PutOptions::new().with_lease(session.lease);
    let txn = Txn::new()
        .when([is_absent(&owner), is_created(&member, session.created)])
        .and_then([TxnOp::put(owner.as_str(), value, Some(options))])
        .or_else([TxnOp::get(owner, None), TxnOp::get(member, None)]);
    let reply = run(calls, session.limit(calls), txn).await?;
    if reply.succeeded() {
        return Ok(Some(Fence(revision(&reply)?.unsigned_abs())));
    }
    let whose = |pair: &KeyValue| Ok((pair.lease(), pair.create_revision()));
    let [owner, member] = read(&reply, [whose, whose])?;
    if member.is_none_or(|(_, created)| created != session.created) {
        return Err(EngineError::SessionEnded);
    }
    let owned = owner.filter(|(lease, _)| *lease == session.lease);
    Ok(owned.map(|(_, created)| Fence(created.unsigned_abs())))
}

pub(super) async fn release(
    calls: &Calls,
    session: &EtcdSession,
    shard: Shard,
    fence: Fence,
) -> Result<(), EngineError> {
    let owner = format::owner_key(&session.set, shard)?;
    let txn = Txn::new()
        .when([is_fence(&owner, fence)])
        .and_then([TxnOp::delete(owner, None)]);
    run(calls, session.limit(calls), txn).await?;
    Ok(())
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
    calls.call(limit, commit).await
}

type Read<T> = fn(&KeyValue) -> Result<T, EngineError>;

/// Reads what a transaction has got, one pair or none for each operation; no pair if it has put.
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

/// The revision of what a transaction has put.
fn revision(reply: &TxnResponse) -> Result<i64, EngineError> {
    let header = reply.header().map(ResponseHeader::revision);
    header.ok_or_else(|| EngineError::Unreadable("a reply without a header".to_owned()))
}

pub(super) fn is_absent(key: &str) -> Compare {
    is_created(key, 0)
}

pub(super) fn is_fence(owner: &str, fence: Fence) -> Compare {
    is_created(owner, i64::try_from(fence.0).unwrap_or(i64::MAX))
}

fn is_created(key: &str, revision: i64) -> Compare {
    Compare::create_revision(key, CompareOp::Equal, revision)
}
