//! The workers that run a reconciler, the same for every runtime.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use crate::action::Retries;
use crate::trace::{Trace, log_failure};

#[cfg(feature = "std")]
mod ages;
#[cfg(feature = "std")]
mod concurrency;
#[cfg(feature = "std")]
mod dead;
mod events;
mod run;
mod seats;

#[cfg(feature = "std")]
pub use concurrency::{Changes, Concurrency};
#[cfg(feature = "std")]
pub use dead::DeadKeys;
use events::Observer;
pub use events::RunEvent;
use run::Ages;
pub use run::{BegunRun, Failure, Runs};
pub use seats::{Member, Seats};

/// How many workers a runtime's `run` has, and what they do with keys that fail.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Failure, Workers};
///
/// let workers = Workers::new(4)
///     .max_retries(5)
///     .drain_deadline(Duration::from_secs(10))
///     .on_give_up(|key: &u32, failure: Failure<String>| eprintln!("gave up {key}: {failure}"));
/// assert_eq!(workers.count(), 4);
/// ```
#[must_use = "workers do nothing until they are run"]
pub struct Workers<'w, K, E> {
    count: Concurrency,
    retries: Retries,
    /// For how long a run may go on.
    timeout: Option<Duration>,
    drain_deadline: Option<Duration>,
    /// The hook for every failure.
    fail: Option<Box<OnError<'w, K, E>>>,
    /// What logs a failure, or that a key is given up, if there is no hook.
    log: fn(&Failure<E>, u32, bool),
    /// Whether an error is the last of its key.
    give_up_if: Option<Box<GiveUpIf<'w, K, E>>>,
    give_up: Option<Box<OnGiveUp<'w, K, E>>>,
    overdue: Option<Box<OnOverdue<'w, K>>>,
    ages: Option<Box<dyn Ages<K> + Send + Sync + 'w>>,
    observers: Vec<Box<Observer<'w, K, E>>>,
    pub(crate) trace: Trace<'w, K>,
}

type OnError<'w, K, E> = dyn Fn(&K, &Failure<E>, u32) + Send + Sync + 'w;
type GiveUpIf<'w, K, E> = dyn Fn(&K, &E) -> bool + Send + Sync + 'w;
type OnOverdue<'w, K> = dyn Fn(&K, Duration) + Send + Sync + 'w;
type OnGiveUp<'w, K, E> = dyn Fn(&K, Failure<E>) + Send + Sync + 'w;

impl<'w, K, E: fmt::Debug> Workers<'w, K, E> {
    /// Creates settings for `count` workers, at least one. A plain number converts into this. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, String, std::io::Error> = 4.into();
    /// assert_eq!(workers.count(), 4);
    /// ```
    pub fn new(count: usize) -> Self {
        Self {
            count: Concurrency::new(count.max(1)),
            retries: Retries::UNLIMITED,
            timeout: None,
            drain_deadline: None,
            fail: None,
            log: log_failure::<E>,
            give_up_if: None,
            give_up: None,
            overdue: None,
            ages: None,
            observers: Vec::new(),
            trace: Trace::new(),
        }
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// Sets how many times a key that failed is retried before it is given up. There is no limit by
    /// default. O(1).
    ///
    /// The count is the rate limiter's. With a limiter that keeps no record of a key
    /// ([`NoLimit`](crate::NoLimit), a [`Bucket`](crate::Bucket) alone) it stays zero, and a key is
    /// given up only if `retries` is zero too.
    ///
    /// # Examples
    ///
    /// ```
    #[doc = include_str!("shared/example.txt")]
    /// let workers = Workers::new(1).max_retries(2);
    /// let mut ends = Vec::new();
    /// for _ in 0..3 {
    ///     let _ = queue.add("node-7");
    ///     let guard = queue.try_get().unwrap();
    ///     let run = workers.begin(guard.key(), guard.context(), &queue);
    ///     let action = workers.end(guard.key(), run, Err(Failure::Error("down")), &queue);
    ///     ends.push(action);
    ///     guard.finish(action).unwrap();
    /// }
    /// assert_eq!(ends, [Action::Retry, Action::Retry, Action::Success], "given up at last");
    /// ```
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Retries::at_most(retries);
        self
    }

    /// Gives a key up at once if `is_last` returns true for its error: no retry would help. It has
    /// failed as any other: [`on_error`](Self::on_error) and [`on_give_up`](Self::on_give_up) are
    /// called. With [`max_retries`](Self::max_retries) or `give_up_after`, what comes first counts.
    ///
    /// `is_last` runs on the worker while the key is active, and only for errors: not for a run
    /// that panicked, was stopped or asked for a retry. A panic in it is caught, and the key is
    /// retried.
    ///
    /// On boards a reconciler deals with such an error itself, and returns
    /// [`Action::Success`](crate::Action::Success).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::Workers;
    ///
    /// #[derive(Debug)]
    /// enum Error {
    ///     NoRoute,
    ///     InvalidName,
    /// }
    ///
    /// let workers = Workers::new(4)
    ///     .give_up_if(|_: &String, error| matches!(error, Error::InvalidName))
    ///     .on_give_up(|node, failure| eprintln!("{node}: {failure:?}"));
    /// # let _ = (workers, Error::NoRoute);
    /// ```
    #[doc(alias = "TerminalError")]
    pub fn give_up_if(mut self, is_last: impl Fn(&K, &E) -> bool + Send + Sync + 'w) -> Self {
        self.give_up_if = Some(Box::new(is_last));
        self
    }

    /// Sets the hook for keys that are given up. It receives the key, and why its last run failed.
    /// The failures of the key are forgotten: if it is added again, it starts as a new key. Without
    /// this hook it is logged as an error, if the feature `tracing` is on. O(1).
    ///
    /// The hook runs on the worker while the key is active. A panic in the hook is caught and
    /// ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Mutex;
    #[doc = include_str!("shared/example.txt")]
    ///
    /// let given_up = Mutex::new(Vec::new());
    /// let workers = Workers::new(1).max_retries(0).on_give_up(|node: &&str, failure| {
    ///     given_up.lock().unwrap().push(format!("{node}: {failure}"));
    /// });
    /// let _ = queue.add("node-7");
    /// let guard = queue.try_get().unwrap();
    /// let run = workers.begin(guard.key(), guard.context(), &queue);
    /// workers.end(guard.key(), run, Err(Failure::Error("no route")), &queue);
    /// assert_eq!(*given_up.lock().unwrap(), ["node-7: no route"]);
    /// # guard.success().unwrap();
    /// ```
    pub fn on_give_up(mut self, hook: impl Fn(&K, Failure<E>) + Send + Sync + 'w) -> Self {
        self.give_up = Some(Box::new(hook));
        self
    }

    /// Sets the hook for runs of threads that are overdue: a [`timeout`](Self::timeout) has passed,
    /// and the run goes on. It receives the key and the timeout. Without this hook an overdue run
    /// is logged as a warning, if the feature `tracing` is on. Tasks are stopped instead. O(1).
    ///
    /// The hook runs on the thread that called `run`, at the deadline, once per run. While it runs,
    /// no other overdue run is reported. A panic in the hook is caught and ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, u32, String> = Workers::new(4)
    ///     .timeout(Duration::from_secs(30))
    ///     .on_overdue(|key, limit| eprintln!("node {key} takes longer than {limit:?}"));
    /// # workers.overdue(&17);
    /// ```
    pub fn on_overdue(mut self, hook: impl Fn(&K, Duration) + Send + Sync + 'w) -> Self {
        self.overdue = Some(Box::new(hook));
        self
    }

    /// Sets for how long after shutdown ready keys are still worked on. There is no limit by
    /// default. O(1).
    ///
    /// The keys that are left then are returned as leftovers, in their order, also those that wait
    /// for a token of a [rate of runs](crate::Policy::run_rate) or for a run of their group to end.
    /// They are not taken: they use no token, and start no
    /// [cool-down](crate::Policy::cool_down). A run that has begun is always waited for.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, &str, String> =
    ///     Workers::new(2).drain_deadline(Duration::from_secs(10));
    /// assert_eq!(workers.drain_limit(), Some(Duration::from_secs(10)));
    /// ```
    pub fn drain_deadline(mut self, deadline: Duration) -> Self {
        self.drain_deadline = Some(deadline);
        self
    }

    /// Sets for how long a run may go on. There is no limit by default. O(1).
    ///
    /// The reconciler learns its [`deadline`](crate::RunContext::deadline). What happens when it
    /// has passed depends on the runtime:
    ///
    /// - A task is stopped at its next `await`: its future is dropped, and the run has failed with
    ///   [`Failure::TimedOut`]. A result that is there when the task is polled counts, however
    ///   late it is.
    /// - A thread cannot be stopped. The run is [reported](Self::on_overdue) as overdue, once, and
    ///   goes on. Its result counts.
    ///
    /// [`Duration::ZERO`] lets a task run until it waits for the first time; [`Duration::MAX`] sets
    /// no limit.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, &str, String> = Workers::new(2).timeout(Duration::from_secs(30));
    /// assert_eq!(workers.run_limit(), Some(Duration::from_secs(30)));
    /// ```
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.timeout = Some(limit).filter(|limit| *limit != Duration::MAX);
        self
    }

    /// Returns for how long a run may go on, `None` if there is no limit. For runtimes. O(1).
    pub fn run_limit(&self) -> Option<Duration> {
        self.timeout
    }

    /// Returns the number of workers. O(1).
    pub fn count(&self) -> usize {
        self.count.get()
    }

    /// Returns for how long after shutdown keys are still taken, `None` if there is no limit. For
    /// runtimes. O(1).
    pub fn drain_limit(&self) -> Option<Duration> {
        self.drain_deadline
    }

    /// Sets the hook for every failure. It receives the key, why its run failed, and which attempt
    /// that was, counted from 1. Without this hook failures are logged as warnings, if the feature
    /// `tracing` is on; `trace_keys`, which is there with that feature, adds the key.
    ///
    /// The hook runs on the worker while the key is active, before
    /// [`on_give_up`](Self::on_give_up). A panic in the hook is caught and ignored.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Failure, Workers};
    ///
    /// let workers = Workers::new(4).on_error(|key: &u32, failure: &Failure<String>, attempt| {
    ///     eprintln!("node {key}, attempt {attempt}: {failure}");
    /// });
    /// assert_eq!(workers.count(), 4);
    /// ```
    pub fn on_error(mut self, hook: impl Fn(&K, &Failure<E>, u32) + Send + Sync + 'w) -> Self {
        self.fail = Some(Box::new(hook));
        self
    }
}

impl<K, E: fmt::Debug> From<usize> for Workers<'_, K, E> {
    fn from(count: usize) -> Self {
        Self::new(count)
    }
}

impl<K, E> fmt::Debug for Workers<'_, K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count())
            .field("retries", &self.retries)
            .field("timeout", &self.timeout)
            .field("drain_deadline", &self.drain_deadline)
            .finish_non_exhaustive()
    }
}

/// How many workers a `run` has. Only with the feature `std` it can change.
#[cfg(not(feature = "std"))]
#[derive(Debug)]
pub(crate) struct Concurrency(usize);

#[cfg(not(feature = "std"))]
impl Concurrency {
    pub(crate) const fn new(workers: usize) -> Self {
        Self(workers)
    }

    pub(crate) const fn get(&self) -> usize {
        self.0
    }
}

/// Calls a hook. A panic in it ends only the hook. Without the feature `std` it cannot be caught.
fn contain(hook: impl FnOnce()) {
    #[cfg(not(feature = "std"))]
    hook();
    #[cfg(feature = "std")]
    {
        use std::panic::{AssertUnwindSafe, catch_unwind};
        // A hook answers for its own state, as after any panic on a thread.
        if let Err(payload) = catch_unwind(AssertUnwindSafe(hook)) {
            // The payload's `Drop` is foreign code, too: a second one is leaked.
            let dropped = catch_unwind(AssertUnwindSafe(|| drop(payload)));
            core::mem::forget(dropped);
        }
    }
}
