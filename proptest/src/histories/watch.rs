//! No getter sleeps while there is something to do and no other is on the way.

use requeue_core::binding::{Drained, Wake};

use super::Operation;
use super::pair::{Asleep, Check, Pair};
use crate::operation::Operate;
use crate::subject::Subject;

impl Pair {
    pub(super) fn pending_drains(&mut self) -> usize {
        let model = &mut self.model;
        let drains = self.drains.iter();
        drains
            .filter(|(_, drain)| model.drained(drain) == Drained::Pending)
            .count()
    }

    /// Every getter that has to be woken has been.
    pub(super) fn check_wakes(&mut self, op: &Operation, pending_drains: usize) -> Check {
        let Some(wake) = self.subject.wakes() else {
            return Ok(());
        };
        self.woken |= wake != Wake::NONE;
        let waits = !self.sleepers.is_empty() || pending_drains > 0;
        let closes = matches!(op, Operation::ShutDown | Operation::BeginDrain);
        if wake == Wake::ONE && self.sleepers.is_empty() {
            return Err(String::from("a call is woken, but none sleeps"));
        }
        if closes && waits && wake != Wake::ALL {
            return Err(format!(
                "the queue closes, and wakes {wake:?} of those who wait"
            ));
        }
        if !closes && self.pending_drains() < pending_drains && wake != Wake::ALL {
            return Err(format!("the queue has drained, and wakes {wake:?}"));
        }
        self.check_watch()
    }

    /// While a getter sleeps, some getter looks at whatever there is to do: one that was woken, or
    /// one whose time has come, or will come at the deadline.
    pub(super) fn check_watch(&self) -> Check {
        let mut model = self.model.clone();
        if self.sleepers.is_empty() || self.woken || model.is_paused() {
            return Ok(());
        }
        if model.is_over() {
            return Err(String::from("the queue is closed, and a call still sleeps"));
        }
        let a_getter_comes = |by| {
            let comes = |sleeper: &Asleep| sleeper.until.is_some_and(|until| until <= by);
            self.sleepers.iter().any(comes)
        };
        let asleep = self.sleepers.len();
        let now = model.now();
        if model.has_a_key_now() && !a_getter_comes(now) {
            return Err(format!("a key is ready, {asleep} sleep, and none is woken"));
        }
        // A deadline that has passed has made a key ready: one who comes now is in time.
        let due = model.next_deadline();
        match due.map(|due| due.max(model.now())) {
            Some(due) if !a_getter_comes(due) => Err(format!(
                "a key is due at {due}, {asleep} sleep, and none watches"
            )),
            _ => Ok(()),
        }
    }
}
