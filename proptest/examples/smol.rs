//! The queue on smol, as a crate of its own would bind it: the lock, the timer and the suite.

use std::future::Future;
use std::hash::Hash;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use requeue_core::binding::{Clock, GrowableWaitList, Host, Lock, Shared, State, Timer};
use requeue_core::limiter::{DefaultItemBased, RateLimiter, default_item_based};
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::Growable;
use requeue_core::{Instant, Queue};
use requeue_proptest::conformance::{rules_not_tried, timer_contract};
use requeue_proptest::subject::{
    AnyLimiter, Call, Configuration, Futures, HandClock, Home, Key, Kind, LocalCall, OnWorkQueue,
    Runtime, call_on,
};

// ---- The crate: its lock, its timer, and what its queue is made of. ----

/// The lock of tasks on several threads.
pub struct Locked<T>(Mutex<T>);

impl<T> Lock for Locked<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The time since it was created.
pub struct SmolClock(std::time::Instant);

/// A timer of smol, and when it fires.
pub struct Alarm(smol::Timer, Instant);

impl Future for Alarm {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(context).map(drop)
    }
}

impl Clock for SmolClock {
    fn now(&self) -> Instant {
        Instant::EPOCH + self.0.elapsed()
    }
}

impl Timer for SmolClock {
    type Alarm = Alarm;

    fn set_alarm(&self, mut alarm: Pin<&mut Option<Alarm>>, until: Option<Instant>) {
        let is_set = alarm.as_ref().get_ref().as_ref().map(|alarm| alarm.1) == until;
        let at = |due| self.0.checked_add(due - Instant::EPOCH);
        if !is_set {
            alarm.set(until.and_then(|due| Some(Alarm(smol::Timer::at(at(due)?), due))));
        }
    }
}

/// The types of a queue on smol.
pub struct OnSmol<K, P, L, C>(PhantomData<(K, P, L, C)>);

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, C: Clock> Host for OnSmol<K, P, L, C> {
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = Growable;
    type Metrics = ();
    type Waiters = GrowableWaitList;
    type Clock = C;
    type Lock = Locked<State<Self>>;
}

/// A queue that tasks of smol share. It has all that the queue of core has.
pub type WorkQueue<K, P = Plain, L = DefaultItemBased, C = SmolClock> =
    Arc<Shared<OnSmol<K, P, L, C>>>;

fn shared<K: Eq + Hash, P: Priorities, L: RateLimiter, C: Clock>(
    queue: Queue<K, P, L, Growable>,
    clock: C,
) -> WorkQueue<K, P, L, C> {
    let state = State::new(queue, GrowableWaitList::new());
    Arc::new(Shared::new(Locked(Mutex::new(state)), clock))
}

/// Creates a queue with client-go's delays for each key.
pub fn new<K: Eq + Hash>() -> WorkQueue<K> {
    let queue = Queue::builder().limiter(default_item_based()).build();
    shared(queue, SmolClock(std::time::Instant::now()))
}

// ---- The binding. ----

struct Bound<P: Kind> {
    queue: WorkQueue<Key, P, AnyLimiter, HandClock>,
}

impl<P: Kind + 'static> Runtime for Bound<P> {
    type Host = OnSmol<Key, P, AnyLimiter, HandClock>;
    type Calls = Futures;

    fn new(setup: &Configuration) -> Self {
        let queue = shared(Growable::build(setup, ()), HandClock::new());
        Self { queue }
    }

    fn queue(&self) -> &Shared<Self::Host> {
        &self.queue
    }

    fn advance(&mut self, by: Duration) {
        self.queue.clock().advance(by);
    }

    fn begin(&self, call: Call) -> Option<LocalCall> {
        Some(call_on(Arc::clone(&self.queue), call))
    }
}

requeue_proptest::conformance!(OnWorkQueue<Bound<Plain>>);

/// Runs a queue on smol's threads and timers, and prints which rules are not tried, and why.
fn main() {
    for not_tried in rules_not_tried::<OnWorkQueue<Bound<Plain>>>() {
        println!("{not_tried}");
    }
    let queue = new::<&str>();
    let workers = [(); 4].map(|()| {
        let queue = Arc::clone(&queue);
        smol::spawn(async move {
            while let Ok(guard) = queue.get().await {
                println!("{} runs on smol", *guard);
                guard.success();
            }
        })
    });
    let _ = queue.add_after("lease-3", Duration::from_millis(5));
    let _ = queue.add("node-7");
    smol::block_on(async {
        let _ = queue.wait_settled().await;
        queue.shut_down();
        for worker in workers {
            worker.await;
        }
    });
    let clock = SmolClock(std::time::Instant::now());
    timer_contract(&clock, Duration::from_millis(20), std::thread::sleep);
    println!("smol's timer keeps its contract");
}
