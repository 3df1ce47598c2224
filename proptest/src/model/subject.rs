//! The model behind the interface of those that are tested against it.

use std::time::Duration;

use requeue_core::binding::{Next, Wake};
use requeue_core::{Action, Added, AddedMany, Finished, Instant, KeyState, Rejected, Stats};

use super::slack::Window;
use super::{Model, Rules, Waiting, remove};
use crate::Figures;
use crate::operation::{Answer, Drain, Handed, Key, Operation, Run};
use crate::subject::{Abilities, Configuration, Subject};

impl Model {
    fn look(&mut self) -> Next<Handed> {
        match self.take() {
            Some(handed) => Next::Work(handed),
            None if self.is_over() => Next::Closed,
            None => Next::Wait {
                until: self.next_look(),
            },
        }
    }

    fn look_for_many(&mut self, max: usize) -> Next<Vec<Handed>> {
        let first = match self.look() {
            Next::Work(handed) => handed,
            Next::Wait { until } => return Next::Wait { until },
            Next::Closed => return Next::Closed,
        };
        let more = std::iter::from_fn(|| self.take());
        Next::Work([first].into_iter().chain(more).take(max.max(1)).collect())
    }

    fn finish_run(&mut self, run: Run, action: Action) -> Finished {
        match run {
            Run::Of(ticket) => self.complete_run(ticket, action),
            Run::Pick(_) => Finished::Stale,
        }
    }

    /// A worker takes the first ready key, and completes its run before the test has seen it.
    pub(crate) fn work_unseen(&mut self, action: Action) -> Option<(Key, Finished)> {
        let Handed { key, ticket, .. } = self.get()?;
        let finished = self.complete_run(ticket, action);
        remove(&mut self.last_run, key);
        self.last_run.push((key, ticket.run - 1));
        Some((key, finished))
    }

    fn add_all(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        let (mut many, mut rejected) = (AddedMany::default(), Vec::new());
        for &key in keys {
            match self.add_key(key) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(Added::Delayed | Added::Sooner) => many.delayed += 1,
                Ok(_) => many.coalesced += 1,
                Err(refused) => {
                    many.rejected += 1;
                    rejected.push(refused);
                }
            }
        }
        (many, rejected)
    }

    fn see_all(&self) -> Vec<(Key, KeyState)> {
        // It shows what is due as ready, and changes nothing.
        let mut seen = self.clone();
        while seen.release(usize::MAX) {}
        for key in seen.held_keys() {
            // "A snapshot shows a key with an open window as ready."
            while seen.release_own(key) {}
        }
        let keys = seen.held_keys().into_iter();
        keys.flat_map(|key| Some((key, seen.know(key)?))).collect()
    }

    fn count_all(&self) -> Stats {
        let mut stats = Stats::default();
        stats.total = self.held();
        stats.ready = self.queue.len();
        stats.active = self.processing.len();
        stats.dirty = self.dirty_len();
        stats.delayed = self.deadlines().len() - self.suspended.len();
        stats.suspended = self.suspended.len();
        stats.failure_records = self.records.len();
        stats.max_keys = self.capacity;
        stats.next_deadline = self.next_deadline();
        stats.paused = self.paused;
        stats.shutting_down = self.is_shutting_down;
        stats
    }

    fn keeps_up(&mut self, ready_max: Duration, run_max: Duration) -> bool {
        self.arrive();
        let since = |at: Instant| self.now.saturating_since(at);
        let level = |key: &Key| self.queued_at.iter().find(|(it, _)| it == key);
        let is_first = |(place, key): &(usize, &Key)| {
            let before = self.queue[..*place].iter();
            before
                .clone()
                .all(|it| level(it).map(|it| it.1) != level(key).map(|it| it.1))
        };
        let firsts = self.queue.iter().enumerate().filter(is_first);
        let mut waited = firsts.filter_map(|(_, key)| self.added.iter().find(|it| it.0 == *key));
        let mut runs = self.started.iter();
        let is_late = |it: &Waiting| !self.is_shutting_down && since(it.due) > ready_max;
        self.keeps_times
            && waited.all(|(_, at)| since(*at) <= ready_max)
            && runs.all(|(_, at)| since(*at) <= run_max)
            && !self.deadlines().iter().any(is_late)
    }

    /// metrics.go, updateUnfinishedWork: not while shutting down.
    fn report_gauges(&mut self) {
        if self.is_shutting_down {
            return;
        }
        self.arrive();
        let now = self.now;
        let ages = self.started.iter().map(|(_, at)| now.saturating_since(*at));
        let sum = ages.clone().fold(Duration::ZERO, Duration::saturating_add);
        self.figures.unfinished = sum;
        self.figures.longest = ages.max().unwrap_or_default();
        self.figures.reports += 1;
    }
}

impl Subject for Model {
    fn new(setup: &Configuration) -> Self {
        let capacity = (setup.max_keys < usize::MAX).then_some(setup.max_keys);
        Self::new(Rules::Requeue, setup, capacity).with_levels(32)
    }

    fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    fn abilities(&self) -> Abilities {
        Abilities {
            levels: self.levels,
            groups: self.groups.is_some(),
            ages: true,
            limits_keys: true,
            ..Abilities::default()
        }
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        match *operation {
            Operation::Add(key) => Answer::Added(self.add_key(key)),
            Operation::AddAfter(key, delay) => {
                Answer::Added(self.add_later(key, Window::exact(self.now + delay)))
            }
            Operation::AddWithin(key, delay, slack) => {
                let window = Window::of(self.now + delay, slack);
                Answer::Added(self.add_later(key, window))
            }
            Operation::AddAt(key, due) => Answer::Added(self.add_later(key, Window::exact(due))),
            Operation::AddRateLimited(key) => Answer::Scheduled(self.retry(key)),
            Operation::AddWith(key, options) => Answer::Scheduled(self.add_as(key, options)),
            Operation::AddDisplacing(key, options) => {
                Answer::Displaced(self.add_instead(key, options))
            }
            Operation::AddDebounced(key, quiet, max) => {
                Answer::Added(self.debounce(key, quiet, max))
            }
            Operation::AddMany(ref keys) => {
                let (many, rejected) = self.add_all(keys);
                Answer::AddedMany(many, rejected)
            }
            Operation::Restore(left) => Answer::Restored(self.take_over(left)),
            Operation::Forget(key) => {
                if self.has_suspended {
                    self.arrive_at(key);
                }
                Answer::Count(self.forget_key(key) as usize)
            }
            Operation::CancelKey(key) => Answer::State(self.take_back(key)),
            Operation::CancelDelay(key) => Answer::Due(self.take_delay_back(key)),
            Operation::Expedite(key) => Answer::Is(self.end_delay(key)),
            Operation::ExpediteAll => {
                self.end_all_delays();
                Answer::Done
            }
            Operation::RetainBelow(key) => Answer::Count(self.take_back_from(key)),
            Operation::Pause => {
                self.paused = !self.is_shutting_down;
                Answer::Done
            }
            Operation::Unpause => {
                self.paused = false;
                Answer::Done
            }
            Operation::Suspend(key, timeout) => {
                Answer::Is(self.suspend_key(key, self.now + timeout))
            }
            Operation::Resume(key) => Answer::Is(self.resume_key(key)),
            Operation::Order(ref order) => {
                self.change_groups(order);
                Answer::Done
            }
            Operation::AgeAfter(after) => {
                self.age_limit = after;
                Answer::Done
            }
            Operation::LimitKeys(keys) => {
                self.capacity = (keys < usize::MAX).then_some(keys);
                self.settle();
                Answer::Done
            }
            Operation::LimitFailureRecords(keys) => {
                self.failure_records_max = keys;
                self.settle();
                Answer::Done
            }
            Operation::LimitDueKeys(keys) => {
                self.due_keys_max = Some(keys);
                Answer::Done
            }
            Operation::SetPolicy(ref policy) => {
                self.policy = policy.build();
                self.has_held |= self.policy.holds();
                Answer::Done
            }
            Operation::TryGet => Answer::Work(self.take()),
            Operation::Get(_) => Answer::Next(self.look()),
            Operation::GetMany(max, _) => Answer::NextMany(self.look_for_many(max)),
            Operation::Next(run, action, _) => {
                let finished = self.finish_run(run, action);
                Answer::Turn(finished, self.look())
            }
            Operation::Leave(_) => Answer::Done,
            Operation::DoneKey(key) => Answer::Finished(self.complete_by_name(key)),
            Operation::Done(run) => Answer::Finished(self.finish_run(run, Action::Release)),
            Operation::Complete(run, action) => Answer::Finished(self.finish_run(run, action)),
            Operation::CompleteMany(ref runs, action) => {
                let ends = runs.iter().map(|run| self.finish_run(*run, action));
                Answer::Count(ends.filter(|end| *end == Finished::Stale).count())
            }
            Operation::PanicAtWork => {
                let given_back = self.work_unseen(Action::Retry);
                debug_assert!(given_back.is_none_or(|(_, end)| end != Finished::Stale));
                Answer::Is(true)
            }
            Operation::PanicUnderLock => Answer::Is(false),
            Operation::ReportRunning => {
                self.report_gauges();
                Answer::Done
            }
            Operation::ShutDown => {
                self.close();
                Answer::Done
            }
            Operation::BeginDrain => Answer::Drain(Drain(self.wait_for_drain())),
            Operation::Drained(Drain(number)) => Answer::Drained(self.drain_stands(number)),
            Operation::TakeDelayed => Answer::Left(self.pop_delayed()),
            Operation::TakeReady => Answer::Left(self.pop_ready()),
            Operation::Len => {
                self.release_all();
                Answer::Count(self.queue.len())
            }
            Operation::Snapshot => Answer::Snapshot(self.see_all()),
            Operation::State(key) => {
                self.arrive_at(key);
                Answer::State(self.know(key))
            }
            Operation::Contains(key) => Answer::Is(self.has_work(key)),
            Operation::Failures(key) => Answer::Count(self.failures_of(key) as usize),
            Operation::Why(key) => {
                self.arrive_at(key);
                Answer::Why(self.reason(key))
            }
            Operation::Stats => Answer::Stats(self.count_all()),
            Operation::Group(group) => Answer::Group(self.group_figures(group)),
            Operation::IsPaused => Answer::Is(self.paused),
            Operation::IsIdle => {
                self.arrive();
                Answer::Is(self.processing.is_empty() && self.queue.is_empty())
            }
            Operation::IsSettled => Answer::Is(
                self.processing.is_empty() && self.dirty.is_empty() && self.deadlines().is_empty(),
            ),
            Operation::IsShuttingDown => Answer::Is(self.is_shutting_down),
            Operation::NextLook => Answer::Look(match self.clone().look() {
                Next::Work(_) => Next::Work(()),
                Next::Wait { until } => Next::Wait { until },
                Next::Closed => Next::Closed,
            }),
            Operation::IsWithin(..) if self.groups.is_some() => Answer::Lacking,
            Operation::IsWithin(ready_max, run_max) => {
                Answer::Is(self.keeps_up(ready_max, run_max))
            }
            _ => Answer::Lacking,
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        Some(Figures {
            depths: self.depths(),
            ..self.figures.clone()
        })
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        if self.due_keys_max.is_none() && !self.is_shutting_down {
            // No operation looks: a window may be open, and its key waits.
            self.is_looking = false;
            self.release(usize::MAX);
            self.is_looking = true;
        }
    }

    fn asleep(&mut self) -> Option<usize> {
        None
    }

    fn wakes(&mut self) -> Option<Wake> {
        None
    }

    /// queue.go's comments on its three fields, and what follows from them.
    fn assert_valid(&mut self) {
        if self.has_duplicates {
            return;
        }
        for (place, key) in self.queue.iter().enumerate() {
            assert!(self.dirty.contains(key), "every queued key is dirty");
            let is_active = self.processing.contains(key);
            let may_be = self.rules == Rules::ControllerRuntime;
            assert!(!is_active || may_be, "and not active");
            assert!(!self.queue[..place].contains(key), "and queued once");
        }
        let depth = i64::try_from(self.dirty.len());
        assert_eq!(Ok(self.figures.depth), depth, "depth counts dirty keys");
        let surplus = self.surplus();
        assert!(surplus == 0 || self.records.is_empty(), "no more than fit");
    }
}
