//! The reference model: slow, and obviously right.
//!
//! It knows of each key all there is to know, in one [`Entry`]; every operation looks at all of
//! them. What client-go does, a reader can hold against its `util/workqueue` by eye: a key is
//! *dirty*, *processing* or *waiting*. All else stands on sentences of the public documentation,
//! which are quoted where they are obeyed; a test compares them.

mod adds;
mod deadlines;
mod fingerprint;
mod groups;
mod looks;
mod runs;
mod shutdown;
mod suspend;

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use requeue_core::limiter::RateLimiter;
use requeue_core::{Action, Finished, Instant, Policy, Rejected};

use crate::Figures;
use crate::limiter::{AnyLimiter, AnyRecord};
use crate::operation::{Answer, Drain, Key, Operation, Ticket};
use crate::subject::{Abilities, Configuration, Subject};

use Operation as O;
use deadlines::{Deadline, Window};
pub use fingerprint::Fingerprint;
use groups::Turns;
use shutdown::Flush;
use suspend::{Plan, Suspended};

/// A queue that is a list of keys.
#[derive(Clone, Debug)]
pub struct Model {
    limiter: AnyLimiter,
    policy: Policy,
    /// What it can do, and how many due keys an operation makes ready; `None` if all of them, when
    /// they come due.
    abilities: Abilities,
    capacity: Option<usize>,
    failure_records_max: usize,
    /// How long keys may wait at their levels.
    age_limit: Option<Duration>,
    /// The queue knows when its runs began, as one does whose metrics keep times.
    keeps_times: bool,

    now: Instant,
    /// Every key that there may have been, by number.
    keys: Vec<Entry>,
    /// Numbers places, deadlines and records, so that of two the older is known.
    numbers: u64,
    /// Whose turn it is. A queue without groups has one group.
    turns: Turns,
    /// Nothing is handed out; not after shutdown.
    paused: bool,
    /// When the queue was first shut down, and the number of the next deadline at that time.
    closed: Option<(Instant, u64)>,
    /// Waits for the drain, and whether a shutdown has ended each.
    drains: Vec<bool>,
    flushes: Vec<Flush>,
    figures: Figures,

    /// It holds keys, or one before it did.
    has_held: bool,
    /// A key is suspended, or one was, or was resumed.
    has_suspended: bool,
    /// A delay has slack, or one had.
    has_windows: bool,
    /// An operation looks, so that open windows count.
    is_looking: bool,
}

/// All that is known of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Entry {
    /// A run is asked for: the key is *dirty*.
    queued: Option<Queued>,
    /// Its place among the ready keys.
    ready: Option<u64>,
    /// It is being worked on: the key is *processing*.
    active: bool,
    /// The level of its run, at which the key runs again if the run fails. Zero without a run.
    running: u8,
    /// Its work was taken back during the run.
    cancelled: bool,
    /// It will be added later: the key is *waiting*.
    deadline: Option<Deadline>,
    suspended: Option<Suspended>,
    /// How it will be suspended when its run ends.
    plan: Option<Plan>,
    /// It was resumed during its run.
    resumed: bool,
    /// Its suspension was ended by the timeout, until the end of the next run.
    timed_out: bool,
    /// It is ready or active because a pause has ended, and how many pauses there were in a row.
    pauses: u8,
    /// What the limiter remembers of it.
    record: AnyRecord,
    /// Until when it may not run; a time that has passed if it may.
    held_until: Instant,
    /// Its place among the keys of which nothing but failures or a hold is left.
    rests: Option<u64>,
    /// The number of its last run.
    run: u64,
    /// When the run began.
    started: Option<Instant>,
    /// When it was first added since it succeeded, was given up or had no work.
    first_added: Option<Instant>,
}

/// A run that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Queued {
    level: u8,
    added: Instant,
}

/// What is known of a key that was never added.
static UNKNOWN: LazyLock<Entry> = LazyLock::new(Entry::default);

impl Entry {
    fn level(&self) -> u8 {
        self.queued.map_or(0, |queued| queued.level)
    }

    fn is_dirty(&self) -> bool {
        self.active && self.queued.is_some()
    }

    fn has_work(&self) -> bool {
        let waits = self.deadline.is_some() || self.suspended.is_some();
        self.queued.is_some() || self.active || waits
    }

    fn has_record(&self) -> bool {
        self.record > 0 || self.held_until > Instant::EPOCH
    }

    /// The queue holds the key.
    fn is_held(&self) -> bool {
        self.has_work() || self.has_record()
    }

    /// A key that runs without another add and another deadline.
    fn runs_anyway(&self) -> bool {
        let suspended = self.suspended.and_then(|suspended| suspended.queued);
        self.queued.is_some() || suspended.is_some()
    }

    fn forget(&mut self) {
        self.record = 0;
        self.held_until = Instant::EPOCH;
    }

    /// The record says nothing any more.
    fn is_blank(&self, now: Instant) -> bool {
        self.record == 0 && !is_after(self.held_until, now)
    }

    /// The next deadline: the end of the suspension if the key is suspended, else its own.
    fn next_deadline(&self) -> Option<Deadline> {
        let end = self.suspended.map(|suspended| Deadline {
            level: self.level_of_end(),
            ..suspended.end
        });
        end.or(self.deadline)
    }

    /// The level of the run that the end of the timeout begins.
    fn level_of_end(&self) -> u8 {
        let queued = self.suspended.and_then(|suspended| suspended.queued);
        let end = self.suspended.map(|suspended| suspended.end.due);
        let own = self.deadline.filter(|own| Some(own.due) <= end);
        queued.max(own.map(|own| own.level)).unwrap_or(0)
    }

    /// The deadline of a key is no longer the end of a pause: the key is ready, or is suspended.
    fn end_pause(&mut self) {
        if let Some(deadline) = &mut self.deadline {
            deadline.pauses = 0;
        }
    }
}

impl Model {
    /// Creates an empty queue with room for `capacity` keys, of one level and without groups.
    pub fn new(setup: &Configuration, capacity: Option<usize>) -> Self {
        Self {
            limiter: setup.limiter.build(),
            policy: setup.policy.build(),
            abilities: Abilities::default(),
            capacity,
            failure_records_max: setup.failure_records_max,
            age_limit: None,
            keeps_times: true,
            now: Instant::EPOCH,
            keys: Vec::new(),
            numbers: 0,
            turns: Turns::default(),
            paused: false,
            closed: None,
            drains: Vec::new(),
            flushes: Vec::new(),
            figures: Figures::default(),
            has_held: setup.policy.holds(),
            has_suspended: false,
            has_windows: false,
            is_looking: true,
        }
    }

    /// Gives it the levels, the groups and the rest of what a queue can do.
    pub fn with_abilities(mut self, abilities: &Abilities) -> Self {
        self.abilities = *abilities;
        self
    }

    /// Sets whether the queue knows when its runs began, as one does whose metrics keep times.
    pub fn with_times(mut self, keeps_times: bool) -> Self {
        self.keeps_times = keeps_times;
        self
    }

    fn entry(&self, key: Key) -> &Entry {
        self.keys.get(usize::from(key)).unwrap_or(&UNKNOWN)
    }

    fn entry_mut(&mut self, key: Key) -> &mut Entry {
        entry_in(&mut self.keys, key)
    }

    fn entries(&self) -> impl Iterator<Item = (Key, &Entry)> {
        (0..).zip(&self.keys)
    }

    /// The keys of which this is true.
    fn keys_that(&self, is: impl Fn(&Entry) -> bool) -> impl Iterator<Item = Key> {
        let keys = self.entries().filter(move |(_, entry)| is(entry));
        keys.map(|(key, _)| key)
    }

    fn count(&self, is: impl Fn(&Entry) -> bool) -> usize {
        self.keys_that(is).count()
    }

    /// The keys that have such a place, in the order of their places.
    fn in_order(&self, place: impl Fn(&Entry) -> Option<u64>) -> Vec<Key> {
        let placed = |(key, entry)| Some((place(entry)?, key));
        let mut placed: Vec<(u64, Key)> = self.entries().filter_map(placed).collect();
        placed.sort_unstable();
        placed.into_iter().map(|(_, key)| key).collect()
    }

    /// The ready keys in the order in which they will be handed out, but for their levels.
    fn ready(&self) -> Vec<Key> {
        self.in_order(|entry| entry.ready)
    }

    /// The keys of which only records are left, in the order in which they came to rest.
    fn records(&self) -> Vec<Key> {
        self.in_order(|entry| entry.rests)
    }

    fn is_closed(&self) -> bool {
        self.closed.is_some()
    }

    fn has_no_work(&self) -> bool {
        self.count(|entry| entry.active || entry.ready.is_some()) == 0
    }

    fn next_number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn failures_of(&self, key: Key) -> u32 {
        self.limiter.failures(&self.entry(key).record)
    }

    /// A new key takes the place of the oldest record if there is no other.
    fn make_room(&mut self, key: Key) -> Result<(), Rejected<Key>> {
        if self.entry(key).is_held() {
            return Ok(());
        }
        if !self.make_place(self.group_of(key)) {
            return Err(Rejected::Full(key));
        }
        let held = self.count(Entry::is_held);
        if self.capacity.is_none_or(|capacity| held < capacity) {
            return Ok(());
        }
        let oldest = *self.records().first().ok_or(Rejected::Full(key))?;
        self.entry_mut(oldest).forget();
        self.settle();
        Ok(())
    }

    /// How many more keys there are than fit, because fewer fit than did.
    fn surplus(&self) -> usize {
        let held = self.count(Entry::is_held);
        held.saturating_sub(self.capacity.unwrap_or(usize::MAX))
    }

    /// Ends each operation. A key of which only records are left comes to rest, at most one at a
    /// time. What is known of a key for its work ends with the work.
    fn settle(&mut self) {
        let next = self.next_number();
        for entry in &mut self.keys {
            let at_rest = entry.has_record() && !entry.has_work();
            entry.rests = at_rest.then(|| entry.rests.unwrap_or(next));
        }
        let records = self.count(|entry| entry.rests.is_some());
        let too_many = records.saturating_sub(self.failure_records_max);
        let too_many = too_many.max(self.surplus());
        for oldest in self.records().into_iter().take(too_many) {
            self.entry_mut(oldest).forget();
            self.entry_mut(oldest).rests = None;
        }
        for entry in &mut self.keys {
            if !entry.has_work() {
                entry.timed_out = false;
                entry.first_added = None;
            }
            if !entry.active && entry.ready.is_none() {
                entry.pauses = 0;
            }
        }
        self.leave_places();
    }

    fn take_work_back(&mut self, key: Key) -> Answer {
        self.arrive_at(key);
        let Some(was) = self.know(key).filter(|_| self.entry(key).has_work()) else {
            return Answer::State(None);
        };
        if self.is_closed() && self.has_suspended {
            // A drain does not end before the keys that are due behind this one.
            self.arrive();
        }
        self.drop_work(key);
        Answer::State(Some(was))
    }

    fn with_work_from(&self, key: Key) -> Vec<Key> {
        self.keys_that(Entry::has_work)
            .filter(|other| *other >= key)
            .collect()
    }

    /// Whether it is specified which failure records are left of keys whose work is taken back
    /// together. Their order is not, nor which of the keys still take room that a record needs.
    pub(crate) fn cancels_in_order(&self, key: Key) -> bool {
        // A window that is open behind a closed one counts once that one is gone.
        let mut deadlines = self.deadlines();
        if deadlines.any(|(_, it)| it.opens < it.due && self.is_due(&it)) {
            return false;
        }
        let keys = self.with_work_from(key).into_iter();
        let rest = keys
            .map(|key| self.entry(key))
            .filter(|entry| entry.has_record() && !entry.active);
        match rest.count() {
            0 => true,
            1 => self.surplus() == 0,
            _ => false,
        }
    }

    /// The key leaves all lists but that of its failures.
    fn drop_work(&mut self, key: Key) {
        self.leave_queue(key);
        let entry = self.entry_mut(key);
        entry.cancelled |= entry.active;
        (entry.plan, entry.suspended, entry.deadline) = (None, None, None);
        self.settle();
    }

    /// A key is dirty no longer, and not handed out.
    fn leave_queue(&mut self, key: Key) {
        let entry = self.entry_mut(key);
        (entry.queued, entry.ready) = (None, None);
        self.note_flushes_of(key);
        self.take_places();
    }

    /// Applies an operation that answers nothing.
    fn change(&mut self, operation: &Operation) -> Answer {
        match *operation {
            O::Rewind(by) => {
                self.now = Instant::EPOCH + self.now.saturating_since(Instant::EPOCH + by);
            }
            O::ExpediteAll => self.end_all_delays(),
            O::Pause => self.paused = !self.is_closed(),
            O::Unpause => self.paused = false,
            O::Order(ref order) => return self.change_groups(order),
            O::AgeAfter(after) => self.age_limit = after,
            O::LimitKeys(keys) => {
                self.capacity = (keys < usize::MAX).then_some(keys);
                self.settle();
            }
            O::LimitFailureRecords(keys) => {
                self.failure_records_max = keys;
                self.settle();
            }
            O::LimitDueKeys(keys) => self.abilities.due_keys_max = Some(keys),
            O::SetPolicy(ref policy) => {
                self.policy = policy.build();
                self.has_held |= self.policy.holds();
            }
            O::Leave(_) => {}
            O::ReportRunning => self.report_running(),
            O::ShutDown => self.shut_down(),
            _ => return Answer::Lacking,
        }
        Answer::Done
    }

    /// A worker takes the first ready key, and completes its run before the test has seen it.
    pub(crate) fn work_unseen(&mut self, action: Action) -> Option<(Key, Finished)> {
        let handed = self.get()?;
        let finished = self.complete_run(handed.ticket, action);
        self.entry_mut(handed.key).run -= 1;
        Some((handed.key, finished))
    }
}

impl Subject for Model {
    fn new(setup: &Configuration) -> Self {
        let capacity = (setup.max_keys < usize::MAX).then_some(setup.max_keys);
        Self::new(setup, capacity).with_abilities(&Abilities {
            levels: 32,
            ages: true,
            limits_keys: true,
            ..Abilities::default()
        })
    }

    fn capacity(&self) -> Option<usize> {
        self.capacity
    }

    fn abilities(&self) -> Abilities {
        self.abilities
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        let now = self.now;
        match *operation {
            O::Add(key) => Answer::Added(self.add(key)),
            O::AddAfter(key, delay) => {
                Answer::Added(self.add_later(key, Window::exact(now + delay)))
            }
            O::AddWithin(key, delay, slack) => {
                // "A `delay` of zero is an add, with any slack."
                let slack = if delay.is_zero() { delay } else { slack };
                Answer::Added(self.add_later(key, Window::of(now + delay, slack)))
            }
            O::AddAt(key, due) => Answer::Added(self.add_later(key, Window::exact(due))),
            O::AddRateLimited(key) => Answer::Scheduled(self.add_rate_limited(key)),
            O::AddWith(key, options) => Answer::Scheduled(self.add_with(key, options)),
            O::AddDisplacing(key, options) => Answer::Displaced(self.add_displacing(key, options)),
            O::AddDebounced(key, quiet, max) => Answer::Added(self.add_debounced(key, quiet, max)),
            O::AddMany(ref keys) => self.add_many(keys),
            O::Restore(left) => Answer::Restored(self.restore(left)),
            O::Forget(key) => {
                if self.has_suspended {
                    self.arrive_at(key);
                }
                Answer::Count(self.forget_key(key) as usize)
            }
            O::CancelKey(key) => self.take_work_back(key),
            O::CancelDelay(key) => {
                self.arrive_at(key);
                let deadline = self.entry_mut(key).deadline.take();
                self.settle();
                Answer::Due(deadline.map(|deadline| deadline.due))
            }
            O::Expedite(key) => Answer::Is(self.end_delay(key)),
            O::RetainBelow(key) => {
                self.release_all();
                let keys = self.with_work_from(key);
                keys.iter().for_each(|key| self.drop_work(*key));
                Answer::Count(keys.len())
            }
            O::Suspend(key, timeout) => Answer::Is(self.suspend(key, now + timeout)),
            O::Resume(key) => Answer::Is(self.resume(key)),
            O::TryGet => Answer::Work(self.take()),
            O::Get(_) => Answer::Next(self.look()),
            O::GetMany(max, _) => Answer::NextMany(self.look_for_many(max)),
            O::Next(run, action, _) => {
                let finished = self.finish(run, action);
                Answer::Turn(finished, self.look())
            }
            O::DoneKey(key) => {
                let run = self.entry(key).run;
                Answer::Finished(self.complete_run(Ticket { key, run }, Action::Release))
            }
            O::Done(run) => Answer::Finished(self.finish(run, Action::Release)),
            O::Complete(run, action) => Answer::Finished(self.finish(run, action)),
            O::CompleteMany(ref runs, action) => {
                let ends = runs.iter().map(|run| self.finish(*run, action));
                Answer::Count(ends.filter(|end| *end == Finished::Stale).count())
            }
            O::PanicAtWork => {
                let given_back = self.work_unseen(Action::Retry);
                debug_assert!(given_back.is_none_or(|(_, end)| end != Finished::Stale));
                Answer::Is(true)
            }
            O::PanicUnderLock => Answer::Is(false),
            O::BeginDrain => Answer::Drain(self.begin_drain()),
            O::Drained(Drain(number)) => Answer::Drained(self.drained(number)),
            O::TakeDelayed => Answer::Left(self.take_delayed()),
            O::TakeReady => Answer::Left(self.take_ready()),
            O::Len => {
                self.release_all();
                Answer::Count(self.ready().len())
            }
            O::Snapshot => Answer::Snapshot(self.snapshot()),
            O::State(key) => {
                self.arrive_at(key);
                Answer::State(self.know(key))
            }
            O::Contains(key) => Answer::Is(self.entry(key).has_work()),
            O::Failures(key) => Answer::Count(self.failures_of(key) as usize),
            O::Why(key) => {
                self.arrive_at(key);
                Answer::Why(self.reason(key))
            }
            O::Stats => Answer::Stats(self.stats()),
            O::Group(group) => Answer::Group(self.group_figures(group)),
            O::IsPaused => Answer::Is(self.paused),
            O::IsIdle => {
                self.arrive();
                Answer::Is(self.has_no_work())
            }
            O::IsSettled => Answer::Is(self.count(Entry::has_work) == 0),
            O::IsShuttingDown => Answer::Is(self.is_closed()),
            O::NextLook => Answer::Look(self.next_look()),
            O::IsWithin(..) if self.abilities.groups > 0 => Answer::Lacking,
            O::IsWithin(ready_max, run_max) => Answer::Is(self.is_within(ready_max, run_max)),
            _ => self.change(operation),
        }
    }

    fn figures(&mut self) -> Option<Figures> {
        let depth = self.count(|entry| entry.queued.is_some());
        let mut figures = Figures {
            depth: i64::try_from(depth).unwrap_or(i64::MAX),
            ..self.figures.clone()
        };
        if self.abilities.levels > 1 {
            for queued in self.keys.iter().filter_map(|entry| entry.queued) {
                *figures.depths.entry(queued.level).or_default() += 1;
            }
        }
        Some(figures)
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        // A window that is open counts only once an operation looks.
        let waits_for_looks = self.abilities.due_keys_max.is_some() || self.has_windows;
        if !waits_for_looks && !self.is_closed() {
            self.release(usize::MAX, None);
        }
    }

    fn assert_valid(&mut self) {
        for entry in self.keys.iter().filter(|entry| entry.ready.is_some()) {
            assert!(entry.queued.is_some(), "every ready key is dirty");
            assert!(!entry.active, "and not active");
        }
        let has_no_record = self.records().is_empty();
        assert!(self.surplus() == 0 || has_no_record, "no more than fit");
    }
}

/// What a reader of a failing test wants to know.
impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = |tell: fn(&Entry) -> Option<String>| {
            let told = |(key, entry)| Some(format!("{key}{}", tell(entry)?));
            Vec::from_iter(self.entries().filter_map(told))
        };
        let failed = self.keys_that(Entry::has_record);
        let failed = failed.map(|key| format!("{key} with {}", self.failures_of(key)));
        let lists = [
            ("ready", self.ready().iter().map(Key::to_string).collect()),
            ("active", told(|entry| entry.active.then(String::new))),
            ("dirty", told(|entry| entry.is_dirty().then(String::new))),
            (
                "delayed",
                told(|entry| Some(format!(" until {}", entry.deadline?.due))),
            ),
            (
                "suspended",
                told(|entry| Some(format!(" {}", entry.suspended?))),
            ),
            ("failures of", failed.collect()),
        ];
        let lists = lists.iter().filter(|(_, keys)| !keys.is_empty());
        let lists = lists.map(|(what, keys)| format!("{what} {}", keys.join(", ")));
        let mut state: Vec<String> = lists.collect();
        state.extend(self.paused.then(|| String::from("paused")));
        state.extend(self.is_closed().then(|| String::from("shut down")));
        if state.is_empty() {
            state.push(String::from("empty"));
        }
        write!(f, "{}: {}", self.now, state.join("; "))
    }
}

/// What is known of a key, to be changed.
fn entry_in(keys: &mut Vec<Entry>, key: Key) -> &mut Entry {
    let place = usize::from(key);
    if keys.len() <= place {
        keys.resize_with(place + 1, Entry::default);
    }
    &mut keys[place]
}

/// Whether a time is still to come. What never comes is, also at the end of time.
fn is_after(at: Instant, now: Instant) -> bool {
    at > now || at.is_never()
}

/// How long it is until then.
fn left_until(at: Instant, now: Instant) -> Duration {
    match at.is_never() {
        true => Duration::MAX,
        false => at.saturating_since(now),
    }
}
