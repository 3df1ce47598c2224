//! Does to a queue what was recorded, and returns what can be seen of it.

use std::collections::BTreeMap;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{AddOptions, Finished, Instant, Merge};
use requeue_proptest::subject::{Drain, Key, Operate, Subject, Ticket};

use crate::recording::{AddWithOpts, Get, Op, Recording, Step, delay, level};

/// client-go sets the gauges of work under way this often, beginning at the creation of the queue.
const TICK: Duration = Duration::from_millis(500);

/// What is seen of a queue after one operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    pub(crate) outcome: Outcome,
    /// Looked at only when time passes.
    pub(crate) gauges: Option<Gauges>,
    pub(crate) len: usize,
}

/// What an operation returns, as far as recordings say.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Outcome {
    None,
    /// An add: whether the key was taken.
    Taken(bool),
    /// Rate-limited adds: the delay of each key that was taken.
    Delays(Vec<Duration>),
    /// A key and its priority.
    Key(Key, i64),
    WouldBlock,
    ShutDown,
    /// Whether the key was active.
    Done(bool),
    Count(u32),
    Flag(bool),
    Time(Instant),
    /// Keys in the order in which they were handed out.
    Order(Vec<Key>),
}

/// The gauges of work under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gauges {
    pub(crate) unfinished: Duration,
    pub(crate) longest: Duration,
}

/// A subject, and what its callers hold.
pub(crate) struct Player<S: Subject + ?Sized> {
    pub(crate) subject: Box<S>,
    tickets: BTreeMap<Key, Ticket>,
    drains: Vec<Drain>,
    uses_tickets: bool,
    releases: u64,
    /// The priority of each level.
    priorities: Vec<i64>,
}

impl<S: Subject + ?Sized> Player<S> {
    /// Returns a player that completes every second run by its ticket.
    pub(crate) fn new(subject: Box<S>, recording: &Recording) -> Self {
        Self {
            subject,
            tickets: BTreeMap::new(),
            drains: Vec::new(),
            uses_tickets: true,
            releases: 0,
            priorities: recording.priorities(),
        }
    }

    /// Returns a player that completes runs by name, the only way that Go's queues have.
    pub(crate) fn by_name(subject: Box<S>, recording: &Recording) -> Self {
        Self {
            uses_tickets: false,
            ..Self::new(subject, recording)
        }
    }

    /// Plays a step.
    pub(crate) fn play(&mut self, step: &Step) -> Seen {
        let outcome = self.perform(&step.op);
        let is_gauged = step.op.gauges().is_some();
        Seen {
            outcome,
            gauges: is_gauged.then(|| {
                let figures = self.subject.figures().unwrap_or_default();
                Gauges {
                    unfinished: figures.unfinished,
                    longest: figures.longest,
                }
            }),
            len: self.subject.len(),
        }
    }

    /// The state of each wait for the drain.
    pub(crate) fn drained(&mut self) -> Vec<Drained> {
        let Self {
            subject, drains, ..
        } = self;
        drains.iter().map(|drain| subject.drained(drain)).collect()
    }

    fn perform(&mut self, op: &Op) -> Outcome {
        let subject = &mut self.subject;
        match *op {
            Op::Add { k } => Outcome::Taken(subject.add(k).is_ok()),
            Op::AddAfter { k, d } => Outcome::Taken(subject.add_after(k, delay(d)).is_ok()),
            Op::AddRateLimited { k, .. } => {
                let scheduled = subject.add_rate_limited(k).ok();
                Outcome::Delays(scheduled.iter().map(|scheduled| scheduled.delay).collect())
            }
            Op::AddWithOpts(ref add) => self.add_with_opts(add),
            Op::Get(_) => self.get(),
            Op::Done { k, .. } => Outcome::Done(self.done(k)),
            Op::Forget { k } => {
                subject.forget(k);
                Outcome::None
            }
            Op::NumRequeues { k, .. } => Outcome::Count(subject.failures(k)),
            Op::Len {} => Outcome::None,
            Op::ShuttingDown { .. } => Outcome::Flag(subject.is_shutting_down()),
            Op::ShutDown {} => {
                subject.shut_down();
                Outcome::None
            }
            Op::ShutDownWithDrain {} => {
                self.drains.push(subject.begin_drain());
                Outcome::None
            }
            Op::Advance { d, t, .. } => {
                self.advance(Duration::from_nanos(d));
                t.map_or(Outcome::None, |_| Outcome::Time(self.subject.now()))
            }
            Op::DrainAll { .. } => self.drain_all(),
        }
    }

    /// controller-runtime's adds expedite: a key that is delayed becomes ready.
    fn add_with_opts(&mut self, add: &AddWithOpts) -> Outcome {
        let options = AddOptions {
            after: add.after(),
            rate_limited: add.rate_limited,
            priority: Some(level(&self.priorities, add.priority.unwrap_or(0))),
            merge: Merge::Once,
            ..AddOptions::new()
        };
        let mut delays = Vec::new();
        for &key in &add.ks {
            // Other results show in later steps; after shutdown there are none.
            if let Ok(scheduled) = self.subject.add_with(key, options)
                && add.rate_limited
            {
                delays.push(scheduled.delay);
            }
        }
        Outcome::Delays(delays)
    }

    /// Alternates between a worker that would wait and one that would not.
    fn get(&mut self) -> Outcome {
        let handed = if self.releases.is_multiple_of(2) {
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
        match handed {
            Some(handed) => {
                self.tickets.insert(handed.key, handed.ticket);
                let priority = self.priorities.get(usize::from(handed.priority));
                Outcome::Key(handed.key, priority.copied().unwrap_or(i64::MAX))
            }
            None if self.subject.is_shutting_down() => Outcome::ShutDown,
            None => Outcome::WouldBlock,
        }
    }

    fn done(&mut self, key: Key) -> bool {
        self.releases += 1;
        match self.tickets.remove(&key) {
            Some(ticket) if self.uses_tickets && self.releases.is_multiple_of(2) => {
                self.subject.release(ticket) != Finished::Stale
            }
            _ => self.subject.release_key(key) != Finished::Stale,
        }
    }

    fn drain_all(&mut self) -> Outcome {
        let mut order = Vec::new();
        while let Outcome::Key(key, _) = self.get() {
            order.push(key);
            if !self.done(key) {
                break;
            }
        }
        Outcome::Order(order)
    }

    /// Lets time pass, and reports at every tick on the way. A tick and a deadline at the same
    /// instant look the same: the gauges are about active keys alone.
    fn advance(&mut self, by: Duration) {
        let subject = &mut self.subject;
        let end = subject.now() + by;
        while !subject.is_shutting_down() {
            let now = subject.now().as_nanos();
            let tick = TICK.as_nanos() as u64;
            let until_tick = tick - now % tick;
            if end.saturating_since(subject.now()).as_nanos() < u128::from(until_tick) {
                break;
            }
            subject.advance(Duration::from_nanos(until_tick));
            subject.report_running();
        }
        subject.advance(end.saturating_since(subject.now()));
    }
}

impl Seen {
    /// What was recorded. `tells_done` says whether the upstream queue says of a key that was done
    /// that it was not active; client-go does not.
    pub(crate) fn recorded(step: &Step, tells_done: bool) -> Self {
        Self {
            outcome: step.op.outcome(tells_done),
            gauges: step.op.gauges(),
            len: step.len,
        }
    }
}

impl Op {
    fn outcome(&self, tells_done: bool) -> Outcome {
        match *self {
            Self::Add { .. } | Self::AddAfter { .. } => Outcome::Taken(true),
            Self::AddRateLimited { delay: nanos, .. } => Outcome::Delays(vec![delay(nanos)]),
            Self::AddWithOpts(ref add) => Outcome::Delays(add.delays()),
            Self::Get(Get {
                k: Some(key),
                priority,
                ..
            }) => Outcome::Key(key, priority),
            Self::Get(Get { shutdown: true, .. }) => Outcome::ShutDown,
            Self::Get(_) => Outcome::WouldBlock,
            Self::Done { unpaired, .. } => Outcome::Done(!(tells_done && unpaired)),
            Self::NumRequeues { n, .. } => Outcome::Count(n),
            Self::ShuttingDown { v } => Outcome::Flag(v),
            Self::Advance { t, .. } => {
                t.map_or(Outcome::None, |t| Outcome::Time(Instant::from_nanos(t)))
            }
            Self::DrainAll { ref go_order, .. } => Outcome::Order(go_order.clone()),
            Self::Forget { .. } | Self::Len {} | Self::ShutDown {} | Self::ShutDownWithDrain {} => {
                Outcome::None
            }
        }
    }

    fn gauges(&self) -> Option<Gauges> {
        match *self {
            Self::Advance {
                unfinished_ns: Some(unfinished),
                longest_ns: Some(longest),
                ..
            } => Some(Gauges {
                unfinished: Duration::from_nanos(unfinished),
                longest: Duration::from_nanos(longest),
            }),
            _ => None,
        }
    }
}

impl AddWithOpts {
    /// The delay of the add itself. Zero means none. What lies in the past is due at once, which
    /// counts against the limiter's delay.
    fn after(&self) -> Option<Duration> {
        match self.after {
            0 => None,
            after if after < 0 => self.rate_limited.then_some(Duration::ZERO),
            after => Some(delay(after)),
        }
    }

    /// How long each key has to wait: the shorter of the two delays.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        let after = self.after().unwrap_or(Duration::MAX);
        let delays = self.delays.iter();
        delays.map(|nanos| delay(*nanos).min(after)).collect()
    }
}
