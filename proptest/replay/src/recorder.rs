//! Records one of our queues, or a model, as the upstream queue was recorded.

use std::collections::BTreeMap;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{AddOptions, Finished, Merge};
use requeue_proptest::subject::{Drain, Key, Operate, Subject, Ticket};
use serde_json::{Value, json};

use crate::recording::{Add, AddWithOpts, Get, Op, Recording};

/// client-go sets the gauges of work under way this often, beginning at the creation of the queue.
const TICK: Duration = Duration::from_millis(500);

/// A subject, and what its callers hold.
pub(crate) struct Recorder<S: Subject + ?Sized> {
    pub(crate) subject: Box<S>,
    tickets: BTreeMap<Key, Ticket>,
    drains: Vec<Drain>,
    /// How many runs were completed. Every second one is completed by its ticket.
    completed: u64,
    /// The priority of each level, the lowest first.
    priorities: Vec<i64>,
}

impl<S: Subject + ?Sized> Recorder<S> {
    pub(crate) fn new(subject: Box<S>, recording: &Recording) -> Self {
        Self {
            subject,
            tickets: BTreeMap::new(),
            drains: Vec::new(),
            completed: 0,
            priorities: recording.priorities(),
        }
    }

    /// Does a recorded operation. Returns it with the results of this subject.
    pub(crate) fn again(&mut self, recorded: &Op) -> Op {
        let mut op = recorded.clone();
        let subject = &mut *self.subject;
        match &mut op {
            Op::Add(Add::One { k, refused }) => *refused = subject.add(*k).is_err(),
            Op::Add(Add::WithOpts(add)) => add.delays = self.add_with_opts(add),
            Op::AddAfter { k, d, refused } => {
                let delay = Duration::from_nanos(u64::try_from(*d).unwrap_or(0));
                *refused = subject.add_after(*k, delay).is_err();
            }
            Op::AddRateLimited { k, delay, .. } => {
                let added = subject.add_rate_limited(*k).ok();
                *delay = added.map(|added| nanos(added.delay));
            }
            Op::Get(got) => *got = self.get(),
            Op::Done { k, unpaired } => *unpaired = !self.done(*k),
            Op::Forget { k } => {
                subject.forget(*k);
            }
            Op::NumRequeues { k, n } => *n = subject.failures(*k),
            Op::Len {} => {}
            Op::ShuttingDown { v } => *v = subject.is_shutting_down(),
            Op::ShutDown {} => subject.shut_down(),
            Op::ShutDownWithDrain {} => self.drains.push(subject.begin_drain()),
            Op::Advance {
                d,
                t,
                unfinished_ns,
                longest_ns,
            } => {
                self.advance(Duration::from_nanos(*d), unfinished_ns.is_some());
                let figures = self.subject.figures().unwrap_or_default();
                *t = t.map(|_| self.subject.now().as_nanos());
                *unfinished_ns = unfinished_ns.map(|_| figures.unfinished.as_nanos() as u64);
                *longest_ns = longest_ns.map(|_| figures.longest.as_nanos() as u64);
            }
            Op::DrainAll { go_order, .. } => {
                go_order.clear();
                while let Some(key) = self.get().k {
                    go_order.push(key);
                    if !self.done(key) {
                        break;
                    }
                }
            }
            Op::Ready(len) => *len = subject.len(),
            Op::Final { name, value } => *value = self.seen_at_the_end(name),
        }
        op
    }

    /// The state of each wait for the drain.
    pub(crate) fn drained(&mut self) -> Vec<Drained> {
        let subject = &mut self.subject;
        let drains = self.drains.iter();
        drains.map(|drain| subject.drained(drain)).collect()
    }

    /// Returns the delays of a limited add: none after shutdown.
    fn add_with_opts(&mut self, add: &AddWithOpts) -> Vec<i64> {
        let level = self.priorities.binary_search(&add.priority.unwrap_or(0));
        let options = AddOptions {
            // A delay that has passed counts against the limiter's.
            after: match u64::try_from(add.after) {
                Ok(0) => None,
                Ok(after) => Some(Duration::from_nanos(after)),
                Err(_) => add.rate_limited.then_some(Duration::ZERO),
            },
            rate_limited: add.rate_limited,
            priority: level.ok().map(|level| level as u8),
            merge: Merge::Once,
            ..AddOptions::new()
        };
        let keys = add.ks.iter();
        let added = keys.filter_map(|key| self.subject.add_with(*key, options).ok());
        let limited = added.filter(|_| add.rate_limited);
        limited.map(|added| nanos(added.delay)).collect()
    }

    fn priority(&self, level: u8) -> i64 {
        let priority = self.priorities.get(usize::from(level));
        priority.copied().unwrap_or(i64::MAX)
    }

    /// Alternates between a worker that would wait and one that would not.
    fn get(&mut self) -> Get {
        let handed = if self.completed.is_multiple_of(2) {
            match self.subject.get(0) {
                Next::Work(handed) => Some(handed),
                _ => {
                    self.subject.leave(0);
                    None
                }
            }
        } else {
            self.subject.try_get()
        };
        let is_closed = self.subject.is_shutting_down();
        Get {
            k: handed.map(|handed| handed.key),
            priority: handed.map_or(0, |handed| {
                self.tickets.insert(handed.key, handed.ticket);
                self.priority(handed.priority)
            }),
            shutdown: handed.is_none() && is_closed,
            would_block: handed.is_none() && !is_closed,
        }
    }

    /// Completes a run by its name or by its ticket. Returns whether the key was active.
    fn done(&mut self, key: Key) -> bool {
        self.completed += 1;
        let finished = match self.tickets.remove(&key) {
            Some(ticket) if self.completed.is_multiple_of(2) => self.subject.release(ticket),
            _ => self.subject.release_key(key),
        };
        finished != Finished::Stale
    }

    /// Lets time pass, and reports at every tick on the way if the queue has gauges. A tick and a
    /// deadline at the same instant look the same: the gauges are about active keys alone.
    fn advance(&mut self, by: Duration, has_gauges: bool) {
        let subject = &mut self.subject;
        let end = subject.now() + by;
        while has_gauges && !subject.is_shutting_down() {
            let since_tick = subject.now().as_nanos() % TICK.as_nanos() as u64;
            let until_tick = TICK - Duration::from_nanos(since_tick);
            if end.saturating_since(subject.now()) < until_tick {
                break;
            }
            subject.advance(until_tick);
            subject.report_running();
        }
        subject.advance(end.saturating_since(subject.now()));
    }

    /// A member of `final`.
    fn seen_at_the_end(&mut self, member: &str) -> Value {
        let figures = self.subject.figures().unwrap_or_default();
        let all = |times: &[Duration]| times.iter().copied().map(nanos).collect();
        match member {
            "len" => json!(self.subject.len()),
            "shutting_down" => json!(self.subject.is_shutting_down()),
            "t" => json!(self.subject.now().as_nanos()),
            "depth" => json!(figures.depth),
            "depth_by_priority" => {
                let depths = figures.depths.iter();
                depths
                    .map(|(level, keys)| json!([self.priority(*level), keys]))
                    .collect()
            }
            "adds" => json!(figures.adds),
            "retries" => json!(figures.retries),
            "latency_ns" => all(&figures.latencies),
            "work_duration_ns" => all(&figures.work_durations),
            "unfinished_work_ns" => json!(nanos(figures.unfinished)),
            "longest_running_ns" => json!(nanos(figures.longest)),
            "metric_ticks" => json!(figures.reports),
            _ => Value::Null,
        }
    }
}

/// Nanoseconds as Go has them, or -1, which is no duration of a recording, if they do not fit.
fn nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(-1)
}
