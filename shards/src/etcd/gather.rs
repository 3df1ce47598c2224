//! Marks that share a transaction with those that are put at the same time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use etcd_client::{Txn, TxnOp};
use tokio::sync::{Semaphore, oneshot};

use super::calls::Calls;
use super::format;
use super::ownership::run;
use crate::error::EngineError;

/// How many marks one transaction stores: etcd takes 128 operations unless configured otherwise.
pub(super) const BATCH: usize = 100;
/// How many transactions are under way at once.
pub(super) const AT_ONCE: usize = 8;

/// The marks that wait. While a transaction is under way, those that come gather for the next one:
/// a mark that comes alone does not wait.
#[derive(Debug)]
pub(super) struct Gathering {
    waiting: Mutex<VecDeque<Waiting>>,
    turns: Semaphore,
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
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Stores marks without a time, at most [`BATCH`] of them.
    pub(super) async fn put(&self, calls: &Calls, keys: Vec<Vec<u8>>) -> Result<(), EngineError> {
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
                    // Another call has taken these marks along.
                    drop(turn);
                    break outcome.await;
                }
                store(calls, batch).await;
            };
            // The call that had taken them along was dropped otherwise.
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

async fn store(calls: &Calls, batch: Vec<Waiting>) {
    // A transaction must not put a key twice.
    let keys: BTreeSet<&[u8]> = batch
        .iter()
        .flat_map(|waiting| waiting.keys.iter().map(Vec::as_slice))
        .collect();
    let puts = keys.into_iter();
    let puts = puts.map(|key| TxnOp::put(key, format::mark_value(None), None));
    let txn = Txn::new().and_then(puts.collect::<Vec<_>>());
    let outcome = run(calls, calls.timeout, txn).await.map(drop);
    for waiting in batch {
        // Dropped if its call was.
        let _ = waiting.stored.send(outcome.clone());
    }
}
