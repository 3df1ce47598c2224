//! A reconciler's workers: tasks that work on keys until the queue is shut down.

use std::fmt;
use std::future::poll_fn;
use std::hash::Hash;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::{
    Action, Clock, Completion, DefaultController, Failure, Growable, Leftover, Metrics, NoMetrics,
    RateLimiter, Storage, Workers,
};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::queue::{Guard, Shared, WorkQueue};
use crate::sync::JoinSet;

impl<K, L, M, S> WorkQueue<K, L, M, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Works on keys with `reconcile` in several tasks until the queue is shut down; then drains
    /// it, and hands back what was not worked on: keys that were ready when the
    /// [deadline](Workers::drain_deadline) passed, keys that failed while it drained, and delayed
    /// keys.
    ///
    /// | `reconcile` answers | and the key |
    /// |---|---|
    /// | `Ok(Action::Done)` | is at rest; its failures are forgotten |
    /// | `Ok(Action::RequeueAfter(d))` | runs again after `d`; its failures are forgotten |
    /// | `Ok(Action::PutOff(d))` | runs again after `d`; its failures stay remembered |
    /// | `Err(_)`, or panics | runs again when its rate limiter says so |
    /// | the same, after [`max_retries`](Workers::max_retries) | is given up |
    ///
    /// Two runs of one key never overlap. `reconcile` gets a clone of the key, so that its future
    /// may be sent from thread to thread; the tasks are Tokio's, so that both own what they use.
    ///
    /// What this answers does nothing until it is awaited. Before that the number of workers can be
    /// [made changeable](Run::concurrency) and a [token](Run::shut_down_on) can be given that shuts
    /// the queue down.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts its tasks at their next `await`; the queue stays as it is. Keys
    /// in work are requeued rate-limited, as is every [`Guard`] that is dropped.
    ///
    /// # Panics
    ///
    /// If a key's own code panics outside of `reconcile`; then all tasks are aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use requeue_tokio::{Action, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// queue.add_many(1..=100, |_| {});
    /// queue.shut_down();
    ///
    /// let sum = Arc::new(AtomicU32::new(0));
    /// let total = Arc::clone(&sum);
    /// let leftovers = queue
    ///     .run(4, move |key| {
    ///         let total = Arc::clone(&total);
    ///         async move {
    ///             total.fetch_add(key, Ordering::Relaxed);
    ///             Ok::<_, std::convert::Infallible>(Action::Done)
    ///         }
    ///     })
    ///     .await;
    /// assert_eq!(sum.load(Ordering::Relaxed), 5050);
    /// assert!(leftovers.is_empty());
    /// # }
    /// ```
    pub fn run<E, F, R>(
        &self,
        workers: impl Into<Workers<'static, K, E>>,
        reconcile: F,
    ) -> Run<K, L, M, E, F, S>
    where
        F: Fn(K) -> R,
        R: Future<Output = Result<Action, E>>,
    {
        let workers = workers.into();
        Run {
            queue: self.clone(),
            concurrency: Concurrency::new(workers.count().get()),
            workers,
            reconcile,
            shut_down_on: CancellationToken::new(),
        }
    }
}

/// How many workers a [`run`](WorkQueue::run) has, changeable while it runs. Clones change the same
/// runs.
///
/// # Examples
///
/// ```
/// use requeue_tokio::Concurrency;
///
/// let concurrency = Concurrency::new(4);
/// concurrency.clone().set(8);
/// assert_eq!(concurrency.get(), 8);
/// ```
#[derive(Clone, Debug)]
pub struct Concurrency(watch::Sender<usize>);

impl Concurrency {
    /// This many workers, one at least.
    pub fn new(workers: usize) -> Self {
        Self(watch::Sender::new(workers.max(1)))
    }

    /// Changes the number of workers, one at least. Workers that are too many finish the keys they
    /// work on first, and once the queue is shut down nobody is sent away before it has drained.
    pub fn set(&self, workers: usize) {
        self.0.send_replace(workers.max(1));
    }

    /// How many workers there are to be.
    pub fn get(&self) -> usize {
        *self.0.borrow()
    }
}

/// Workers that begin when this is awaited; made by [`WorkQueue::run`].
///
/// # Examples
///
/// A service that is told to stop, and gives what is ready ten seconds more:
///
/// ```
/// use std::time::Duration;
/// use requeue_tokio::{Action, CancellationToken, Concurrency, WorkQueue, Workers};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// queue.add("node-7").unwrap();
/// let stop = CancellationToken::new();
/// let concurrency = Concurrency::new(4);
/// let workers = Workers::new(4).drain_deadline(Duration::from_secs(10));
/// let service = queue
///     .run(workers, |key| async move {
///         println!("working on {key}");
///         Ok::<_, String>(Action::RequeueAfter(Duration::from_secs(60)))
///     })
///     .concurrency(&concurrency)
///     .shut_down_on(stop.clone());
///
/// let service = tokio::spawn(service.into_future());
/// concurrency.set(16);
/// tokio::time::sleep(Duration::from_secs(90)).await;
/// stop.cancel();
///
/// let leftovers = service.await.unwrap();
/// assert_eq!(leftovers[0].key, "node-7");
/// assert_eq!(leftovers[0].left, Duration::from_secs(30));
/// # }
/// ```
#[must_use = "nothing is worked on until a run is awaited"]
pub struct Run<K, L = DefaultController, M = NoMetrics, E = (), F = (), S = Growable>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    queue: WorkQueue<K, L, M, S>,
    workers: Workers<'static, K, E>,
    reconcile: F,
    concurrency: Concurrency,
    shut_down_on: CancellationToken,
}

impl<K, L, M, E, F, S> Run<K, L, M, E, F, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    /// Lets `concurrency` say how many workers there are, in place of [`Workers::count`].
    pub fn concurrency(mut self, concurrency: &Concurrency) -> Self {
        self.concurrency = concurrency.clone();
        self
    }

    /// Shuts the queue down when `token` is cancelled, and lets it drain.
    pub fn shut_down_on(mut self, token: CancellationToken) -> Self {
        self.shut_down_on = token;
        self
    }
}

impl<K, L, M, E, F, R, S> IntoFuture for Run<K, L, M, E, F, S>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    L: RateLimiter + 'static,
    M: Metrics + 'static,
    S: Storage + 'static,
    Shared<K, L, M, S>: Send + Sync,
    E: Send + 'static,
    F: Fn(K) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    type Output = Vec<Leftover<K>>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move {
            let run = Arc::new(self);
            let mut workers = pin!(Self::employ(&run));
            let ended = run.shut_down_on.run_until_cancelled(workers.as_mut());
            if ended.await.is_none() {
                // Whoever waits for the drain waits on; this run does so by its workers.
                let _ = run.queue.begin_drain();
                workers.await;
            }
            run.queue.leftovers()
        })
    }
}

impl<K, L, M, E, F, R, S> Run<K, L, M, E, F, S>
where
    K: Eq + Hash + Clone + Send + Sync + 'static,
    L: RateLimiter + 'static,
    M: Metrics + 'static,
    S: Storage + 'static,
    Shared<K, L, M, S>: Send + Sync,
    E: Send + 'static,
    F: Fn(K) -> R + Send + Sync + 'static,
    R: Future<Output = Result<Action, E>> + Send + 'static,
{
    /// Keeps as many workers as there are to be, until the queue is closed and all have ended.
    /// Dropping this aborts them.
    async fn employ(self: &Arc<Self>) {
        let mut count = self.concurrency.0.subscribe();
        let mut tasks = JoinSet::new();
        let mut dismissals: Vec<CancellationToken> = Vec::new();
        loop {
            let count_now = *count.borrow_and_update();
            while dismissals.len() < count_now {
                let dismissed = CancellationToken::new();
                tasks.spawn(Arc::clone(self).work(dismissed.clone()));
                dismissals.push(dismissed);
            }
            for dismissed in dismissals.drain(count_now..) {
                dismissed.cancel();
            }
            let mut recount = pin!(count.changed());
            let ended = poll_fn(|context| match recount.as_mut().poll(context) {
                Poll::Ready(_) => Poll::Ready(Some(Ok(()))),
                Poll::Pending => tasks.poll_join_next(context),
            });
            match ended.await {
                Some(Ok(())) => {}
                Some(Err(error)) => {
                    // Nobody else aborts them: what is not a panic is the end of the runtime.
                    if let Ok(panic) = error.try_into_panic() {
                        resume_unwind(panic);
                    }
                }
                None => return,
            }
        }
    }

    /// One worker's loop: each turn completes a key and takes the next under one lock.
    async fn work(self: Arc<Self>, dismissed: CancellationToken) {
        let queue = &self.queue;
        let mut next = self.take(&dismissed, queue.get()).await;
        while let Some(guard) = next {
            if self.is_too_late() {
                // It goes back among the leftovers, without a failure.
                let _ = guard.retry_after(Duration::ZERO);
                return;
            }
            let completion = self.reconcile(&guard).await;
            // Whoever is dismissed drops `next`, which completes the key all the same.
            let turn = queue.next(guard, completion);
            next = self.take(&dismissed, turn).await;
        }
    }

    /// The key of this turn, unless the worker is dismissed. Not while the queue drains: the others
    /// may have ended, and a key that was added during its last run is ready again.
    async fn take(
        &self,
        dismissed: &CancellationToken,
        turn: impl Future<Output = Option<Guard<K, L, M, S>>>,
    ) -> Option<Guard<K, L, M, S>> {
        match dismissed.run_until_cancelled(turn).await {
            Some(next) => next,
            None if self.queue.shutting_down() => self.queue.get().await,
            None => None,
        }
    }

    /// One run of one key.
    async fn reconcile(&self, guard: &Guard<K, L, M, S>) -> Completion {
        let span = self.workers.span(guard, guard.attempt(), guard.waited());
        let run = async { (self.reconcile)(guard.key().clone()).await };
        let result = match span.contain(caught(run)).await {
            Ok(result) => result.map_err(Failure::Error),
            Err(payload) => Err(Failure::Panic(payload)),
        };
        // A hook that panics must not take its worker, and the key, with it.
        let judge = || self.workers.judge(guard, guard.requeues(), result, span);
        let completion = catch_unwind(AssertUnwindSafe(judge));
        completion.unwrap_or(Completion::Succeeded)
    }

    fn is_too_late(&self) -> bool {
        let Some(limit) = self.workers.drain_limit() else {
            return false;
        };
        let closed_at = self.queue.lock().lock().closed_at();
        !closed_at.is_never() && self.queue.clock().now() >= closed_at + limit
    }
}

impl<K, L, M, E, F, S> fmt::Debug for Run<K, L, M, E, F, S>
where
    K: Eq + Hash,
    L: RateLimiter,
    M: Metrics,
    S: Storage,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("queue", &self.queue)
            .field("workers", &self.workers)
            .field("concurrency", &self.concurrency)
            .finish_non_exhaustive()
    }
}

/// Runs a future to its end or its panic. The reconciler's own state is its own affair, as after a
/// panic in any task.
pub(crate) async fn caught<R: Future>(run: R) -> std::thread::Result<R::Output> {
    let mut run = pin!(run);
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| run.as_mut().poll(context));
        match catch_unwind(poll) {
            Ok(poll) => poll.map(Ok),
            Err(payload) => Poll::Ready(Err(payload)),
        }
    })
    .await
}
