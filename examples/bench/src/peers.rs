//! Other crates that do a part of the same work. None of them drops duplicates.

use core::future::poll_fn;
use core::num::NonZeroU32;
use core::task::Poll;
use core::time::Duration;
use std::io;
use std::sync::Mutex;

use governor::clock::Clock;
use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::keyed::HashMapStateStore;
use governor::{Quota, RateLimiter};
use requeue_core::Instant;
use requeue_core::limiter::{Exponential, KeyedLimiter, default_item_based};
use requeue_core::storage::Growable;
use tokio::runtime::Runtime;
use tokio_util::time::DelayQueue;

use crate::keys::{Key, Random};
use crate::subject::Subject;
use crate::threads::Shared;
use crate::workloads::{Round, SPAN_NANOS, Scale, cpu_time, entries};

/// tokio-util's `DelayQueue`, on a clock that only moves by hand.
#[derive(Debug)]
pub struct Delays<K> {
    runtime: Runtime,
    queue: DelayQueue<K>,
    random: Random,
    scale: Scale,
}

impl<K: Key> Delays<K> {
    /// An empty queue.
    ///
    /// # Errors
    ///
    /// If there is no runtime.
    pub fn new(scale: Scale, seed: u64) -> io::Result<Self> {
        let runtime = stopped_runtime()?;
        let queue = runtime.block_on(async { DelayQueue::new() });
        Ok(Self {
            runtime,
            queue,
            random: Random::new(seed),
            scale,
        })
    }

    /// The work of [`Delayed`](crate::workloads::Delayed): insert, expire, take.
    pub fn expire(&mut self) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        let mut time = Duration::ZERO;
        for _ in 0..waves {
            let entries: Vec<(K, u64)> = entries(&mut self.random, self.scale.keys, 0);
            let queue = &mut self.queue;
            time += self.runtime.block_on(async {
                let start = tokio::time::Instant::now();
                let insert = cpu_time(|| {
                    for (key, due) in entries {
                        queue.insert_at(key, start + Duration::from_nanos(due));
                    }
                });
                tokio::time::advance(Duration::from_nanos(SPAN_NANOS)).await;
                insert + take_all(queue).await
            });
        }
        self.round(time, waves)
    }

    /// The work of [`Sooner`](crate::workloads::Sooner): move deadlines earlier. The `DelayQueue`
    /// gets its own keys, and need not look keys up.
    pub fn sooner(&mut self) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        let mut time = Duration::ZERO;
        for _ in 0..waves {
            let entries: Vec<(K, u64)> = entries(&mut self.random, self.scale.keys, 0);
            let (queue, random) = (&mut self.queue, &mut self.random);
            time += self.runtime.block_on(async {
                let start = tokio::time::Instant::now();
                let at = |due| start + Duration::from_nanos(due);
                let mut handles: Vec<_> = entries
                    .into_iter()
                    .map(|(key, due)| (queue.insert_at(key, at(due)), due))
                    .collect();
                random.shuffle(&mut handles);
                let earlier = handles
                    .into_iter()
                    .map(|(handle, due)| (handle, at(1 + random.next() % due)))
                    .collect::<Vec<_>>();
                let time = cpu_time(|| {
                    for (handle, due) in &earlier {
                        queue.reset_at(handle, *due);
                    }
                });
                tokio::time::advance(Duration::from_nanos(SPAN_NANOS)).await;
                take_all(queue).await;
                time
            });
        }
        self.round(time, waves)
    }

    fn round(&self, time: Duration, waves: usize) -> Round {
        Round {
            time,
            operations: waves * self.scale.keys,
        }
    }
}

/// A runtime of one thread whose clock moves only by hand.
///
/// # Errors
///
/// If there is no runtime.
pub fn stopped_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
}

/// Removes everything that has expired, and returns how long that took.
async fn take_all<K>(queue: &mut DelayQueue<K>) -> Duration {
    let mut time = Duration::ZERO;
    let take = poll_fn(|cx| {
        time += cpu_time(|| {
            while let Poll::Ready(Some(expired)) = queue.poll_expired(cx) {
                drop(expired.into_inner());
            }
        });
        if queue.is_empty() {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    });
    // Without Tokio's budget, which would send the loop back to the runtime every 128 keys.
    tokio::task::unconstrained(take).await;
    time
}

/// A clock that costs nothing to read.
#[derive(Clone, Debug, Default)]
struct Stopped;

impl Clock for Stopped {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        Nanos::new(0)
    }
}

/// A round of governor's limiter with known keys and its defaults: its own clock, a concurrent map
/// and `SipHash`. It always allows.
pub fn governor<K: Key>(scale: Scale, seed: u64) -> impl FnMut() -> Round {
    let limiter = RateLimiter::keyed(Quota::per_second(NonZeroU32::MAX));
    asking(scale, seed, move |key: &K| {
        let _ = core::hint::black_box(limiter.check_key(key));
    })
}

/// The same with the choices of requeue: no clock to read, a map behind one lock, and our hasher.
pub fn governor_at_best<K: Key>(scale: Scale, seed: u64) -> impl FnMut() -> Round {
    type State<K> = HashMapStateStore<K, foldhash::fast::RandomState>;
    let quota = Quota::per_second(NonZeroU32::MAX);
    let limiter: RateLimiter<K, State<K>, Stopped, NoOpMiddleware<Nanos>> =
        RateLimiter::new(quota, State::default(), Stopped);
    asking(scale, seed, move |key: &K| {
        let _ = core::hint::black_box(limiter.check_key(key));
    })
}

/// A round of requeue's limiter with its own records.
pub fn keyed_limiter<K: Key>(scale: Scale, seed: u64) -> impl FnMut() -> Round {
    let mut limiter: KeyedLimiter<K, Exponential, Growable> =
        KeyedLimiter::growable(default_item_based());
    asking(scale, seed, move |key: &K| {
        core::hint::black_box(limiter.when(key, Instant::EPOCH));
    })
}

fn asking<K: Key>(scale: Scale, seed: u64, mut ask: impl FnMut(&K)) -> impl FnMut() -> Round {
    let mut random = Random::new(seed);
    let keys: Vec<K> = random.keys(scale.keys);
    keys.iter().for_each(&mut ask);
    move || {
        let count = keys.len() as u64;
        let asked: Vec<K> = (0..scale.operations)
            .map(|_| keys[random.below(count) as usize].clone())
            .collect();
        Round {
            time: cpu_time(|| asked.iter().for_each(&mut ask)),
            operations: scale.operations,
        }
    }
}

/// An unbounded channel of crossbeam's.
#[derive(Debug)]
pub struct Channel<K> {
    sender: Mutex<Option<crossbeam_channel::Sender<K>>>,
    receiver: crossbeam_channel::Receiver<K>,
}

impl<K> Default for Channel<K> {
    fn default() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self {
            sender: Mutex::new(Some(sender)),
            receiver,
        }
    }
}

impl<K: Send> Shared<K> for Channel<K> {
    fn produce(&self, keys: Vec<K>) {
        let sender = self.sender.lock().map_or(None, |sender| sender.clone());
        for key in keys {
            let _ = sender.as_ref().map(|sender| sender.send(key));
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&K)) {
        for key in &self.receiver {
            on_key(&key);
        }
    }

    fn close(&self) {
        let _ = self.sender.lock().map(|mut sender| sender.take());
    }
}

/// One thread's view of an unbounded channel of crossbeam's: keys come out as they went in.
#[derive(Debug)]
pub struct Fifo<K>(crossbeam_channel::Sender<K>, crossbeam_channel::Receiver<K>);

impl<K> Default for Fifo<K> {
    fn default() -> Self {
        let (sender, receiver) = crossbeam_channel::unbounded();
        Self(sender, receiver)
    }
}

impl<K> Subject<K> for Fifo<K> {
    type Run = ();

    fn add(&mut self, key: K, _: u64) {
        // The channel is not disconnected.
        let _ = self.0.send(key);
    }

    fn add_at(&mut self, _: K, _: u64, _: u64) {}

    fn add_rate_limited(&mut self, _: K, _: u64) -> u64 {
        0
    }

    fn get(&mut self, _: u64) -> Option<(K, ())> {
        Some((self.1.try_recv().ok()?, ()))
    }

    fn done(&mut self, _: &K, (): (), _: u64) {}

    fn forget(&mut self, _: &K) {}
}
