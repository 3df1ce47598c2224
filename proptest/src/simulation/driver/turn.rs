//! A worker's turn: it looks for a key, or goes on with its run.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use requeue_core::binding::{Next, Ticket, Work};
use requeue_core::{Action, Failure, Finished, Instant, RunContext};

use super::{Breach, Property, Simulation, World};
use crate::caught::describe;
use crate::simulation::context::{Context, Keys};
use crate::simulation::shared::Task;
use crate::simulation::timeline::Who;
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
            let what = "too late to begin with a key: the worker goes";
            self.shared.write(Who::Worker(number), None, what);
            worker.state = State::Gone;
            return Ok(());
        }
        match self.shared.get(&mut worker.getter) {
            Next::Work(work) => {
                self.begin(number, work);
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

    fn begin(&mut self, number: usize, work: Work<W::Key>) {
        let Work {
            key,
            ticket,
            failures,
            waited,
            timed_out,
            ..
        } = work;
        let (who, began) = (Who::Worker(number), self.shared.now());
        let run = self.shared.begin(&key);
        let attempt = failures.saturating_add(1);
        let what = match attempt {
            1 => format!("run {run} begins"),
            _ => format!("run {run} begins, attempt {attempt}"),
        };
        self.shared.write(who, Some(&key), what);
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
    }

    fn go_on(&mut self, number: usize) -> Result<(), Breach> {
        let Worker { state, bell, .. } = &mut self.workers[number];
        let State::Busy(run) = state else {
            return Ok(());
        };
        let poll = Worker::poll(run, bell);
        if self.shared.aborts.take() {
            self.abort(number);
            return Ok(());
        }
        match poll {
            Poll::Ready(answer) => self.end(number, answer),
            Poll::Pending if run.is_overdue(self.shared.now()) => {
                let limit = self.settings.workers.run_limit().unwrap_or_default();
                self.end(number, Err(Failure::TimedOut(limit)));
            }
            Poll::Pending if run.polls < POLLS_MAX => {}
            Poll::Pending => {
                let reason = format!(
                    "run {} of {:?} on worker {number} was polled {POLLS_MAX} times, since {}",
                    run.number, run.key, run.began
                );
                return Err(self.breach(Property::RunEnds, &reason));
            }
        }
        Ok(())
    }

    fn end(&mut self, number: usize, answer: Outcome<W>) {
        let Some(run) = self.leave_run(number) else {
            return;
        };
        let who = Who::Worker(number);
        let what = match &answer {
            Ok(action) => format!("run ends: {action:?}"),
            Err(Failure::Error(error)) => format!("run ends: Err({error:?})"),
            Err(Failure::Panic(payload)) => format!("run PANICS: {}", describe(&**payload)),
            Err(other) => format!("run ends: {other:?}"),
        };
        self.shared.write(who, Some(&run.key), what);
        let workers = Rc::clone(&self.settings.workers);
        drop(run.future);
        let action = workers.end(&run.key, run.begun, answer, &*self.shared);
        if action == Action::GiveUp {
            self.shared
                .write(who, Some(&run.key), "the key is given up");
            self.world.borrow_mut().gave_up(&run.key);
        }
        self.finish(number, &run.key, run.ticket, action);
    }

    /// The run's future is dropped, and its guard with it: the key is retried.
    pub(super) fn abort(&mut self, number: usize) {
        if let Some(run) = self.leave_run(number) {
            let what = "run is ABORTED, its future dropped";
            self.shared.write(Who::Worker(number), Some(&run.key), what);
            drop(run.future);
            self.finish(number, &run.key, run.ticket, Action::Retry);
        }
    }

    fn finish(&mut self, number: usize, key: &W::Key, ticket: Ticket, action: Action) {
        let finished = self.shared.finish(ticket, action);
        if finished != Finished::Idle {
            let what = format!("the key is {}", outcome_of(finished));
            self.shared.write(Who::Worker(number), Some(key), what);
        }
        self.plan_turn(number);
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
}

fn outcome_of(finished: Finished) -> String {
    match finished {
        Finished::Ready => String::from("ready again"),
        Finished::Delayed(delay) => format!("to run again after {delay:?}"),
        Finished::Suspended(delay) => format!("suspended for {delay:?} at most"),
        Finished::Leftover(delay) => format!("left over, {delay:?} too early"),
        other => format!("{other:?}"),
    }
}

/// A run that is polled so often waits for nothing: it wakes itself.
const POLLS_MAX: u32 = 10_000;
