//! How a reconciler's workers work, whatever the runtime.

use alloc::boxed::Box;
use alloc::string::String;
use core::any::Any;
use core::fmt;
use core::num::NonZeroUsize;
use core::time::Duration;

use crate::action::{Action, Retries};
use crate::outcome::Completion;
use crate::trace::{Outcome, RunSpan, Trace};

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
/// assert_eq!(workers.count().get(), 4);
/// ```
#[must_use = "workers do nothing until they are run"]
pub struct Workers<'w, K, E> {
    count: NonZeroUsize,
    retries: Retries,
    drain_deadline: Option<Duration>,
    give_up: GiveUp<'w, K, E>,
    pub(crate) trace: Trace<'w, K>,
}

type GiveUp<'w, K, E> = Box<dyn Fn(&K, Failure<E>) + Send + Sync + 'w>;

/// Why a run failed.
///
/// # Examples
///
/// ```
/// use requeue_core::Failure;
///
/// fn tell(failure: &Failure<&str>) -> String {
///     match failure {
///         Failure::Error(error) => format!("error: {error}"),
///         panic => panic.to_string(),
///     }
/// }
///
/// assert_eq!(tell(&Failure::Error("no route to node-7")), "error: no route to node-7");
/// assert_eq!(tell(&Failure::Panic(Box::new("index 3"))), "panicked: index 3");
/// ```
#[derive(Debug)]
pub enum Failure<E> {
    /// The reconciler answered with an error.
    Error(E),
    /// The reconciler panicked, with this payload.
    Panic(Box<dyn Any + Send>),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Error(error) => error.fmt(f),
            Self::Panic(payload) => {
                let message = payload.downcast_ref::<&str>().copied();
                let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
                write!(f, "panicked: {}", message.unwrap_or("(no message)"))
            }
        }
    }
}

impl<'w, K, E> Workers<'w, K, E> {
    /// This many workers, one at least. Where workers are asked for, a number by itself does too.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::Workers;
    ///
    /// let workers: Workers<'_, String, std::io::Error> = 4.into();
    /// assert_eq!(workers.count().get(), 4);
    /// ```
    pub fn new(count: usize) -> Self {
        Self {
            count: NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN),
            retries: Retries::UNLIMITED,
            drain_deadline: None,
            give_up: Box::new(|_, _| {}),
            trace: Trace::new(),
        }
    }

    /// How many times a key that failed is tried again before it is given up. At first there is no
    /// limit.
    ///
    /// The count is the rate limiter's: with one that remembers no key
    /// ([`NoLimit`](crate::NoLimit), a [`Bucket`](crate::Bucket) alone) it stays zero, and a key is
    /// never given up unless `retries` is zero too.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Completion, Failure, Workers};
    ///
    /// let workers = Workers::new(1).max_retries(2);
    /// let fail = |requeues: u32| {
    ///     let span = workers.span(&"node-7", requeues + 1, Duration::ZERO);
    ///     workers.judge(&"node-7", requeues, Err(Failure::Error("down")), span)
    /// };
    /// assert_eq!([fail(0), fail(1)], [Completion::Retry; 2]);
    /// assert_eq!(fail(2), Completion::Succeeded, "given up after three runs");
    /// ```
    pub fn max_retries(mut self, retries: u32) -> Self {
        self.retries = Retries::at_most(retries);
        self
    }

    /// Called with a key that is given up, and why its last run failed. Its failures are forgotten:
    /// whoever adds it again finds it as new.
    ///
    /// Runs on the worker while the key counts as in work. A hook that panics is taken as one that
    /// returned.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::sync::Mutex;
    /// use std::time::Duration;
    /// use requeue_core::{Failure, Workers};
    ///
    /// let given_up = Mutex::new(Vec::new());
    /// let workers = Workers::new(1).max_retries(0).on_give_up(|node: &&str, failure| {
    ///     given_up.lock().unwrap().push(format!("{node}: {failure}"));
    /// });
    /// let span = workers.span(&"node-7", 1, Duration::ZERO);
    /// let _ = workers.judge(&"node-7", 0, Err(Failure::Error("no route")), span);
    /// assert_eq!(*given_up.lock().unwrap(), ["node-7: no route"]);
    /// ```
    pub fn on_give_up(mut self, hook: impl Fn(&K, Failure<E>) + Send + Sync + 'w) -> Self {
        self.give_up = Box::new(hook);
        self
    }

    /// For how long after shutdown ready keys are still worked on; what is left then is handed
    /// back. At first there is no limit. A run that has begun is always waited for.
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

    /// How many workers there are.
    pub fn count(&self) -> NonZeroUsize {
        self.count
    }

    /// For how long after shutdown keys are still taken, if there is a limit; for runtimes.
    pub fn drain_limit(&self) -> Option<Duration> {
        self.drain_deadline
    }

    /// How a run is completed that ended like this, of a key that had failed `requeues` times
    /// before. Ends the run's span, and calls the hook if the key is given up; for runtimes. The
    /// examples of [`max_retries`](Self::max_retries) and [`on_give_up`](Self::on_give_up) call it.
    pub fn judge(
        &self,
        key: &K,
        requeues: u32,
        result: Result<Action, Failure<E>>,
        span: RunSpan,
    ) -> Completion {
        let outcome = match &result {
            Ok(Action::Done) => Outcome::Done,
            Ok(Action::RequeueAfter(_)) => Outcome::RequeuedAfter,
            Ok(Action::PutOff(_)) => Outcome::PutOff,
            Err(Failure::Error(_)) => Outcome::Failed,
            Err(Failure::Panic(_)) => Outcome::Panicked,
        };
        let completion = match (&result, self.retries.completion(requeues)) {
            (Ok(action), _) => action.completion(),
            (Err(_), Some(retry)) => retry,
            (Err(_), None) => Completion::Succeeded,
        };
        // Before the hook, which may panic.
        span.end(outcome, completion);
        if let (Err(failure), Completion::Succeeded) = (result, completion) {
            (self.give_up)(key, failure);
        }
        completion
    }

    /// The span of a run that begins; for runtimes. Without the feature `tracing` it is nothing.
    pub fn span(&self, key: &K, attempt: u32, waited: Duration) -> RunSpan {
        self.trace.span(key, attempt, waited)
    }
}

impl<K, E> From<usize> for Workers<'_, K, E> {
    fn from(count: usize) -> Self {
        Self::new(count)
    }
}

impl<K, E> fmt::Debug for Workers<'_, K, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers")
            .field("count", &self.count)
            .field("retries", &self.retries)
            .field("drain_deadline", &self.drain_deadline)
            .finish_non_exhaustive()
    }
}
