//! Marks: keys that wait in etcd until a run has succeeded.

use std::collections::BTreeMap;
use std::time::SystemTime;

use etcd_client::{Compare, CompareOp, EventType, KeyValue, Txn, TxnOp};
use futures_util::stream::{self, StreamExt, TryStreamExt};
use tokio::sync::mpsc;

use super::calls::Calls;
use super::gather::{AT_ONCE, BATCH, Gathering};
use super::ownership::{owns, read, run};
use super::watches::{News, Range};
use super::{EtcdSession, format};
use crate::engine::{Mark, NewMark};
use crate::error::{EngineError, Source};
use crate::shard::{Fence, Shard};

/// How often a mark may change between being read and being stored.
const SWAPS_MAX: u32 = 32;

pub(super) async fn put(
    calls: &Calls,
    gathering: &Gathering,
    set: &str,
    marks: &[NewMark],
) -> Result<(), EngineError> {
    // `None`, for at once, is less than any time.
    let mut earliest: BTreeMap<Vec<u8>, Option<SystemTime>> = BTreeMap::new();
    for mark in marks {
        let key = format::mark_key(set, mark.shard, &mark.key)?;
        let not_before = earliest.entry(key).or_insert(mark.not_before);
        *not_before = mark.not_before.min(*not_before);
    }
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for (key, not_before) in earliest {
        match not_before {
            None => now.push(key),
            Some(time) => later.push((key, time)),
        }
    }
    let batches: Vec<_> = now.chunks(BATCH).map(<[_]>::to_vec).collect();
    let batches = stream::iter(batches).map(|keys| gathering.put(calls, keys));
    let batches = batches.buffer_unordered(AT_ONCE);
    batches.try_collect::<()>().await?;
    let swaps = stream::iter(later).map(|(key, time)| put_later(calls, key, time));
    swaps.buffer_unordered(AT_ONCE).try_collect::<()>().await
}

/// Compares and swaps, so that the earlier of two times is stored.
async fn put_later(calls: &Calls, key: Vec<u8>, time: SystemTime) -> Result<(), EngineError> {
    let mut version = 0;
    let mut not_before = Some(time);
    for _ in 0..SWAPS_MAX {
        let txn = Txn::new()
            .when([Compare::mod_revision(
                key.as_slice(),
                CompareOp::Equal,
                version,
            )])
            .and_then([TxnOp::put(
                key.as_slice(),
                format::mark_value(not_before),
                None,
            )])
            .or_else([TxnOp::get(key.as_slice(), None)]);
        let reply = run(calls, calls.timeout, txn).await?;
        if reply.succeeded() {
            return Ok(());
        }
        let [stored] = read(
            &reply,
            [|pair| {
                // An unreadable time means at once, here and in `follow`.
                let not_before = format::read_not_before(pair).unwrap_or_default();
                Ok((pair.mod_revision(), not_before))
            }],
        )?;
        (version, not_before) = match stored {
            Some((version, stored)) => (version, stored.min(Some(time))),
            None => (0, Some(time)),
        };
    }
    let why: Box<dyn std::error::Error + Send + Sync> = "others keep changing the mark".into();
    Err(EngineError::Refused(Source::from(why)))
}

pub(super) async fn end(
    calls: &Calls,
    session: &EtcdSession,
    fence: Fence,
    mark: &Mark,
    again: Option<SystemTime>,
) -> Result<bool, EngineError> {
    let key = format::mark_key(&session.set, mark.shard, &mark.key)?;
    let [is_owner, has_fence] = owns(session, mark.shard, fence)?;
    let version = i64::try_from(mark.version).unwrap_or(i64::MAX);
    let change = match again {
        None => TxnOp::delete(key.as_slice(), None),
        Some(_) => TxnOp::put(key.as_slice(), format::mark_value(again), None),
    };
    let txn = Txn::new()
        .when([
            Compare::mod_revision(key, CompareOp::Equal, version),
            is_owner,
            has_fence,
        ])
        .and_then([change]);
    Ok(run(calls, session.limit(calls), txn).await?.succeeded())
}

pub(super) async fn follow(
    calls: &Calls,
    set: &str,
    shard: Shard,
    marks: &mpsc::Sender<Mark>,
) -> Result<(), EngineError> {
    let (from, to) = format::mark_range(set, shard)?;
    let mut range = Range::new(calls, (from.clone(), to));
    let (mut sent, mut is_old) = (0, true);
    loop {
        let news = tokio::select! {
            biased;
            () = marks.closed() => return Ok(()),
            news = range.next() => news?,
        };
        let stored: Vec<&KeyValue> = match &news {
            News::Listed(pairs) => pairs.iter().collect(),
            News::Changed(response) => {
                let events = response.events().iter();
                let puts = events.filter(|event| event.event_type() == EventType::Put);
                puts.filter_map(etcd_client::Event::kv).collect()
            }
        };
        for pair in stored {
            // After a compaction, the list contains marks that were sent before.
            if pair.mod_revision() > sent {
                let mark = format::read_mark(pair, &from, shard, is_old);
                if marks.send(mark).await.is_err() {
                    return Ok(());
                }
            }
        }
        (sent, is_old) = (range.revision, false);
    }
}
