//! How a run ends. Owns the actions that a reconciler returns, and what a run knows of itself;
//! never decides when a key runs again.

use core::convert::Infallible;
use core::time::Duration;

use crate::Instant;
use crate::time::nanos;

/// How a run of a key ends: what a reconciler returns, and what [`Guard::finish`] and
/// `queue.next(guard, action)` take.
///
/// | action | the key runs again | its failures |
/// |---|---|---|
/// | `Success` | if it was added meanwhile | are forgotten |
/// | `RequeueAfter(d)` | after `d` | are forgotten |
/// | `Retry` | when its limiter says so | are one more |
/// | `GiveUp` | if it was added meanwhile | are forgotten |
/// | `Snooze(d)` | after `d` | stay |
/// | [`poll`](Self::poll)`(min, max)` | after a pause that grows from `min` to `max` | stay |
/// | `Suspend(d)` | when it is [resumed], or after `d` | stay |
/// | `Release` | if it was added meanwhile | stay |
///
/// `Success` and `RequeueAfter` say that the run worked. `Retry` and `GiveUp` say that it failed.
/// The other actions say neither.
///
/// If a key was added during its run, it is ready when the run ends, with any action. Only
/// `Suspend` and a [hold](crate::Policy) delay it. If it also has a deadline, it runs again at that
/// time too. If the key already had a deadline when the action set one, the earlier one counts.
///
/// The next run has the priority level of this run. [`with_priority`](Self::with_priority) chooses
/// another level.
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
/// use requeue::Action;
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
///
/// A run waits for an event. The code that receives the event calls `queue.resume(&key)`. After a
/// minute the key runs again in any case:
///
/// ```
/// use core::time::Duration;
/// use requeue::Action;
///
/// fn serve(database: Option<&str>) -> Action {
///     match database {
///         Some(_address) => Action::Success,
///         None => Action::Suspend(Duration::from_secs(60)),
///     }
/// }
///
/// assert_eq!(serve(None), Action::Suspend(Duration::from_secs(60)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Action {
    /// The run neither worked nor failed. The failures stay on record.
    #[doc(alias = "Done")]
    Release,
    /// The run worked. The failures are forgotten.
    #[default]
    #[doc(alias = "Forget")]
    Success,
    /// The run failed for good. The failures are forgotten, and the key runs again only if it is
    /// added.
    #[doc(alias = "Forget")]
    #[doc(alias = "TerminalError")]
    GiveUp,
    /// The run worked, and the key runs again after this time. The failures are forgotten.
    #[doc(alias = "AddAfter")]
    RequeueAfter(Duration),
    // Those with `At` have the priority and the slack of the next run: `into_parts` takes them off.
    // They are variants of their own so that an action is no larger with them, and the time has one
    // place in all. The numbers have 32 bits because a board copies bytes one by one. The order makes a
    // range of all that forget, that name a time, and that ask for another run.
    #[doc(hidden)]
    RequeueAfterAt(u32, Duration),
    /// The run neither worked nor failed. The key runs again after this time, and its failures stay
    /// on record.
    #[doc(alias = "AddAfter")]
    Snooze(Duration),
    #[doc(hidden)]
    SnoozeAt(u32, Duration),
    /// The run neither worked nor failed. The key waits for an event: it runs again when you call
    /// [`resume`](crate::Session::resume), and after this time at the latest. Its failures stay on
    /// record. [`suspend`](crate::Session::suspend) says what happens to the key meanwhile.
    ///
    /// The time counts from the end of the run. It replaces the timeout of a `suspend` that was
    /// called during the run. If `resume` was the later call during the run, the key is ready when
    /// the run ends: the event was faster than the run.
    ///
    /// In a [`Fixed`](crate::storage::Fixed) queue without
    /// [`WithSuspension`](crate::priority::WithSuspension) this is [`Snooze`](Self::Snooze).
    Suspend(Duration),
    #[doc(hidden)]
    SuspendAt(u32, Duration),
    /// The run neither worked nor failed. The key runs again after a pause: this time at first, then
    /// twice as long each time, up to this multiple of it (zero counts as one).
    /// [`poll`](Self::poll) makes this action, and says when the pauses start again.
    Poll(Duration, u32),
    /// The number is above those of priority and slack.
    #[doc(hidden)]
    PollAt(u32, Duration),
    /// The run failed. Counts one more failure, and the limiter says when the key runs again.
    #[doc(alias = "AddRateLimited")]
    Retry,
    #[doc(hidden)]
    RetryAt(u32),
}

// What a number of the variants with `At` is made of, from its lowest bit: the level, whether there
// is one, the slack in percent, and how many times the first pause the longest is.
const LEVEL_MAX: u32 = 31;
const HAS_LEVEL: u32 = 1 << 5;
const SLACK: u32 = 6;
const TIMES: u32 = SLACK + u8::BITS;
/// So many times the first pause the longest may be.
const TIMES_MAX: u32 = u32::MAX >> TIMES;

impl Action {
    /// Runs the key again after a pause: `min` at first, then twice as long each time, and never
    /// longer than `max`. Counts as neither success nor failure.
    ///
    /// Use this to wait for something that sends no event. The pauses grow while nothing changes:
    ///
    /// - If a run began because a pause ended, its own pause is twice as long.
    /// - In any other run the pause is `min`. Examples are a run after an add or
    ///   [`expedite`](crate::Session::expedite) that made the key ready before its pause ended, a run
    ///   after any other action or after a [suspension], and the first run in another queue.
    /// - An add changes nothing once the pause has ended and the key is ready. An add during the run
    ///   makes the key ready when the run ends. A pause did not start that second run, so its own
    ///   pause is `min`.
    ///
    /// In every other way this is [`Snooze`](Self::Snooze) with that pause. It sets a deadline. If an
    /// earlier deadline is pending, that one counts, and the next pause is `min`. Of two equal times
    /// the pause counts. A longer [hold](crate::Policy) prolongs the pause.
    ///
    /// The queue counts the pauses of a key, but does not remember their lengths. So pass the same
    /// `min` and `max` each time. A pause of zero does not count.
    ///
    /// The longest pause is the largest multiple of `min` up to `max`, and at most 2^18 - 1 times
    /// `min`. If `max` is below `min`, every pause is `max`. If `min` is zero, the key is ready
    /// when the run ends, each time. Both may be [`Duration::MAX`]. A
    /// [`Fixed`](crate::storage::Fixed) queue counts the pauses if its type has
    /// [`WithSuspension`](crate::priority::WithSuspension). In any other fixed queue every pause is
    /// `min`.
    ///
    /// [suspension]: crate::Session::suspend
    ///
    /// # Examples
    ///
    /// A volume is ready some time after it was made, and nobody tells when:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithSuspension;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Finished, Instant, Queue};
    ///
    /// let seconds = Duration::from_secs;
    /// let poll = Action::poll(seconds(1), seconds(5));
    /// let mut queue: Queue<&str, WithSuspension, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let mut now = Instant::EPOCH;
    /// let _ = queue.at(now).add("volume-4");
    /// for pause in [1, 2, 4, 5, 5] {
    ///     let work = queue.at(now).try_get().unwrap();
    ///     let finished = queue.at(now).finish(work.ticket, poll);
    ///     assert_eq!(finished, Finished::Delayed(seconds(pause)));
    ///     now = now + seconds(pause);
    /// }
    ///
    /// // Something changes.
    /// let work = queue.at(now).try_get().unwrap();
    /// queue.at(now).finish(work.ticket, poll);
    /// let _ = queue.at(now).add("volume-4");
    /// let work = queue.at(now).try_get().unwrap();
    /// assert_eq!(queue.at(now).finish(work.ticket, poll), Finished::Delayed(seconds(1)));
    /// ```
    pub const fn poll(min: Duration, max: Duration) -> Self {
        let (shortest, longest) = (nanos(min), nanos(max));
        if longest < shortest {
            return Self::Poll(max, 1);
        }
        let times = match longest.checked_div(shortest) {
            Some(times) if times < TIMES_MAX as u64 => times as u32,
            _ => TIMES_MAX,
        };
        Self::Poll(min, times)
    }

    /// Chooses the priority level of the next run that this action asks for, controller-runtime's
    /// `Result.Priority`. Without it, that is the level of the present run.
    ///
    /// The level may be lower than that of the present run. It counts as the level of an add: if
    /// the key already waits for a deadline, the higher level counts, and if it was suspended, the
    /// highest for which it was added. A key that was added during its run is ready when the run
    /// ends, at the level of that add. An action with a delay of zero is an add, too, and can raise
    /// such a key. A level that the queue does not have counts as its highest, so in a queue without
    /// [`Levels`](crate::priority::Levels) this changes nothing.
    ///
    /// `Success`, `GiveUp` and `Release` ask for no other run: they stay as they are. A second call
    /// replaces the first.
    ///
    /// # Examples
    ///
    /// A user is waiting for the first run. Later ones can wait for others:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Levels;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, AddOptions, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Levels<2>, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let urgent = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// let _ = queue.at(now).add_with("node-7", urgent);
    /// let work = queue.at(now).try_get().unwrap();
    /// assert_eq!(work.priority, 1);
    ///
    /// let hour = Duration::from_secs(3600);
    /// queue.at(now).finish(work.ticket, Action::RequeueAfter(hour).with_priority(0));
    /// assert_eq!(queue.at(now + hour).try_get().unwrap().priority, 0);
    /// ```
    #[must_use]
    pub const fn with_priority(self, priority: u8) -> Self {
        let level = if priority as u32 > LEVEL_MAX {
            LEVEL_MAX
        } else {
            priority as u32
        };
        let slack = self.extras() & !(HAS_LEVEL | LEVEL_MAX);
        self.plain().with_extras(slack | HAS_LEVEL | level)
    }

    /// Lets the next run that this action asks for begin a little later, up to so many percent of
    /// its delay, so that one wake serves several keys.
    ///
    /// A sensor that is read about once a minute does not need its own wake: it can be read when
    /// something else wakes the processor while its slack lasts.
    /// [`add_within`](crate::Session::add_within) says when that is. The end of the slack is the
    /// key's deadline. [`Finished`](crate::Finished) has the delay without the slack.
    ///
    /// Slack is a permission, and a queue need not use it: a [`Fixed`](crate::storage::Fixed) queue
    /// uses it if its type has [`WithSlack`](crate::priority::WithSlack). In any other fixed queue
    /// it costs nothing, and the delay is exact. After shutdown no queue uses it.
    ///
    /// The percentage is of the delay of this time: that of a retry is what the limiter says, that
    /// of a poll the present pause, that of `Suspend` its timeout. `Success`, `GiveUp` and
    /// `Release` stay as they are. A second call replaces the first.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithSlack;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Finished, Instant, Queue};
    ///
    /// let mut queue: Queue<&str, WithSlack, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
    /// let minute = Duration::from_secs(60);
    /// let again = Action::RequeueAfter(minute).with_slack(20);
    /// for (sensor, second) in [("door", 7), ("light", 8)] {
    ///     let _ = queue.at(at(second)).add(sensor);
    ///     let work = queue.at(at(second)).try_get().unwrap();
    ///     let finished = queue.at(at(second)).finish(work.ticket, again);
    ///     assert_eq!(finished, Finished::Delayed(minute));
    /// }
    /// // The door can wait for 12 s more. Then one wake serves both.
    /// assert_eq!(queue.next_deadline(), Some(at(7 + 60 + 12)));
    /// assert_eq!(queue.at(at(79)).len(), 2);
    /// ```
    #[must_use]
    #[doc(alias("hrtimer", "timer_slack"))]
    pub const fn with_slack(self, percent: u8) -> Self {
        let level = self.extras() & (HAS_LEVEL | LEVEL_MAX);
        self.plain().with_extras(level | (percent as u32) << SLACK)
    }

    /// Returns the action without priority and slack, and the priority that
    /// [`with_priority`](Self::with_priority) gave it. A level above 31, the highest that a queue can
    /// have, is 31. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Action;
    ///
    /// assert_eq!(Action::Retry.with_priority(1).into_parts(), (Action::Retry, Some(1)));
    /// assert_eq!(Action::Success.with_priority(1).into_parts(), (Action::Success, None));
    /// ```
    #[inline]
    pub const fn into_parts(self) -> (Self, Option<u8>) {
        let extras = self.extras();
        let level = if extras & HAS_LEVEL == 0 {
            None
        } else {
            Some((extras & LEVEL_MAX) as u8)
        };
        (self.plain(), level)
    }

    /// Returns the percentage that [`with_slack`](Self::with_slack) gave the action, or zero. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::Action;
    ///
    /// assert_eq!(Action::Retry.with_slack(20).slack(), 20);
    /// assert_eq!(Action::Success.with_slack(20).slack(), 0, "it has no delay");
    /// ```
    #[inline]
    pub const fn slack(self) -> u8 {
        (self.extras() >> SLACK) as u8
    }

    /// The action without priority and slack.
    #[inline]
    const fn plain(self) -> Self {
        match self {
            Self::RetryAt(_) => Self::Retry,
            Self::RequeueAfterAt(_, delay) => Self::RequeueAfter(delay),
            Self::SnoozeAt(_, delay) => Self::Snooze(delay),
            Self::SuspendAt(_, timeout) => Self::Suspend(timeout),
            Self::PollAt(extras, min) => Self::Poll(min, extras >> TIMES),
            other => other,
        }
    }

    const fn with_extras(self, extras: u32) -> Self {
        match self {
            Self::Retry => Self::RetryAt(extras),
            Self::RequeueAfter(delay) => Self::RequeueAfterAt(extras, delay),
            Self::Snooze(delay) => Self::SnoozeAt(extras, delay),
            Self::Suspend(timeout) => Self::SuspendAt(extras, timeout),
            Self::Poll(min, times) => Self::PollAt(at_most(times) << TIMES | extras, min),
            other => other,
        }
    }

    /// Priority and slack, or zero.
    #[inline]
    const fn extras(self) -> u32 {
        match self {
            Self::RetryAt(extras)
            | Self::RequeueAfterAt(extras, _)
            | Self::SnoozeAt(extras, _)
            | Self::SuspendAt(extras, _)
            | Self::PollAt(extras, _) => extras & !(TIMES_MAX << TIMES),
            _ => 0,
        }
    }

    /// Returns whether the action itself needs the time, because the key runs again. Otherwise a
    /// runtime reads its clock only if [`Queue::needs_time`](crate::Queue::needs_time) returns
    /// true. O(1).
    #[inline]
    pub const fn needs_time(self) -> bool {
        !matches!(self, Self::Success | Self::GiveUp | Self::Release)
    }

    #[inline]
    pub(crate) const fn forgets(self) -> bool {
        matches!(self, Self::GiveUp) || self.succeeds()
    }

    #[inline]
    pub(crate) const fn succeeds(self) -> bool {
        matches!(
            self,
            Self::Success | Self::RequeueAfter(_) | Self::RequeueAfterAt(..)
        )
    }

    #[inline]
    pub(crate) const fn is_retry(self) -> bool {
        matches!(self, Self::Retry | Self::RetryAt(_))
    }

    #[inline]
    pub(crate) const fn suspends(self) -> bool {
        matches!(self, Self::Suspend(_) | Self::SuspendAt(..))
    }

    /// How many times the first pause the longest is, if the action polls.
    #[inline]
    pub(crate) const fn polls(self) -> Option<u32> {
        match self {
            Self::Poll(_, times) => Some(times),
            Self::PollAt(extras, _) => Some(extras >> TIMES),
            _ => None,
        }
    }

    /// The time that the action names.
    #[inline]
    pub(crate) const fn time(self) -> Option<Duration> {
        match self {
            Self::RequeueAfter(time)
            | Self::Snooze(time)
            | Self::Suspend(time)
            | Self::Poll(time, _)
            | Self::RequeueAfterAt(_, time)
            | Self::SnoozeAt(_, time)
            | Self::SuspendAt(_, time)
            | Self::PollAt(_, time) => Some(time),
            _ => None,
        }
    }
}

const fn at_most(times: u32) -> u32 {
    if times < TIMES_MAX { times } else { TIMES_MAX }
}

/// What a reconciler returns: `()`, an [`Action`], or a `Result` of either.
///
/// A closure whose errors all come from `?` names its type, as in `|key| -> Result<(), io::Error>`.
/// One that cannot fail returns `()` or an action, and no `Ok`.
///
/// # Examples
///
/// ```
/// use requeue::{Action, IntoAction};
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
/// use requeue::RunContext;
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
    /// use requeue::{Action, RunContext};
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Tasks keep the action of a run that has ended, and boards have little room.
    #[test]
    fn neither_a_priority_nor_a_longest_pause_takes_room() {
        #[expect(dead_code)]
        enum Plain {
            Success,
            Retry,
            RequeueAfter(Duration),
            Snooze(Duration),
        }
        // They are in padding, which there is where 64 bits are aligned to as many: on all boards.
        if align_of::<Duration>() == 8 {
            assert_eq!(size_of::<Action>(), size_of::<Plain>());
        }
    }

    #[test]
    fn priority_and_slack_keep_each_other_and_the_rest() {
        let second = Duration::from_secs(1);
        let poll = Action::Poll(second, TIMES_MAX);
        for action in [
            Action::Retry,
            Action::RequeueAfter(second),
            Action::Suspend(second),
            poll,
        ] {
            let both = action.with_priority(2).with_slack(255);
            assert_eq!(both, action.with_slack(255).with_priority(2));
            assert_eq!((both.into_parts(), both.slack()), ((action, Some(2)), 255));
            assert_eq!(
                both.with_slack(0).with_priority(0).into_parts(),
                (action, Some(0))
            );
            assert_eq!(action.with_slack(7).into_parts(), (action, None));
            assert_eq!((both.time(), both.polls()), (action.time(), action.polls()));
        }
        for done in [Action::Success, Action::GiveUp, Action::Release] {
            assert_eq!(done.with_slack(50).with_priority(1), done);
        }
    }

    #[test]
    fn the_longest_pause_is_a_multiple_of_the_first() {
        let seconds = Duration::from_secs;
        let poll = |min, max| Action::poll(seconds(min), seconds(max));
        assert_eq!(poll(1, 60), Action::Poll(seconds(1), 60));
        assert_eq!(poll(7, 60), Action::Poll(seconds(7), 8));
        assert_eq!(poll(7, 6), Action::Poll(seconds(6), 1));
        assert_eq!(poll(0, 6), Action::Poll(seconds(0), TIMES_MAX));
        let never = Action::poll(seconds(1), Duration::MAX);
        assert_eq!(never, Action::Poll(seconds(1), TIMES_MAX));
        assert_eq!(never.with_priority(255).into_parts(), (never, Some(31)));
        let more = Action::Poll(seconds(1), u32::MAX);
        assert_eq!(more.with_priority(0).into_parts(), (never, Some(0)));
    }
}
