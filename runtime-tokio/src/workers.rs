//! The workers of a reconciler: tasks that process keys until the queue is shut down. Owns the
//! future of a run; how its workers work is in `supervisor`.

use std::fmt;
use std::hash::Hash;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use requeue_core::binding::Slots;
use requeue_core::limiter::RateLimiter;
use requeue_core::priority::Priorities;
use requeue_core::storage::Storage;
use requeue_core::{IntoAction, Leftover, RunContext, Workers};
use tokio_util::sync::CancellationToken;

use crate::queue::{Shared, WorkQueue};
use crate::sync::Mutex;

pub(crate) mod supervisor;

use supervisor::Supervised;

/// Running a reconciler.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage> WorkQueue<K, P, L, S> {
    /// Runs `reconcile` for the keys of the queue, in several tasks, until the queue is shut down.
    /// Then drains it, and returns the [leftovers](Self::leftovers): delayed and suspended keys,
    /// also those that a run of the drain delayed or suspended, and keys that were still ready at
    /// the end of [`Workers::drain_timeout`].
    ///
    /// `reconcile` returns `()`, an [`Action`](crate::Action), or a `Result` of either:
    ///
    /// | `reconcile` returns | and the key |
    /// |---|---|
    /// | `()`, `Action::Success` | is idle until it is added; its failures are forgotten |
    /// | `Action::RequeueAfter(d)` | runs again after `d`; its failures are forgotten |
    /// | `Err(_)`, `Action::Retry`, or panics | runs again when its rate limiter says so |
    /// | the same, after [`max_retries`](Workers::max_retries) | is given up |
    /// | `Action::GiveUp` | is given up |
    /// | `Err(_)` that [`give_up_if`](Workers::give_up_if) says is the last | is given up |
    /// | `Action::Snooze(d)` | runs again after `d`; its failures stay |
    /// | `Action::poll(min, max)` | runs again after a pause that grows; its failures stay |
    /// | `Action::Suspend(d)` | runs again when it is resumed, or after `d`; its failures stay |
    /// | `Action::Release` | is idle until it is added; its failures stay |
    ///
    /// A key that was added during its run is **ready when the run ends**, behind the keys that are
    /// ready already. Only `Suspend` and a [hold](requeue_core::Policy) delay it: as in client-go,
    /// an add does not wait for the backoff. So a reconciler that adds its own key and then fails
    /// runs without pause. To run its key again, return `RequeueAfter` instead. The next run has
    /// the priority of this one, or that of [`with_priority`](crate::Action::with_priority).
    ///
    /// Two runs of one key never overlap. Failures are passed to [`on_error`](Workers::on_error);
    /// without that hook they are logged, if the feature `tracing` is on, with the key if
    /// `Workers::trace_keys` shows it. `reconcile` gets a clone
    /// of the key, and its future may move from thread to thread. State that the runs share is
    /// cloned into each of them, as in the example: an `async` closure cannot capture it. Nothing
    /// happens until the returned [`Run`] is awaited or spawned.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future aborts its tasks at their next `await`, and the queue is not shut down.
    /// Active keys count as failed and are retried, as with every [`Guard`](crate::Guard) that is
    /// dropped.
    ///
    /// # Panics
    ///
    /// If a key's own code panics outside `reconcile`: then all tasks are aborted.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Arc;
    /// use std::sync::atomic::{AtomicU32, Ordering};
    /// use requeue::tokio::WorkQueue;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let _ = queue.add_many(1..=100);
    /// queue.shut_down();
    ///
    /// let sum = Arc::new(AtomicU32::new(0));
    /// let total = Arc::clone(&sum);
    /// let run = queue.run(4, move |key| {
    ///     let total = Arc::clone(&total);
    ///     async move {
    ///         total.fetch_add(key, Ordering::Relaxed);
    ///     }
    /// });
    /// let leftovers = tokio::spawn(run).await.unwrap();
    /// assert_eq!(sum.load(Ordering::Relaxed), 5050);
    /// assert!(leftovers.is_empty());
    /// # }
    /// ```
    pub fn run<E, F, R>(&self, workers: impl Into<Workers<'static, K, E>>, reconcile: F) -> Run<K>
    where
        K: Clone + Send + Sync + 'static,
        P: 'static,
        L: 'static,
        S: 'static,
        Shared<K, P, L, S>: Send + Sync,
        E: Send + 'static,
        F: Fn(K) -> R + Send + Sync + 'static,
        R: Future<Output: IntoAction<Error = E>> + Send + 'static,
    {
        self.run_with(workers, move |key, _| reconcile(key))
    }

    /// As [`run`](Self::run), but also passes the reconciler a [`RunContext`]: the attempt, the
    /// priority and the deadline, and how long the key waited.
    ///
    /// The wait is zero unless the queue keeps times: with metrics it does, and with
    /// `builder().report_to(Times)`, which only keeps [times](requeue_core::metrics::Times).
    ///
    /// # Cancel safety
    ///
    /// As [`run`](Self::run).
    ///
    /// # Panics
    ///
    /// As [`run`](Self::run).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::tokio::{RunContext, WorkQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() {
    /// let queue = WorkQueue::new();
    /// let _ = queue.add("node-7");
    /// queue.shut_down();
    /// let run = queue.run_with(1, |node, run: RunContext| async move {
    ///     println!("{node}: attempt {}", run.attempt);
    /// });
    /// run.await;
    /// # }
    /// ```
    pub fn run_with<E, F, R>(
        &self,
        workers: impl Into<Workers<'static, K, E>>,
        reconcile: F,
    ) -> Run<K>
    where
        K: Clone + Send + Sync + 'static,
        P: 'static,
        L: 'static,
        S: 'static,
        Shared<K, P, L, S>: Send + Sync,
        E: Send + 'static,
        F: Fn(K, RunContext) -> R + Send + Sync + 'static,
        R: Future<Output: IntoAction<Error = E>> + Send + 'static,
    {
        let workers = workers.into();
        let queue = Arc::clone(&self.shared);
        let shut_down_on = Arc::new(Mutex::new(CancellationToken::new()));
        let chosen = Arc::clone(&shut_down_on);
        let work = async move {
            let run = Arc::new(Supervised {
                queue,
                workers,
                reconcile,
                slots: Mutex::new(Slots::new()),
            });
            let shut_down_on = chosen.lock().clone();
            run.supervise(&shut_down_on).await
        };
        Run {
            shut_down_on,
            work: Some(Box::pin(work)),
        }
    }
}

/// Workers that begin when this is awaited or spawned; returned by [`WorkQueue::run`].
///
/// Resolves to the keys that were not processed. Polled again after that, it is pending for ever.
///
/// # Examples
///
/// A service that shuts down on request, and gives ready keys ten more seconds:
///
/// ```
/// use std::time::Duration;
/// use requeue::tokio::{Action, CancellationToken, Concurrency, WorkQueue, Workers};
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let queue = WorkQueue::new();
/// let _ = queue.add("node-7");
/// let stop = CancellationToken::new();
/// let concurrency = Concurrency::new(4);
/// let workers = Workers::new(4)
///     .concurrency(&concurrency)
///     .drain_timeout(Duration::from_secs(10));
/// let service = queue
///     .run(workers, |key| async move {
///         println!("working on {key}");
///         Action::RequeueAfter(Duration::from_secs(60))
///     })
///     .shut_down_on(stop.clone());
///
/// let service = tokio::spawn(service);
/// concurrency.set(16);
/// tokio::time::sleep(Duration::from_secs(90)).await;
/// stop.cancel();
///
/// let leftovers = service.await.unwrap();
/// assert_eq!(leftovers[0].key, "node-7");
/// assert_eq!(leftovers[0].left, Duration::from_secs(30));
/// # }
/// ```
///
/// With Tokio's feature `signal`, a token that ctrl-c cancels stops a program in order, and the
/// second ctrl-c ends it immediately:
///
/// ```no_run
/// use requeue::tokio::{CancellationToken, WorkQueue};
///
/// #[tokio::main(flavor = "current_thread")]
/// async fn main() -> std::io::Result<()> {
///     let queue = WorkQueue::new();
///     let _ = queue.add("node-7");
///     let stop = CancellationToken::new();
///     let service = queue.run(4, |_| async {});
///     let service = service.shut_down_on(stop.clone());
///     let signals = async {
///         tokio::signal::ctrl_c().await?;
///         stop.cancel();
///         tokio::signal::ctrl_c().await?;
///         std::process::exit(130)
///     };
///     let leftovers = tokio::select! {
///         leftovers = service => leftovers,
///         stopped = signals => return stopped,
///     };
///     println!("{} keys are left", leftovers.len());
///     Ok(())
/// }
/// ```
#[must_use = "no key is processed until a run is awaited or spawned"]
pub struct Run<K> {
    /// Read when the workers begin.
    shut_down_on: Arc<Mutex<CancellationToken>>,
    /// Absent once the workers have ended.
    work: Option<Working<K>>,
}

type Working<K> = Pin<Box<dyn Future<Output = Vec<Leftover<K>>> + Send>>;

impl<K> Run<K> {
    /// Shuts the queue down when `token` is cancelled, and lets it drain. Does nothing once the
    /// workers have begun.
    pub fn shut_down_on(self, token: CancellationToken) -> Self {
        *self.shut_down_on.lock() = token;
        self
    }
}

impl<K> Future for Run<K> {
    type Output = Vec<Leftover<K>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(work) = &mut self.work else {
            return Poll::Pending;
        };
        let ended = work.as_mut().poll(context);
        if ended.is_ready() {
            self.work = None;
        }
        ended
    }
}

impl<K> fmt::Debug for Run<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run")
            .field("has_ended", &self.work.is_none())
            .finish_non_exhaustive()
    }
}
