//! The reference model: slow, and obviously right.
//!
//! A reader can hold it against client-go's `util/workqueue` by eye: the queue, the dirty set and
//! the processing set of `queue.go`, the waiting entries of `delaying_queue.go`, the failures of
//! `default_rate_limiters.go` and the figures of `metrics.go`, each in a list that is searched from
//! its beginning. Where requeue differs on purpose, [`Rules`] says which way to go. What client-go
//! does not have stands on sentences of the public documentation of core, which are quoted where
//! they are obeyed; a test compares them.

mod control;
mod debounce;
mod drains;
mod extensions;
mod fingerprint;
mod flushes;
mod groups;
mod holds;
mod pace;
mod poll;
mod priorities;
mod records;
mod slack;
mod subject;
mod suspend;
mod why;

use std::fmt;
use std::time::Duration;

use requeue_core::{Added, Instant, KeyState, Policy, Rejected};

use crate::Figures;
use crate::limiter::AnyLimiter;
use crate::subject::{Configuration, Handed, Key, Scheduled, Ticket};

use debounce::Burst;
use drains::Drains;
pub use fingerprint::Fingerprint;
use records::Memory;
use slack::Window;

/// Whose rules a [`Model`] follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rules {
    /// Those of client-go, faults included.
    ClientGo,
    /// Those of requeue.
    Requeue,
    /// Those of controller-runtime's priority queue, as far as they are not those of requeue: a key
    /// that is added while it is active takes its place at once, and nothing is handed out after
    /// shutdown.
    ControllerRuntime,
}

/// A queue that is a handful of lists.
#[derive(Clone, Debug)]
pub struct Model {
    rules: Rules,
    limiter: AnyLimiter,
    policy: Policy,
    /// It holds keys, or one before it did.
    has_held: bool,
    capacity: Option<usize>,
    failure_records_max: usize,
    /// How many due keys an operation makes ready; `None` if all of them, when they come due.
    due_keys_max: Option<u8>,
    now: Instant,

    /// Keys in the order in which they will be handed out, but for their levels.
    queue: Vec<Key>,
    /// Keys that have to be worked on: those in `queue`, and some in `processing`.
    dirty: Vec<Key>,
    /// How many priority levels there are.
    levels: u8,
    /// The level of each dirty key.
    queued_at: Vec<(Key, u8)>,
    /// The level of each key's last run.
    running_at: Vec<(Key, u8)>,
    /// How long keys may wait at their levels.
    age_limit: Option<Duration>,
    /// Whose turn it is, if there are groups.
    groups: Option<groups::Turns>,
    /// Keys that are being worked on.
    processing: Vec<Key>,
    /// Those of them whose work was taken back since.
    cancelled: Vec<Key>,
    /// Keys that will be added later, each at most once.
    waiting: Vec<Waiting>,
    /// What is remembered of keys that have failed, or are held.
    failures: Vec<(Key, Memory)>,
    /// The bursts of debounced adds.
    bursts: Vec<(Key, Burst)>,
    /// Keys that wait for an event.
    suspended: Vec<suspend::Suspended>,
    /// Keys that will be, when their runs end.
    suspensions: Vec<(Key, suspend::Plan)>,
    /// Active keys that were resumed during their runs.
    resumed: Vec<Key>,
    /// Keys whose suspension was ended by its timeout, until the end of their next run.
    timed_out: Vec<Key>,
    /// Keys that are ready or active because a pause of theirs has ended, and how many pauses there
    /// were in a row.
    began_by_pause: Vec<(Key, u8)>,
    /// Keys can be suspended.
    may_suspend: bool,
    /// Delays may have slack.
    may_slacken: bool,
    /// One has, or one before it had.
    has_windows: bool,
    /// An operation looks, so that open windows count.
    is_looking: bool,
    /// One was, or was resumed.
    has_suspended: bool,
    /// Keys of which nothing else is left, in the order in which they came to rest.
    records: Vec<Key>,

    is_shutting_down: bool,
    /// Nothing is handed out; not after shutdown.
    paused: bool,
    /// When the queue was first shut down, and the number of the next entry at that time.
    closed_at: (Instant, u64),
    drains: Drains,
    /// Those who wait for the work of a key.
    flushes: Vec<flushes::Flush>,
    /// The last run of each key.
    last_run: Vec<(Key, u64)>,
    /// Numbers the waiting entries.
    entries: u64,

    figures: Figures,
    /// When each dirty key was added.
    added: Vec<(Key, Instant)>,
    /// When each key was first added since it succeeded, was given up or had no work.
    first_added: Vec<(Key, Instant)>,
    /// When work on each key began.
    started: Vec<(Key, Instant)>,
    /// The queue knows these times.
    keeps_times: bool,
    /// A key was queued that was queued already, which only client-go does.
    has_duplicates: bool,
    /// A key was queued while it was active, which only controller-runtime does.
    has_added_active: bool,
    /// controller-runtime's AddedCounter of each key: by its first add, its last raise or release.
    counters: Vec<(Key, u64)>,
    /// A key whose delay was ended by an add has kept its place, which only controller-runtime's
    /// do.
    has_kept_place: bool,
    /// Two deadlines that have come were the same.
    has_tied: bool,
}

/// A key that will be added later.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    /// When the key may be added, if an operation looks.
    opens: Instant,
    /// When it is added at the latest.
    due: Instant,
    number: u64,
    key: Key,
    level: u8,
    /// The limiter has asked for it.
    backs_off: bool,
    /// It is the end of a pause, and how many of them there were in a row; none if zero.
    pauses: u8,
}

impl Model {
    /// Creates an empty queue with room for `capacity` keys.
    pub fn new(rules: Rules, setup: &Configuration, capacity: Option<usize>) -> Self {
        Self {
            rules,
            limiter: setup.limiter.build(),
            policy: setup.policy.build(),
            has_held: setup.policy.holds(),
            capacity,
            failure_records_max: setup.failure_records_max,
            due_keys_max: None,
            now: Instant::EPOCH,
            levels: 1,
            queued_at: Vec::new(),
            running_at: Vec::new(),
            queue: Vec::new(),
            dirty: Vec::new(),
            age_limit: None,
            groups: None,
            processing: Vec::new(),
            waiting: Vec::new(),
            failures: Vec::new(),
            bursts: Vec::new(),
            suspended: Vec::new(),
            suspensions: Vec::new(),
            resumed: Vec::new(),
            timed_out: Vec::new(),
            began_by_pause: Vec::new(),
            may_suspend: true,
            may_slacken: true,
            has_windows: false,
            is_looking: true,
            has_suspended: false,
            records: Vec::new(),
            is_shutting_down: false,
            paused: false,
            closed_at: (Instant::EPOCH, 0),
            drains: Drains::default(),
            flushes: Vec::new(),
            cancelled: Vec::new(),
            last_run: Vec::new(),
            entries: 0,
            figures: Figures::default(),
            added: Vec::new(),
            first_added: Vec::new(),
            started: Vec::new(),
            keeps_times: true,
            has_duplicates: false,
            has_added_active: false,
            counters: Vec::new(),
            has_kept_place: false,
            has_tied: false,
        }
    }

    /// Sets the number of priority levels.
    pub fn with_levels(mut self, levels: u8) -> Self {
        self.levels = levels;
        self
    }

    /// Sets whether the queue knows when its runs began, as one does whose metrics keep times.
    pub fn with_times(mut self, keeps_times: bool) -> Self {
        self.keeps_times = keeps_times;
        self
    }

    /// Limits how many due keys an operation makes ready.
    pub fn with_backlog(mut self, due_keys_max: Option<u8>) -> Self {
        self.due_keys_max = due_keys_max;
        self
    }

    /// Returns whether a key was ever queued that was queued already: from then on client-go's
    /// histories are no longer those of a queue.
    pub fn has_duplicates(&self) -> bool {
        self.has_duplicates
    }

    /// Returns whether a key was ever queued while it was active: from then on
    /// controller-runtime's order may be another than ours.
    pub fn has_added_active(&self) -> bool {
        self.has_added_active
    }

    /// Returns whether two deadlines that have come were ever the same: from then on the order of
    /// queues that break ties otherwise may be another.
    pub fn has_tied(&self) -> bool {
        self.has_tied
    }

    /// Returns how many keys are active and will be worked on once more.
    pub fn dirty_len(&self) -> usize {
        let dirty = self.dirty.iter();
        dirty.filter(|key| self.processing.contains(key)).count()
    }

    /// queue.go, Add.
    fn add_key(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        if self.is_shutting_down {
            return self.refuse(key);
        }
        self.arrive_at(key);
        self.make_room(key)?;
        Ok(self.mark(key, self.now, 0))
    }

    /// delaying_queue.go, AddAfter.
    fn add_later(&mut self, key: Key, window: Window) -> Result<Added, Rejected<Key>> {
        if self.is_shutting_down {
            return self.refuse(key);
        }
        self.arrive_at(key);
        self.make_room(key)?;
        Ok(self.retry_at(key, window, 0))
    }

    /// rate_limiting_queue.go, AddRateLimited. client-go charges its limiter even when nothing can
    /// come of it.
    fn retry(&mut self, key: Key) -> Result<Scheduled, Rejected<Key>> {
        if self.is_shutting_down && self.rules == Rules::Requeue {
            return Err(Rejected::Closed(key));
        }
        self.arrive_at(key);
        self.make_room(key)?;
        let delay = self.charge(key);
        if self.is_shutting_down {
            let added = self.refuse(key)?;
            return Ok(Scheduled { delay, added });
        }
        let level = self.retry_level(key);
        let added = self.retry_at(key, Window::exact(self.now + delay), level);
        self.note_backoff(key, self.now + delay);
        let added = self.hold_back(key, added);
        Ok(Scheduled { delay, added })
    }

    /// After shutdown requeue hands the key back. client-go drops it, and its caller cannot tell.
    fn refuse(&self, key: Key) -> Result<Added, Rejected<Key>> {
        match self.rules {
            Rules::ClientGo => Ok(Added::Coalesced),
            Rules::Requeue | Rules::ControllerRuntime => Err(Rejected::Closed(key)),
        }
    }

    /// The part of Add that a due entry shares.
    fn mark(&mut self, key: Key, at: Instant, level: u8) -> Added {
        if self.dirty.contains(&key) {
            return self.raise(key, level, at);
        }
        if self.is_suspended(key) {
            return self.add_suspended(key, level);
        }
        let held = self.held_until(key);
        if is_after(held, at) && !self.processing.contains(&key) {
            return self.schedule(key, Window::exact(held), level);
        }
        remove(&mut self.queued_at, key);
        self.queued_at.push((key, level));
        self.figures.adds += 1;
        self.figures.depth += 1;
        if !self.added.iter().any(|(added, _)| *added == key) {
            self.added.push((key, at));
        }
        if !self.first_added.iter().any(|(added, _)| *added == key) {
            self.first_added.push((key, at));
        }
        if !self.processing.contains(&key) {
            self.end_pause(key);
        }
        self.count(key);
        self.dirty.push(key);
        if self.processing.contains(&key) {
            if self.rules == Rules::ControllerRuntime {
                self.has_added_active = true;
                self.queue.push(key);
            }
            return Added::Dirty;
        }
        self.queue_at(key, at);
        self.settle();
        Added::Ready
    }

    fn retry_at(&mut self, key: Key, window: Window, level: u8) -> Added {
        self.figures.retries += 1;
        let window = self.window_of_add(key, window);
        if !is_after(window.opens, self.now) {
            return self.mark(key, self.now, level);
        }
        self.schedule(key, window, level)
    }

    /// delaying_queue.go, insert. An entry that moves is numbered again, so that entries with equal
    /// deadlines leave in the order in which they got them.
    ///
    /// Of two windows the earlier beginning and the earlier end count.
    fn schedule(&mut self, key: Key, window: Window, level: u8) -> Added {
        let Window { mut opens, due } = window;
        self.end_burst_at(key, due);
        if self.is_suspended(key) {
            opens = due;
        }
        self.has_windows |= opens != due;
        let number = self.entries;
        self.entries += 1;
        let entry = Waiting {
            opens,
            due,
            number,
            key,
            level,
            backs_off: false,
            pauses: 0,
        };
        let mut known = self.waiting.iter_mut().find(|known| known.key == key);
        if let Some(known) = known.as_mut() {
            known.opens = known.opens.min(opens);
            opens = known.opens;
        }
        let added = match known {
            Some(known) if known.due <= due && known.level >= level => Added::Coalesced,
            Some(known) if known.due <= due => {
                known.level = level;
                self.count(key);
                Added::Raised
            }
            Some(known) => {
                let before = known.level;
                let level = level.max(before);
                *known = Waiting {
                    opens,
                    level,
                    ..entry
                };
                if level > before {
                    self.count(key);
                }
                Added::Sooner
            }
            None => {
                self.waiting.push(entry);
                self.count(key);
                Added::Delayed
            }
        };
        self.settle();
        added
    }

    /// delaying_queue.go, waitingLoop: adds what is due, in the order of the deadlines, each at its
    /// own. Adds at most so many of them, and returns whether one was.
    fn release(&mut self, most: usize) -> bool {
        self.release_with(most, None)
    }

    /// As many steps as it takes: groups that get a token come in each, and overtake the backlog.
    pub(super) fn release_all(&mut self) {
        let most = self.due_keys_max.map_or(usize::MAX, usize::from);
        while self.release(most) {}
    }

    /// The last key that is added is this one, if it is due. Groups that get a token come in the
    /// same order, and as many of them.
    ///
    /// > If more keys are due, each operation makes this many ready, in the order of their
    /// > deadlines. The others are the backlog. They become ready with the operations that follow.
    ///
    /// > An operation that names a due key makes that key ready, before earlier keys of the backlog.
    ///
    /// > While no key is ready or active, an operation also skips each key whose
    /// > [suspension](crate::Session::suspend) has ended but which a hold delays.
    fn release_with(&mut self, most: usize, own: Option<Key>) -> bool {
        let named = own;
        let (mut keys, mut groups, mut released) = (most, most, false);
        while keys > 0 || groups > 0 {
            let first = self.first_waiting().filter(|first| self.is_due(first));
            let key_due = first.filter(|_| keys > 0).map(|first| first.due);
            if groups > 0 && self.group_comes_first(key_due) {
                self.group_comes_due();
                (groups, released) = (groups - 1, true);
                continue;
            }
            let own = self
                .deadlines()
                .into_iter()
                .find(|entry| keys == 1 && Some(entry.key) == own && self.is_due(entry));
            let next = own.or(first).filter(|_| keys > 0);
            // An operation on a key makes that key ready, also behind a closed window.
            let behind = || {
                let mut deadlines = self.deadlines().into_iter();
                deadlines.find(|entry| Some(entry.key) == named && self.is_due(entry))
            };
            let Some(next) = next.or_else(|| behind().filter(|_| keys > 0)) else {
                break;
            };
            self.has_tied |= own.is_none()
                && self
                    .deadlines()
                    .iter()
                    .any(|entry| entry.due == next.due && entry.key != next.key);
            self.come_due(next);
            // The end of a suspension and the key's own deadline may both have passed. If a hold
            // delays it then, and nothing else runs, the next one comes.
            let comes_again = own.is_some_and(|own| self.has_due(own.key));
            let nothing_runs = self.queue.is_empty() && self.processing.is_empty();
            // After shutdown a key that a hold delays then takes no other's turn.
            let is_put_off = self.is_shutting_down
                && !self.dirty.contains(&next.key)
                && self.waiting.iter().any(|entry| entry.key == next.key);
            let goes_on = nothing_runs || is_put_off;
            let goes_on = comes_again || (self.has_suspended && keys == 1 && goes_on);
            keys -= usize::from(!goes_on);
            released = true;
        }
        released
    }

    /// A key counts as ready since the look, or since its deadline if that is earlier.
    fn come_due(&mut self, entry: Waiting) {
        let at = match self.is_shutting_down {
            true => entry.due,
            false => entry.due.min(self.now),
        };
        if self.is_suspended(entry.key) {
            return self.end_suspension(entry.key, at, true);
        }
        self.stop_waiting(entry.key);
        self.mark(entry.key, at, entry.level);
        if entry.pauses > 0 {
            self.began_by_pause.push((entry.key, entry.pauses));
        }
    }

    /// Every operation begins with this: requeue has no loop that would do it.
    fn arrive(&mut self) {
        match self.due_keys_max {
            Some(most) => drop(self.release(usize::from(most))),
            // Only a suspension can end at once, and only a look makes a key ready early.
            None if self.has_suspended || self.has_windows => drop(self.release(usize::MAX)),
            None => self.groups_come_due(),
        }
    }

    /// What an operation on a key begins with. The last key that is released is the operation's
    /// own, if that is due.
    fn arrive_at(&mut self, key: Key) {
        match self.due_keys_max {
            None => {
                self.arrive();
                let _ = self.release_own(key);
            }
            Some(most) => {
                let _ = self.release_with(usize::from(most), Some(key));
            }
        }
        self.let_own_deadline_pass(key);
    }

    /// What an operation on the first ready key begins with.
    fn arrive_at_first(&mut self, first: fn(&Self) -> Option<Key>) {
        match first(self) {
            Some(first) => self.arrive_at(first),
            None => self.arrive(),
        }
        // A group that has got a token may have come first.
        if let Some(first) = first(self) {
            self.release_own(first);
        }
    }

    /// The deadline of a key comes, if it has passed. Returns whether it has.
    fn release_own(&mut self, key: Key) -> bool {
        let mut deadlines = self.deadlines().into_iter();
        let own = deadlines.find(|entry| entry.key == key && self.is_due(entry));
        if let Some(entry) = own {
            self.come_due(entry);
        }
        own.is_some()
    }

    fn has_due(&self, key: Key) -> bool {
        let mut deadlines = self.deadlines().into_iter();
        deadlines.any(|entry| entry.key == key && self.is_due(&entry))
    }

    /// What is handed out next, with no deadline that has passed.
    fn choose(&mut self) -> Option<Key> {
        self.settle_turns();
        self.arrive_at_first(Self::peek_first);
        let aged = self.first_aged();
        let has_passed = aged.is_some_and(|aged| self.release_own(aged));
        let aged = if has_passed { self.first_aged() } else { aged };
        let settled = aged.filter(|aged| !self.has_due(*aged));
        settled.or_else(|| self.peek_first())
    }

    /// Shutdown stops the time: what is not due by then is left over.
    fn is_due(&self, entry: &Waiting) -> bool {
        if self.is_shutting_down {
            return (entry.due, entry.number) < self.closed_at && !entry.due.is_never();
        }
        let at = if self.is_looking {
            entry.opens
        } else {
            entry.due
        };
        at <= self.now && !entry.due.is_never()
    }

    /// Whether deadlines have passed that no operation has applied.
    pub(crate) fn has_backlog(&self) -> bool {
        self.deadlines().iter().any(|entry| self.is_due(entry))
    }

    /// queue.go, Get, once there is a key.
    fn take(&mut self) -> Option<Handed> {
        if self.is_shutting_down && self.rules == Rules::ControllerRuntime {
            return None;
        }
        let key = self.choose();
        if self.paused || is_after(self.policy.next_start(), self.now) {
            return None;
        }
        let key = key?;
        // client-go may have queued it more than once.
        let place = self.queue.iter().position(|other| *other == key)?;
        self.queue.remove(place);
        self.policy.start(self.now);
        let priority = self.queued_level(key);
        remove(&mut self.running_at, key);
        self.running_at.push((key, priority));
        self.figures.depth -= 1;
        if let Some(added) = remove(&mut self.added, key) {
            let latency = self.now.saturating_since(added);
            self.figures.latencies.push(latency);
        }
        remove(&mut self.started, key);
        self.started.push((key, self.now));
        self.processing.retain(|other| *other != key);
        self.processing.push(key);
        self.dirty.retain(|other| *other != key);
        self.charge_group(key, priority);

        let run = 1 + remove(&mut self.last_run, key).unwrap_or(0);
        self.last_run.push((key, run));
        self.note_flushes_of(key);
        Some(Handed {
            key,
            ticket: Ticket { key, run },
            failures: self.failures_of(key),
            priority,
            timed_out: self.timed_out.contains(&key),
        })
    }

    /// queue.go, Done. Returns whether the key is queued again.
    ///
    /// client-go does not ask whether the key is active. Done of a key that is queued then queues
    /// it twice.
    fn end_run(&mut self, key: Key) -> bool {
        if let Some(started) = remove(&mut self.started, key) {
            let duration = self.now.saturating_since(started);
            self.figures.work_durations.push(duration);
        }
        self.end_flushes_of(key);
        self.processing.retain(|other| *other != key);
        self.cancelled.retain(|other| *other != key);
        self.refresh(crate::subject::group_of(&key));
        self.end_suspended_run(key);
        let again = self.dirty.contains(&key);
        if again && self.rules != Rules::ControllerRuntime {
            self.has_duplicates |= self.queue.contains(&key);
            self.queue_at(key, self.now);
        }
        if again || self.processing.is_empty() {
            self.drains.signal(self.processing.is_empty());
        }
        self.drop_if_blank(key);
        self.settle();
        self.drop_passed_holds();
        again
    }

    fn know(&self, key: Key) -> Option<KeyState> {
        let entry = self.waiting.iter().find(|entry| entry.key == key);
        let active = self.processing.contains(&key);
        if !self.holds(key) {
            return None;
        }
        let mut known = KeyState::default();
        known.ready = self.queue.contains(&key);
        known.active = active;
        known.dirty = active && self.dirty.contains(&key);
        known.cancelled = self.cancelled.contains(&key);
        known.due = entry.map(|entry| entry.due);
        known.suspended = self.suspension(key).map(|suspended| suspended.until);
        known.failures = self.failures_of(key);
        known.priority = match entry {
            _ if self.is_suspended(key) => self.level_of_end(key),
            _ if self.dirty.contains(&key) => self.queued_level(key),
            _ if active => self.running_level(key),
            Some(entry) => entry.level,
            None => 0,
        };
        known.active_since = self.active_since(key);
        Some(known)
    }

    /// When the run of an active key began, if the queue knows it.
    fn active_since(&self, key: Key) -> Option<Instant> {
        let mut started = self.started.iter().filter(|_| self.keeps_times);
        started.find(|(other, _)| *other == key).map(|(_, at)| *at)
    }

    fn first_waiting(&self) -> Option<Waiting> {
        let order = |entry: &Waiting| match self.rules {
            // priorityqueue.go, lessWaiting.
            Rules::ControllerRuntime => {
                let level = u8::MAX - entry.level;
                (entry.due, level, self.counter(entry.key))
            }
            Rules::ClientGo | Rules::Requeue => (entry.due, 0, entry.number),
        };
        self.deadlines().into_iter().min_by_key(order)
    }

    /// The earliest time that will come, and at which something does.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        let first = self.first_waiting();
        let due = first
            .filter(|_| !self.is_shutting_down)
            .map(|entry| entry.due);
        let due = [due, self.start_due(), self.group_deadline()];
        let due = due.into_iter().flatten().min();
        due.filter(|due| !self.paused && !due.is_never())
    }

    fn stop_waiting(&mut self, key: Key) {
        self.waiting.retain(|entry| entry.key != key);
    }
}

/// What a reader of a failing test wants to know.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut waiting = self.waiting.clone();
        waiting.sort_by_key(|entry| (entry.due, entry.number));
        let waiting = waiting.iter().map(|entry| (entry.key, entry.due));
        let waiting = waiting.map(|(key, due)| format!("{key} until {due}"));
        let dirty = self
            .processing
            .iter()
            .filter(|key| self.dirty.contains(key));
        let failed = self.failures.iter().map(|(key, _)| *key);
        let failed = failed.map(|key| format!("{key} with {}", self.failures_of(key)));
        let mut state = Vec::new();
        let mut add = |what, keys: Vec<String>| {
            if !keys.is_empty() {
                state.push(format!("{what} {}", keys.join(", ")));
            }
        };
        add("ready", self.queue.iter().map(Key::to_string).collect());
        add(
            "active",
            self.processing.iter().map(Key::to_string).collect(),
        );
        add("dirty", dirty.map(Key::to_string).collect());
        add("delayed", waiting.collect());
        let suspended = self.suspended.iter();
        add("suspended", suspended.map(ToString::to_string).collect());
        add("failures of", failed.collect());
        if self.paused {
            state.push(String::from("paused"));
        }
        if self.is_shutting_down {
            state.push(String::from("shut down"));
        }
        if state.is_empty() {
            state.push(String::from("empty"));
        }
        write!(f, "{}: {}", self.now, state.join("; "))
    }
}

/// Whether a time is still to come. What never comes is, also at the end of time.
fn is_after(at: Instant, now: Instant) -> bool {
    at > now || at.is_never()
}

/// Takes the entry of a key out of a list.
fn remove<T>(list: &mut Vec<(Key, T)>, key: Key) -> Option<T> {
    let index = list.iter().position(|(other, _)| *other == key)?;
    Some(list.remove(index).1)
}
