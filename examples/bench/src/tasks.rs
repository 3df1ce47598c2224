//! Producers and workers as tasks on Tokio, beside `async-channel`, which drops no duplicates.

mod deadlines;
mod wake;

use std::future::Future;
use std::io;
use std::time::Instant;

use requeue_tokio::{Action, WorkQueue};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, coop, yield_now};

pub use deadlines::{Behind, fire, ring};
pub use wake::{Events, StdChannel, Whence, percentile, wake_task, wake_thread};

use crate::threads::Crew;
use crate::workloads::{Round, cpu_time};

/// How many keys a batch has.
const BATCH: usize = 32;

/// How many keys a producer adds before it lets other tasks run: as many as a worker gets in one
/// turn, by Tokio's budget. One that never did would fill the queue before a worker runs.
const PRODUCER_TURN: usize = 128;

/// A queue that tasks share.
pub trait Shared: Clone + Send + Sync + 'static {
    /// Adds the keys.
    fn add_all(&self, keys: &[u64]);

    /// Gets keys and completes them until the queue is closed and empty.
    fn work(&self, seen: &mut (impl Extend<u64> + Send)) -> impl Future<Output = ()> + Send;

    /// Tells the workers that no more keys come.
    fn close(&self);
}

/// The runtime of one thread.
///
/// # Errors
///
/// If there is none to be had.
pub fn current_thread() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_time().build()
}

/// The runtime with a thread per processor.
///
/// # Errors
///
/// If there is none to be had.
pub fn multi_thread() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_time().build()
}

/// Sends `keys` through `queue`, from all producers to all workers. Answers also what each worker
/// has seen.
pub fn run<C>(
    runtime: &Runtime,
    queue: &impl Shared,
    mut keys: Vec<u64>,
    crew: Crew,
) -> (Round, Vec<C>)
where
    C: Default + Extend<u64> + Send + 'static,
{
    let operations = keys.len();
    let share = operations.div_ceil(crew.producers);
    let shares: Vec<Vec<u64>> = (0..crew.producers)
        .map(|_| keys.split_off(keys.len().saturating_sub(share)))
        .collect();
    runtime.block_on(async {
        let begun = Instant::now();
        let workers: JoinSet<C> = (0..crew.workers)
            .map(|_| work(queue.clone(), C::default()))
            .collect();
        let producers: JoinSet<()> = shares
            .into_iter()
            .map(|keys| produce(queue.clone(), keys))
            .collect();
        // A task that panics is reported here.
        producers.join_all().await;
        queue.close();
        let seen = workers.join_all().await;
        let time = begun.elapsed();
        (Round { time, operations }, seen)
    })
}

/// The CPU time that one task takes to get and complete `keys`, which are all ready: what a get
/// costs that never waits.
pub fn drain<C: Default + Extend<u64> + Send>(
    runtime: &Runtime,
    queue: &impl Shared,
    keys: &[u64],
) -> (Round, C) {
    queue.add_all(keys);
    queue.close();
    let mut seen = C::default();
    let time = cpu_time(|| runtime.block_on(queue.work(&mut seen)));
    let operations = keys.len();
    (Round { time, operations }, seen)
}

async fn produce(queue: impl Shared, keys: Vec<u64>) {
    for keys in keys.chunks(PRODUCER_TURN) {
        queue.add_all(keys);
        yield_now().await;
    }
}

async fn work<C: Extend<u64> + Send>(queue: impl Shared, mut seen: C) -> C {
    queue.work(&mut seen).await;
    seen
}

/// How many keys a worker has seen, and their sum: enough to know that each has come once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    count: usize,
    sum: u64,
}

impl Extend<u64> for Tally {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, keys: I) {
        for key in keys {
            self.count += 1;
            self.sum = self.sum.wrapping_add(key);
        }
    }
}

impl FromIterator<u64> for Tally {
    fn from_iter<I: IntoIterator<Item = u64>>(keys: I) -> Self {
        let mut tally = Self::default();
        tally.extend(keys);
        tally
    }
}

impl std::iter::Sum for Tally {
    fn sum<I: Iterator<Item = Self>>(tallies: I) -> Self {
        tallies.fold(Self::default(), |left, right| Self {
            count: left.count + right.count,
            sum: left.sum.wrapping_add(right.sum),
        })
    }
}

/// Our queue, one key at a time; a worker completes a key with the lock that takes the next.
#[derive(Clone, Default)]
pub struct OneByOne(WorkQueue<u64>);

/// The same in a worker that does without Tokio's budget, and so never lets others run while there
/// are keys.
#[derive(Clone, Default)]
pub struct Unconstrained(OneByOne);

/// Our queue, one key at a time; a worker completes a key before it asks for the next.
#[derive(Clone, Default)]
pub struct GetThenDone(WorkQueue<u64>);

/// Our queue, 32 keys at a time.
#[derive(Clone, Default)]
pub struct Batches(WorkQueue<u64>);

/// An unbounded channel of `async-channel`'s.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: async_channel::Sender<u64>,
    receiver: async_channel::Receiver<u64>,
}

impl Default for Channel {
    fn default() -> Self {
        let (sender, receiver) = async_channel::unbounded();
        Self { sender, receiver }
    }
}

impl Shared for OneByOne {
    fn add_all(&self, keys: &[u64]) {
        for key in keys {
            let _ = self.0.add(*key);
        }
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        let mut next = self.0.get().await;
        while let Ok(guard) = next {
            seen.extend([*guard]);
            next = self.0.next(guard, Action::Release).await;
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl Shared for Unconstrained {
    fn add_all(&self, keys: &[u64]) {
        self.0.add_all(keys);
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        coop::unconstrained(self.0.work(seen)).await;
    }

    fn close(&self) {
        self.0.close();
    }
}

impl Shared for GetThenDone {
    fn add_all(&self, keys: &[u64]) {
        for key in keys {
            let _ = self.0.add(*key);
        }
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        while let Ok(guard) = self.0.get().await {
            seen.extend([*guard]);
            guard.release();
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl Shared for Batches {
    fn add_all(&self, keys: &[u64]) {
        for keys in keys.chunks(BATCH) {
            let _ = self.0.add_many(keys.iter().copied());
        }
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        while let Ok(batch) = self.0.get_many(BATCH).await {
            seen.extend(batch.keys().copied());
            batch.release();
        }
    }

    fn close(&self) {
        self.0.shut_down();
    }
}

impl Shared for Channel {
    fn add_all(&self, keys: &[u64]) {
        for key in keys {
            let _ = self.sender.try_send(*key);
        }
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        while let Ok(key) = self.receiver.recv().await {
            seen.extend([key]);
        }
    }

    fn close(&self) {
        self.receiver.close();
    }
}
