//! Deadlines: when they come, and how many of them an operation makes ready.

use std::time::Duration;

use requeue_core::Instant;

use super::{Model, is_after};
use crate::operation::{Handed, Key};

/// > A delay with slack is a *window*.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Window {
    pub(super) opens: Instant,
    /// > Its end, `slack` later, is the key's deadline.
    pub(super) due: Instant,
}

impl Window {
    /// > A deadline without slack is a window that opens at its end.
    pub(super) fn exact(due: Instant) -> Self {
        Self { opens: due, due }
    }

    /// > The end is never `Instant::NEVER`, and a delay that never ends has no slack.
    pub(super) fn of(opens: Instant, slack: Duration) -> Self {
        if opens.is_never() {
            return Self::exact(opens);
        }
        let due = (opens + slack).as_nanos().min(u64::MAX - 1);
        let due = Instant::from_nanos(due);
        Self { opens, due }
    }

    /// > A window that opens during a hold opens when the hold ends. A window that ends during a hold
    /// > ends with the hold.
    pub(super) fn not_before(self, at: Instant) -> Self {
        Self {
            opens: self.opens.max(at),
            due: self.due.max(at),
        }
    }
}

/// When a key is added, at what level.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Deadline {
    /// When the key may be added, if an operation looks.
    pub(super) opens: Instant,
    /// When it is added at the latest.
    pub(super) due: Instant,
    pub(super) number: u64,
    pub(super) level: u8,
    /// The limiter has asked for it.
    pub(super) backs_off: bool,
    /// When the first of the debounced adds that set it came.
    ///
    /// > The series is over when the deadline comes, is taken back, or is moved by a
    /// > [hold](crate::Policy).
    pub(super) burst: Option<Instant>,
    /// It is the end of a pause, and how many of them there were in a row; none if zero.
    pub(super) pauses: u8,
}

impl Deadline {
    pub(super) fn new(window: Window, number: u64, level: u8) -> Self {
        Self {
            opens: window.opens,
            due: window.due,
            number,
            level,
            backs_off: false,
            burst: None,
            pauses: 0,
        }
    }
}

impl Model {
    /// > up to so many percent of its delay
    ///
    /// > After shutdown no queue uses it.
    pub(super) fn window_after(&self, delay: Duration, percent: u8) -> Window {
        let nanos = delay.as_nanos() * u128::from(percent) / 100;
        let nanos = match self.abilities.slackens && !self.is_closed() {
            true => u64::try_from(nanos).unwrap_or(u64::MAX),
            false => 0,
        };
        Window::of(self.now + delay, Duration::from_nanos(nanos))
    }

    /// The end of a key's window stays, and its beginning is another.
    ///
    /// > A suspended key keeps its own deadline without slack, at the end of the window
    pub(super) fn open_at(&mut self, key: Key, opens: Instant) {
        let entry = self.entry_mut(key);
        let is_exact = entry.suspended.is_some();
        if let Some(deadline) = &mut entry.deadline {
            deadline.opens = if is_exact { deadline.due } else { opens };
            let has_slack = deadline.opens != deadline.due;
            self.has_windows |= has_slack;
        }
    }

    /// The deadline of a key, if it is at that time.
    pub(super) fn deadline_at(&mut self, key: Key, due: Instant) -> Option<&mut Deadline> {
        let deadline = self.entry_mut(key).deadline.as_mut();
        deadline.filter(|deadline| deadline.due == due)
    }

    /// When a key may run for which `why` has named this time: once its window is open.
    pub(crate) fn opens(&self, key: Key, until: Instant) -> Instant {
        let own = self.deadline_of(key).filter(|own| own.due == until);
        own.map_or(until, |own| own.opens)
    }

    /// The deadlines that may come: of a suspended key the end of its timeout, and not its own.
    pub(super) fn deadlines(&self) -> impl Iterator<Item = (Key, Deadline)> {
        self.entries()
            .filter_map(|(key, entry)| Some((key, entry.next_deadline()?)))
    }

    fn deadline_of(&self, key: Key) -> Option<Deadline> {
        self.entry(key).next_deadline()
    }

    pub(super) fn first_deadline(&self) -> Option<(Key, Deadline)> {
        self.deadlines().min_by_key(|(_, it)| (it.due, it.number))
    }

    /// The earliest time that will come, and at which something does.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let first = self.first_deadline().filter(|_| !self.is_closed());
        let due = first.map(|(_, first)| first.due);
        let due = [due, self.start_due(), self.group_deadline()];
        let due = due.into_iter().flatten().min();
        due.filter(|due| !self.paused && !due.is_never())
    }

    /// Shutdown stops the time: what is not due by then is left over.
    pub(super) fn is_due(&self, deadline: &Deadline) -> bool {
        let Deadline {
            opens, due, number, ..
        } = *deadline;
        let looks_at = if self.is_looking { opens } else { due };
        let is_past = match self.closed {
            Some(closed) => (due, number) < closed,
            None => looks_at <= self.now,
        };
        is_past && !due.is_never()
    }

    fn own_due(&self, key: Key) -> Option<Deadline> {
        self.deadline_of(key).filter(|own| self.is_due(own))
    }

    /// Whether deadlines have passed that no operation has applied.
    pub(crate) fn has_backlog(&self) -> bool {
        self.deadlines().any(|(_, deadline)| self.is_due(&deadline))
    }

    /// As many steps as it takes: groups that get a token come in each, and overtake the backlog.
    pub(super) fn release_all(&mut self) {
        let most = self.abilities.due_keys_max.map_or(usize::MAX, usize::from);
        while self.release(most, None) {}
    }

    /// delaying_queue.go, waitingLoop: adds what is due, in the order of the deadlines, each at its
    /// own. Adds at most so many of them, and returns whether one was.
    ///
    /// The last key that is added is the one that the operation names, if it is due. Groups that get
    /// a token come in the same order, and as many of them.
    ///
    /// > If more keys are due, each operation makes this many ready, in the order of their
    /// > deadlines. The others are the backlog. They become ready with the operations that follow.
    ///
    /// > An operation that names a due key makes that key ready, before earlier keys of the backlog.
    ///
    /// > While no key is ready or active, an operation also skips each key whose
    /// > [suspension](crate::Session::suspend) has ended but which a hold delays.
    pub(super) fn release(&mut self, most: usize, named: Option<Key>) -> bool {
        let (mut keys, mut groups, mut released) = (most, most, false);
        while keys > 0 || groups > 0 {
            let first = self
                .first_deadline()
                .filter(|(_, first)| keys > 0 && self.is_due(first));
            if groups > 0 && self.group_comes_first(first.map(|(_, first)| first.due)) {
                self.group_comes_due();
                (groups, released) = (groups - 1, true);
                continue;
            }
            // An operation on a key makes that key ready, also behind a closed window.
            let own = named
                .filter(|_| keys > 0)
                .and_then(|named| Some((named, self.own_due(named)?)));
            let last = own.filter(|_| keys == 1);
            let Some((key, next)) = last.or(first).or(own) else {
                break;
            };
            self.come_due(key, next);
            // The end of a suspension and the key's own deadline may both have passed. If a hold
            // delays it then, and nothing else runs, the next one comes.
            let comes_again = last.is_some_and(|(own, _)| self.own_due(own).is_some());
            // After shutdown a key that a hold delays then takes no other's turn.
            let entry = self.entry(key);
            let is_put_off = self.is_closed() && entry.queued.is_none() && entry.deadline.is_some();
            let goes_on = self.has_suspended && keys == 1 && (self.has_no_work() || is_put_off);
            keys -= usize::from(!comes_again && !goes_on);
            released = true;
        }
        released
    }

    /// A key counts as ready since the look, or since its deadline if that is earlier.
    fn come_due(&mut self, key: Key, deadline: Deadline) {
        let at = match self.is_closed() {
            true => deadline.due,
            false => deadline.due.min(self.now),
        };
        if self.entry(key).suspended.is_some() {
            return self.end_suspension(key, at, true);
        }
        self.entry_mut(key).deadline = None;
        self.mark(key, at, deadline.level);
        if deadline.pauses > 0 {
            self.entry_mut(key).pauses = deadline.pauses;
        }
    }

    /// Every operation begins with this: requeue has no loop that would do it.
    pub(super) fn arrive(&mut self) {
        match self.abilities.due_keys_max {
            Some(most) => drop(self.release(most.into(), None)),
            // Only a suspension can end at once, and only a look makes a key ready early.
            None if self.has_suspended || self.has_windows => drop(self.release(usize::MAX, None)),
            None => self.groups_come_due(),
        }
    }

    /// What an operation on a key begins with.
    pub(super) fn arrive_at(&mut self, key: Key) {
        match self.abilities.due_keys_max {
            None => {
                self.arrive();
                let _ = self.release_own(key);
            }
            Some(most) => drop(self.release(most.into(), Some(key))),
        }
        self.let_own_deadline_pass(key);
    }

    /// What an operation on the first ready key begins with.
    pub(super) fn arrive_at_first(&mut self, first: fn(&Self) -> Option<Key>) {
        match first(self) {
            Some(first) => self.arrive_at(first),
            None => self.arrive(),
        }
        // A group that has got a token may have come first.
        if let Some(first) = first(self) {
            let _ = self.release_own(first);
        }
    }

    /// The deadline of a key comes, if it has passed. Returns whether it has.
    pub(super) fn release_own(&mut self, key: Key) -> bool {
        let own = self.own_due(key);
        own.map(|own| self.come_due(key, own)).is_some()
    }

    /// What is handed out next, with no deadline that has passed.
    pub(super) fn choose(&mut self) -> Option<Key> {
        self.settle_turns();
        self.arrive_at_first(Self::first);
        let aged = self.first_aged();
        let has_passed = aged.is_some_and(|aged| self.release_own(aged));
        let aged = if has_passed { self.first_aged() } else { aged };
        let settled = aged.filter(|aged| self.own_due(*aged).is_none());
        settled.or_else(|| self.first())
    }

    /// What a call gets that looks again for as long as it is told to do so at once.
    pub(crate) fn get(&mut self) -> Option<Handed> {
        let mut handed = self.take();
        while handed.is_none() && self.next_look_at().is_some_and(|at| at <= self.now) {
            handed = self.take();
        }
        handed
    }

    /// When a call looks again that has found no key; at once if deadlines have passed that this
    /// look has not applied.
    ///
    /// > If more deadlines have passed than
    /// > [one operation applies](crate::Queue::limit_due_keys), and those that it has applied were of
    /// > active keys, `until` has passed too: the caller looks again at once.
    pub(super) fn next_look_at(&self) -> Option<Instant> {
        if self.is_closed() && self.has_backlog() {
            return Some(Instant::EPOCH);
        }
        self.next_deadline()
    }

    /// A deadline comes before its time, unless time has stopped.
    pub(super) fn end_delay(&mut self, key: Key) -> bool {
        if self.is_closed() {
            return false;
        }
        self.arrive_at(key);
        self.end_own_delay(key)
    }

    fn end_own_delay(&mut self, key: Key) -> bool {
        let Some(deadline) = self.entry(key).deadline else {
            return false;
        };
        let held = self.held_until(key);
        if !is_after(held, self.now) {
            self.entry_mut(key).deadline = None;
            self.mark(key, self.now, deadline.level);
        } else if deadline.due > held {
            self.move_deadline(key, Window::exact(held));
        }
        true
    }

    pub(super) fn end_all_delays(&mut self) {
        if self.is_closed() {
            return;
        }
        self.release_all();
        let mut deadlines: Vec<_> = self.deadlines().collect();
        deadlines.sort_by_key(|(_, it)| (it.due, it.number));
        for (key, _) in deadlines {
            self.end_own_delay(key);
        }
    }

    /// Whether the order is specified in which delays end that are ended together.
    pub(crate) fn ends_delays_in_order(&self) -> bool {
        let delayed = self.count(|entry| entry.deadline.is_some());
        delayed < 2 || !(self.has_held || self.has_suspended)
    }
}
