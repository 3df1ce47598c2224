//! The tasks of a history.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fastrand::Rng;
use requeue_test_tools::Ledger;
use requeue_tokio::binding::AsShared;
use requeue_tokio::limiter::Exponential;
use requeue_tokio::priority::Plain;
use requeue_tokio::{Action, Finished, Guard, WaitError, WorkQueue};
use tokio::task::{JoinSet, yield_now};

const KEYS: usize = 6;
const WORKERS: usize = 4;
const ADDS: usize = 60;

/// Where a history takes place. Clones share it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) queue: WorkQueue<usize, Plain, Exponential>,
    pub(crate) ledger: Arc<Ledger<KEYS>>,
    pub(crate) is_over: Arc<AtomicBool>,
}

fn pause(rng: &mut Rng) -> Duration {
    Duration::from_micros(rng.u64(..3000))
}

/// Lets others come first, for some of so many steps.
pub(crate) async fn dawdle(rng: &mut Rng, steps: u64) {
    for _ in 0..rng.u64(..steps) {
        yield_now().await;
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let limiter = Exponential::new(Duration::from_millis(1), Duration::from_millis(4));
        Self {
            queue: WorkQueue::builder().limiter(limiter).build(),
            ledger: Arc::default(),
            is_over: Arc::default(),
        }
    }

    pub(crate) async fn produce(self, mut rng: Rng) {
        for _ in 0..ADDS {
            dawdle(&mut rng, 4).await;
            let key = rng.u64(..KEYS as u64) as usize;
            let change = self.ledger.change(key);
            let is_taken = match rng.u64(..4) {
                0 => self.queue.add_after(key, pause(&mut rng)).is_ok(),
                1 => self.queue.add_rate_limited(key).is_ok(),
                _ => self.queue.add(key).is_ok(),
            };
            if is_taken {
                self.ledger.accept(key, change);
            } else {
                assert!(self.queue.is_shutting_down(), "refused for no reason");
            }
        }
    }

    /// Works until the queue is closed; it may panic, and it may be aborted anywhere.
    async fn work(self, mut rng: Rng) {
        let mut next = None;
        loop {
            let guard = match next.take() {
                Some(guard) => guard,
                None => match self.take(&mut rng).await {
                    Ok(guard) => guard,
                    Err(WaitError::Closed) => return,
                    Err(_) => continue,
                },
            };
            match self.run(&guard, &mut rng).await {
                None => drop(guard),
                Some(action) if rng.u64(..2) == 0 => {
                    assert_ne!(guard.finish(action), Finished::Stale);
                }
                Some(action) => match self.queue.next(guard, action).await {
                    Ok(guard) => next = Some(guard),
                    Err(_) => return,
                },
            }
        }
    }

    async fn take(&self, rng: &mut Rng) -> Result<Guard<usize, Plain, Exponential>, WaitError> {
        match rng.u64(..4) {
            0 => self.queue.get_timeout(pause(rng)).await,
            1 => tokio::select! {
                biased;
                guard = self.queue.get() => guard,
                () = dawdle(rng, 5) => Err(WaitError::TimedOut),
            },
            2 => {
                let batch = self.queue.get_many(2).await?;
                // What is left of the batch is dropped: given back as failed.
                Ok(batch.into_guards().swap_remove(0))
            }
            _ => self.queue.get().await,
        }
    }

    /// Returns `None` for a guard that is to be dropped unreported.
    async fn run(&self, key: &usize, rng: &mut Rng) -> Option<Action> {
        let active = self.ledger.begin(*key);
        dawdle(rng, 6).await;
        match rng.u64(..10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 => return None,
            2 => return Some(Action::Retry),
            _ => {}
        }
        active.succeed();
        Some(match rng.u64(..4) {
            0 => Action::Snooze(pause(rng)),
            _ => Action::Success,
        })
    }

    /// Keeps workers running and aborts one now and then, until all have ended by themselves.
    pub(crate) async fn employ(self, mut rng: Rng) {
        let mut workers = JoinSet::new();
        let spawn = |workers: &mut JoinSet<()>, rng| {
            workers.spawn(self.clone().work(rng));
        };
        for _ in 0..WORKERS {
            spawn(&mut workers, rng.fork());
        }
        let mut aborts = 20;
        loop {
            tokio::select! {
                biased;
                ended = workers.join_next() => match ended {
                    None => return,
                    Some(Ok(())) => {}
                    Some(Err(end)) => {
                        if end.is_panic() {
                            let panic = end.into_panic();
                            panic.downcast::<OnPurpose>().unwrap_or_else(|bug| resume_unwind(bug));
                        }
                        spawn(&mut workers, rng.fork());
                    }
                },
                () = dawdle(&mut rng, 200), if aborts > 0 => {
                    aborts -= 1;
                    workers.abort_all();
                }
            }
        }
    }

    /// Takes back what is left over, in competition with the workers.
    pub(crate) async fn collect(self, mut rng: Rng) {
        while !self.is_over.load(Ordering::SeqCst) {
            let ready = self.queue.as_shared().take_ready();
            let left = ready.or_else(|| self.queue.as_shared().take_delayed());
            if let Some(left) = left {
                self.ledger.leave(left.key);
            }
            // Now and then it lets the time pass, which stands still while a task is busy.
            match rng.u64(..8) {
                0 => tokio::time::sleep(pause(&mut rng)).await,
                _ => yield_now().await,
            }
        }
    }

    /// Waits for the drain with a timeout or without; it must not be reported too early.
    pub(crate) async fn drain(self, mut rng: Rng) {
        // None, or more than passes while a task is busy.
        let timeout = pause(&mut rng) * rng.u64(..2) as u32;
        let drained = match rng.u64(..3) {
            0 => {
                let drained = tokio::time::timeout(timeout, self.queue.drain()).await;
                drained.unwrap_or(Err(WaitError::TimedOut))
            }
            1 => tokio::select! {
                biased;
                drained = self.queue.drain() => drained,
                () = dawdle(&mut rng, 20) => Err(WaitError::TimedOut),
            },
            _ => self.queue.drain().await,
        };
        let is_idle = self.ledger.is_idle();
        assert!(is_idle || drained != Ok(()), "too early");
    }

    /// Waits until every change was acted upon: no worker sleeps while there is work.
    pub(crate) async fn settled(&self) {
        while !self.ledger.is_settled() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// What a worker panics with, without a message on the screen.
struct OnPurpose;
