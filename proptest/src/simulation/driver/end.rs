//! What is checked as time passes, and the end of a queue.

use std::time::Duration;

use requeue_core::{AddOptions, Instant, Leftover};

use super::{Breach, Property, Simulation, World};
use crate::caught::guarded;
use crate::simulation::context::after;
use crate::simulation::plan::Stop;
use crate::simulation::timeline::Who;
use crate::simulation::worker::State;

impl<W: World> Simulation<W> {
    /// After every step.
    pub(super) fn look_after(&mut self) -> Result<(), Breach> {
        self.steps += 1;
        if self.steps > self.settings.steps_max {
            let reason = format!("not quiet after {} steps", self.settings.steps_max);
            return Err(self.breach(Property::HistoryEnds, &reason));
        }
        guarded(|| self.world.borrow().always())
            .and_then(|held| held)
            .map_err(|reason| self.breach(Property::Always, &reason))
    }

    /// All that there was to do by now is done, and time moves on to `next`.
    pub(super) fn before_time_passes(&self, next: Instant) -> Result<(), Breach> {
        self.no_run_lasts(|began| next.saturating_since(began) > self.settings.run_max)
    }

    /// Nothing is left to do, ever: then all runs have ended.
    pub(in crate::simulation) fn rest(&self) -> Result<(), Breach> {
        self.no_run_lasts(|_| true)
    }

    fn no_run_lasts(&self, too_long: impl Fn(Instant) -> bool) -> Result<(), Breach> {
        for (number, worker) in self.workers.iter().enumerate() {
            if let State::Busy(run) = &worker.state
                && too_long(run.began)
            {
                let reason = format!(
                    "run {} of {:?} began at {} on worker {number} and waits for what does not come",
                    run.number, run.key, run.began
                );
                return Err(self.breach(Property::RunEnds, &reason));
            }
        }
        Ok(())
    }

    /// The queue is shut down as planned.
    pub(super) fn stops(&mut self) {
        let Some(stop) = self.stop.take() else {
            return;
        };
        let (how, limit) = match stop {
            Stop::Drain => ("it drains", self.settings.workers.drain_limit()),
            Stop::Finish => ("what runs may end", Some(Duration::ZERO)),
            Stop::Abort => ("what runs is aborted", Some(Duration::ZERO)),
            Stop::Crash => ("the process dies", None),
        };
        let what = format!("the queue is SHUT DOWN: {how}");
        self.shared.write(Who::World, None, what);
        self.closing = Some((self.shared.now(), limit));
        self.shared.shut_down();
        match stop {
            Stop::Drain | Stop::Finish => {}
            Stop::Abort => (0..self.workers.len()).for_each(|number| self.abort(number)),
            // Runs, keys, and what was remembered of them are gone.
            Stop::Crash => {
                for worker in &mut self.workers {
                    worker.state = State::Gone;
                }
                self.has_crashed = true;
                let _ = self.shared.take_refused();
            }
        }
    }

    /// Whether the queue is shut down, and all workers have gone.
    pub(in crate::simulation) fn is_over(&self) -> bool {
        let gone = |state: &State<W>| matches!(state, State::Gone);
        self.closing.is_some() && self.workers.iter().all(|worker| gone(&worker.state))
    }

    /// Takes what was not worked on.
    pub(in crate::simulation) fn handed_back(&mut self) -> Vec<Leftover<W::Key>> {
        let mut leftovers = Vec::new();
        // Each time one key less is left.
        while let Some(leftover) = self.shared.take_leftover().filter(|_| !self.has_crashed) {
            let what = match leftover.left {
                Duration::ZERO => String::from("handed back"),
                left => format!("handed back, {left:?} too early"),
            };
            self.shared.write(Who::World, Some(&leftover.key), what);
            leftovers.push(leftover);
        }
        leftovers
    }

    pub(in crate::simulation) fn succeed(&mut self, leftovers: Vec<Leftover<W::Key>>) {
        let what = "a successor starts with what was handed back";
        self.shared.write(Who::World, None, what);
        self.shared.replace_queue((self.settings.queue)());
        self.start_workers();
        let mut keys = self.shared.take_refused();
        if std::mem::take(&mut self.has_crashed) {
            keys.extend(self.world.borrow().list().unwrap_or_default());
        }
        // What a queue says of these is in the history.
        for Leftover { key, left, .. } in leftovers {
            let _ = self.shared.add(Who::World, key, after(left));
        }
        for key in keys {
            let _ = self.shared.add(Who::World, key, AddOptions::new());
        }
    }
}
