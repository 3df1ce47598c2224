//! Delays that may become a little longer, so that one wake serves several keys.

use std::time::Duration;

use requeue_core::{Instant, Merge};

use super::Model;
use crate::subject::Key;

/// > A delay with slack is a *window*.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) opens: Instant,
    /// > Its end, `slack` later, is the key's deadline.
    pub(super) due: Instant,
}

impl Window {
    /// > A deadline without slack is a window that opens at its end.
    pub(super) fn exact(due: Instant) -> Self {
        Self { opens: due, due }
    }

    /// > The end is never `Instant::NEVER`, and a delay that never ends has no slack.
    pub(super) fn of(opens: Instant, slack: Duration) -> Self {
        if opens.is_never() {
            return Self::exact(opens);
        }
        let due = (opens + slack).as_nanos().min(u64::MAX - 1);
        let due = Instant::from_nanos(due);
        Self { opens, due }
    }

    /// > A window that opens during a hold opens when the hold ends. A window that ends during a hold
    /// > ends with the hold.
    pub(super) fn not_before(self, at: Instant) -> Self {
        Self {
            opens: self.opens.max(at),
            due: self.due.max(at),
        }
    }
}

impl Model {
    /// Lets delays have slack, or not: then it changes nothing.
    pub(crate) fn with_slack(mut self, slackens: bool) -> Self {
        self.may_slacken = slackens;
        self
    }

    /// > up to so many percent of its delay
    ///
    /// > After shutdown no queue uses it.
    pub(super) fn window_after(&self, delay: Duration, percent: u8) -> Window {
        let nanos = delay.as_nanos() * u128::from(percent) / 100;
        let nanos = match self.may_slacken && !self.is_shutting_down {
            true => u64::try_from(nanos).unwrap_or(u64::MAX),
            false => 0,
        };
        Window::of(self.now + delay, Duration::from_nanos(nanos))
    }

    /// The end of a key's window stays, and its beginning is another.
    ///
    /// > A suspended key keeps its own deadline without slack, at the end of the window
    pub(super) fn open_at(&mut self, key: Key, opens: Instant) {
        let is_exact = self.is_suspended(key);
        if let Some(entry) = self.waiting.iter_mut().find(|entry| entry.key == key) {
            entry.opens = if is_exact { entry.due } else { opens };
            self.has_windows |= entry.opens != entry.due;
        }
    }

    /// When a key may run for which `why` has named this time: once its window is open.
    pub(crate) fn opens(&self, key: Key, until: Instant) -> Instant {
        let mut deadlines = self.deadlines().into_iter();
        let own = deadlines.find(|entry| entry.key == key && entry.due == until);
        own.map_or(until, |entry| entry.opens)
    }

    /// When the window of a key opens that has one and is added for another.
    pub(super) fn opens_merged(rule: Merge, own: Instant, asked: Instant) -> Instant {
        match rule {
            Merge::Latest => own.max(asked),
            Merge::Replace => asked,
            _ => own,
        }
    }
}
