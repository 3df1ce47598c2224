//! How long a run may take, and how often a key that fails is retried. Owns these limits; a limit
//! that is not set costs no code.

use core::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Timer, timeout_at};

/// How often a key that fails is retried, and how long a run may take. By default neither is
/// limited.
///
/// `T` is [`Duration`] once there is a [`timeout`](Self::timeout). Without one there is neither the
/// code nor the room for it.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::embassy::RunLimits;
///
/// const RETRIES: RunLimits = RunLimits::new().max_retries(5);
/// const LIMITS: RunLimits<Duration> = RETRIES.timeout(Duration::from_secs(2));
/// # let _ = LIMITS;
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RunLimits<T = ()> {
    /// `None` if a key is retried until it succeeds.
    max_retries: Option<u32>,
    pub(crate) timeout: T,
}

impl RunLimits {
    /// Creates limits that allow everything: a key is retried until it succeeds, however long its
    /// runs take.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::embassy::RunLimits;
    ///
    /// assert_eq!(RunLimits::new(), RunLimits::default());
    /// assert_ne!(RunLimits::new(), RunLimits::new().max_retries(1));
    /// ```
    pub const fn new() -> Self {
        Self {
            max_retries: None,
            timeout: (),
        }
    }

    /// Limits how long a run may take.
    ///
    /// When a run takes longer its future is dropped, at its next `await`, and the run has failed.
    /// A result that is there when the task is polled counts, however late it is.
    ///
    /// # Examples
    ///
    /// A run that waits for a sensor that is silent fails after two seconds:
    ///
    /// ```
    /// use core::future::pending;
    /// use core::pin::pin;
    /// use core::time::Duration;
    /// use embassy_futures::poll_once;
    /// use requeue::embassy::limiter::default_item_based;
    /// use requeue::embassy::priority::Plain;
    /// use requeue::embassy::raw::NoopRawMutex;
    /// use requeue::embassy::{Action, Failure, ManualClock, Queue, RunLimits, WorkQueue};
    ///
    /// let clock: ManualClock<NoopRawMutex> = ManualClock::new();
    /// let queue: WorkQueue<NoopRawMutex, u16, 8, Plain, _, 3, ((), u8, _)> =
    ///     WorkQueue::from_queue(Queue::new(default_item_based()), &clock);
    /// let _ = queue.add(17);
    ///
    /// let mut too_late = Vec::new();
    /// {
    ///     let read = async |_: &u16, _| pending::<Result<Action, &str>>().await;
    ///     let limits = RunLimits::new().timeout(Duration::from_secs(2));
    ///     let note = |sensor: &u16, failure: &Failure<_>, _| {
    ///         too_late.extend(matches!(failure, Failure::TimedOut(_)).then_some(*sensor));
    ///     };
    ///     let mut worker = pin!(queue.run_with(limits, read, note, |_, _| {}));
    ///     assert!(poll_once(worker.as_mut()).is_pending());
    ///     clock.advance(Duration::from_secs(2));
    ///     assert!(poll_once(worker.as_mut()).is_pending());
    /// }
    /// assert_eq!(too_late, [17]);
    /// ```
    pub const fn timeout(self, timeout: Duration) -> RunLimits<Duration> {
        RunLimits {
            max_retries: self.max_retries,
            timeout,
        }
    }
}

impl<T: Copy> RunLimits<T> {
    /// Limits how many more runs a key gets after its first failure. Zero gives up at the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::embassy::RunLimits;
    ///
    /// let limits = RunLimits::new().timeout(Duration::from_secs(2)).max_retries(5);
    /// assert_ne!(limits, limits.max_retries(4));
    /// ```
    pub const fn max_retries(self, retries: u32) -> Self {
        Self {
            max_retries: Some(retries),
            timeout: self.timeout,
        }
    }

    /// Returns whether a key is retried that has failed now, and `failures` times before.
    pub(crate) fn allow(&self, failures: u32) -> bool {
        self.max_retries.is_none_or(|retries| failures < retries)
    }
}

/// How long a run may take: [`Duration`], or `()` for no limit. The trait is sealed.
pub trait RunTimeout: Copy + sealed::Sealed {
    /// For how long a run may go on. `None` if there is no limit.
    #[doc(hidden)]
    fn limit(&self) -> Option<Duration>;

    /// Runs `run` until the deadline, and returns `None` if that comes first.
    #[doc(hidden)]
    fn bound<F: Future>(
        &self,
        clock: &impl Timer,
        deadline: Option<Instant>,
        run: F,
    ) -> impl Future<Output = Option<F::Output>>;
}

impl RunTimeout for Duration {
    fn limit(&self) -> Option<Duration> {
        Some(*self)
    }

    fn bound<F: Future>(
        &self,
        clock: &impl Timer,
        deadline: Option<Instant>,
        run: F,
    ) -> impl Future<Output = Option<F::Output>> {
        timeout_at(clock, deadline, run)
    }
}

/// No timeout, and no code for one.
impl RunTimeout for () {
    #[inline]
    fn limit(&self) -> Option<Duration> {
        None
    }

    #[inline]
    async fn bound<F: Future>(
        &self,
        _: &impl Timer,
        _: Option<Instant>,
        run: F,
    ) -> Option<F::Output> {
        Some(run.await)
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for () {}
    impl Sealed for core::time::Duration {}
}
