//! A queue without room, under load.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

use requeue_core::binding::{AsShared, Clock, FixedWaitList, Host, Lock, Shared, State};
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Instant, Queue, Rejected};
use requeue_embassy::ManualClock;
use requeue_embassy::raw::CriticalSectionRawMutex;
use requeue_proptest::rounds;
use requeue_test_tools::{Rng, in_time};

const ROOM: usize = 4;
const KEYS: u32 = 12;
const PRODUCERS: u64 = 3;
const WORKERS: usize = 2;
const ADDS: u32 = 400;

/// A lock for threads, as a user would write it for a queue of fixed size.
struct Locked<T>(Mutex<T>);

impl<T> Lock for Locked<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap())
    }
}

struct Stopped;

impl Clock for Stopped {
    fn now(&self) -> Instant {
        Instant::EPOCH
    }
}

struct Behind;

impl Host for Behind {
    type Key = u32;
    type Priorities = Plain;
    type Limiter = NoLimit;
    type Storage = Fixed<ROOM>;
    type Metrics = ();
    type Waiters = FixedWaitList<0>;
    type Clock = Stopped;
    type Lock = Locked<State<Self>>;
}

/// What became of the adds of one key.
#[derive(Default)]
struct Ledger {
    sent: AtomicU32,
    accepted: AtomicU32,
    refused: AtomicU32,
    /// The last version that was accepted, and the last that a run has begun with.
    version: AtomicU32,
    promised: AtomicU32,
    seen: AtomicU32,
}

#[derive(Default)]
struct World {
    ledgers: [Ledger; KEYS as usize],
    is_full: AtomicBool,
    is_over: AtomicBool,
}

impl World {
    fn produce<H: Host<Key = u32>>(&self, queue: &Shared<H>, mut rng: Rng) {
        for _ in 0..ADDS {
            let key = rng.roll(u64::from(KEYS)) as u32;
            let ledger = &self.ledgers[key as usize];
            ledger.sent.fetch_add(1, Ordering::SeqCst);
            let version = ledger.version.fetch_add(1, Ordering::SeqCst) + 1;
            let mut handed_back = None;
            if rng.roll(4) == 0 {
                let _ = queue.add_many([key], |rejected| handed_back = Some(rejected));
            } else {
                handed_back = queue.add(key).err();
            }
            match handed_back {
                None => {
                    ledger.accepted.fetch_add(1, Ordering::SeqCst);
                    ledger.promised.fetch_max(version, Ordering::SeqCst);
                }
                Some(rejected) => {
                    assert_eq!(rejected, Rejected::Full(key), "the key itself");
                    ledger.refused.fetch_add(1, Ordering::SeqCst);
                    self.is_full.store(true, Ordering::SeqCst);
                    thread::yield_now();
                }
            }
        }
    }

    fn work<H: Host<Key = u32>>(&self, queue: &Shared<H>) {
        loop {
            // Asked first: what is added before the end is found after it.
            let is_over = self.is_over.load(Ordering::SeqCst);
            let Some(guard) = queue.try_get() else {
                if is_over {
                    return;
                }
                thread::yield_now();
                continue;
            };
            let ledger = &self.ledgers[*guard as usize];
            let version = ledger.version.load(Ordering::SeqCst);
            thread::yield_now();
            ledger.seen.fetch_max(version, Ordering::SeqCst);
            guard.success();
        }
    }

    fn balances(&self) {
        for (key, ledger) in self.ledgers.iter().enumerate() {
            let read = |count: &AtomicU32| count.load(Ordering::SeqCst);
            let (accepted, refused) = (read(&ledger.accepted), read(&ledger.refused));
            assert_eq!(accepted + refused, read(&ledger.sent), "key {key}");
            assert!(
                read(&ledger.seen) >= read(&ledger.promised),
                "key {key} was lost"
            );
        }
        assert!(
            self.is_full.load(Ordering::SeqCst),
            "the queue was never full"
        );
    }
}

/// Producers that are too many, and workers that are too few.
fn crowd<H: Host<Key = u32>>(queue: &Shared<H>)
where
    Shared<H>: Sync,
{
    for round in 0..u64::from(rounds(60)) {
        let world = &World::default();
        thread::scope(|scope| {
            let workers: Vec<_> = (0..WORKERS)
                .map(|_| scope.spawn(move || world.work(queue)))
                .collect();
            let producers: Vec<_> = (0..PRODUCERS)
                .map(|number| Rng::new(round * PRODUCERS + number))
                .map(|rng| scope.spawn(move || world.produce(queue, rng)))
                .collect();
            producers
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
            world.is_over.store(true, Ordering::SeqCst);
            workers
                .into_iter()
                .for_each(|thread| thread.join().unwrap());
        });
        world.balances();
        queue.as_shared().look(|queue| {
            queue.assert_valid();
            assert_eq!(queue.stats().total, 0, "all room is found again");
        });
        // Every place can be taken again, and no more.
        let refused = (0..=ROOM as u32).filter_map(|key| queue.add(key).err());
        assert_eq!(refused.collect::<Vec<_>>(), [Rejected::Full(ROOM as u32)]);
        while let Some(guard) = queue.try_get() {
            guard.success();
        }
    }
}

#[test]
fn a_full_queue_behind_a_lock_hands_back_what_it_refuses_and_loses_nothing() {
    in_time(|| {
        let state = State::new(Queue::new(NoLimit), FixedWaitList::new());
        crowd(&Shared::<Behind>::new(Locked(Mutex::new(state)), Stopped));
    });
}

#[test]
fn a_full_queue_of_embassy_hands_back_what_it_refuses_and_loses_nothing() {
    type Embassy = requeue_embassy::WorkQueue<
        CriticalSectionRawMutex,
        u32,
        ROOM,
        Plain,
        NoLimit,
        3,
        ((), u8, ManualClock),
    >;
    in_time(|| {
        let queue = Embassy::from_queue(Queue::new(NoLimit), ManualClock::new());
        crowd(queue.as_shared());
    });
}
