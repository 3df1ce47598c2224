//! What the queue owes: the rules that hold for every reconciler, kept apart from the queue.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use requeue_core::{Instant, Merge};

/// Which keys have to be run, and which are being run.
///
/// Every add is followed by a run that begins after it: at once, or once its time has come. Of two
/// times the earlier counts. No key is run twice at once. A suspended key is run when it is resumed,
/// if it was added, and when its timeout ends.
#[derive(Debug)]
pub(super) struct Ledger<K> {
    /// Added, and not run since.
    owed: BTreeSet<K>,
    /// To be added at that time.
    later: BTreeMap<K, Instant>,
    /// Active.
    active: BTreeSet<K>,
    /// Suspended, and until when at most.
    suspended: BTreeMap<K, Instant>,
    /// Suspended when their runs end, and until when at most.
    planned: BTreeMap<K, Instant>,
    /// Resumed during their runs.
    resumed: BTreeSet<K>,
    /// How many runs each key has had.
    runs: BTreeMap<K, u32>,
    closed: bool,
}

impl<K: Ord + Clone + Debug> Ledger<K> {
    pub(super) fn new() -> Self {
        Self {
            owed: BTreeSet::new(),
            later: BTreeMap::new(),
            active: BTreeSet::new(),
            suspended: BTreeMap::new(),
            planned: BTreeMap::new(),
            resumed: BTreeSet::new(),
            runs: BTreeMap::new(),
            closed: false,
        }
    }

    /// The key was added, to be run once `due` has come.
    pub(super) fn added(&mut self, key: &K, due: Instant, now: Instant) {
        // A time that has come counts as come, and not as the earlier one.
        if !self.closed {
            self.release(now);
        }
        if due <= now && !self.closed {
            self.owed.insert(key.clone());
        } else if !(self.closed && self.owed.contains(key)) {
            // What is ready when the queue closes runs, or is handed back, as that.
            let later = self.later.entry(key.clone()).or_insert(due);
            *later = due.min(*later);
        }
    }

    /// The key was added, and a rule says what becomes of its deadline.
    pub(super) fn merged(&mut self, key: &K, rule: Merge, due: Instant, now: Instant) {
        if !self.closed {
            self.release(now);
        }
        match (rule, self.later.get(key)) {
            (Merge::Keep, Some(_)) => return,
            (Merge::Latest, Some(pending)) if due <= *pending => return,
            (Merge::Latest | Merge::Replace, Some(_)) => drop(self.later.remove(key)),
            _ => {}
        }
        self.added(key, due, now);
        if rule == Merge::Once && self.owed.contains(key) {
            self.later.remove(key);
        }
    }

    /// A run begins. Returns its number, counted from one, unless the key is active already.
    pub(super) fn begins(&mut self, key: &K, now: Instant) -> Option<u32> {
        if !self.active.insert(key.clone()) {
            return None;
        }
        self.owed.remove(key);
        if !self.closed && self.later.get(key).is_some_and(|due| *due <= now) {
            self.later.remove(key);
        }
        self.suspended.remove(key);
        let runs = self.runs.entry(key.clone()).or_insert(0);
        *runs += 1;
        Some(*runs)
    }

    /// A run ends, and asks to be suspended until then at most.
    pub(super) fn ends(&mut self, key: &K, asks: Option<Instant>, now: Instant) {
        self.active.remove(key);
        let was_resumed = self.resumed.remove(key);
        let planned = self.planned.remove(key);
        match asks {
            Some(_) if was_resumed => self.added(key, now, now),
            Some(until) => {
                self.owed.insert(key.clone());
                self.suspended.insert(key.clone(), until);
            }
            None => self
                .suspended
                .extend(planned.map(|until| (key.clone(), until))),
        }
    }

    pub(super) fn suspend(&mut self, key: &K, until: Instant, now: Instant) {
        if self.closed {
            return;
        }
        self.release(now);
        if self.active.contains(key) {
            self.resumed.remove(key);
            self.planned.insert(key.clone(), until);
        } else if self.has_work(key) {
            self.suspended.insert(key.clone(), until);
        }
    }

    /// A resume that precedes the suspension counts, until the run ends.
    pub(super) fn resume(&mut self, key: &K, now: Instant) {
        if self.closed {
            return;
        }
        self.release(now);
        if self.active.contains(key) {
            self.planned.remove(key);
            self.resumed.insert(key.clone());
        } else {
            self.suspended.remove(key);
        }
    }

    fn has_work(&self, key: &K) -> bool {
        let Self {
            owed,
            later,
            suspended,
            ..
        } = self;
        owed.contains(key) || later.contains_key(key) || suspended.contains_key(key)
    }

    /// Until when a key is suspended, if nothing resumes it. After shutdown no timeout ends.
    fn suspended_until(&self, key: &K) -> Option<Instant> {
        let until = self.suspended.get(key).copied();
        until.map(|until| if self.closed { Instant::NEVER } else { until })
    }

    /// Whether a key is not to run now, because it waits for an event.
    pub(super) fn is_suspended(&self, key: &K, now: Instant) -> bool {
        self.suspended_until(key).is_some_and(|until| until > now)
    }

    /// From now on nothing becomes ready because its time comes.
    pub(super) fn close(&mut self, now: Instant) {
        self.release(now);
        self.closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Keys that are not active, and whose time came before `now`, or has come if they were added
    /// for no time in particular.
    pub(super) fn overdue(&self, now: Instant) -> impl Iterator<Item = &K> {
        let later = self.later.iter().filter(move |(_, due)| **due < now);
        let later = later.filter(|_| !self.closed).map(|(key, _)| key);
        let owed = self.owed.iter().chain(later);
        let owed = owed.chain(self.suspended.keys());
        let waits = move |key: &K| self.suspended_until(key).is_some_and(|until| until >= now);
        owed.filter(move |key| !self.active.contains(*key) && !waits(key))
    }

    /// Whether a key was added during its present run.
    pub(super) fn is_any_dirty(&self) -> bool {
        self.owed.iter().any(|key| self.active.contains(key))
    }

    /// Whether nothing is to be done at the moment.
    pub(super) fn is_quiet(&self, now: Instant) -> bool {
        let waits = |key: &K| self.is_suspended(key, now);
        let due = self
            .later
            .iter()
            .filter(|(_, due)| !self.closed && **due <= now);
        let mut due = due.map(|(key, _)| key).chain(&self.owed);
        self.active.is_empty() && due.all(waits) && self.suspended.keys().all(waits)
    }

    /// After shutdown, once all workers have gone: what has to be handed back. A successor begins
    /// with nothing.
    pub(super) fn close_books(&mut self) -> BTreeSet<K> {
        self.active.clear();
        self.planned.clear();
        self.resumed.clear();
        let later = std::mem::take(&mut self.later).into_keys();
        let suspended = std::mem::take(&mut self.suspended).into_keys();
        let mut left = std::mem::take(&mut self.owed);
        left.extend(later.chain(suspended));
        self.closed = false;
        left
    }

    fn release(&mut self, now: Instant) {
        let owed = &mut self.owed;
        for times in [&mut self.later, &mut self.suspended] {
            times.retain(|key, due| {
                let is_due = *due <= now && !due.is_never();
                if is_due {
                    owed.insert(key.clone());
                }
                !is_due
            });
        }
    }
}
