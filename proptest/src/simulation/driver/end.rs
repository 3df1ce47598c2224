//! The rules that hold for every reconciler, and the end of a queue.

use std::collections::BTreeSet;

use requeue_core::{AddOptions, Instant, Leftover};

use super::{Breach, Property, Simulation, World};
use crate::caught::guarded;
use crate::simulation::context::after;
use crate::simulation::plan::Stop;
use crate::simulation::timeline::{What, Who};
use crate::simulation::worker::State;

impl<W: World> Simulation<W> {
    /// After every step.
    pub(super) fn look_after(&mut self) -> Result<(), Breach> {
        self.steps += 1;
        if self.steps > self.settings.steps_max {
            let reason = format!("not quiet after {} steps", self.settings.steps_max);
            return Err(self.breach(Property::HistoryEnds, &reason));
        }
        self.shared.assert_valid();
        guarded(|| self.world.borrow().always())
            .and_then(|held| held)
            .map_err(|reason| self.breach(Property::Always, &reason))
    }

    /// All that there was to do by now is done, and time moves on to `next`.
    pub(super) fn before_time_passes(&self, next: Instant) -> Result<(), Breach> {
        for (number, worker) in self.workers.iter().enumerate() {
            if let State::Busy(run) = &worker.state
                && next.saturating_since(run.began) > self.settings.run_max
            {
                return Err(self.endless(number));
            }
        }
        self.no_worker_sleeps_over_a_key(next)
    }

    /// While a getter sleeps and no other is on the way, no key is to be worked on before `next`,
    /// but those that a limit holds back.
    fn no_worker_sleeps_over_a_key(&self, next: Instant) -> Result<(), Breach> {
        let Some(sleeper) = self.line.front() else {
            return Ok(());
        };
        let idle = |state: &State<W>| matches!(state, State::Idle);
        if self.workers.iter().any(|s| s.has_turn && idle(&s.state)) {
            return Ok(());
        }
        if self.drain_end().is_some_and(|end| next > end) {
            let reason = format!("worker {sleeper} sleeps on when the time for it is over");
            return Err(self.breach(Property::DrainEnds, &reason));
        }
        let ledger = self.shared.ledger.borrow();
        let holds_back = |key: &&W::Key| self.shared.holds_back(key, next);
        // One may sleep on for a key that waits until a run ends: its own, or one of its group.
        let may_sleep = ledger.is_any_dirty() || ledger.overdue(next).any(|key| holds_back(&key));
        if self.closing.is_some() && !may_sleep {
            let reason = format!("worker {sleeper} sleeps on");
            return Err(self.breach(Property::DrainEnds, &reason));
        }
        match ledger.overdue(next).find(|key| !holds_back(key)) {
            Some(key) => {
                let reason = format!("{key:?} is to be run, and worker {sleeper} sleeps");
                Err(self.breach(Property::EveryAddRuns, &reason))
            }
            None => Ok(()),
        }
    }

    /// Nothing is left to do, ever: then all runs have ended, and nothing is owed.
    pub(in crate::simulation) fn rest(&self) -> Result<(), Breach> {
        let is_busy = |number: &usize| matches!(self.workers[*number].state, State::Busy(_));
        if let Some(number) = (0..self.workers.len()).find(is_busy) {
            return Err(self.endless(number));
        }
        if self.closing.is_some() && !self.is_over() {
            return Err(self.breach(Property::DrainEnds, "there are workers that do not go"));
        }
        self.no_worker_sleeps_over_a_key(Instant::NEVER)
    }

    fn endless(&self, number: usize) -> Breach {
        let State::Busy(run) = &self.workers[number].state else {
            return self.breach(Property::RunEnds, "no run is active");
        };
        let reason = format!(
            "run {} of {:?} began at {} on worker {number} and waits for what does not come",
            run.number, run.key, run.began
        );
        self.breach(Property::RunEnds, &reason)
    }

    /// The queue is shut down as planned.
    pub(super) fn stops(&mut self) -> Result<(), Breach> {
        let Some(stop) = self.stop.take() else {
            return Ok(());
        };
        let (how, limit) = match stop {
            Stop::Drain => ("it drains", self.settings.workers.drain_limit()),
            Stop::Finish => ("what runs may end", Some(std::time::Duration::ZERO)),
            Stop::Abort => ("what runs is aborted", Some(std::time::Duration::ZERO)),
            Stop::Crash => ("the process dies", None),
        };
        self.shared.write(Who::World, None, What::ShutsDown(how));
        self.closing = Some((self.shared.now(), limit));
        self.shared.shut_down();
        match stop {
            Stop::Drain | Stop::Finish => Ok(()),
            Stop::Abort => (0..self.workers.len()).try_for_each(|number| self.abort(number)),
            Stop::Crash => self.crash(),
        }
    }

    /// Runs, keys, and what was remembered of them are gone.
    fn crash(&mut self) -> Result<(), Breach> {
        for number in 0..self.workers.len() {
            let state = std::mem::replace(&mut self.workers[number].state, State::Gone);
            guarded(|| drop(state))
                .map_err(|reason| self.breach(Property::WorldPanics, &reason))?;
        }
        self.has_crashed = true;
        let _ = self.shared.take_refused();
        let _ = self.shared.ledger.borrow_mut().close_books();
        Ok(())
    }

    /// Whether the queue is shut down, and all workers have gone.
    pub(in crate::simulation) fn is_over(&self) -> bool {
        let gone = |state: &State<W>| matches!(state, State::Gone);
        self.closing.is_some() && self.workers.iter().all(|worker| gone(&worker.state))
    }

    /// Takes what was not worked on, which is what the ledger says.
    pub(in crate::simulation) fn handed_back(&mut self) -> Result<Vec<Leftover<W::Key>>, Breach> {
        let mut leftovers = Vec::new();
        if self.has_crashed {
            return Ok(leftovers);
        }
        while let Some(leftover) = self.shared.take_leftover() {
            let what = What::HandedBack(leftover.left);
            self.shared.write(Who::World, Some(&leftover.key), what);
            leftovers.push(leftover);
            if leftovers.len() > LEFTOVERS_MAX {
                return Err(self.breach(Property::HandedBack, "there is no end to it"));
            }
        }
        if !self.shared.is_drained() {
            return Err(self.breach(
                Property::DrainEnds,
                "it is not drained, though all have gone",
            ));
        }
        let expected = self.shared.ledger.borrow_mut().close_books();
        let given: BTreeSet<_> = leftovers.iter().map(|left| left.key.clone()).collect();
        if given.len() < leftovers.len() {
            return Err(self.breach(Property::HandedBack, "a key came twice"));
        }
        match expected.difference(&given).next() {
            Some(key) => Err(self.breach(Property::HandedBack, &format!("{key:?} is lost"))),
            None => Ok(leftovers),
        }
    }

    pub(in crate::simulation) fn succeed(&mut self, leftovers: Vec<Leftover<W::Key>>) {
        self.shared.write(Who::World, None, What::Successor);
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

/// No queue of a simulation holds so many keys.
const LEFTOVERS_MAX: usize = 1_000_000;
