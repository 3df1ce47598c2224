//! Those who wait for the drain: queue.go's ShutDown and ShutDownWithDrain.

use super::{Model, Rules};
use requeue_core::binding::Drained;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Drains {
    waits: Vec<Wait>,
    /// client-go's delaying queue lets only the first shutdown through.
    stopped: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Wait {
    /// client-go: the call has returned.
    returned: bool,
    /// requeue: a shutdown has ended the wait.
    interrupted: bool,
}

impl Drains {
    /// client-go's cond.Signal: the first that waits looks whether anything is active, and returns
    /// if nothing is.
    pub(super) fn signal(&mut self, nothing_active: bool) {
        let first = self.waits.iter_mut().find(|wait| !wait.returned);
        if let Some(first) = first
            && nothing_active
        {
            first.returned = true;
        }
    }

    /// client-go's cond.Broadcast, once those who look will return.
    fn all_return(&mut self) {
        self.waits.iter_mut().for_each(|wait| wait.returned = true);
    }
}

impl Model {
    pub(super) fn close(&mut self) {
        self.stop_time();
        self.drains
            .waits
            .iter_mut()
            .for_each(|wait| wait.interrupted = true);
        if !self.drains.stopped {
            self.drains.stopped = true;
            self.drains.all_return();
        }
    }

    /// Begins a wait, and returns its number.
    pub(super) fn wait_for_drain(&mut self) -> usize {
        self.stop_time();
        self.drains.waits.push(Wait::default());
        if self.processing.is_empty() {
            self.drains.all_return();
        }
        self.drains.waits.len() - 1
    }

    fn stop_time(&mut self) {
        self.arrive();
        if !self.is_shutting_down {
            self.is_shutting_down = true;
            self.paused = false;
            self.closed_at = (self.now, self.entries);
            self.review();
        }
    }

    /// Whether getters wait for dirty keys, as client-go's do not.
    pub(super) fn is_draining(&self) -> bool {
        let last = self.drains.waits.last();
        self.rules == Rules::Requeue && last.is_some_and(|wait| !wait.interrupted)
    }

    fn is_drained(&self) -> bool {
        let is_due = self.deadlines().iter().any(|entry| self.is_due(entry));
        self.processing.is_empty() && self.queue.is_empty() && !is_due
    }

    pub(super) fn drain_stands(&self, drain: usize) -> Drained {
        let wait = self.drains.waits.get(drain).copied().unwrap_or_default();
        match self.rules {
            Rules::ClientGo if wait.returned => Drained::Complete,
            Rules::ClientGo => Drained::Pending,
            _ if self.is_drained() => Drained::Complete,
            _ if wait.interrupted => Drained::Interrupted,
            Rules::Requeue | Rules::ControllerRuntime => Drained::Pending,
        }
    }
}
