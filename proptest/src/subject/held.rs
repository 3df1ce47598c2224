//! What a queue of core's has handed out, by numbers.

use std::collections::BTreeMap;

use requeue_core::binding::{Drained, Getter, Next, Ticket as CoreTicket, Work};

use super::{Answer, Drain, Handed, Key, Run, Sleeper, Ticket, map_next};

/// A key that core has handed out, with core's own ticket.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken(pub(super) Handed, pub(super) CoreTicket);

impl Taken {
    /// Returns the key.
    pub fn key(&self) -> Key {
        self.0.key
    }
}

impl From<Work<Key>> for Taken {
    fn from(work: Work<Key>) -> Self {
        let handed = Handed::of(work.key, work.failures, work.priority, work.timed_out);
        Self(handed, work.ticket)
    }
}

/// What a test refers to by numbers: runs, those who sleep, and waits for the drain.
#[derive(Debug, Default)]
pub(super) struct Held {
    runs: BTreeMap<Key, u64>,
    tickets: BTreeMap<Ticket, CoreTicket>,
    getters: BTreeMap<u32, Getter>,
    drains: Vec<requeue_core::binding::Drain>,
}

impl Held {
    /// Gives a run its number.
    pub(super) fn hand(&mut self, taken: impl Into<Taken>) -> Handed {
        let Taken(mut handed, ticket) = taken.into();
        let run = self.runs.entry(handed.key).or_default();
        *run += 1;
        handed.ticket.run = *run;
        self.tickets.insert(handed.ticket, ticket);
        handed
    }

    pub(super) fn hand_next(&mut self, next: Next<Work<Key>>) -> Next<Handed> {
        map_next(next, |work| self.hand(work))
    }

    /// The ticket of a run, unless it was used.
    pub(super) fn ticket(&mut self, run: Run) -> Option<CoreTicket> {
        match run {
            Run::Of(ticket) => self.tickets.remove(&ticket),
            Run::Pick(_) => None,
        }
    }

    pub(super) fn tickets(&mut self, runs: &[Run]) -> Vec<CoreTicket> {
        runs.iter().filter_map(|run| self.ticket(*run)).collect()
    }

    /// The getter of a call that looks, or of a new one.
    pub(super) fn getter(&mut self, sleeper: Sleeper) -> Getter {
        match sleeper {
            Sleeper::Of(number) => self.getters.remove(&number).unwrap_or_default(),
            Sleeper::New | Sleeper::Pick(_) => Getter::default(),
        }
    }

    /// Keeps it if it sleeps from now on.
    pub(super) fn keep<T>(&mut self, sleeper: Sleeper, getter: Getter, next: &Next<T>) {
        if let (Sleeper::Of(number), Next::Wait { .. }) = (sleeper, next) {
            self.getters.insert(number, getter);
        }
    }

    pub(super) fn keep_drain(&mut self, drain: requeue_core::binding::Drain) -> Drain {
        self.drains.push(drain);
        Drain(self.drains.len() - 1)
    }

    /// How a wait for the drain stands.
    pub(super) fn drained(
        &self,
        Drain(number): Drain,
        status: impl FnOnce(&requeue_core::binding::Drain) -> Drained,
    ) -> Answer {
        let drain = self.drains.get(number);
        drain.map_or(Answer::Lacking, |drain| Answer::Drained(status(drain)))
    }
}
