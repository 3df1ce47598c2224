//! Many threads at once: producers, workers that fail, panic or lose patience, and a shutdown that
//! meets all of them. What they did is held against what a queue promises.
//!
//! Delays are so short that nobody has to wait for them. In half of the histories nobody loses
//! patience, so that a wake that is lost is made good by nobody: then the history never ends.
//! `REQUEUE_SOAK` multiplies the number of histories.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use requeue_std::core::{ItemExponentialFailure, Rejected};
use requeue_std::{Completion, Drained, GetError, Queue, WorkQueue};

const KEYS: usize = 6;
const PRODUCERS: usize = 2;
const WORKERS: usize = 3;
const ADDS: usize = 40;
/// So long a history may take before somebody has waited for nothing.
const PATIENCE: Duration = Duration::from_secs(60);
/// The unit of every delay.
const TICK: Duration = Duration::from_micros(10);

/// One key, as a level-triggered program sees it: a version that goes up, the last that the queue
/// has accepted, and the last that was acted upon.
#[derive(Default)]
struct Object {
    version: AtomicU64,
    promised: AtomicU64,
    seen: AtomicU64,
    in_work: AtomicBool,
    /// It was handed back after shutdown, and so after all that was promised of it.
    left: AtomicBool,
}

impl Object {
    fn is_settled(&self) -> bool {
        self.seen.load(Ordering::SeqCst) >= self.promised.load(Ordering::SeqCst)
    }
}

type Keys = WorkQueue<usize, ItemExponentialFailure>;
type Guard<'q> = requeue_std::Guard<'q, usize, ItemExponentialFailure>;

struct World {
    queue: Keys,
    objects: [Object; KEYS],
    at_work: AtomicUsize,
    is_over: AtomicBool,
    /// Workers wait as long as it takes.
    is_patient: bool,
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

    fn another(&mut self) -> Self {
        Self(self.roll(u64::MAX))
    }

    fn pause(&mut self) -> Duration {
        TICK * self.roll(4) as u32
    }

    fn dawdle(&mut self, steps: u64) {
        for _ in 0..self.roll(steps) {
            thread::yield_now();
        }
    }
}

impl World {
    fn new(is_patient: bool) -> Self {
        let limiter = ItemExponentialFailure::new(TICK, 4 * TICK);
        let queue = Queue::builder().limiter(limiter).build();
        Self {
            queue: WorkQueue::from(queue),
            objects: Default::default(),
            at_work: AtomicUsize::new(0),
            is_over: AtomicBool::new(false),
            is_patient,
        }
    }

    /// Answers whether every add was taken.
    fn produce(&self, mut dice: Dice) -> bool {
        let mut all_taken = true;
        for _ in 0..ADDS {
            dice.dawdle(4);
            let key = dice.roll(KEYS as u64) as usize;
            let object = &self.objects[key];
            let version = object.version.fetch_add(1, Ordering::SeqCst) + 1;
            let mut refused = None;
            match dice.roll(8) {
                0 | 1 => refused = self.queue.add_after(key, dice.pause()).err(),
                2 | 3 => refused = self.queue.add_rate_limited(key).err(),
                4 => {
                    let _ = self
                        .queue
                        .add_many([key], |rejected| refused = Some(rejected));
                }
                _ => refused = self.queue.add(key).err(),
            }
            match refused {
                None => {
                    object.promised.fetch_max(version, Ordering::SeqCst);
                }
                Some(rejected) => {
                    assert_eq!(rejected, Rejected::Closed(key));
                    all_taken = false;
                }
            }
        }
        all_taken
    }

    /// A worker that is hired again after each of its panics.
    fn employ(&self, mut dice: Dice) {
        loop {
            let mut other = dice.another();
            match catch_unwind(AssertUnwindSafe(|| self.work(&mut other))) {
                Ok(()) => return,
                Err(panic) => {
                    panic
                        .downcast::<OnPurpose>()
                        .unwrap_or_else(|bug| resume_unwind(bug));
                }
            }
        }
    }

    /// Works until the queue is closed.
    fn work(&self, dice: &mut Dice) {
        let mut next = None;
        loop {
            let guard = match next.take().map_or_else(|| self.take(dice), Ok) {
                Ok(guard) => guard,
                Err(GetError::Closed) => return,
                Err(_) => continue,
            };
            let completion = self.run(&guard, dice);
            if dice.roll(2) == 0 {
                guard.complete(completion).unwrap();
            } else {
                match self.queue.next(guard, completion) {
                    Some(guard) => next = Some(guard),
                    None => return,
                }
            }
        }
    }

    fn take(&self, dice: &mut Dice) -> Result<Guard<'_>, GetError> {
        match dice.roll(4) {
            0 if !self.is_patient => self.queue.get_timeout(dice.pause()),
            1 => self.queue.try_get().ok_or(GetError::TimedOut),
            2 => {
                let batch = self.queue.get_many(2).ok_or(GetError::Closed)?;
                let mut guards = batch.into_guards();
                let first = guards.swap_remove(0);
                for other in guards {
                    other.retry().unwrap();
                }
                Ok(first)
            }
            _ => self.queue.get().ok_or(GetError::Closed),
        }
    }

    fn run(&self, key: &usize, dice: &mut Dice) -> Completion {
        let object = &self.objects[*key];
        let at_work = AtWork::begin(self, object);
        let version = object.version.load(Ordering::SeqCst);
        dice.dawdle(4);
        match dice.roll(10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 | 2 => return Completion::Retry,
            _ => {}
        }
        object.seen.fetch_max(version, Ordering::SeqCst);
        drop(at_work);
        match dice.roll(4) {
            0 => Completion::RetryAfter(dice.pause()),
            _ => Completion::Succeeded,
        }
    }

    /// Takes back what is left over, in competition with the workers.
    fn collect(&self, mut dice: Dice) {
        while !self.is_over.load(Ordering::SeqCst) {
            let left = match dice.roll(2) {
                0 => self.queue.take_ready(),
                _ => self.queue.take_delayed(),
            };
            match left {
                Some(left) => self.objects[left.key].left.store(true, Ordering::SeqCst),
                None => thread::yield_now(),
            }
        }
    }

    /// Waits for the drain in one way or another, and says when it was told too early.
    fn drain(&self, mut dice: Dice) {
        let drained = match dice.roll(2) {
            0 => self.queue.drain_timeout(dice.pause()),
            _ => self.queue.shut_down_with_drain(),
        };
        let at_work = self.at_work.load(Ordering::SeqCst);
        assert!(drained != Drained::Complete || at_work == 0, "too early");
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

fn history(seed: u64) {
    let mut dice = Dice(seed);
    let world = &World::new(dice.roll(2) == 0);
    let is_interrupted = dice.roll(2) == 0;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| dice.another())
            .map(|dice| scope.spawn(move || world.employ(dice)))
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|_| dice.another())
            .map(|dice| scope.spawn(move || world.produce(dice)))
            .collect();
        let mut others = Vec::new();
        if is_interrupted {
            let collector = dice.another();
            others.push(scope.spawn(move || world.collect(collector)));
            dice.dawdle(60);
            for _ in 0..dice.roll(3) {
                let drainer = dice.another();
                others.push(scope.spawn(move || world.drain(drainer)));
            }
            dice.dawdle(60);
            world.queue.shut_down();
        }
        for producer in producers {
            let all_taken = producer.join().unwrap();
            assert!(all_taken || is_interrupted, "refused for no reason");
        }
        if !is_interrupted {
            // Whoever sleeps while there is work never lets this end.
            while !world.objects.iter().all(Object::is_settled) {
                thread::yield_now();
            }
        }
        // Whoever waits for a drain is not left waiting.
        assert_eq!(world.queue.shut_down_with_drain(), Drained::Complete);
        assert_eq!(world.at_work.load(Ordering::SeqCst), 0, "drained too early");
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        world.is_over.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    for leftover in world.queue.leftovers() {
        world.objects[leftover.key]
            .left
            .store(true, Ordering::SeqCst);
    }
    for (key, object) in world.objects.iter().enumerate() {
        let is_left = object.left.load(Ordering::SeqCst);
        assert!(object.is_settled() || is_left, "key {key} was lost");
    }
    assert!(world.queue.is_empty());
}

fn rounds(base: u64) -> u64 {
    let soak = std::env::var("REQUEUE_SOAK").ok();
    base * soak
        .and_then(|times| times.parse().ok())
        .unwrap_or(1)
        .max(1)
}

#[test]
fn histories_keep_every_promise() {
    for seed in 0..rounds(150) {
        let (done, ended) = channel();
        let history = thread::spawn(move || {
            history(seed);
            done.send(()).unwrap();
        });
        match ended.recv_timeout(PATIENCE) {
            Ok(()) | Err(RecvTimeoutError::Disconnected) => history.join().unwrap(),
            Err(RecvTimeoutError::Timeout) => panic!("seed {seed}: somebody waits for nothing"),
        }
    }
}
