//! The queues of threads and of tasks, as `--cfg shuttle` compiles them.

use std::convert::identity;
use std::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::Duration;

use requeue_proptest::histories::Operation;
use requeue_proptest::subject::{Answer, AnyLimiter, Call, Configuration, Home, Key, Kind};
use requeue_std::QueueClock;
use requeue_std::binding::{AsShared, Drained, Reporter, Shared, ThreadHost};
use requeue_tokio::binding::TaskHost;
use shuttle::sync::Mutex;
use tokio::runtime::{Builder, Runtime};

use crate::caller::Caller;
use crate::queues::{Runs, Shares, awaited, drain_at_once, drained, perform};

/// The queue for threads.
pub type Threads<P, S> = requeue_std::WorkQueue<Key, P, AnyLimiter, S>;

/// The queue for tasks.
pub type Tasks<P, S> = requeue_tokio::WorkQueue<Key, P, AnyLimiter, S>;

/// A call of threads has waited when it returns.
macro_rules! blocked {
    ($caller:ident, $call:expr) => {
        $call
    };
}

impl<P: Kind + 'static, S: Home + 'static> Shares for Threads<P, S>
where
    Self: Send + Sync,
{
    type Host = ThreadHost<Key, P, AnyLimiter, S>;
    type Handle<'q> = &'q Shared<Self::Host>;

    fn new(setup: &Configuration) -> Self {
        S::build(setup, Reporter::NONE).into()
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn advance(&self, by: Duration) {
        QueueClock::advance(by);
    }

    perform!(
        blocked,
        |queue| queue.drain_timeout(Duration::ZERO),
        |max| queue.get_many(max),
        identity
    );
}

impl<P: Kind + 'static, S: Home + 'static> Shares for Tasks<P, S>
where
    Self: Send + Sync,
{
    type Host = TaskHost<Key, P, AnyLimiter, S>;
    type Handle<'q> = Arc<Shared<Self::Host>>;

    fn new(setup: &Configuration) -> Self {
        S::build(setup, Reporter::NONE).into()
    }

    fn shared(&self) -> &Shared<Self::Host> {
        self.as_shared()
    }

    fn advance(&self, by: Duration) {
        let _alone = ADVANCING.lock();
        RUNTIME.with(|runtime| runtime.block_on(tokio::time::advance(by)));
    }

    perform!(
        awaited,
        |queue| drain_at_once(queue.as_shared(), queue.drain()),
        |max| queue.get_many(max),
        identity
    );
}

/// Works where Tokio's clock stands still.
pub(crate) fn within_tokio(work: impl FnOnce()) {
    RUNTIME.with(|runtime| {
        let _entered = runtime.enter();
        work();
    });
}

shuttle::lazy_static! {
    /// Tokio moves its clock for one thread at a time, and wakes others meanwhile.
    static ref ADVANCING: Mutex<()> = Mutex::new(());
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
