//! Delays with slack: the windows in which keys may run, and how two windows of a key merge. All of
//! this is dead code in a queue without slack.

use crate::options::Merge;
use crate::time::nanos;

use super::*;

/// A [`Storage`] with room for the slack of delays: the bound of a function that takes any such
/// queue. `Growable` has it, and [`Fixed`](crate::storage::Fixed) with
/// [`WithSlack`](crate::priority::WithSlack).
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::binding::Slackens;
/// use requeue::limiter::NoLimit;
/// use requeue::priority::{Priorities, WithSlack};
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
///
/// fn read_later<P: Priorities, S: Slackens<P>>(queue: &mut Queue<u16, P, NoLimit, S>, sensor: u16) {
///     let (minute, slack) = (Duration::from_secs(60), Duration::from_secs(6));
///     let _ = queue.at(Instant::EPOCH).add_within(sensor, minute, slack);
/// }
///
/// let mut queue: Queue<u16, WithSlack, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// read_later(&mut queue, 17);
/// assert_eq!(queue.stats().delayed, 1);
/// ```
#[diagnostic::on_unimplemented(
    message = "this queue has no room for the slack of a delay",
    label = "the delays of this queue are exact",
    note = "put `WithSlack` into the queue's type, as in `Queue<u16, WithSlack, L, Fixed<8>>`, or \
            call `add_after`"
)]
pub trait Slackens<P: Priorities>: Storage<Nodes<P>: Nodes<Slack = u64>> {}

#[diagnostic::do_not_recommend]
impl<P: Priorities, S: Storage<Nodes<P>: Nodes<Slack = u64>>> Slackens<P> for S {}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    /// The window of a delay that may become longer by so many percent. Exact in a queue without
    /// slack, and after shutdown.
    #[inline]
    pub(super) fn window_after(&self, delay: Duration, percent: u8, now: Instant) -> Window<P, S> {
        let opens = now + delay;
        if !SlackOf::<P, S>::EXISTS || percent == 0 || self.closed {
            return Window::<P, S>::exact(opens);
        }
        let (nanos, percent) = (nanos(delay), u64::from(percent));
        let slack = (nanos / 100).saturating_mul(percent);
        let slack = slack.saturating_add(nanos % 100 * percent / 100);
        Window::<P, S>::from(opens, slack)
    }

    /// The own window of a key, not that of its suspension.
    fn own_window(&self, id: SlotId) -> Option<Window<P, S>> {
        if self.is_suspended(id) {
            return self.deadline(id).map(Window::<P, S>::exact);
        }
        self.delays.window(id)
    }

    /// The window of a key that has one and is added for another, under `Latest` or `Replace`.
    pub(super) fn merged(&self, id: SlotId, rule: Merge, asked: Window<P, S>) -> Window<P, S> {
        if !SlackOf::<P, S>::EXISTS || rule != Merge::Latest {
            return asked;
        }
        self.own_window(id).map_or(asked, |own| own.later(asked))
    }

    /// Changes the beginning of a key's own window, whose end stays.
    pub(super) fn open_at(&mut self, id: SlotId, opens: Instant) {
        if SlackOf::<P, S>::EXISTS && !self.is_suspended(id) {
            self.delays.open_at(id, opens);
        }
    }

    /// The part of a key's window before the end of its hold goes. The end of the window is later.
    #[inline]
    pub(super) fn open_after_hold(&mut self, id: SlotId, held: Instant) {
        if self.delays.has_slack()
            && let Some(due) = self.delays.due(id)
            && self.delays.opens(id, due) < held
        {
            self.delays.open_at(id, held);
        }
    }
}
