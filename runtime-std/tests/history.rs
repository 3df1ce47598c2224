//! Many threads at once: producers, workers that fail, panic or time out, and a shutdown that
//! meets all of them. What they did is checked against what a queue promises.
//!
//! Delays are so short that no test waits for them. In half of the histories no call has a timeout,
//! so that a lost wake is not made good by one: then the history never ends.
//! `REQUEUE_SOAK` multiplies the number of histories.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use requeue_std::Rejected;
use requeue_std::binding::AsShared;
use requeue_std::limiter::Exponential;
use requeue_std::priority::Plain;
use requeue_std::{Action, Finished, WaitError, WorkQueue};
use requeue_test_tools::{Ledger, in_time};

const KEYS: usize = 6;
const PRODUCERS: usize = 2;
const WORKERS: usize = 3;
const ADDS: usize = 40;
/// The unit of every delay.
const TICK: Duration = Duration::from_micros(10);

type Keys = WorkQueue<usize, Plain, Exponential>;
type Guard<'q> = requeue_std::Guard<'q, usize, Plain, Exponential>;

struct World {
    queue: Keys,
    ledger: Ledger<KEYS>,
    is_over: AtomicBool,
    /// Workers wait without a timeout.
    is_patient: bool,
}

fn pause(rng: &mut Rng) -> Duration {
    TICK * rng.u64(..4) as u32
}

fn dawdle(rng: &mut Rng, steps: u64) {
    for _ in 0..rng.u64(..steps) {
        thread::yield_now();
    }
}

impl World {
    fn new(is_patient: bool) -> Self {
        let limiter = Exponential::new(TICK, 4 * TICK);
        Self {
            queue: WorkQueue::builder().limiter(limiter).build(),
            ledger: Ledger::default(),
            is_over: AtomicBool::new(false),
            is_patient,
        }
    }

    /// Returns whether every add was accepted.
    fn produce(&self, mut rng: Rng) -> bool {
        let mut all_taken = true;
        for _ in 0..ADDS {
            dawdle(&mut rng, 4);
            let key = rng.u64(..KEYS as u64) as usize;
            let change = self.ledger.change(key);
            let refused = match rng.u64(..8) {
                0 | 1 => self.queue.add_after(key, pause(&mut rng)).err(),
                2 | 3 => self.queue.add_rate_limited(key).err(),
                4 => self.queue.add_many([key]).rejected.pop(),
                _ => self.queue.add(key).err(),
            };
            match refused {
                None => self.ledger.accept(key, change),
                Some(rejected) => {
                    assert_eq!(rejected, Rejected::Closed(key));
                    all_taken = false;
                }
            }
        }
        all_taken
    }

    /// A worker that is restarted after each of its panics.
    fn employ(&self, mut rng: Rng) {
        loop {
            let mut other = rng.fork();
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
    fn work(&self, rng: &mut Rng) {
        let mut next = None;
        loop {
            let guard = match next.take().map_or_else(|| self.take(rng), Ok) {
                Ok(guard) => guard,
                Err(WaitError::Closed) => return,
                Err(_) => continue,
            };
            let action = self.run(&guard, rng);
            if rng.u64(..2) == 0 {
                assert_ne!(guard.finish(action), Finished::Stale);
            } else {
                match self.queue.next(guard, action) {
                    Ok(guard) => next = Some(guard),
                    Err(_) => return,
                }
            }
        }
    }

    fn take(&self, rng: &mut Rng) -> Result<Guard<'_>, WaitError> {
        match rng.u64(..4) {
            0 if !self.is_patient => self.queue.get_timeout(pause(rng)),
            1 => self.queue.try_get().ok_or(WaitError::TimedOut),
            2 => {
                let batch = self.queue.get_many(2)?;
                let mut guards = batch.into_guards();
                let first = guards.swap_remove(0);
                for other in guards {
                    assert_ne!(other.retry(), Finished::Stale);
                }
                Ok(first)
            }
            _ => self.queue.get(),
        }
    }

    fn run(&self, key: &usize, rng: &mut Rng) -> Action {
        let active = self.ledger.begin(*key);
        dawdle(rng, 4);
        match rng.u64(..10) {
            0 => resume_unwind(Box::new(OnPurpose)),
            1 | 2 => return Action::Retry,
            _ => {}
        }
        active.succeed();
        match rng.u64(..4) {
            0 => Action::Snooze(pause(rng)),
            _ => Action::Success,
        }
    }

    /// Takes back what is left over, in competition with the workers.
    fn collect(&self, mut rng: Rng) {
        while !self.is_over.load(Ordering::SeqCst) {
            let left = match rng.u64(..2) {
                0 => self.queue.as_shared().take_ready(),
                _ => self.queue.as_shared().take_delayed(),
            };
            match left {
                Some(left) => self.ledger.leave(left.key),
                None => thread::yield_now(),
            }
        }
    }

    /// Waits for the drain with a timeout or without; it must not be reported too early.
    fn drain(&self, mut rng: Rng) {
        let drained = match rng.u64(..2) {
            0 => self.queue.drain_timeout(pause(&mut rng)),
            _ => self.queue.drain(),
        };
        let is_idle = self.ledger.is_idle();
        assert!(is_idle || drained != Ok(()), "too early");
    }
}

/// What a worker panics with, without a message on the screen.
struct OnPurpose;

fn history(seed: u64) {
    let mut rng = Rng::with_seed(seed);
    let world = &World::new(rng.u64(..2) == 0);
    let is_interrupted = rng.u64(..2) == 0;
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|_| rng.fork())
            .map(|rng| scope.spawn(move || world.employ(rng)))
            .collect();
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|_| rng.fork())
            .map(|rng| scope.spawn(move || world.produce(rng)))
            .collect();
        let mut others = Vec::new();
        if is_interrupted {
            let collector = rng.fork();
            others.push(scope.spawn(move || world.collect(collector)));
            dawdle(&mut rng, 60);
            for _ in 0..rng.u64(..3) {
                let drainer = rng.fork();
                others.push(scope.spawn(move || world.drain(drainer)));
            }
            dawdle(&mut rng, 60);
            world.queue.shut_down();
        }
        for producer in producers {
            let all_taken = producer.join().unwrap();
            assert!(all_taken || is_interrupted, "refused for no reason");
        }
        if !is_interrupted {
            // A worker that sleeps while there is work keeps this from ending.
            while !world.ledger.is_settled() {
                thread::yield_now();
            }
        }
        // No call waits for the drain in vain.
        assert_eq!(world.queue.drain(), Ok(()));
        assert!(world.ledger.is_idle(), "drained too early");
        workers
            .into_iter()
            .for_each(|worker| worker.join().unwrap());
        world.is_over.store(true, Ordering::SeqCst);
        others.into_iter().for_each(|other| other.join().unwrap());
    });
    for left in world.queue.leftovers() {
        world.ledger.leave(left.key);
    }
    world.ledger.assert_kept();
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
