//! A worker's turn: it looks for a key, or goes on with its run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use requeue_core::binding::{Next, Ticket};
use requeue_core::{Action, Failure, Finished, Instant, RunContext};

use super::{Breach, Property, Simulation, World};
use crate::caught::{describe, guarded};
use crate::simulation::context::{Context, Keys};
use crate::simulation::driven::Taken;
use crate::simulation::shared::Task;
use crate::simulation::timeline::{What, Who};
use crate::simulation::worker::{Attempt, Outcome, State, Worker};

impl<W: World> Simulation<W> {
    pub(super) fn turn(&mut self, number: usize) -> Result<(), Breach> {
        self.workers[number].has_turn = false;
        match self.workers[number].state {
            State::Idle => self.look(number),
            State::Busy(_) => self.go_on(number),
            State::Gone => Ok(()),
        }
    }

    fn look(&mut self, number: usize) -> Result<(), Breach> {
        let drain_end = self.drain_end();
        let worker = &mut self.workers[number];
        if drain_end.is_some_and(|end| self.shared.now() >= end) {
            self.shared.leave(&mut worker.getter);
            self.shared.write(Who::Worker(number), None, What::TooLate);
            worker.state = State::Gone;
            return Ok(());
        }
        match self.shared.get(&mut worker.getter) {
            Next::Work(work) => {
                self.begin(number, work)?;
                self.go_on(number)
            }
            Next::Wait { until } => {
                let until = [until, drain_end].into_iter().flatten().min();
                let until = until.filter(|until| !until.is_never());
                worker.alarm = until.map(|at| self.shared.plan(at, 0, Task::Alarm(number)));
                self.line.push_back(number);
                Ok(())
            }
            Next::Closed => {
                worker.state = State::Gone;
                Ok(())
            }
        }
    }

    /// When workers take no more keys, because the drain takes too long.
    pub(super) fn drain_end(&self) -> Option<Instant> {
        let (since, limit) = self.closing?;
        Some(since + limit?)
    }

    fn begin(&mut self, number: usize, work: Taken<W::Key>) -> Result<(), Breach> {
        let Taken {
            key,
            ticket,
            failures,
            waited,
            timed_out,
        } = work;
        let who = Who::Worker(number);
        let began = self.shared.now();
        let waits = self.shared.ledger.borrow().is_suspended(&key, began);
        let begun = self.shared.ledger.borrow_mut().begins(&key, began);
        let Some(run) = begun else {
            self.shared
                .write(who, Some(&key), What::Note(String::from("gets the key")));
            let reason = format!("worker {number} got {key:?}, which is active");
            return Err(self.breach(Property::OneRunPerKey, &reason));
        };
        let attempt = failures.saturating_add(1);
        self.shared
            .write(who, Some(&key), What::Begins { run, attempt });
        if waits {
            let reason = format!("worker {number} got {key:?}, which is suspended");
            return Err(self.breach(Property::SuspendedKeysWait, &reason));
        }
        let mut context = RunContext::new(attempt);
        context.waited = waited;
        context.timed_out = timed_out;
        let workers = Rc::clone(&self.settings.workers);
        let begun = workers.begin(&key, context, &*self.shared);
        let timeout = begun.context().deadline.map(|deadline| {
            let waker = Arc::clone(&self.workers[number].bell).into();
            self.shared.plan(deadline, 0, Task::Wake(waker))
        });
        let points = Rc::new(Cell::new(0));
        let context = Context {
            world: Rc::clone(&self.world),
            keys: Keys {
                shared: Rc::clone(&self.shared),
                who,
            },
            key: key.clone(),
            run,
            timed_out,
            points: Rc::clone(&points),
        };
        let handed = key.clone();
        let future = Box::pin(async move { W::reconcile(context, handed).await });
        let run = Attempt {
            key,
            number: run,
            ticket,
            begun,
            timeout,
            began,
            polls: 0,
            points,
            future,
        };
        // Rung by a run that is over, it means nothing.
        let _ = self.workers[number].bell.has_rung();
        self.workers[number].state = State::Busy(run);
        Ok(())
    }

    fn go_on(&mut self, number: usize) -> Result<(), Breach> {
        let Worker { state, bell, .. } = &mut self.workers[number];
        let State::Busy(run) = state else {
            return Ok(());
        };
        let poll = Worker::poll(run, bell);
        if self.shared.aborts.take() {
            return self.abort(number);
        }
        match poll {
            Poll::Ready(answer) => self.end(number, answer),
            Poll::Pending if run.is_overdue(self.shared.now()) => {
                let limit = self.settings.workers.run_limit().unwrap_or_default();
                self.end(number, Err(Failure::TimedOut(limit)))
            }
            Poll::Pending if run.polls < POLLS_MAX => Ok(()),
            Poll::Pending => {
                let reason = format!(
                    "run {} of {:?} on worker {number} was polled {POLLS_MAX} times, since {}",
                    run.number, run.key, run.began
                );
                Err(self.breach(Property::RunEnds, &reason))
            }
        }
    }

    fn end(&mut self, number: usize, answer: Outcome<W>) -> Result<(), Breach> {
        let Some(run) = self.leave_run(number) else {
            return Ok(());
        };
        let who = Who::Worker(number);
        let what = match &answer {
            Ok(action) => What::Ends(format!("{action:?}")),
            Err(Failure::Error(error)) => What::Ends(format!("Err({error:?})")),
            Err(Failure::Panic(payload)) => What::Panics(describe(&**payload)),
            Err(other) => What::Ends(format!("{other:?}")),
        };
        self.shared.write(who, Some(&run.key), what);
        let workers = Rc::clone(&self.settings.workers);
        let Attempt {
            key,
            ticket,
            begun,
            future,
            ..
        } = run;
        self.drop_future(future)?;
        let action = workers.end(&key, begun, answer, &*self.shared);
        if action == Action::GiveUp {
            let note = What::Note(String::from("the key is given up"));
            self.shared.write(who, Some(&key), note);
            guarded(|| self.world.borrow_mut().gave_up(&key))
                .map_err(|reason| self.breach(Property::WorldPanics, &reason))?;
        }
        let finished = self.finish(&key, ticket, action)?;
        if finished != Finished::Idle {
            let what = What::Finished(outcome_of(finished));
            self.shared.write(who, Some(&key), what);
        }
        self.plan_turn(number);
        Ok(())
    }

    /// The run's future is dropped, and its guard with it: the key is retried.
    pub(super) fn abort(&mut self, number: usize) -> Result<(), Breach> {
        let Some(run) = self.leave_run(number) else {
            return Ok(());
        };
        let who = Who::Worker(number);
        self.shared.write(who, Some(&run.key), What::Aborted);
        self.drop_future(run.future)?;
        let finished = self.finish(&run.key, run.ticket, Action::Retry)?;
        let what = What::Finished(outcome_of(finished));
        self.shared.write(who, Some(&run.key), what);
        self.plan_turn(number);
        Ok(())
    }

    fn leave_run(&mut self, number: usize) -> Option<Attempt<W>> {
        match std::mem::replace(&mut self.workers[number].state, State::Idle) {
            State::Busy(run) => {
                if let Some(slot) = run.timeout {
                    let _ = self.shared.cancel(slot);
                }
                Some(run)
            }
            other => {
                self.workers[number].state = other;
                None
            }
        }
    }

    fn drop_future<F>(&self, future: F) -> Result<(), Breach> {
        guarded(|| drop(future)).map_err(|reason| self.breach(Property::WorldPanics, &reason))
    }

    fn finish(&mut self, key: &W::Key, ticket: Ticket, action: Action) -> Result<Finished, Breach> {
        let finished = self.shared.finish(ticket, key, action);
        if finished == Finished::Stale {
            let what = format!("{key:?}: its run had ended before");
            return Err(self.breach(Property::QueueIsValid, &what));
        }
        Ok(finished)
    }
}

fn outcome_of(finished: Finished) -> String {
    match finished {
        Finished::Idle => String::from("at rest"),
        Finished::Ready => String::from("ready again"),
        Finished::Delayed(delay) => format!("to run again after {delay:?}"),
        Finished::Suspended(delay) => format!("suspended for {delay:?} at most"),
        Finished::Leftover(delay) => format!("left over, {delay:?} too early"),
        other => format!("{other:?}"),
    }
}

/// A run that is polled so often waits for nothing: it wakes itself.
const POLLS_MAX: u32 = 10_000;
