//! A worker's turn: it looks for a key, or goes on with its run.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use requeue_core::{Completion, Failure, Finished, Next, Ticket};

use super::{Breach, Rule, Simulation, World};
use crate::caught::{guarded, told};
use crate::simulation::context::{Context, Keys};
use crate::simulation::driven::Taken;
use crate::simulation::hub::Task;
use crate::simulation::seat::{Answer, Run, Seat, State};
use crate::simulation::story::{What, Who};

impl<W: World> Simulation<W> {
    pub(super) fn turn(&mut self, number: usize) -> Result<(), Breach> {
        self.seats[number].has_turn = false;
        match self.seats[number].state {
            State::Idle => self.look(number),
            State::Busy(_) => self.go_on(number),
            State::Gone => Ok(()),
        }
    }

    fn look(&mut self, number: usize) -> Result<(), Breach> {
        let is_too_late = self.is_too_late();
        let seat = &mut self.seats[number];
        match self.hub.get(&mut seat.getter) {
            Next::Work(work) if is_too_late => {
                let Taken { key, ticket, .. } = work;
                let who = Who::Worker(number);
                self.hub.write(who, Some(&key), What::TooLate);
                seat.state = State::Gone;
                self.complete(&key, ticket, Completion::RetryAfter(Duration::ZERO))?;
                Ok(())
            }
            Next::Work(work) => {
                self.begin(number, work)?;
                self.go_on(number)
            }
            Next::Wait { until } => {
                let until = until.filter(|until| !until.is_never());
                seat.alarm = until.map(|at| self.hub.plan(at, 0, Task::Alarm(number)));
                self.line.push_back(number);
                Ok(())
            }
            Next::Closed => {
                seat.state = State::Gone;
                Ok(())
            }
        }
    }

    fn is_too_late(&self) -> bool {
        match self.closing {
            Some((since, Some(limit))) => self.hub.now() >= since + limit,
            _ => false,
        }
    }

    fn begin(&mut self, number: usize, work: Taken<W::Key>) -> Result<(), Breach> {
        let Taken {
            key,
            ticket,
            requeues,
            waited,
        } = work;
        let who = Who::Worker(number);
        let began = self.hub.now();
        let begun = self.hub.ledger.borrow_mut().begins(&key, began);
        let Some(run) = begun else {
            self.hub
                .write(who, Some(&key), What::Note(String::from("gets the key")));
            let reason = format!("worker {number} got {key:?}, which is in work");
            return Err(self.breach(Rule::OneRunPerKey, &reason));
        };
        let attempt = requeues.saturating_add(1);
        self.hub
            .write(who, Some(&key), What::Begins { run, attempt });
        let span = self.settings.workers.span(&key, attempt, waited);
        let points = Rc::new(Cell::new(0));
        let context = Context {
            world: Rc::clone(&self.world),
            keys: Keys {
                hub: Rc::clone(&self.hub),
                who,
            },
            key: key.clone(),
            run,
            points: Rc::clone(&points),
        };
        let handed = key.clone();
        let future = Box::pin(async move { W::reconcile(context, handed).await });
        let run = Run {
            key,
            number: run,
            ticket,
            requeues,
            span,
            began,
            polls: 0,
            points,
            future,
        };
        // Rung by a run that is over, it means nothing.
        let _ = self.seats[number].bell.has_rung();
        self.seats[number].state = State::Busy(run);
        Ok(())
    }

    fn go_on(&mut self, number: usize) -> Result<(), Breach> {
        let Seat { state, bell, .. } = &mut self.seats[number];
        let State::Busy(run) = state else {
            return Ok(());
        };
        let poll = Seat::poll(run, bell);
        if self.hub.aborts.take() {
            return self.abort(number);
        }
        match poll {
            Poll::Ready(answer) => self.end(number, answer),
            Poll::Pending if run.polls < POLLS_MAX => Ok(()),
            Poll::Pending => {
                let reason = format!(
                    "run {} of {:?} on worker {number} was polled {POLLS_MAX} times, since {}",
                    run.number, run.key, run.began
                );
                Err(self.breach(Rule::RunEnds, &reason))
            }
        }
    }

    fn end(&mut self, number: usize, answer: Answer<W>) -> Result<(), Breach> {
        let Some(run) = self.leave_run(number) else {
            return Ok(());
        };
        let who = Who::Worker(number);
        let told = match &answer {
            Ok(action) => What::Ends(format!("{action:?}")),
            Err(Failure::Error(error)) => What::Ends(format!("Err({error:?})")),
            Err(Failure::Panic(payload)) => What::Panics(told(&**payload)),
        };
        self.hub.write(who, Some(&run.key), told);
        let has_failed = answer.is_err();
        let workers = Rc::clone(&self.settings.workers);
        let Run {
            key,
            ticket,
            requeues,
            span,
            future,
            ..
        } = run;
        self.drop_future(future)?;
        // As the runtimes do it: a hook that panics must not take the key with it.
        let judged = guarded(|| workers.judge(&key, requeues, answer, span));
        let completion = judged.unwrap_or(Completion::Succeeded);
        if has_failed && completion == Completion::Succeeded {
            let note = What::Note(String::from("the key is given up"));
            self.hub.write(who, Some(&key), note);
            guarded(|| self.world.borrow_mut().gave_up(&key))
                .map_err(|reason| self.breach(Rule::WorldPanics, &reason))?;
        }
        let finished = self.complete(&key, ticket, completion)?;
        if finished != Finished::Idle {
            let what = What::Finished(told_of(finished));
            self.hub.write(who, Some(&key), what);
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
        self.hub.write(who, Some(&run.key), What::Aborted);
        self.drop_future(run.future)?;
        let finished = self.complete(&run.key, run.ticket, Completion::Retry)?;
        let what = What::Finished(told_of(finished));
        self.hub.write(who, Some(&run.key), what);
        self.plan_turn(number);
        Ok(())
    }

    fn leave_run(&mut self, number: usize) -> Option<Run<W>> {
        match std::mem::replace(&mut self.seats[number].state, State::Idle) {
            State::Busy(run) => Some(run),
            other => {
                self.seats[number].state = other;
                None
            }
        }
    }

    fn drop_future<F>(&self, future: F) -> Result<(), Breach> {
        guarded(|| drop(future)).map_err(|reason| self.breach(Rule::WorldPanics, &reason))
    }

    fn complete(
        &mut self,
        key: &W::Key,
        ticket: Ticket,
        completion: Completion,
    ) -> Result<Finished, Breach> {
        let finished = self.hub.complete(ticket, key, completion);
        finished.map_err(|error| self.breach(Rule::QueueIsValid, &format!("{key:?}: {error}")))
    }
}

fn told_of(finished: Finished) -> String {
    match finished {
        Finished::Idle => String::from("at rest"),
        Finished::Ready => String::from("ready again"),
        Finished::Delayed(delay) => format!("to run again after {delay:?}"),
        Finished::Leftover(delay) => format!("left over, {delay:?} too early"),
        other => format!("{other:?}"),
    }
}

/// A run that is polled so often waits for nothing: it wakes itself.
const POLLS_MAX: u32 = 10_000;
