//! How long a run may take, and how often a key that fails is retried.

use core::time::Duration;

use requeue_core::binding::{Clock, Timer, timeout_at};
use requeue_core::{Instant, Retries};

/// What limits the runs of a worker: [`Retries`] alone, or [`RunLimits`] with a timeout. The trait
/// is sealed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_embassy::{Limits, Retries, RunLimits};
///
/// fn limits(is_on_battery: bool) -> impl Limits {
///     let retries = Retries::at_most(if is_on_battery { 1 } else { 5 });
///     RunLimits::timeout(Duration::from_secs(2)).retries(retries)
/// }
/// # let _ = limits(true);
/// ```
pub trait Limits: sealed::Sealed {
    /// How often a key that fails is retried.
    #[doc(hidden)]
    fn allowed(&self) -> Retries;

    /// For how long a run may go on.
    #[doc(hidden)]
    fn limit(&self) -> Duration;

    /// Until when a run that begins now may go on.
    #[doc(hidden)]
    fn deadline(&self, clock: &impl Clock) -> Option<Instant>;

    /// Runs `run` until the deadline, and returns `None` if that comes first.
    #[doc(hidden)]
    fn bound<F: Future>(
        &self,
        clock: &impl Timer,
        deadline: Option<Instant>,
        run: F,
    ) -> impl Future<Output = Option<F::Output>>;
}

/// A timeout for each run, and how often a key that fails is retried.
///
/// When a run takes longer its future is dropped, at its next `await`, and the run has failed. A
/// result that is there when the task is polled counts, however late it is.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_embassy::{Retries, RunLimits};
///
/// let limits = RunLimits::timeout(Duration::from_secs(2)).retries(Retries::at_most(5));
/// # let _ = limits;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct RunLimits {
    timeout: Duration,
    retries: Retries,
}

impl RunLimits {
    /// Limits how long a run may take, and retries for ever.
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
    /// use requeue_embassy::limiter::default_item_based;
    /// use requeue_embassy::metrics::NoMetrics;
    /// use requeue_embassy::priority::Plain;
    /// use requeue_embassy::raw::NoopRawMutex;
    /// use requeue_embassy::{Action, Failure, ManualClock, Queue, RunLimits, With, WorkQueue};
    ///
    /// let clock: ManualClock<NoopRawMutex> = ManualClock::new();
    /// let queue: WorkQueue<NoopRawMutex, u16, 8, Plain, _, 3, With<NoMetrics, u8, _>> =
    ///     WorkQueue::from_queue(Queue::new(default_item_based()), &clock);
    /// let _ = queue.add(17);
    ///
    /// let mut too_late = Vec::new();
    /// {
    ///     let read = async |_: &u16, _| pending::<Result<Action, &str>>().await;
    ///     let limits = RunLimits::timeout(Duration::from_secs(2));
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
    pub const fn timeout(timeout: Duration) -> Self {
        let retries = Retries::UNLIMITED;
        Self { timeout, retries }
    }

    /// Limits how often a key that fails is retried.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_embassy::{Retries, RunLimits};
    ///
    /// const LIMITS: RunLimits =
    ///     RunLimits::timeout(Duration::from_secs(2)).retries(Retries::at_most(5));
    /// assert_ne!(LIMITS, RunLimits::timeout(Duration::from_secs(2)), "it retries for ever");
    /// ```
    pub const fn retries(self, retries: Retries) -> Self {
        Self { retries, ..self }
    }
}

impl Limits for RunLimits {
    fn allowed(&self) -> Retries {
        self.retries
    }

    fn limit(&self) -> Duration {
        self.timeout
    }

    fn deadline(&self, clock: &impl Clock) -> Option<Instant> {
        Some(clock.now() + self.timeout)
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
impl Limits for Retries {
    #[inline]
    fn allowed(&self) -> Retries {
        *self
    }

    #[inline]
    fn limit(&self) -> Duration {
        Duration::MAX
    }

    #[inline]
    fn deadline(&self, _: &impl Clock) -> Option<Instant> {
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
    impl Sealed for super::Retries {}
    impl Sealed for super::RunLimits {}
}
