//! What a deadline costs that comes while workers are idle.

use std::sync::Arc;
use std::time::Duration;

use cpu_time::ProcessTime;
use requeue_tokio::{Action, WorkQueue};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::JoinSet;

use crate::workloads::Round;

/// How far ahead a deadline is: the least that Tokio's timer knows.
const AHEAD: Duration = Duration::from_millis(1);

/// Deadlines that do not count: they give all getters the time to go to sleep.
const WARM_UP: usize = 10;

/// What waits behind each deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behind {
    /// Nothing: the getter that takes the key leaves no timer behind.
    Nothing,
    /// A key that is due in an hour: the getter that takes the key hands the timer over.
    FarKey,
}

/// The CPU time of one deadline after the other, while `getters` tasks wait for keys.
pub fn fire(runtime: &Runtime, getters: usize, behind: Behind, deadlines: usize) -> Round {
    let queue = WorkQueue::new();
    let fired = Arc::new(Notify::new());
    let mut workers: JoinSet<()> = JoinSet::new();
    for _ in 0..getters {
        let worker = work(queue.clone(), Arc::clone(&fired));
        workers.spawn_on(worker, runtime.handle());
    }
    if behind == Behind::FarKey {
        let _ = queue.add_after(u64::MAX, Duration::from_secs(3600));
    }
    let fire = async |keys: std::ops::Range<usize>| {
        for key in keys {
            let _ = queue.add_after(key as u64, AHEAD);
            fired.notified().await;
        }
    };
    runtime.block_on(fire(0..WARM_UP));
    let round = charge(deadlines, || {
        runtime.block_on(fire(WARM_UP..WARM_UP + deadlines));
    });
    queue.shut_down();
    // A worker that panics is reported here.
    runtime.block_on(workers.join_all());
    round
}

/// The CPU time of Tokio's timer alone, which rings as often.
pub fn ring(runtime: &Runtime, deadlines: usize) -> Round {
    charge(deadlines, || {
        runtime.block_on(async {
            for _ in 0..deadlines {
                tokio::time::sleep(AHEAD).await;
            }
        });
    })
}

async fn work(queue: WorkQueue<u64>, fired: Arc<Notify>) {
    let mut next = queue.get().await;
    while let Ok(guard) = next {
        fired.notify_one();
        next = queue.next(guard, Action::Release).await;
    }
}

/// The CPU time of all threads, since no one thread does the work.
fn charge(deadlines: usize, work: impl FnOnce()) -> Round {
    let begun = ProcessTime::now();
    work();
    Round {
        time: begun.elapsed(),
        operations: deadlines,
    }
}
