//! The tasks of a history.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use requeue_test_tools::{Books, Dice};
use requeue_tokio::core::ItemExponentialFailure;
use requeue_tokio::{Action, Drained, GetError, Guard, WorkQueue};
use tokio::task::{JoinSet, yield_now};

const KEYS: usize = 6;
const WORKERS: usize = 4;
const ADDS: usize = 60;

/// Where a history takes place. Clones share it.
#[derive(Clone)]
pub(crate) struct World {
    pub(crate) queue: WorkQueue<usize, ItemExponentialFailure>,
    pub(crate) books: Arc<Books<KEYS>>,
    pub(crate) is_over: Arc<AtomicBool>,
}

fn pause(dice: &mut Dice) -> Duration {
    Duration::from_micros(dice.roll(3000))
}

/// Lets others come first, for some of so many steps.
pub(crate) async fn dawdle(dice: &mut Dice, steps: u64) {
    for _ in 0..dice.roll(steps) {
        yield_now().await;
    }
}

impl World {
    pub(crate) fn new() -> Self {
        let limiter =
            ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_millis(4));
        Self {
            queue: WorkQueue::builder().limiter(limiter).build(),
            books: Arc::default(),
            is_over: Arc::default(),
        }
    }

    pub(crate) async fn produce(self, mut dice: Dice) {
        for _ in 0..ADDS {
            dawdle(&mut dice, 4).await;
            let key = dice.roll(KEYS as u64) as usize;
            let change = self.books.change(key);
            let is_taken = match dice.roll(4) {
                0 => self.queue.add_after(key, pause(&mut dice)).is_ok(),
                1 => self.queue.add_rate_limited(key).is_ok(),
                _ => self.queue.add(key).is_ok(),
            };
            if is_taken {
                self.books.accept(key, change);
            } else {
                assert!(self.queue.shutting_down(), "refused for no reason");
            }
        }
    }

    /// Works until the queue is closed; it may panic, and it may be aborted anywhere.
    async fn work(self, mut dice: Dice) {
        let mut next = None;
        loop {
            let guard = match next.take() {
                Some(guard) => guard,
                None => match self.take(&mut dice).await {
                    Ok(guard) => guard,
                    Err(GetError::Closed) => return,
                    Err(_) => continue,
                },
            };
            match self.run(&guard, &mut dice).await {
                None => drop(guard),
                Some(action) if dice.roll(2) == 0 => {
                    guard.finish(action).unwrap();
                }
                Some(action) => match self.queue.next(guard, action).await {
                    Some(guard) => next = Some(guard),
                    None => return,
                },
            }
        }
    }

    async fn take(
        &self,
        dice: &mut Dice,
    ) -> Result<Guard<usize, ItemExponentialFailure>, GetError> {
        match dice.roll(4) {
            0 => self.queue.get_timeout(pause(dice)).await,
            1 => tokio::select! {
                biased;
                guard = self.queue.get() => guard.ok_or(GetError::Closed),
                () = dawdle(dice, 5) => Err(GetError::TimedOut),
            },
            2 => {
                let batch = self.queue.get_many(2).await.ok_or(GetError::Closed)?;
                // What is left of the batch is dropped: given back as failed.
                Ok(batch.into_guards().swap_remove(0))
            }
            _ => self.queue.get().await.ok_or(GetError::Closed),
        }
    }

    /// Answers nothing if the guard is to be dropped without a word.
    async fn run(&self, key: &usize, dice: &mut Dice) -> Option<Action> {
        let at_work = self.books.begin(*key);
        dawdle(dice, 6).await;
        match dice.roll(10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 => return None,
            2 => return Some(Action::Retry),
            _ => {}
        }
        at_work.succeed();
        Some(match dice.roll(4) {
            0 => Action::RetryAfter(pause(dice)),
            _ => Action::Success,
        })
    }

    /// Keeps workers at work and aborts one now and then, until all have ended by themselves.
    pub(crate) async fn employ(self, mut dice: Dice) {
        let mut workers = JoinSet::new();
        let hire = |workers: &mut JoinSet<()>, dice| {
            workers.spawn(self.clone().work(dice));
        };
        for _ in 0..WORKERS {
            hire(&mut workers, dice.another());
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
                        hire(&mut workers, dice.another());
                    }
                },
                () = dawdle(&mut dice, 200), if aborts > 0 => {
                    aborts -= 1;
                    workers.abort_all();
                }
            }
        }
    }

    /// Takes back what is left over, in competition with the workers.
    pub(crate) async fn collect(self, mut dice: Dice) {
        while !self.is_over.load(Ordering::SeqCst) {
            let ready = self.queue.take_ready();
            let left = ready.or_else(|| self.queue.take_delayed());
            if let Some(left) = left {
                self.books.leave(left.key);
            }
            // Now and then it lets the time pass, which stands while anybody is busy.
            match dice.roll(8) {
                0 => tokio::time::sleep(pause(&mut dice)).await,
                _ => yield_now().await,
            }
        }
    }

    /// Waits for the drain in one way or another, and says when it was told too early.
    pub(crate) async fn drain(self, mut dice: Dice) {
        // None, or more than passes while anybody is busy.
        let timeout = pause(&mut dice) * dice.roll(2) as u32;
        let drained = match dice.roll(3) {
            0 => self.queue.drain_timeout(timeout).await,
            1 => tokio::select! {
                biased;
                drained = self.queue.drain() => drained,
                () = dawdle(&mut dice, 20) => Drained::Pending,
            },
            _ => self.queue.drain().await,
        };
        let is_idle = self.books.is_idle();
        assert!(is_idle || drained != Drained::Complete, "too early");
    }

    /// Waits until every version has been seen: nobody sleeps while there is work.
    pub(crate) async fn settled(&self) {
        while !self.books.is_settled() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// What a worker panics with, without a message on the screen.
struct OnPurpose;
