//! What the runtimes can do that waits, so that a scenario is written once.

use std::convert;
use std::future::poll_fn;
use std::mem::ManuallyDrop;
use std::ops::Deref;
use std::sync::Arc;
use std::task::{self, Context, Wake};
use std::time::Duration;

use requeue_std::QueueClock;
use requeue_std::binding::RandomState;
use requeue_std::binding::Reporter;
use requeue_std::binding::{self, AsShared, Batch, Guard, Host, Lock, Suspends};
use requeue_std::limiter::{Exponential, RateLimiter};
use requeue_std::priority::{Groups, Plain, Priorities};
use requeue_std::storage::Growable;
use requeue_std::{
    Action, Added, Instant, KeyState, Leftover, Policy, Producer, Queue, Rejected, WaitError,
    Workers,
};
use shuttle::future::block_on;
use tokio::runtime::{Builder, Runtime};

use crate::scene::{SECOND, interrupt};

/// A queue whose calls block the thread of the schedule that makes them.
pub trait Waits:
    AsShared<
        Host: Host<Key = u32, Priorities = Self::Priorities, Storage: Suspends<Self::Priorities>>,
    > + Producer<u32>
    + Clone
    + Send
    + Sync
    + 'static
{
    /// Its priorities.
    type Priorities: Priorities;
    /// How a guard holds it.
    type Handle<'q>: Deref<Target = Shared<Self>>;
    /// What runs its workers.
    const NAME: &'static str;

    /// The queue with room for two keys.
    type Bounded: Waits;

    /// An empty queue.
    fn new() -> Self;

    /// The same with room for two keys.
    fn bounded() -> Self::Bounded;

    /// Explores a scenario where there is what the queue needs.
    fn within<R>(work: impl FnOnce() -> R) -> R;

    /// Moves the time, which stands still otherwise.
    fn advance(by: Duration);

    /// The runtime's `add_wait`.
    ///
    /// # Errors
    ///
    /// As there.
    fn add_wait(&self, key: u32) -> Result<Added, Rejected<u32>>;

    /// The runtime's `get`.
    ///
    /// # Errors
    ///
    /// As there.
    fn get(&self) -> Result<Keys<'_, Self>, WaitError>;

    /// The runtime's `get_deadline`.
    ///
    /// # Errors
    ///
    /// As there.
    fn get_deadline(&self, deadline: Instant) -> Result<Keys<'_, Self>, WaitError>;

    /// The runtime's `next`.
    ///
    /// # Errors
    ///
    /// As there.
    fn next<'q>(
        &'q self,
        guard: Keys<'q, Self>,
        action: Action,
    ) -> Result<Keys<'q, Self>, WaitError>;

    /// The runtime's `drain`.
    fn drain(&self) -> Result<(), WaitError>;

    /// The runtime's `wait_idle`.
    fn wait_idle(&self);

    /// The runtime's `wait_settled`.
    fn wait_settled(&self);

    /// The runtime's `flush`.
    fn flush(&self, key: u32);

    /// The runtime's `cancel_and_wait`.
    fn cancel_and_wait(&self, key: u32) -> Option<KeyState>;
}

/// A queue whose runtime has an allocator.
pub trait Runs: Waits {
    /// The runtime's `get_many`.
    ///
    /// # Errors
    ///
    /// As there.
    fn get_many(&self, max: usize) -> Result<Batch<Self::Host, Self::Handle<'_>>, WaitError>;

    /// The runtime's `run`.
    fn run(
        &self,
        workers: Workers<'static, u32, &'static str>,
        reconcile: impl Fn(u32) -> Result<Action, &'static str> + Send + Sync + 'static,
    ) -> Vec<Leftover<u32>>;
}

/// A limiter of queues under test.
pub trait Limiter: RateLimiter<Record: Send> + Send + 'static {
    /// The limiter in its first state.
    fn new() -> Self;

    /// The policy of its queue.
    fn policy() -> Policy {
        Policy::new()
    }
}

/// The first retry comes after a second.
impl Limiter for Exponential {
    fn new() -> Self {
        Self::new(SECOND, 100 * SECOND)
    }
}

/// The same. Where it is alone in a tuple, which makes it a type of its own, a key is handed out
/// each second.
impl Limiter for (Exponential,) {
    fn new() -> Self {
        (Limiter::new(),)
    }

    fn policy() -> Policy {
        Policy::new().run_rate(1.0, 1)
    }
}

/// The priorities of queues under test.
pub trait Ordered: Priorities + Sized + 'static {
    /// An empty queue.
    fn queue<L: Limiter>() -> Machine<Self, L>;
}

impl Ordered for Plain {
    fn queue<L: Limiter>() -> Machine<Self, L> {
        let mut queue = Queue::from_parts(L::new(), Reporter::NONE, RandomState::default(), 0);
        queue.at(Instant::EPOCH).set_policy(L::policy());
        queue
    }
}

/// The keys of each ten belong to a group.
pub type Grouped = Groups<u32>;

impl Ordered for Grouped {
    fn queue<L: Limiter>() -> Machine<Self, L> {
        let (metrics, hasher) = (Reporter::NONE, RandomState::default());
        Queue::growable_with_groups(L::new(), metrics, hasher, 0, |key| key / 10)
    }
}

/// The state machine of a queue under test.
type Machine<P, L> = Queue<u32, P, L, Growable, Reporter>;

/// The queue of core in the queue of a runtime.
pub type Shared<Q> = binding::Shared<<Q as AsShared>::Host>;

/// An active key.
pub type Keys<'q, Q> = Guard<<Q as AsShared>::Host, <Q as Waits>::Handle<'q>>;

/// The queue for threads.
pub type Threads = requeue_std::WorkQueue<u32, Plain, Exponential>;

/// The queue for tasks.
pub type Tasks = requeue_tokio::WorkQueue<u32, Plain, Exponential>;

/// The queue for threads that hands out a key each second.
pub type PacedThreads = requeue_std::WorkQueue<u32, Plain, (Exponential,)>;

/// The queue for tasks that hands out a key each second.
pub type PacedTasks = requeue_tokio::WorkQueue<u32, Plain, (Exponential,)>;

/// The queue for microcontrollers.
pub type Boards = crate::Board<Exponential>;

/// The queue for microcontrollers that hands out a key each second.
pub type PacedBoards = crate::Board<(Exponential,)>;

/// The queue for threads whose keys belong to groups.
pub type GroupedThreads = requeue_std::WorkQueue<u32, Grouped, Exponential>;

/// The queue for tasks whose keys belong to groups.
pub type GroupedTasks = requeue_tokio::WorkQueue<u32, Grouped, Exponential>;

/// The calls of a runtime: where its queue is, how a call is waited for, and how to take what its
/// calls return that cannot fail elsewhere.
macro_rules! calls {
    (|$this:ident| $queue:expr, $wait:path, $whole:path) => {
        fn add_wait(&self, key: u32) -> Result<Added, Rejected<u32>> {
            let $this = self;
            $wait(self, $queue.add_wait(key))
        }

        fn get(&self) -> Result<Keys<'_, Self>, WaitError> {
            let $this = self;
            $wait(self, $queue.get())
        }

        fn get_deadline(&self, deadline: Instant) -> Result<Keys<'_, Self>, WaitError> {
            let $this = self;
            $wait(self, $queue.get_deadline(deadline))
        }

        fn next<'q>(
            &'q self,
            guard: Keys<'q, Self>,
            action: Action,
        ) -> Result<Keys<'q, Self>, WaitError> {
            let $this = self;
            $wait(self, $queue.next(guard, action))
        }

        fn drain(&self) -> Result<(), WaitError> {
            let $this = self;
            $wait(self, $queue.drain())
        }

        fn wait_idle(&self) {
            let $this = self;
            $whole($wait(self, $queue.wait_idle()))
        }

        fn wait_settled(&self) {
            let $this = self;
            $whole($wait(self, $queue.wait_settled()))
        }

        fn flush(&self, key: u32) {
            let $this = self;
            $whole($wait(self, $queue.flush(&key)))
        }

        fn cancel_and_wait(&self, key: u32) -> Option<KeyState> {
            let $this = self;
            $whole($wait(self, $queue.cancel_and_wait(&key)))
        }
    };
}

pub(crate) use calls;

/// What a call of the queue for threads returns: it has waited.
fn returned<Q, T>(_: &Q, returned: T) -> T {
    returned
}

/// What a call of a queue for tasks returns.
pub(crate) fn waited<Q, F>(queue: &Q, call: F) -> F::Output
where
    Q: AsShared + Clone + Send + Sync + 'static,
    F: Future,
{
    block_on(curious(queue, call))
}

impl<P: Ordered, L: Limiter> Waits for requeue_std::WorkQueue<u32, P, L>
where
    Machine<P, L>: Send,
{
    type Priorities = P;
    type Handle<'q> = &'q Shared<Self>;

    const NAME: &'static str = "threads";

    type Bounded = Self;

    fn new() -> Self {
        P::queue().into()
    }

    fn bounded() -> Self {
        let mut queue = P::queue();
        queue.at(Instant::EPOCH).limit_keys(2);
        queue.into()
    }

    fn within<R>(work: impl FnOnce() -> R) -> R {
        work()
    }

    fn advance(by: Duration) {
        QueueClock::advance(by);
    }

    calls!(|queue| queue, returned, convert::identity);
}

impl<P: Ordered, L: Limiter> Runs for requeue_std::WorkQueue<u32, P, L>
where
    Machine<P, L>: Send,
{
    fn get_many(&self, max: usize) -> Result<Batch<Self::Host, Self::Handle<'_>>, WaitError> {
        self.get_many(max)
    }

    fn run(
        &self,
        workers: Workers<'static, u32, &'static str>,
        reconcile: impl Fn(u32) -> Result<Action, &'static str> + Send + Sync + 'static,
    ) -> Vec<Leftover<u32>> {
        let leftovers = self.run(workers, |key| reconcile(*key));
        leftovers.unwrap_or_else(|error| panic!("{error}"))
    }
}

impl<P: Ordered, L: Limiter> Waits for requeue_tokio::WorkQueue<u32, P, L>
where
    Machine<P, L>: Send,
{
    type Priorities = P;
    type Handle<'q> = Arc<Shared<Self>>;

    const NAME: &'static str = "tasks";

    type Bounded = Self;

    fn new() -> Self {
        P::queue().into()
    }

    fn bounded() -> Self {
        let mut queue = P::queue();
        queue.at(Instant::EPOCH).limit_keys(2);
        queue.into()
    }

    fn within<R>(work: impl FnOnce() -> R) -> R {
        RUNTIME.with(|runtime| {
            let _entered = runtime.enter();
            work()
        })
    }

    fn advance(by: Duration) {
        interrupt();
        RUNTIME.with(|runtime| runtime.block_on(tokio::time::advance(by)));
    }

    calls!(|queue| queue, waited, convert::identity);
}

impl<P: Ordered, L: Limiter> Runs for requeue_tokio::WorkQueue<u32, P, L>
where
    Machine<P, L>: Send,
{
    fn get_many(&self, max: usize) -> Result<Batch<Self::Host, Self::Handle<'_>>, WaitError> {
        waited(self, self.get_many(max))
    }

    fn run(
        &self,
        workers: Workers<'static, u32, &'static str>,
        reconcile: impl Fn(u32) -> Result<Action, &'static str> + Send + Sync + 'static,
    ) -> Vec<Leftover<u32>> {
        let reconcile = Arc::new(reconcile);
        let run = self.run(workers, move |key| {
            let reconcile = Arc::clone(&reconcile);
            async move { reconcile(key) }
        });
        // A waker that asks the queue would be called under the locks of Tokio's tokens.
        block_on(run.into_future())
    }
}

/// A future whose waker takes the queue's lock: so the waking thread must not hold that, and may be
/// interrupted before, as before shuttle's own operations.
pub fn curious<Q: AsShared + Clone + Send + Sync + 'static, F: Future>(
    queue: &Q,
    work: F,
) -> impl Future<Output = F::Output> + use<Q, F> {
    let queue = queue.clone();
    let mut work = Box::pin(work);
    poll_fn(move |context| {
        let (queue, task) = (queue.clone(), context.waker().clone());
        let waker = task::Waker::from(Arc::new(Curious { queue, task }));
        work.as_mut().poll(&mut Context::from_waker(&waker))
    })
}

struct Curious<Q> {
    queue: Q,
    task: task::Waker,
}

impl<Q: AsShared + Send + Sync + 'static> Wake for Curious<Q> {
    fn wake(self: Arc<Self>) {
        self.queue
            .as_shared()
            .lock()
            .with(|state| state.queue().asleep());
        self.task.wake_by_ref();
    }
}

thread_local! {
    /// Where timers run, of every schedule: their threads share one thread of the system. It is
    /// never dropped, which would ring what a schedule that has failed left behind.
    static RUNTIME: ManuallyDrop<Runtime> = {
        let mut builder = Builder::new_current_thread();
        let runtime = builder.enable_time().start_paused(true).build();
        ManuallyDrop::new(runtime.unwrap_or_else(|error| panic!("{error}")))
    };
}
