//! How long it takes until an idle worker holds a key that is added.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use requeue_tokio::Action;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::tasks::{self, work};
use crate::threads;
use crate::workloads::Round;

/// How long a worker is left alone, so that it goes to sleep and the thread that it runs on too.
/// Where that takes longer a figure is better than it should be, and nothing else is wrong.
const REST: Duration = Duration::from_micros(100);

/// After so many rests a key counts as lost.
const RESTS_MAX: usize = 100_000;

/// Who adds the keys that a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// A thread outside the runtime.
    Outside,
    /// A task of the same runtime.
    Inside,
}

/// Wakes the only worker of `queue`, a thread that is idle, `samples` times. Returns how many
/// nanoseconds each took.
pub fn wake_thread(queue: &impl threads::Shared<u64>, samples: usize) -> Vec<u64> {
    let stamps = Timestamps::new();
    let mut seen = stamps.arrivals();
    thread::scope(|scope| {
        scope.spawn(|| queue.work(&mut |stamp| seen.extend([*stamp])));
        stamps.add_from_thread(samples, |stamp| queue.produce(vec![stamp]));
        queue.close();
    });
    seen.nanos
}

/// The same with a task as the worker.
pub fn wake_task(
    runtime: &Runtime,
    queue: &impl tasks::Shared,
    samples: usize,
    whence: Whence,
) -> Vec<u64> {
    let stamps = Timestamps::new();
    thread::scope(|scope| {
        if whence == Whence::Outside {
            scope.spawn(|| {
                stamps.add_from_thread(samples, |stamp| queue.add_all(&[stamp]));
                queue.close();
            });
        }
        runtime.block_on(async {
            let worker = JoinSet::from_iter([work(queue.clone(), stamps.arrivals())]);
            if whence == Whence::Inside {
                let producer = stamps.clone().add_from_task(samples, queue.clone());
                JoinSet::from_iter([producer]).join_all().await;
                queue.close();
            }
            let seen = worker.join_all().await;
            seen.into_iter().flat_map(|seen| seen.nanos).collect()
        })
    })
}

/// What `percent` of the samples stay within. There must be samples.
pub fn percentile(mut nanos: Vec<u64>, percent: usize) -> Round {
    nanos.sort_unstable();
    let last = nanos.len() - 1;
    Round {
        time: Duration::from_nanos(nanos[last * percent / 100]),
        operations: 1,
    }
}

/// Makes keys that say when they were added.
#[derive(Clone, Debug)]
struct Timestamps {
    epoch: Instant,
    arrived: Arc<AtomicUsize>,
}

impl Timestamps {
    fn new() -> Self {
        Self {
            epoch: Instant::now(),
            arrived: Arc::default(),
        }
    }

    fn arrivals(&self) -> Arrivals {
        Arrivals {
            stamps: self.clone(),
            nanos: Vec::new(),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.epoch.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    fn add_from_thread(&self, samples: usize, add: impl Fn(u64)) {
        for sent in 0..samples {
            for _ in 0..RESTS_MAX {
                thread::sleep(REST);
                if self.arrived.load(Ordering::Relaxed) == sent {
                    break;
                }
            }
            add(self.now());
        }
    }

    async fn add_from_task(self, samples: usize, queue: impl tasks::Shared) {
        for sent in 0..samples {
            for _ in 0..RESTS_MAX {
                tokio::time::sleep(REST).await;
                if self.arrived.load(Ordering::Relaxed) == sent {
                    break;
                }
            }
            queue.add_all(&[self.now()]);
        }
    }
}

/// How long each key took to arrive.
#[derive(Debug)]
struct Arrivals {
    stamps: Timestamps,
    nanos: Vec<u64>,
}

impl Extend<u64> for Arrivals {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, stamps: I) {
        for stamp in stamps {
            self.nanos.push(self.stamps.now() - stamp);
            self.stamps.arrived.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Our queue with one key, which runs at each event. An added stamp is an event. Another key is due
/// in an hour, so that the worker has a timer in any case.
#[derive(Clone)]
pub struct Events<Q> {
    queue: Q,
    stamp: Arc<AtomicU64>,
    /// The key is suspended after each run, and resumed by the event. Else the event adds it.
    waits: bool,
}

const KEY: u64 = 0;
const OTHER: u64 = 1;
const HOUR: Duration = Duration::from_secs(3600);

macro_rules! events {
    ($WorkQueue:ty) => {
        impl Events<$WorkQueue> {
            /// Creates a queue whose key is idle, or suspended.
            pub fn new(waits: bool) -> Self {
                let events = Self {
                    queue: <$WorkQueue>::default(),
                    stamp: Arc::default(),
                    waits,
                };
                let _ = events.queue.add(KEY);
                if let Some(guard) = events.queue.try_get() {
                    guard.finish(events.action());
                }
                let _ = events.queue.add_after(OTHER, HOUR);
                events
            }

            fn action(&self) -> Action {
                if self.waits {
                    Action::Suspend(2 * HOUR)
                } else {
                    Action::Release
                }
            }

            fn happen(&self, stamp: u64) {
                self.stamp.store(stamp, Ordering::Relaxed);
                if self.waits {
                    self.queue.resume(&KEY);
                } else {
                    let _ = self.queue.add(KEY);
                }
            }
        }
    };
}

events!(requeue_tokio::WorkQueue<u64>);
events!(requeue_std::WorkQueue<u64>);

impl tasks::Shared for Events<requeue_tokio::WorkQueue<u64>> {
    fn add_all(&self, stamps: &[u64]) {
        stamps.iter().for_each(|stamp| self.happen(*stamp));
    }

    async fn work(&self, seen: &mut (impl Extend<u64> + Send)) {
        let mut next = self.queue.get().await;
        while let Ok(guard) = next {
            seen.extend([self.stamp.load(Ordering::Relaxed)]);
            next = self.queue.next(guard, self.action()).await;
        }
    }

    fn close(&self) {
        self.queue.shut_down();
    }
}

impl threads::Shared<u64> for Events<requeue_std::WorkQueue<u64>> {
    fn produce(&self, stamps: Vec<u64>) {
        stamps.into_iter().for_each(|stamp| self.happen(stamp));
    }

    fn work(&self, on_key: &mut dyn FnMut(&u64)) {
        let mut next = self.queue.get();
        while let Ok(guard) = next {
            on_key(&self.stamp.load(Ordering::Relaxed));
            next = self.queue.next(guard, self.action());
        }
    }

    fn close(&self) {
        self.queue.shut_down();
    }
}

/// An unbounded channel of the standard library's.
#[derive(Debug)]
pub struct StdChannel {
    sender: Mutex<Option<Sender<u64>>>,
    receiver: Mutex<Receiver<u64>>,
}

impl Default for StdChannel {
    fn default() -> Self {
        let (sender, receiver) = mpsc::channel();
        Self {
            sender: Mutex::new(Some(sender)),
            receiver: Mutex::new(receiver),
        }
    }
}

impl threads::Shared<u64> for StdChannel {
    fn produce(&self, keys: Vec<u64>) {
        let sender = self.sender.lock().map_or(None, |sender| sender.clone());
        for key in keys {
            let _ = sender.as_ref().map(|sender| sender.send(key));
        }
    }

    fn work(&self, on_key: &mut dyn FnMut(&u64)) {
        if let Ok(receiver) = self.receiver.lock() {
            for key in &*receiver {
                on_key(&key);
            }
        }
    }

    fn close(&self) {
        let _ = self.sender.lock().map(|mut sender| sender.take());
    }
}
