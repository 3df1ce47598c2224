//! The state machine itself: core's `Queue`, with the time handed in.

use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::{Sweep, Wake};
use requeue_core::metrics::Metrics;
use requeue_core::storage::Storage;

use super::apply::{Access, Home, Keys, Kind};
use super::held::Held;
use super::{Abilities, Answer, Configuration, Operation, Subject};
use crate::Figures;

/// core's `Queue` with priorities `P`, storage `S` and metrics `M`, for at most `MAX` keys if `S`
/// grows.
///
/// Without metrics the time handed in is nonsense wherever the queue says that it does not need it.
pub struct Direct<P: Kind, S: Storage, M: Metrics = Figures, const MAX: usize = { usize::MAX }> {
    pub(super) queue: Keys<P, S, M>,
    pub(super) due_keys_max: u8,
    now: Instant,
    wake: Wake,
    nonsense: bool,
    pub(super) held: Held,
}

impl<P: Kind, S: Storage, M: Metrics, const MAX: usize> Direct<P, S, M, MAX> {
    /// The time, or anything if it does not matter.
    fn any_time(&mut self) -> Instant {
        if self.queue.needs_time() {
            return self.now;
        }
        self.nonsense = !self.nonsense;
        if self.nonsense {
            Instant::NEVER
        } else {
            Instant::EPOCH
        }
    }

    /// An operation that reads the clock, or one that need not. Records which getters it wakes.
    pub(super) fn with<T>(
        &mut self,
        is_timed: bool,
        work: impl FnOnce(&mut Access<'_, P, S, M>) -> T,
    ) -> T {
        let now = if is_timed { self.now } else { self.any_time() };
        let mut session = self.queue.at(now);
        let value = work(&mut session);
        self.wake = self.wake | session.close();
        value
    }

    /// Steps, until one was the last.
    pub(super) fn swept(
        &mut self,
        mut step: impl FnMut(&mut Access<'_, P, S, M>, &mut Sweep) -> bool,
    ) -> Sweep {
        let mut sweep = Sweep::new();
        while self.with(false, |session| step(session, &mut sweep)) {}
        sweep
    }
}

impl<P: Kind, S: Home, M: Metrics + Default + 'static, const MAX: usize> Subject
    for Direct<P, S, M, MAX>
{
    fn new(setup: &Configuration) -> Self {
        Self {
            queue: S::build(&setup.for_at_most(MAX), M::default()),
            due_keys_max: setup.due_keys_max,
            now: Instant::EPOCH,
            wake: Wake::NONE,
            nonsense: false,
            held: Held::default(),
        }
    }

    fn capacity(&self) -> Option<usize> {
        self.queue.stats().max_keys
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            due_keys_max: Some(self.due_keys_max),
            ..S::abilities::<P>()
        }
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        match operation {
            Operation::Rewind(by) => {
                self.now = Instant::EPOCH + self.now.saturating_since(Instant::EPOCH + *by);
                Answer::Done
            }
            other => self.answer(other),
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        Figures::of(self.queue.metrics())
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    fn asleep(&mut self) -> Option<usize> {
        Some(self.queue.asleep())
    }

    fn wakes(&mut self) -> Option<Wake> {
        Some(std::mem::take(&mut self.wake))
    }

    fn assert_valid(&mut self) {
        self.queue.assert_valid();
    }
}
