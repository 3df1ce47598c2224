//! Does to a subject what was recorded, and says what came of it.

use std::collections::BTreeMap;
use std::time::Duration;

use requeue_core::{Drained, Getter, Next};

use super::queue::{Got, Op};
use crate::subject::{Drain, Key, Subject, Ticket};

/// client-go sets the gauges of work under way this often, from the creation of the queue on.
const TICK: Duration = Duration::from_millis(500);

/// What an operation answers, as far as recordings tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Nothing,
    /// An add: whether the key was taken. client-go takes every key, or seems to.
    Taken(bool),
    /// A rate-limited add: the limiter's delay, if the key was taken.
    Limited(Option<Duration>),
    Got(Got),
    /// Whether the key was in work. client-go does not say.
    Done(bool),
    Count(u32),
    Answer(bool),
    Time(u64),
}

/// The gauges of work under way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Gauges {
    pub(super) unfinished: Duration,
    pub(super) longest: Duration,
}

/// A subject, and what its callers hold.
pub(super) struct Player<S: Subject> {
    pub(super) subject: S,
    tickets: BTreeMap<Key, Ticket>,
    drains: Vec<Drain>,
    uses_tickets: bool,
    completions: u64,
}

impl<S: Subject> Player<S> {
    /// A player that completes every second run by its ticket.
    pub(super) fn new(subject: S) -> Self {
        Self {
            subject,
            tickets: BTreeMap::new(),
            drains: Vec::new(),
            uses_tickets: true,
            completions: 0,
        }
    }

    /// A player that completes runs by name, as one has to with client-go.
    pub(super) fn by_name(subject: S) -> Self {
        Self {
            uses_tickets: false,
            ..Self::new(subject)
        }
    }

    pub(super) fn play(&mut self, op: &Op) -> Outcome {
        let subject = &mut self.subject;
        match *op {
            Op::Add(key) => Outcome::Taken(subject.add(key).is_ok()),
            Op::AddAfter(key, delay) => {
                // A delay below zero is none.
                let delay = Duration::from_nanos(u64::try_from(delay).unwrap_or(0));
                Outcome::Taken(subject.add_after(key, delay).is_ok())
            }
            Op::AddRateLimited(key, _) => {
                let retried = subject.add_rate_limited(key);
                Outcome::Limited(retried.ok().map(|retried| retried.delay))
            }
            Op::Get(_) => Outcome::Got(self.get()),
            Op::Done(key) => Outcome::Done(self.done(key)),
            Op::Forget(key) => {
                subject.forget(key);
                Outcome::Nothing
            }
            Op::NumRequeues(key, _) => Outcome::Count(subject.num_requeues(key)),
            Op::Len => Outcome::Nothing,
            Op::ShuttingDown(_) => Outcome::Answer(subject.shutting_down()),
            Op::ShutDown => {
                subject.shut_down();
                Outcome::Nothing
            }
            Op::ShutDownWithDrain => {
                self.drains.push(subject.begin_drain());
                Outcome::Nothing
            }
            Op::Advance { by, .. } => {
                self.advance(Duration::from_nanos(by));
                Outcome::Time(self.subject.now().as_nanos())
            }
        }
    }

    pub(super) fn drained(&mut self) -> Vec<Drained> {
        let Self {
            subject, drains, ..
        } = self;
        drains.iter().map(|drain| subject.drained(drain)).collect()
    }

    pub(super) fn gauges(&mut self) -> Option<Gauges> {
        let figures = self.subject.figures()?;
        Some(Gauges {
            unfinished: figures.unfinished,
            longest: figures.longest,
        })
    }

    /// Lets time pass, and reports at every tick on the way. A tick and a deadline at the same
    /// instant cannot be told apart: the gauges look at keys in work alone.
    pub(super) fn advance(&mut self, by: Duration) {
        let subject = &mut self.subject;
        let end = subject.now() + by;
        while !subject.shutting_down() {
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

    /// In turns as a worker that would wait, and as one that would not.
    fn get(&mut self) -> Got {
        self.get_with_priority().0
    }

    /// The same, and the level of a key that is handed out.
    pub(super) fn get_with_priority(&mut self) -> (Got, u8) {
        let handed = if self.completions.is_multiple_of(2) {
            let mut getter = Getter::default();
            match self.subject.get(&mut getter) {
                Next::Work(handed) => Some(handed),
                _ => {
                    self.subject.leave(&mut getter);
                    None
                }
            }
        } else {
            self.subject.try_get()
        };
        match handed {
            Some(handed) => {
                self.tickets.insert(handed.key, handed.ticket);
                (Got::Key(handed.key), handed.priority)
            }
            None if self.subject.shutting_down() => (Got::ShutDown, 0),
            None => (Got::WouldBlock, 0),
        }
    }

    pub(super) fn done(&mut self, key: Key) -> bool {
        self.completions += 1;
        match self.tickets.remove(&key) {
            Some(ticket) if self.uses_tickets && self.completions.is_multiple_of(2) => {
                self.subject.done(ticket).is_ok()
            }
            _ => self.subject.done_key(key).is_ok(),
        }
    }
}
