//! Many tasks at once: producers, workers that fail, panic, are aborted or lose patience, and a
//! shutdown that meets all of them. What they did is held against what a queue promises.
//!
//! Every choice follows from a seed; on one thread with a paused clock so does the whole run.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use requeue_tokio::core::ItemExponentialFailure;
use requeue_tokio::{Completion, Drained, GetError, Guard, Queue, WorkQueue};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinSet, yield_now};

const KEYS: usize = 6;
const PRODUCERS: u64 = 3;
const WORKERS: u64 = 4;
const ADDS: usize = 60;
/// So long a run may take before somebody has waited for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// One key, as a level-triggered program sees it: a version that goes up, and the one acted upon.
#[derive(Default)]
struct Object {
    version: AtomicU64,
    seen: AtomicU64,
    in_work: AtomicBool,
    /// An add was refused: nobody promised that its version will be seen.
    refused: AtomicBool,
    /// It was handed back after shutdown, and so after all that was promised of it.
    left: AtomicBool,
}

impl Object {
    fn is_settled(&self) -> bool {
        self.seen.load(Ordering::SeqCst) == self.version.load(Ordering::SeqCst)
    }
}

type Keys = WorkQueue<usize, ItemExponentialFailure>;

#[derive(Clone)]
struct World {
    queue: Keys,
    objects: Arc<[Object; KEYS]>,
    at_work: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

/// Steele, Lea and Flood's SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }

    fn pause(&mut self) -> Duration {
        Duration::from_micros(self.roll(3000))
    }

    async fn dawdle(&mut self, steps: u64) {
        for _ in 0..self.roll(steps) {
            yield_now().await;
        }
    }
}

impl World {
    fn new() -> Self {
        let limiter =
            ItemExponentialFailure::new(Duration::from_millis(1), Duration::from_millis(4));
        Self {
            queue: WorkQueue::from(Queue::builder().limiter(limiter).build()),
            objects: Arc::default(),
            at_work: Arc::default(),
            is_over: Arc::default(),
        }
    }

    async fn produce(self, mut dice: Dice) {
        for _ in 0..ADDS {
            dice.dawdle(4).await;
            let key = dice.roll(KEYS as u64) as usize;
            self.objects[key].version.fetch_add(1, Ordering::SeqCst);
            let is_taken = match dice.roll(4) {
                0 => self.queue.add_after(key, dice.pause()).is_ok(),
                1 => self.queue.add_rate_limited(key).is_ok(),
                _ => self.queue.add(key).is_ok(),
            };
            if !is_taken {
                self.objects[key].refused.store(true, Ordering::SeqCst);
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
                Some(completion) if dice.roll(2) == 0 => {
                    guard.complete(completion).unwrap();
                }
                Some(completion) => match self.queue.next(guard, completion).await {
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
            0 => self.queue.get_timeout(dice.pause()).await,
            1 => tokio::select! {
                biased;
                guard = self.queue.get() => guard.ok_or(GetError::Closed),
                () = dice.dawdle(5) => Err(GetError::TimedOut),
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
    async fn run(&self, key: &usize, dice: &mut Dice) -> Option<Completion> {
        let object = &self.objects[*key];
        let version = object.version.load(Ordering::SeqCst);
        let at_work = AtWork::begin(self, object);
        dice.dawdle(6).await;
        match dice.roll(10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 => return None,
            2 => return Some(Completion::Retry),
            _ => {}
        }
        object.seen.fetch_max(version, Ordering::SeqCst);
        drop(at_work);
        Some(match dice.roll(4) {
            0 => Completion::RetryAfter(dice.pause()),
            _ => Completion::Succeeded,
        })
    }

    /// Keeps workers at work and aborts one now and then, until all have ended by themselves.
    async fn employ(self, mut dice: Dice) {
        let mut workers = JoinSet::new();
        let hire = |workers: &mut JoinSet<()>, seed| {
            workers.spawn(self.clone().work(Dice(seed)));
        };
        for _ in 0..WORKERS {
            hire(&mut workers, dice.roll(u64::MAX));
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
                        hire(&mut workers, dice.roll(u64::MAX));
                    }
                },
                () = dice.dawdle(200), if aborts > 0 => {
                    aborts -= 1;
                    workers.abort_all();
                }
            }
        }
    }

    /// Takes back what is left over, in competition with the workers.
    async fn collect(self, mut dice: Dice) {
        while !self.is_over.load(Ordering::SeqCst) {
            let ready = self.queue.take_ready();
            let left = ready.or_else(|| self.queue.take_delayed());
            if let Some(left) = left {
                self.objects[left.key].left.store(true, Ordering::SeqCst);
            }
            // Now and then it lets the time pass, which stands while anybody is busy.
            match dice.roll(8) {
                0 => tokio::time::sleep(dice.pause()).await,
                _ => yield_now().await,
            }
        }
    }

    /// Waits for the drain in one way or another, and says when it was told too early.
    async fn drain(self, mut dice: Dice) {
        // None, or more than passes while anybody is busy.
        let timeout = dice.pause() * dice.roll(2) as u32;
        let drained = match dice.roll(3) {
            0 => self.queue.drain_timeout(timeout).await,
            1 => tokio::select! {
                biased;
                drained = self.queue.shut_down_with_drain() => drained,
                () = dice.dawdle(20) => Drained::Pending,
            },
            _ => self.queue.shut_down_with_drain().await,
        };
        let is_idle = self.at_work.load(Ordering::SeqCst) == 0;
        assert!(is_idle || drained != Drained::Complete, "too early");
    }

    /// Waits until every version has been seen: nobody sleeps while there is work.
    async fn settled(&self) {
        while !self.objects.iter().all(Object::is_settled) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// What a worker panics with, without a message on the screen.
struct OnPurpose;

/// A run that is under way, until it ends in whatever way.
struct AtWork<'w> {
    world: &'w World,
    object: &'w Object,
}

impl<'w> AtWork<'w> {
    fn begin(world: &'w World, object: &'w Object) -> Self {
        let was_in_work = object.in_work.swap(true, Ordering::SeqCst);
        assert!(!was_in_work, "a key is worked on twice at once");
        world.at_work.fetch_add(1, Ordering::SeqCst);
        Self { world, object }
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.object.in_work.store(false, Ordering::SeqCst);
        self.world.at_work.fetch_sub(1, Ordering::SeqCst);
    }
}

async fn history(seed: u64) {
    let mut dice = Dice(seed);
    let world = World::new();
    let mut tasks = JoinSet::new();
    for _ in 0..3 {
        let world = world.clone();
        tasks.spawn(async move {
            world.queue.drained().await;
            assert_eq!(world.at_work.load(Ordering::SeqCst), 0, "drained too early");
        });
    }
    tasks.spawn(world.clone().employ(Dice(dice.roll(u64::MAX))));
    let mut producers = JoinSet::new();
    for _ in 0..PRODUCERS {
        producers.spawn(world.clone().produce(Dice(dice.roll(u64::MAX))));
    }
    let is_interrupted = dice.roll(2) == 0;
    if is_interrupted {
        tasks.spawn(world.clone().collect(Dice(dice.roll(u64::MAX))));
        dice.dawdle(150).await;
        for _ in 0..dice.roll(3) {
            tasks.spawn(world.clone().drain(Dice(dice.roll(u64::MAX))));
        }
        if dice.roll(2) == 0 {
            dice.dawdle(20).await;
            world.queue.shut_down();
        }
    } else {
        while let Some(produced) = producers.join_next().await {
            produced.unwrap();
        }
        world.settled().await;
    }
    assert_eq!(world.queue.shut_down_with_drain().await, Drained::Complete);
    assert_eq!(world.at_work.load(Ordering::SeqCst), 0, "drained too early");
    world.is_over.store(true, Ordering::SeqCst);
    for tasks in [&mut tasks, &mut producers] {
        while let Some(ended) = tasks.join_next().await {
            ended.unwrap();
        }
    }
    for left in world.queue.leftovers() {
        world.objects[left.key].left.store(true, Ordering::SeqCst);
    }
    for (key, object) in world.objects.iter().enumerate() {
        let is_refused = object.refused.load(Ordering::SeqCst);
        assert!(is_refused <= is_interrupted);
        let is_kept = object.is_settled() || object.left.load(Ordering::SeqCst) || is_refused;
        assert!(is_kept, "key {key} was lost");
    }
    assert!(world.queue.is_empty());
}

fn check(runtime: impl Fn() -> Runtime, seeds: u64) {
    for seed in 0..seeds {
        let history = async { tokio::time::timeout(PATIENCE, history(seed)).await };
        let outcome = runtime().block_on(history);
        assert!(outcome.is_ok(), "seed {seed}: somebody waits for nothing");
    }
    println!("{seeds} histories kept every promise");
}

#[test]
fn histories_on_one_thread_keep_every_promise() {
    let runtime = || {
        let mut builder = Builder::new_current_thread();
        builder.enable_time().start_paused(true).build().unwrap()
    };
    check(runtime, 300);
}

#[test]
fn histories_on_several_threads_keep_every_promise() {
    let runtime = || {
        let mut builder = Builder::new_multi_thread();
        builder.worker_threads(4).enable_time().build().unwrap()
    };
    check(runtime, 60);
}
