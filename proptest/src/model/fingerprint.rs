//! What of a model a later call could still tell.

use requeue_core::Instant;

use super::deadlines::Deadline;
use super::{Entry, Model};
use crate::operation::{Key, Ticket};

/// What of a [`Model`] a later call can still tell.
///
/// Two models with the same fingerprint answer every later call alike, but for what they have
/// reported to their metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    settings: String,
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
            for deadline in entry.deadlines_mut() {
                relative(&mut deadline.opens);
                relative(&mut deadline.due);
                if let Some(first) = &mut deadline.burst {
                    *first = Instant::EPOCH + now.saturating_since(*first);
                }
            }
        }
        self.now = Instant::EPOCH;
        self
    }
}

impl Model {
    /// Returns what a later call can still tell of this model.
    pub fn fingerprint(&self) -> Fingerprint {
        let held = self.entries().filter(|(_, entry)| entry.is_held());
        let mut keys: Vec<(Key, Entry)> = held
            .map(|(key, entry)| {
                let mut told = entry.clone();
                if let Some(queued) = &mut told.queued {
                    queued.added = Instant::EPOCH;
                }
                (told.run, told.started, told.first_added) = (0, None, None);
                (key, told)
            })
            .collect();
        let ready = keys.iter_mut().filter_map(|(_, told)| told.ready.as_mut());
        rank(ready.map(|place| (Instant::EPOCH, place)));
        let records = keys.iter_mut().filter_map(|(_, told)| told.rests.as_mut());
        rank(records.map(|place| (Instant::EPOCH, place)));
        let deadlines = keys.iter_mut().flat_map(|(_, told)| told.deadlines_mut());
        rank(deadlines.map(|deadline| (deadline.due, &mut deadline.number)));
        let is_planned = self.count(|entry| entry.plan.is_some()) > 0;
        let due = self.deadlines().filter(|(_, it)| self.is_due(it));
        let turns = (self.abilities.groups > 0).then_some(&self.turns);
        let settings = (&self.limiter, &self.policy, turns, self.age_limit);
        Fingerprint {
            settings: format!("{settings:?}"),
            now: self.now,
            keys,
            due: self.closed.map(|_| due.map(|(key, _)| key).collect()),
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

impl Entry {
    fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        let end = self.suspended.as_mut().map(|suspended| &mut suspended.end);
        self.deadline.iter_mut().chain(end)
    }
}

/// Renumbers these by their times, and equal times by their present numbers.
fn rank<'a>(numbers: impl Iterator<Item = (Instant, &'a mut u64)>) {
    let mut numbers: Vec<_> = numbers.collect();
    numbers.sort_unstable();
    for (rank, (_, number)) in (0..).zip(numbers) {
        *number = rank;
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
