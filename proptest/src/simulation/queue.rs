//! The queue of a simulation: core's own, on virtual time, with any limiter, storage and metrics.

use std::any::Any;
use std::cell::RefCell;
use std::hash::Hash;
use std::marker::PhantomData;
use std::rc::Rc;
use std::time::Duration;

use requeue_core::binding::{GrowableWaitList, Host, Lock, Shared, State, Suspends};
use requeue_core::limiter::{DefaultController, RateLimiter};
use requeue_core::metrics::Metrics;
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_core::{AddOptions, Leftover, Queue, Rejected, Scheduled};

use super::World;
use super::clock::VirtualClock;
use super::worker::{Task, WorkerLoop};

/// The queue of a simulation. [`Keys::queue`](super::Keys::queue) returns it.
pub type SimQueue<K, P = Plain, L = DefaultController, S = Growable, M = ()> =
    Shared<Simulated<K, P, L, S, M>>;

/// The types of a [`SimQueue`].
pub struct Simulated<K, P, L, S, M>(PhantomData<(K, P, L, S, M)>);

impl<K, P, L, S, M> Host for Simulated<K, P, L, S, M>
where
    K: Eq + Hash,
    P: Priorities,
    L: RateLimiter,
    S: Storage,
    M: Metrics,
{
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = S;
    type Metrics = M;
    type Waiters = GrowableWaitList;
    type Clock = VirtualClock;
    type Lock = Single<State<Self>>;
}

/// The lock of a program with one thread.
pub struct Single<T>(RefCell<T>);

impl<T> Lock for Single<T> {
    type State = T;

    fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        work(&mut self.0.borrow_mut())
    }
}

/// What a simulation needs of its queue, whatever its type. The methods are those of [`Shared`].
pub(super) trait AnyQueue<K>: Any {
    fn add_with(&self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>>;
    fn suspend(&self, key: &K, timeout: Duration) -> bool;
    fn resume(&self, key: &K) -> bool;
    fn is_idle(&self) -> bool;
    fn is_shutting_down(&self) -> bool;
    fn shut_down(&self);
    fn leftovers(&self) -> Vec<Leftover<K>>;
}

impl<H> AnyQueue<H::Key> for Shared<H>
where
    H: Host<Key: Clone, Storage: Suspends<H::Priorities>> + 'static,
{
    fn add_with(&self, key: H::Key, options: AddOptions) -> Result<Scheduled, Rejected<H::Key>> {
        self.add_with(key, options)
    }

    fn suspend(&self, key: &H::Key, timeout: Duration) -> bool {
        self.suspend(key, timeout)
    }

    fn resume(&self, key: &H::Key) -> bool {
        self.resume(key)
    }

    fn is_idle(&self) -> bool {
        self.is_idle()
    }

    fn is_shutting_down(&self) -> bool {
        self.is_shutting_down()
    }

    fn shut_down(&self) {
        let _ = self.begin_drain();
    }

    fn leftovers(&self) -> Vec<Leftover<H::Key>> {
        self.leftovers().collect()
    }
}

/// Starts a worker of a queue.
pub(super) type Spawn<W> = Box<dyn Fn(WorkerLoop<W>) -> Task>;

/// How each process of a simulation starts: with a queue, and with workers.
pub(super) type Start<W> = dyn Fn(VirtualClock) -> (Rc<dyn AnyQueue<<W as World>::Key>>, Spawn<W>);

/// Processes with the queues that `make` makes.
pub(super) fn processes<W: World, P, L, S, M>(
    make: impl Fn() -> Queue<W::Key, P, L, S, M> + 'static,
) -> Rc<Start<W>>
where
    P: Priorities + 'static,
    L: RateLimiter + 'static,
    S: Storage + Suspends<P> + 'static,
    M: Metrics + 'static,
{
    Rc::new(move |clock| {
        let state = State::new(make(), GrowableWaitList::new());
        let lock = Single(RefCell::new(state));
        let queue: Rc<SimQueue<W::Key, P, L, S, M>> = Rc::new(Shared::new(lock, clock));
        let of_workers = Rc::clone(&queue);
        let spawn =
            move |worker: WorkerLoop<W>| -> Task { Box::pin(worker.work(Rc::clone(&of_workers))) };
        (queue, Box::new(spawn))
    })
}
