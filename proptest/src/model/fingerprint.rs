//! What of a model a later call could still tell.

use std::hash::{Hash, Hasher};

use requeue_core::Instant;

use super::{Drains, Memory, Model};
use crate::subject::{Key, Ticket};

/// What of a [`Model`] a later call can still tell.
///
/// Two models with the same fingerprint answer every later call alike, but for what they have
/// reported to their metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fingerprint {
    limiter: String,
    now: Instant,
    /// Keys and their levels, as below.
    queue: Vec<(Key, u8)>,
    /// Without those that are queued.
    dirty: Vec<(Key, u8)>,
    processing: Vec<(Key, u8)>,
    cancelled: Vec<Key>,
    /// And whether they back off, and are due: after shutdown the deadline does not say.
    waiting: Vec<(Key, Instant, u8, bool, bool)>,
    /// When the windows of those open that are not exact.
    opens: Vec<(Key, Instant)>,
    /// How many pauses in a row there were.
    pauses: Vec<(Key, u8)>,
    failures: Vec<(Key, Memory)>,
    /// And when each began; how long ago if times are relative.
    bursts: Vec<(Key, Instant)>,
    /// And what else is kept of them.
    suspended: Vec<super::suspend::Suspended>,
    suspensions: String,
    records: Vec<Key>,
    is_shutting_down: bool,
    paused: bool,
    drains: Drains,
}

impl Hash for Fingerprint {
    /// What is left out differs seldom if the rest is the same.
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.now.as_nanos().hash(state);
        self.queue.hash(state);
        self.dirty.hash(state);
        self.processing.hash(state);
        for (key, due, level, backs_off, is_due) in &self.waiting {
            (key, due.as_nanos(), level, backs_off, is_due).hash(state);
        }
        self.failures.len().hash(state);
        self.is_shutting_down.hash(state);
    }
}

impl Fingerprint {
    /// Returns the same with all times relative to now, for limiters that do not read the time.
    ///
    /// Deadlines that have passed are now; their order stays. No later call can tell, unless it
    /// asks for the deadline itself, or adds at a time that has passed.
    #[must_use]
    pub fn relative(mut self) -> Self {
        for (_, due, ..) in &mut self.waiting {
            if !due.is_never() {
                *due = Instant::EPOCH + due.saturating_since(self.now);
            }
        }
        let now = self.now;
        let relative = |at: Instant| match at.saturating_since(now) {
            _ if at.is_never() => at,
            left => Instant::EPOCH + left,
        };
        let failures = self.failures.into_iter();
        self.failures = failures
            .map(|(key, memory)| {
                let held_until = relative(memory.held_until);
                (
                    key,
                    Memory {
                        held_until,
                        ..memory
                    },
                )
            })
            .collect();
        for suspended in &mut self.suspended {
            suspended.until = relative(suspended.until);
            suspended.opens = relative(suspended.opens);
        }
        for (_, opens) in &mut self.opens {
            *opens = relative(*opens);
        }
        for (_, first) in &mut self.bursts {
            *first = Instant::EPOCH + now.saturating_since(*first);
        }
        self.now = Instant::EPOCH;
        self
    }
}

impl Model {
    /// Returns what a later call can still tell of this model.
    ///
    /// Lists in which the order says nothing are sorted, and numbers that only order are left out.
    pub fn fingerprint(&self) -> Fingerprint {
        let Self {
            rules: _,
            limiter,
            policy,
            has_held: _,
            levels: _,
            capacity: _,
            failure_records_max: _,
            due_keys_max: _,
            now,
            queue,
            dirty,
            age_limit,
            groups,
            queued_at: _,
            processing,
            cancelled,
            running_at: _,
            waiting,
            failures,
            bursts: _,
            suspended,
            suspensions,
            resumed,
            timed_out,
            began_by_pause,
            may_suspend: _,
            may_slacken: _,
            has_windows: _,
            is_looking: _,
            has_suspended,
            records,
            is_shutting_down,
            paused,
            closed_at,
            drains,
            flushes: _,
            last_run: _,
            entries: _,
            figures: _,
            added: _,
            first_added: _,
            started: _,
            keeps_times: _,
            has_duplicates: _,
            has_added_active: _,
            counters: _,
            has_kept_place: _,
            has_tied: _,
        } = self;
        let mut waiting = waiting.clone();
        waiting.sort_by_key(|entry| (entry.due, entry.number));
        let queued = |key: Key| (key, self.queued_level(key));
        let mut dirty: Vec<_> = dirty.iter().copied().map(queued).collect();
        dirty.retain(|(key, _)| !queue.contains(key));
        dirty.sort_unstable();
        let running = |key: Key| (key, self.running_level(key));
        let mut processing: Vec<_> = processing.iter().copied().map(running).collect();
        processing.sort_unstable();
        let mut cancelled = cancelled.clone();
        cancelled.sort_unstable();
        let mut failures = failures.clone();
        failures.sort_by_key(|(key, _)| *key);
        // A suspension that begins with the end of a run does not end before shutdown.
        let closes = *is_shutting_down && !suspensions.is_empty();
        let closed_at = closes.then_some(closed_at.0);
        let mut pauses = began_by_pause.clone();
        pauses.extend(waiting.iter().map(|entry| (entry.key, entry.pauses)));
        pauses.retain(|(_, pauses)| *pauses > 0);
        pauses.sort_unstable();
        Fingerprint {
            limiter: format!("{limiter:?}, {policy:?}, {groups:?}, {age_limit:?}"),
            now: *now,
            queue: queue.iter().copied().map(queued).collect(),
            dirty,
            processing,
            cancelled,
            waiting: waiting
                .iter()
                .map(|entry| {
                    let is_due = self.is_due(entry);
                    (entry.key, entry.due, entry.level, entry.backs_off, is_due)
                })
                .collect(),
            opens: waiting
                .iter()
                .filter(|entry| entry.opens != entry.due)
                .map(|entry| (entry.key, entry.opens))
                .collect(),
            pauses,
            failures,
            bursts: self.present_bursts(),
            suspended: suspended.clone(),
            suspensions: format!(
                "{suspensions:?}, {closed_at:?}, {resumed:?}, {timed_out:?}, {has_suspended:?}"
            ),
            records: records.clone(),
            is_shutting_down: *is_shutting_down,
            paused: *paused,
            drains: drains.clone(),
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
    use crate::Rules;
    use crate::subject::{Configuration, Operate, Subject};

    #[test]
    fn what_was_due_at_shutdown_differs_from_what_was_not() {
        // Shutdown makes the first key ready. The second is due then, or a nanosecond later.
        let closed_with = |is_due: bool| {
            let mut model = Model::new(Rules::Requeue, &Configuration::exponential(), None);
            model = model.with_backlog(Some(1));
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
