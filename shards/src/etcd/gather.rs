//! Marks that are stored at the same time share a transaction.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_client::{Txn, TxnOp};
use tokio::sync::{Semaphore, oneshot};

use super::calls::Calls;
use super::format;
use super::ownership::run;
use crate::error::EngineError;

/// How many marks one transaction stores: etcd's default limit of operations.
pub(super) const BATCH: usize = 128;
/// How many transactions are in flight: full ones of [`BATCH`] marks, and partial ones. With fewer
/// partial ones, more marks gather for each.
pub(super) const AT_ONCE: usize = 16;
const PARTIAL_AT_ONCE: usize = 4;

/// The waiting marks. They gather only while transactions are in flight, so a single mark does not
/// wait.
#[derive(Debug)]
pub(super) struct Gathering {
    waiting: Mutex<VecDeque<Waiting>>,
    turns: Semaphore,
    full_turns: Semaphore,
}

/// The marks of one call.
#[derive(Debug)]
struct Waiting {
    keys: Vec<Vec<u8>>,
    stored: oneshot::Sender<Result<(), EngineError>>,
}

impl Gathering {
    pub(super) fn new() -> Self {
        Self {
            waiting: Mutex::default(),
            turns: Semaphore::new(PARTIAL_AT_ONCE),
            full_turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Stores marks without a time, at most [`BATCH`] of them.
    pub(super) async fn put(&self, calls: &Calls, keys: Vec<Vec<u8>>) -> Result<(), EngineError> {
        if keys.len() == BATCH {
            let _turn = self.full_turns.acquire().await;
            return store(calls, keys.iter().map(Vec::as_slice)).await;
        }
        loop {
            let (stored, mut outcome) = oneshot::channel();
            let keys = keys.clone();
            self.waiting().push_back(Waiting { keys, stored });
            let outcome = loop {
                let turn = tokio::select! {
                    biased;
                    outcome = &mut outcome => break outcome,
                    turn = self.turns.acquire() => turn,
                };
                let batch = self.take();
                if batch.is_empty() {
                    // Another call is storing these marks.
                    drop(turn);
                    break outcome.await;
                }
                store_all(calls, batch).await;
            };
            // On an error, the other call was dropped: try again.
            if let Ok(outcome) = outcome {
                return outcome;
            }
        }
    }

    /// The marks of the next transaction.
    fn take(&self) -> Vec<Waiting> {
        let mut waiting = self.waiting();
        let (mut batch, mut count) = (Vec::new(), 0);
        while let Some(next) = waiting.pop_front() {
            if !batch.is_empty() && count + next.keys.len() > BATCH {
                waiting.push_front(next);
                break;
            }
            count += next.keys.len();
            batch.push(next);
        }
        batch
    }

    fn waiting(&self) -> MutexGuard<'_, VecDeque<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn store_all(calls: &Calls, batch: Vec<Waiting>) {
    // A transaction must not put a key twice.
    let keys: BTreeSet<&[u8]> = batch
        .iter()
        .flat_map(|waiting| waiting.keys.iter().map(Vec::as_slice))
        .collect();
    let outcome = store(calls, keys.into_iter()).await;
    for waiting in batch {
        // Fails if that call was dropped.
        let _ = waiting.stored.send(outcome.clone());
    }
}

async fn store(calls: &Calls, keys: impl Iterator<Item = &[u8]>) -> Result<(), EngineError> {
    let puts = keys.map(|key| TxnOp::put(key, format::mark_value(None), None));
    let txn = Txn::new().and_then(puts.collect::<Vec<_>>());
    run(calls, calls.timeout, txn).await.map(drop)
}
