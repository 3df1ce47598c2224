//! What of a model a later call could still tell.

use std::hash::{Hash, Hasher};

use requeue_core::Instant;

use super::{Burst, Entry, Model, Queued};
use crate::operation::{Key, Ticket};

/// What of a [`Model`] a later call can still tell.
///
/// Two models with the same fingerprint answer every later call alike, but for what they have
/// reported to their metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    limiter: String,
    now: Instant,
    /// Numbers are ranks, and what only metrics tell is left out.
    keys: Vec<(Key, Entry)>,
    /// After shutdown: the keys that are due, which their deadlines do not say.
    due: Option<Vec<Key>>,
    /// A suspension that begins with the end of a run does not end before shutdown.
    closed_at: Option<Instant>,
    paused: bool,
    has_suspended: bool,
    drains: Vec<bool>,
}

impl Hash for Fingerprint {
    /// What is left out differs seldom if the rest is the same.
    fn hash<H: Hasher>(&self, state: &mut H) {
        for (key, entry) in &self.keys {
            let deadline = entry
                .deadline
                .map(|it| (it.due.as_nanos(), it.number, it.level));
            let queued = entry.queued.map(|queued| queued.level);
            (key, entry.ready, queued, entry.active, deadline).hash(state);
            (entry.suspended.is_some(), entry.rests).hash(state);
        }
        (self.now.as_nanos(), &self.due).hash(state);
    }
}

impl Fingerprint {
    /// Returns the same with all times relative to now, for limiters that do not read the time.
    ///
    /// Deadlines that have passed are now; their order stays. No later call can tell, unless it
    /// asks for the deadline itself, or adds at a time that has passed.
    #[must_use]
    pub fn relative(mut self) -> Self {
        let now = self.now;
        let relative = |at: &mut Instant| {
            if !at.is_never() {
                *at = Instant::EPOCH + at.saturating_since(now);
            }
        };
        for (_, entry) in &mut self.keys {
            relative(&mut entry.held_until);
            if let Some(deadline) = &mut entry.deadline {
                relative(&mut deadline.opens);
                relative(&mut deadline.due);
            }
            if let Some(suspended) = &mut entry.suspended {
                relative(&mut suspended.opens);
                relative(&mut suspended.until);
            }
            if let Some(burst) = &mut entry.burst {
                burst.first = Instant::EPOCH + now.saturating_since(burst.first);
            }
        }
        self.now = Instant::EPOCH;
        self
    }
}

impl Model {
    /// Returns what a later call can still tell of this model.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut deadlines: Vec<_> = self
            .entries()
            .flat_map(|(key, entry)| {
                let own = entry.deadline.map(|own| (own.due, own.number, key, false));
                let end = entry
                    .suspended
                    .map(|end| (end.until, end.number, key, true));
                own.into_iter().chain(end)
            })
            .collect();
        deadlines.sort_unstable();
        let rank = |key: Key, is_end: bool| {
            let place = deadlines
                .iter()
                .position(|it| (it.2, it.3) == (key, is_end));
            place.map_or(0, |place| place as u64)
        };
        let place = |keys: &[Key], key: Key| {
            let place = keys.iter().position(|other| *other == key);
            place.map(|place| place as u64)
        };
        let (ready, records) = (self.ready(), self.records());
        let told = |(key, entry): (Key, &Entry)| {
            let mut told = Entry {
                queued: entry.queued.map(|queued| Queued {
                    added: Instant::EPOCH,
                    ..queued
                }),
                ready: place(&ready, key),
                running: if entry.active { entry.running } else { 0 },
                burst: entry.present_burst().map(|burst| Burst {
                    due: Instant::EPOCH,
                    ..burst
                }),
                rests: place(&records, key),
                run: 0,
                started: None,
                first_added: None,
                ..entry.clone()
            };
            if let Some(deadline) = &mut told.deadline {
                deadline.number = rank(key, false);
            }
            if let Some(suspended) = &mut told.suspended {
                suspended.number = rank(key, true);
            }
            (key, told)
        };
        let keys = self.entries().filter(|(_, entry)| entry.is_held());
        let is_planned = self.count(|entry| entry.plan.is_some()) > 0;
        let due = self.deadlines().filter(|entry| self.is_due(entry));
        let Self {
            limiter,
            policy,
            groups,
            age_limit,
            ..
        } = self;
        Fingerprint {
            limiter: format!("{limiter:?}, {policy:?}, {groups:?}, {age_limit:?}"),
            now: self.now,
            keys: keys.map(told).collect(),
            due: self.closed.map(|_| due.map(|entry| entry.key).collect()),
            closed_at: self.closed.filter(|_| is_planned).map(|closed| closed.0),
            paused: self.paused,
            has_suspended: self.has_suspended,
            drains: self.drains.clone(),
        }
    }

    /// Returns the key of a run; `None` if the run is over.
    pub fn key_of(&self, ticket: Ticket) -> Option<Key> {
        self.is_current(ticket).then_some(ticket.key)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::operation::Operate;
    use crate::subject::{Abilities, Configuration, Subject};

    #[test]
    fn what_was_due_at_shutdown_differs_from_what_was_not() {
        // Shutdown makes the first key ready. The second is due then, or a nanosecond later.
        let closed_with = |is_due: bool| {
            let model = Model::new(&Configuration::exponential(), None);
            let mut model = model.with_abilities(&Abilities {
                due_keys_max: Some(1),
                ..Abilities::default()
            });
            let delay = Duration::from_nanos(1);
            let second = if is_due { delay } else { delay * 2 };
            for (key, delay) in [(1, delay), (2, second)] {
                assert!(model.add_after(key, delay).is_ok());
            }
            model.advance(delay);
            model.shut_down();
            model.advance(delay);
            model
        };
        let [due, left] = [true, false].map(closed_with);
        let [fingerprint, other] = [&due, &left].map(|model| model.fingerprint().relative());
        assert_ne!(fingerprint, other);
        let keys = [due, left].map(|mut model| std::iter::from_fn(|| model.try_get()).count());
        assert_eq!(keys, [2, 1]);
    }
}
