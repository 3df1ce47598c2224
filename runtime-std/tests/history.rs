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
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use requeue_std::core::{ItemExponentialFailure, Rejected};
use requeue_std::{Action, Drained, GetError, WorkQueue};
use requeue_test_tools::{Books, Dice, in_time};

const KEYS: usize = 6;
const PRODUCERS: usize = 2;
const WORKERS: usize = 3;
const ADDS: usize = 40;
/// The unit of every delay.
const TICK: Duration = Duration::from_micros(10);

type Keys = WorkQueue<usize, ItemExponentialFailure>;
type Guard<'q> = requeue_std::Guard<'q, usize, ItemExponentialFailure>;

struct World {
    queue: Keys,
    books: Books<KEYS>,
    is_over: AtomicBool,
    /// Workers wait as long as it takes.
    is_patient: bool,
}

fn pause(dice: &mut Dice) -> Duration {
    TICK * dice.roll(4) as u32
}

fn dawdle(dice: &mut Dice, steps: u64) {
    for _ in 0..dice.roll(steps) {
        thread::yield_now();
    }
}

impl World {
    fn new(is_patient: bool) -> Self {
        let limiter = ItemExponentialFailure::new(TICK, 4 * TICK);
        Self {
            queue: WorkQueue::builder().limiter(limiter).build(),
            books: Books::default(),
            is_over: AtomicBool::new(false),
            is_patient,
        }
    }

    /// Answers whether every add was taken.
    fn produce(&self, mut dice: Dice) -> bool {
        let mut all_taken = true;
        for _ in 0..ADDS {
            dawdle(&mut dice, 4);
            let key = dice.roll(KEYS as u64) as usize;
            let change = self.books.change(key);
            let mut refused = None;
            match dice.roll(8) {
                0 | 1 => refused = self.queue.add_after(key, pause(&mut dice)).err(),
                2 | 3 => refused = self.queue.add_rate_limited(key).err(),
                4 => {
                    let _ = self
                        .queue
                        .add_many([key], |rejected| refused = Some(rejected));
                }
                _ => refused = self.queue.add(key).err(),
            }
            match refused {
                None => self.books.accept(key, change),
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
            let action = self.run(&guard, dice);
            if dice.roll(2) == 0 {
                guard.finish(action).unwrap();
            } else {
                match self.queue.next(guard, action) {
                    Some(guard) => next = Some(guard),
                    None => return,
                }
            }
        }
    }

    fn take(&self, dice: &mut Dice) -> Result<Guard<'_>, GetError> {
        match dice.roll(4) {
            0 if !self.is_patient => self.queue.get_timeout(pause(dice)),
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

    fn run(&self, key: &usize, dice: &mut Dice) -> Action {
        let at_work = self.books.begin(*key);
        dawdle(dice, 4);
        match dice.roll(10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 | 2 => return Action::Retry,
            _ => {}
        }
        at_work.succeed();
        match dice.roll(4) {
            0 => Action::RetryAfter(pause(dice)),
            _ => Action::Success,
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
                Some(left) => self.books.leave(left.key),
                None => thread::yield_now(),
            }
        }
    }

    /// Waits for the drain in one way or another, and says when it was told too early.
    fn drain(&self, mut dice: Dice) {
        let drained = match dice.roll(2) {
            0 => self.queue.drain_timeout(pause(&mut dice)),
            _ => self.queue.drain(),
        };
        let is_idle = self.books.is_idle();
        assert!(is_idle || drained != Drained::Complete, "too early");
    }
}

/// What a worker panics with, without a message on the screen.
struct OnPurpose;

fn history(seed: u64) {
    let mut dice = Dice::new(seed);
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
            dawdle(&mut dice, 60);
            for _ in 0..dice.roll(3) {
                let drainer = dice.another();
                others.push(scope.spawn(move || world.drain(drainer)));
            }
            dawdle(&mut dice, 60);
            world.queue.shut_down();
        }
        for producer in producers {
            let all_taken = producer.join().unwrap();
            assert!(all_taken || is_interrupted, "refused for no reason");
        }
        if !is_interrupted {
            // Whoever sleeps while there is work never lets this end.
            while !world.books.is_settled() {
                thread::yield_now();
            }
        }
        // Whoever waits for a drain is not left waiting.
        assert_eq!(world.queue.drain(), Drained::Complete);
        assert!(world.books.is_idle(), "drained too early");
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        world.is_over.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    for left in world.queue.leftovers() {
        world.books.leave(left.key);
    }
    world.books.assert_kept();
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
        println!("seed {seed}");
        in_time(move || history(seed));
    }
}
