//! Timers: how tasks wait for a point in time. Owns the loops around an alarm. The clock decides
//! whether a deadline has passed, because an alarm may fire early.

use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};

use crate::time::{Clock, Instant};

/// A clock that tasks can wait on.
///
/// # Contract
///
/// - An alarm MUST fire once its time has come, and wake the task that polled it last. It may fire
///   early: the clock is read then, and the alarm is set again.
///
/// # Examples
///
/// A clock that does not move, whose alarms never fire:
///
/// ```
/// use core::future::Pending;
/// use core::pin::Pin;
/// use requeue::Instant;
/// use requeue::binding::{Clock, Timer};
///
/// struct Stopped;
///
/// impl Clock for Stopped {
///     fn now(&self) -> Instant {
///         Instant::EPOCH
///     }
/// }
///
/// impl Timer for Stopped {
///     type Alarm = Pending<()>;
///
///     fn set_alarm(&self, mut alarm: Pin<&mut Option<Pending<()>>>, until: Option<Instant>) {
///         alarm.set(until.map(|_| core::future::pending()));
///     }
/// }
/// # let mut alarm = core::pin::pin!(None);
/// # Stopped.set_alarm(alarm.as_mut(), Some(Stopped.now()));
/// # assert!(alarm.is_some());
/// ```
pub trait Timer: Clock {
    /// A future that ends when the alarm fires.
    type Alarm: Future<Output = ()>;

    /// Sets an alarm for `until`, or clears it if `until` is `None`. An alarm that is already set
    /// for that time SHOULD be left as it is.
    fn set_alarm(&self, alarm: Pin<&mut Option<Self::Alarm>>, until: Option<Instant>);

    /// Polls a call that waits for a queue, if the task may run. By default it always may.
    ///
    /// A runtime with a budget per task charges the budget if the call is ready, and returns
    /// [`Poll::Pending`] without a poll once the budget is used up. Otherwise a task that finds a
    /// key at every `get` does not let other tasks run.
    #[inline]
    fn in_turn<T>(
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        poll(context)
    }
}

impl<C: Timer> Timer for &C {
    type Alarm = C::Alarm;

    fn set_alarm(&self, alarm: Pin<&mut Option<C::Alarm>>, until: Option<Instant>) {
        (**self).set_alarm(alarm, until);
    }

    #[inline]
    fn in_turn<T>(
        context: &mut Context<'_>,
        poll: impl FnOnce(&mut Context<'_>) -> Poll<T>,
    ) -> Poll<T> {
        C::in_turn(context, poll)
    }
}

/// Waits until `due` has come, for ever if it is [`Instant::NEVER`].
///
/// # Cancel safety
///
/// The future may be dropped at any time.
///
/// # Examples
///
/// ```
/// # use core::future::Pending;
/// # use core::pin::Pin;
/// use requeue::Instant;
/// use requeue::binding::{Clock, Timer, sleep_until};
/// # struct Stopped;
/// # impl Clock for Stopped { fn now(&self) -> Instant { Instant::EPOCH } }
/// # impl Timer for Stopped {
/// #     type Alarm = Pending<()>;
/// #     fn set_alarm(&self, mut alarm: Pin<&mut Option<Pending<()>>>, until: Option<Instant>) {
/// #         alarm.set(until.map(|_| core::future::pending()));
/// #     }
/// # }
///
/// async fn pause(clock: &impl Timer) {
///     sleep_until(clock, clock.now()).await;
/// }
/// # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
/// # assert!(core::pin::pin!(pause(&Stopped)).poll(&mut context).is_ready());
/// ```
pub async fn sleep_until(clock: &impl Timer, due: Instant) {
    let mut alarm = pin!(None);
    poll_fn(|context| {
        while clock.now() < due {
            let until = Some(due).filter(|due| !due.is_never());
            clock.set_alarm(alarm.as_mut(), until);
            if fire(alarm.as_mut(), context).is_pending() {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    })
    .await;
}

/// Runs `work` until `deadline`, for ever if there is none or if it is [`Instant::NEVER`]. Returns
/// `None` if the deadline comes first: then `work` has been dropped.
///
/// Work that ends when it is polled counts, however late that is. So a deadline that has passed
/// still lets it run until it waits for the first time.
///
/// # Cancel safety
///
/// That of `work`.
///
/// # Examples
///
/// ```
/// # use core::future::Pending;
/// # use core::pin::Pin;
/// use core::future::pending;
/// use requeue::Instant;
/// use requeue::binding::{Clock, Timer, timeout_at};
/// # struct Stopped;
/// # impl Clock for Stopped { fn now(&self) -> Instant { Instant::EPOCH } }
/// # impl Timer for Stopped {
/// #     type Alarm = Pending<()>;
/// #     fn set_alarm(&self, mut alarm: Pin<&mut Option<Pending<()>>>, until: Option<Instant>) {
/// #         alarm.set(until.map(|_| core::future::pending()));
/// #     }
/// # }
///
/// async fn ask(clock: &impl Timer) -> Option<u8> {
///     timeout_at(clock, Some(clock.now()), pending()).await
/// }
/// # let mut context = core::task::Context::from_waker(core::task::Waker::noop());
/// # let asked = core::pin::pin!(ask(&Stopped)).poll(&mut context);
/// # assert_eq!(asked, core::task::Poll::Ready(None));
/// ```
pub async fn timeout_at<F: Future>(
    clock: &impl Timer,
    deadline: Option<Instant>,
    work: F,
) -> Option<F::Output> {
    let mut work = pin!(work);
    let Some(due) = deadline.filter(|due| !due.is_never()) else {
        return Some(work.await);
    };
    let mut late = pin!(sleep_until(clock, due));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(value) => Poll::Ready(Some(value)),
        Poll::Pending => late.as_mut().poll(context).map(|()| None),
    })
    .await
}

/// Polls an alarm, if it is set, and clears it once it has fired.
pub(crate) fn fire<A: Future<Output = ()>>(
    mut alarm: Pin<&mut Option<A>>,
    context: &mut Context<'_>,
) -> Poll<()> {
    let Some(set) = alarm.as_mut().as_pin_mut() else {
        return Poll::Pending;
    };
    let rung = set.poll(context);
    if rung.is_ready() {
        alarm.set(None);
    }
    rung
}
