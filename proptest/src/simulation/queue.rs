//! The queue of a simulation and the loop of its workers: core's own, on virtual time. When a worker
//! is polled, and whether its run is dropped, is the simulation's.

use std::any::Any;
use std::cell::RefCell;
use std::future::poll_fn;
use std::hash::Hash;
use std::marker::PhantomData;
use std::mem;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Poll, ready};
use std::time::Duration;

use requeue_core::binding::{
    GrowableWaitList, Host, Lock, Machine, Shared, State, Suspends, Wait, Worker,
};
use requeue_core::limiter::{DefaultController, RateLimiter};
use requeue_core::metrics::Metrics;
use requeue_core::priority::{Plain, Priorities};
use requeue_core::storage::{Growable, Storage};
use requeue_core::{Action, Failure, Finished, Guard, Leftover, Producer, Workers};

use super::World;
use super::context::{Context, Keys};
use super::history::History;
use crate::caught::{caught, describe};
use crate::subject::{HandClock, Sleep};

/// The queue of a simulation. [`Keys::queue`] returns it.
pub type SimQueue<K, P = Plain, L = DefaultController, S = Growable, M = ()> =
    Shared<Simulated<K, P, L, S, M>>;

/// The types of a [`SimQueue`].
pub struct Simulated<K, P, L, S, M>(PhantomData<(K, P, L, S, M)>);

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Host
    for Simulated<K, P, L, S, M>
{
    type Key = K;
    type Priorities = P;
    type Limiter = L;
    type Storage = S;
    type Metrics = M;
    type Waiters = GrowableWaitList;
    type Clock = HandClock;
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
pub(super) trait AnyQueue<K>: Any + Producer<K> {
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

/// How each process of a simulation starts: with a queue, and a function that starts its workers.
pub(super) type Start<W> = dyn Fn(HandClock) -> (Rc<dyn AnyQueue<<W as World>::Key>>, Spawn<W>);
pub(super) type Spawn<W> = Box<dyn Fn(WorkerLoop<W>) -> Task>;
pub(super) type Task = Pin<Box<dyn Future<Output = ()>>>;

/// Returns how processes start with the queues that `make` makes.
pub(super) fn processes<W, H>(make: impl Fn() -> Machine<H> + 'static) -> Rc<Start<W>>
where
    W: World,
    H: Host<Key = W::Key, Clock = HandClock, Waiters = GrowableWaitList> + 'static,
    H: Host<Lock = Single<State<H>>, Storage: Suspends<H::Priorities>>,
{
    Rc::new(move |clock| {
        let state = State::new(make(), GrowableWaitList::new());
        let queue: Rc<Shared<H>> = Rc::new(Shared::new(Single(RefCell::new(state)), clock));
        let of_workers = Rc::clone(&queue);
        let spawn = move |worker: WorkerLoop<W>| Box::pin(worker.work(of_workers.clone())) as Task;
        (queue, Box::new(spawn))
    })
}

/// One worker, and what it works with.
pub(super) struct WorkerLoop<W: World> {
    pub(super) number: usize,
    pub(super) workers: Rc<Workers<'static, W::Key, W::Error>>,
    pub(super) world: Rc<RefCell<W>>,
    pub(super) history: Rc<History<W::Key>>,
}

impl<W: World> WorkerLoop<W> {
    /// Processes keys until the queue is shut down and drained, or the worker is surplus.
    async fn work<H>(self, queue: Rc<Shared<H>>)
    where
        H: Host<Key = W::Key, Clock = HandClock>,
    {
        loop {
            let mut call = Wait::for_key(&*queue);
            let taken = call.wait(None, |session, getter| {
                let worker = Worker::new(self.number);
                let mut worker = worker.drain_limit(self.history.drain_limit.get());
                worker.poll_get(self.workers.count(), session, queue.clock(), getter)
            });
            let Ok(work) = taken.await else {
                return;
            };
            self.reconcile(Guard::new(work, &*queue)).await;
            yield_now().await;
        }
    }

    /// One run of one key.
    async fn reconcile<H>(&self, guard: Guard<H, &Shared<H>>)
    where
        H: Host<Key = W::Key, Clock = HandClock>,
    {
        let (queue, key) = (guard.queue(), guard.key());
        let begun = self.workers.begin(key, guard.context(), queue);
        let history = Rc::clone(&self.history);
        let run = history.begin_run(self.number, key.clone(), begun.context());
        let keys = Keys {
            history,
            run: Some(Rc::clone(&run)),
        };
        keys.note(match guard.attempt() {
            1 => format!("run {} begins", run.number),
            attempt => format!("run {} begins, attempt {attempt}", run.number),
        });
        let context = Context {
            world: Rc::clone(&self.world),
            keys: keys.clone(),
            run: Rc::clone(&run),
        };
        let result = {
            let reconcile = async { W::reconcile(context, key.clone()).await };
            let mut reconcile = pin!(begun.contain(queue.clock(), reconcile));
            let mut pause: Option<Sleep> = None;
            let ended = poll_fn(|task| {
                // A run that can go on may have to wait for other tasks.
                let begin = || self.history.sleep(self.history.choose(&run, &[]).delay);
                ready!(Pin::new(pause.get_or_insert_with(begin)).poll(task));
                pause = None;
                match caught(|| reconcile.as_mut().poll(task)) {
                    Ok(poll) => poll.map(Ok),
                    Err(payload) => Poll::Ready(Err(payload)),
                }
            });
            match ended.await {
                Ok(Some(result)) => result.map_err(Failure::Error),
                Ok(None) => Err(Failure::TimedOut(
                    self.workers.run_limit().unwrap_or_default(),
                )),
                Err(payload) => Err(Failure::Panic(payload)),
            }
        };
        keys.note(match &result {
            Ok(action) => format!("run ends: {action:?}"),
            Err(Failure::Error(error)) => format!("run ends: Err({error:?})"),
            Err(Failure::Panic(payload)) => format!("run PANICS: {}", describe(&**payload)),
            Err(other) => format!("run ends: {other:?}"),
        });
        let action = self.workers.end(key, begun, result, queue);
        if action == Action::GiveUp {
            keys.note("the key is given up");
            self.world.borrow_mut().gave_up(key);
        }
        self.history.active.borrow_mut().remove(&self.number);
        match guard.finish(action) {
            Finished::Idle => {}
            Finished::Ready => keys.note("the key is ready again"),
            other => keys.note(format!("the key is {other:?}")),
        }
    }
}

/// Lets other tasks run.
pub(super) async fn yield_now() {
    let mut has_yielded = false;
    poll_fn(|task| {
        if mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        task.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
