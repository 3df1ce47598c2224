//! How a run ends. Owns the actions that a reconciler returns, and what a run knows of itself;
//! never decides when a key runs again.

use core::convert::Infallible;
use core::time::Duration;

use crate::Instant;

/// How a run of a key ends: what a reconciler returns, and what [`Guard::finish`] and
/// `queue.next(guard, action)` take.
///
/// | action | the run | the key runs again | its failures | client-go |
/// |---|---|---|---|---|
/// | `Success` | worked | if it was added meanwhile | are forgotten | `Forget` + `Done` |
/// | `RequeueAfter(d)` | worked | after `d` | are forgotten | `Forget` + `AddAfter` + `Done` |
/// | `Retry` | failed | when its limiter says so | are one more | `AddRateLimited` + `Done` |
/// | `GiveUp` | failed | if it was added meanwhile | are forgotten | `Forget` + `Done` |
/// | `Snooze(d)` | neither | after `d` | stay | `AddAfter` + `Done` |
/// | `Suspend(d)` | neither | when it is [resumed], or after `d` | stay | |
/// | `Release` | is over | if it was added meanwhile | stay | `Done` |
///
/// If a key has two reasons to run again, the earlier time counts: a key that was added during its
/// run runs again at once, whatever the action. Only `Suspend` and a [hold](crate::Policy) keep it
/// waiting.
///
/// [resumed]: crate::Session::resume
/// [`Guard::finish`]: crate::Guard::finish
///
/// # Examples
///
/// A controller turns the result of its work into an action:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::Action;
///
/// fn judge(result: Result<Option<Duration>, &str>) -> Action {
///     match result {
///         Err(_) => Action::Retry,
///         Ok(Some(again)) => Action::RequeueAfter(again),
///         Ok(None) => Action::Success,
///     }
/// }
///
/// assert_eq!(judge(Err("no route to node-7")), Action::Retry);
/// assert!(!judge(Ok(None)).needs_time());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Action {
    /// It worked: the failures are forgotten.
    #[default]
    #[doc(alias = "Forget")]
    Success,
    /// It failed for good: the failures are forgotten, and the key runs again only if it is added.
    #[doc(alias = "Forget")]
    #[doc(alias = "TerminalError")]
    GiveUp,
    /// The run is over, and the failures stay as they are.
    #[doc(alias = "Done")]
    Release,
    /// It failed: counts one more failure and lets the limiter say when the key runs again.
    #[doc(alias = "AddRateLimited")]
    Retry,
    /// It worked, and the key runs again after this long, added or not: the failures are forgotten.
    #[doc(alias = "AddAfter")]
    RequeueAfter(Duration),
    /// Neither: the key runs again after this long, and its failures stay as they are.
    #[doc(alias = "AddAfter")]
    Snooze(Duration),
    /// Neither: the key waits for an event, and runs again when it is
    /// [resumed](crate::Session::resume), but after this long at the latest. Its failures stay as
    /// they are. [`suspend`](crate::Session::suspend) says what happens meanwhile.
    ///
    /// The time counts from the end of the run, and takes the place of that of a `suspend` during
    /// the run. If the key was resumed since, it runs again at once. In a
    /// [`Fixed`](crate::storage::Fixed) queue without
    /// [`WithSuspension`](crate::priority::WithSuspension) this is [`Snooze`](Self::Snooze).
    Suspend(Duration),
}

impl Action {
    /// Returns whether the action itself needs the time, because the key runs again. Otherwise a
    /// runtime reads its clock only if [`Queue::needs_time`](crate::Queue::needs_time) returns
    /// true. O(1).
    #[inline]
    pub const fn needs_time(self) -> bool {
        !matches!(self, Self::Success | Self::GiveUp | Self::Release)
    }

    #[inline]
    pub(crate) const fn forgets(self) -> bool {
        matches!(self, Self::Success | Self::RequeueAfter(_) | Self::GiveUp)
    }
}

/// What a reconciler returns: `()`, an [`Action`], or a `Result` of either.
///
/// A closure whose errors all come from `?` names its type, as in `|key| -> Result<(), io::Error>`.
/// One that cannot fail returns `()` or an action, and no `Ok`.
///
/// # Examples
///
/// ```
/// use requeue_core::{Action, IntoAction};
///
/// fn ends<R: IntoAction>(result: R) -> Action {
///     result.into_action().unwrap_or(Action::Retry)
/// }
///
/// assert_eq!(ends(()), Action::Success);
/// assert_eq!(ends(Action::Release), Action::Release);
/// assert_eq!(ends("x".parse::<u8>().map(drop)), Action::Retry);
/// ```
#[diagnostic::on_unimplemented(
    message = "a reconciler cannot return `{Self}`",
    label = "returns `{Self}`",
    note = "return `()`, an `Action`, or a `Result` of either"
)]
pub trait IntoAction {
    /// Why the run failed. [`Infallible`] if the reconciler returns no `Result`.
    type Error;

    /// Returns how the run ends, or why it failed.
    ///
    /// # Errors
    ///
    /// The reconciler's own error.
    fn into_action(self) -> Result<Action, Self::Error>;
}

impl IntoAction for () {
    type Error = Infallible;

    fn into_action(self) -> Result<Action, Infallible> {
        Ok(Action::Success)
    }
}

impl IntoAction for Action {
    type Error = Infallible;

    #[inline]
    fn into_action(self) -> Result<Action, Infallible> {
        Ok(self)
    }
}

impl<T: Into<Action>, E> IntoAction for Result<T, E> {
    type Error = E;

    #[inline]
    fn into_action(self) -> Result<Action, E> {
        self.map(Into::into)
    }
}

/// A run that returns nothing has worked.
impl From<()> for Action {
    fn from((): ()) -> Self {
        Self::Success
    }
}

/// What is known about a run when it begins.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::RunContext;
///
/// // A run that takes longer each time it fails gives up early.
/// fn timeout(run: RunContext) -> Duration {
///     Duration::from_secs(10).saturating_mul(run.attempt.min(6))
/// }
/// # let _ = timeout;
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub struct RunContext {
    /// Which attempt this is, counted from 1: one more than the failures on record.
    pub attempt: u32,
    /// How long the key was ready, or dirty, before it was handed out. Always zero if the queue's
    /// metrics keep no [`Times`](crate::metrics::Times): [`Guard::waited`](crate::Guard::waited)
    /// says how to get it.
    pub waited: Duration,
    /// The priority level of the key; 0 in a queue without [`Levels`](crate::priority::Levels).
    pub priority: u8,
    /// When the run is overdue, on the queue's clock. `None` if runs have no timeout.
    pub deadline: Option<Instant>,
    /// The key was [suspended](Action::Suspend), and nobody resumed it in time.
    pub timed_out: bool,
}

impl RunContext {
    /// Creates the context of a run without a deadline, for a key of level 0 that did not wait: for
    /// tests of a reconciler.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Action, RunContext};
    ///
    /// fn reconcile(run: RunContext) -> Action {
    ///     if run.attempt > 2 { Action::Release } else { Action::Retry }
    /// }
    ///
    /// assert_eq!(reconcile(RunContext::new(3)), Action::Release);
    /// ```
    pub const fn new(attempt: u32) -> Self {
        Self {
            attempt,
            waited: Duration::ZERO,
            priority: 0,
            deadline: None,
            timed_out: false,
        }
    }
}
