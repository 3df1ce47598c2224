//! Futures that are polled and dropped in an order that is drawn, each at any of its awaits.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::ops::Deref;
use std::pin::Pin;
use std::time::Duration;

use requeue_core::binding::{AsShared, Host, Shared, timeout_at};
use requeue_core::limiter::NoLimit;
use requeue_core::priority::Plain;
use requeue_core::storage::Fixed;
use requeue_core::{Action, Guard, Queue};
use requeue_embassy::raw::NoopRawMutex;
use requeue_proptest::rounds;
use requeue_test_tools::{ByHand, Rng, by_hand, in_time};
use tokio::runtime::{self, Runtime};
use tokio::task::yield_now;

const KEYS: u64 = 6;
/// As many calls as wait at once at most: Embassy's queue has no more places.
const CALLS_MAX: usize = 3;
const STEPS: u64 = 120;
const MILLISECOND: Duration = Duration::from_millis(1);

type Call<'q> = Pin<Box<dyn Future<Output = ()> + 'q>>;

/// Keys that have been added and not been worked on since.
type Owed = RefCell<BTreeSet<u8>>;

/// What is common to the queues of tasks.
trait Crowd {
    fn add(&self, key: u8, delay: Duration);
    fn advance(&self, by: Duration);
    fn take<'q>(&'q self, owed: &'q Owed, rng: &mut Rng) -> Call<'q>;
    fn drain<'q>(&'q self, rng: &mut Rng) -> Call<'q>;
    /// How many keys are ready, how many calls sleep, and whether a drain is over.
    fn look(&self) -> (usize, usize, bool);
    fn leftovers(&self) -> BTreeSet<u8>;
    fn shut_down(&self);
}

/// A run with an await in its middle; dropped there, its key comes back.
async fn work<H, R>(guard: Guard<H, R>, owed: &Owed)
where
    H: Host<Key = u8>,
    R: Deref<Target = Shared<H>>,
{
    struct Unfinished<'o>(&'o Owed, u8);
    impl Drop for Unfinished<'_> {
        fn drop(&mut self) {
            self.0.borrow_mut().insert(self.1);
        }
    }
    owed.borrow_mut().remove(&*guard);
    let run = Unfinished(owed, *guard);
    yield_now().await;
    std::mem::forget(run);
    guard.success();
}

/// Binds a queue: `$fits` makes an option of what its calls answer.
macro_rules! bind {
    ($queue:ty, $fits:ident, $advance:expr) => {
        impl Crowd for ($queue, Runtime) {
            fn add(&self, key: u8, delay: Duration) {
                self.0.add_after(key, delay).unwrap();
            }

            fn advance(&self, by: Duration) {
                $advance(self, by);
            }

            fn take<'q>(&'q self, owed: &'q Owed, rng: &mut Rng) -> Call<'q> {
                let queue = &self.0;
                let kind = rng.roll(3);
                if kind == 0
                    && let Some(guard) = queue.try_get()
                {
                    owed.borrow_mut().remove(&*guard);
                    let next = queue.next(guard, Action::Success);
                    return Box::pin(async move {
                        if let Some(guard) = $fits(next.await) {
                            work(guard, owed).await;
                        }
                    });
                }
                let timeout = MILLISECOND * rng.roll(4) as u32;
                Box::pin(async move {
                    let guard = match kind {
                        1 => $fits(queue.get_timeout(timeout).await),
                        _ => $fits(queue.get().await),
                    };
                    if let Some(guard) = guard {
                        work(guard, owed).await;
                    }
                })
            }

            fn drain<'q>(&'q self, rng: &mut Rng) -> Call<'q> {
                let kind = rng.roll(3);
                Box::pin(async move {
                    match kind {
                        0 => {
                            let deadline = Some(self.0.now() + MILLISECOND);
                            let drain = timeout_at(self.0.clock(), deadline, self.0.drain()).await;
                            let _ = drain.map(|drained| $fits(drained));
                        }
                        1 => drop($fits(self.0.wait_drained().await)),
                        _ => drop($fits(self.0.drain().await)),
                    }
                })
            }

            fn look(&self) -> (usize, usize, bool) {
                let ready = self.0.len();
                self.0.as_shared().look(|queue| {
                    queue.assert_valid();
                    (ready, queue.asleep(), queue.is_drained())
                })
            }

            fn leftovers(&self) -> BTreeSet<u8> {
                let left = self.0.leftovers();
                left.map(|left| left.key).collect()
            }

            fn shut_down(&self) {
                self.0.shut_down();
            }
        }
    };
}

/// What a call returns, as an option.
trait Fits<T> {
    fn fits(self) -> Option<T>;
}

impl<T> Fits<T> for Result<T, requeue_core::WaitError> {
    fn fits(self) -> Option<T> {
        let error = self.as_ref().err();
        assert_ne!(error, Some(&requeue_core::WaitError::TooManyWaiters));
        self.ok()
    }
}

impl Fits<()> for () {
    fn fits(self) -> Option<()> {
        Some(self)
    }
}

fn fits<T>(answer: impl Fits<T>) -> Option<T> {
    answer.fits()
}

type OfTokio = requeue_tokio::WorkQueue<u8, Plain, NoLimit>;
type OfEmbassy = requeue_embassy::WorkQueue<
    NoopRawMutex,
    u8,
    8,
    Plain,
    NoLimit,
    CALLS_MAX,
    ((), u8, &'static requeue_embassy::ManualClock<NoopRawMutex>),
>;

bind!(OfTokio, fits, |this: &Self, by| this
    .1
    .block_on(tokio::time::advance(by)));
bind!(OfEmbassy, fits, |this: &Self, by| this
    .0
    .clock()
    .advance(by));

struct Task<'q> {
    call: ByHand<Call<'q>>,
    drains: bool,
}

struct World<'q, Q> {
    queue: &'q Q,
    owed: &'q Owed,
    tasks: Vec<Task<'q>>,
    rng: Rng,
    is_closed: bool,
}

impl<Q: Crowd> World<'_, Q> {
    fn step(&mut self) {
        let pick = self.rng.roll(CALLS_MAX as u64) as usize;
        match self.rng.roll(10) {
            0..=2 if !self.is_closed => self.add(),
            3..=5 if self.tasks.len() < CALLS_MAX => self.begin(),
            6 if pick < self.tasks.len() => drop(self.tasks.swap_remove(pick)),
            7 => self.queue.advance(MILLISECOND * self.rng.roll(3) as u32),
            // Woken or not.
            _ if pick < self.tasks.len() => self.poll(pick),
            _ => {}
        }
    }

    fn add(&mut self) {
        let key = self.rng.roll(KEYS) as u8;
        let delay = MILLISECOND * (self.rng.roll(6) as u32).saturating_sub(2);
        self.queue.add(key, delay);
        self.owed.borrow_mut().insert(key);
    }

    /// Not polled yet.
    fn begin(&mut self) {
        let drains = self.is_closed && self.rng.roll(2) == 0;
        let call = if drains {
            self.queue.drain(&mut self.rng)
        } else {
            self.queue.take(self.owed, &mut self.rng)
        };
        let call = by_hand(call);
        self.tasks.push(Task { call, drains });
    }

    fn poll(&mut self, at: usize) {
        if !self.tasks[at].call.is_pending() {
            drop(self.tasks.swap_remove(at));
        }
    }

    /// Polls each getter that was woken, until none is: then none sleeps for nothing.
    fn settle(&mut self) {
        let is_woken = |task: &Task<'_>| task.call.is_woken();
        while let Some(at) = self.tasks.iter().position(is_woken) {
            self.poll(at);
        }
        let (ready, asleep, is_drained) = self.queue.look();
        let (drains, gets): (Vec<_>, Vec<_>) = self.tasks.iter().partition(|task| task.drains);
        assert_eq!(asleep, gets.len(), "who is gone does not sleep");
        assert!(
            gets.is_empty() || ready == 0,
            "they sleep, and keys are ready"
        );
        assert!(
            drains.is_empty() || !is_drained,
            "the drain is over, and no call learned of it"
        );
        assert!(!self.is_closed || gets.is_empty(), "nothing will ever come");
    }
}

fn history<Q: Crowd>(queue: &Q, seed: u64) {
    let owed = Owed::default();
    let mut world = World {
        queue,
        owed: &owed,
        tasks: Vec::new(),
        rng: Rng::new(seed),
        is_closed: false,
    };
    for step in 0..STEPS {
        if step == STEPS - 20 {
            queue.shut_down();
            world.is_closed = true;
        }
        world.step();
        if world.rng.roll(4) == 0 {
            world.settle();
        }
    }
    world.tasks.clear();
    assert_eq!(queue.look().1, 0, "who is gone does not sleep");
    let (left, owed) = (queue.leftovers(), owed.borrow());
    assert!(left.is_superset(&owed), "seed {seed}: {left:?} of {owed:?}");
}

fn paused() -> Runtime {
    let mut builder = runtime::Builder::new_current_thread();
    builder.enable_time().start_paused(true).build().unwrap()
}

#[test]
fn calls_of_tokio_that_are_dropped_anywhere_lose_neither_keys_nor_wakes() {
    in_time(|| {
        for seed in 0..u64::from(rounds(1000)) {
            let runtime = paused();
            let handle = runtime.handle().clone();
            let _inside = handle.enter();
            let queue: OfTokio = requeue_tokio::WorkQueue::builder().limiter(NoLimit).build();
            history(&(queue, runtime), seed);
        }
    });
}

#[test]
fn calls_of_embassy_that_are_dropped_anywhere_lose_neither_keys_nor_wakes() {
    in_time(|| {
        let mut runtime = paused();
        for seed in 0..u64::from(rounds(1000)) {
            let queue = Queue::<_, Plain, _, Fixed<8>>::new(NoLimit);
            let clock = Box::leak(Box::new(requeue_embassy::ManualClock::new()));
            let queue = OfEmbassy::from_queue(queue, clock);
            let crowd = (queue, runtime);
            history(&crowd, seed);
            runtime = crowd.1;
        }
    });
}
