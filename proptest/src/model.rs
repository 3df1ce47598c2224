//! The reference model of a queue: slow, and obviously right.
//!
//! The model is a list of keys with everything that is known about each of them. An operation goes
//! through the whole list. There is no heap, no index and no cache. The model was written from the
//! public documentation alone, and each sentence that a function obeys is quoted beside it.
//!
//! The parts of the file, in their order: what is kept, the operations by their names, adds,
//! deadlines and looks, runs, holds, rates, groups, suspensions, room, shutdown, what can be seen,
//! metrics, waits for a key, and the fingerprint.

use std::cmp::{Ordering, Reverse};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::limiter::{RateLimiter, TokenBucket};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Finished, Instant, KeyState, Merge, Rejected, Stats, Why,
};

use crate::Figures;
use crate::limiter::{AnyLimiter, AnyRecord};
use crate::operation::{
    Answer, Displaced, Drain, Handed, Key, Left, Operation, Run as RunOf, Ticket, left_over,
};
use crate::subject::{
    Abilities, Cap, Configuration, GroupFigures, GroupOrder, PolicySpec, Rate, Scheduled, Subject,
    group_of,
};

// What is kept.

/// Orders what happened: a larger number is later. Each place is given once.
type Place = u64;

/// A queue as a list of keys.
#[derive(Clone, Debug, Default)]
pub struct Model {
    now: Instant,
    can: Abilities,
    /// Whether it is known when runs began.
    has_times: bool,
    max_keys: usize,
    records_max: usize,
    limiter: AnyLimiter,
    cool_down: Duration,
    holds_failures: bool,
    run_rate: Option<Bucket>,
    /// The last run took the last token.
    lacks_token: bool,
    age_limit: Option<Duration>,
    /// The limits of the groups that have none of their own.
    limits: Cap,
    keys: Vec<Known>,
    groups: Vec<Group>,
    is_paused: bool,
    closed_at: Option<Instant>,
    /// A drain has begun, and no shutdown has interrupted it.
    drains_now: bool,
    shut_downs: usize,
    /// How many shutdowns there had been when each drain began.
    drains: Vec<usize>,
    /// The policy holds keys, or did.
    has_held: bool,
    /// A key was suspended or polled, or an active key was resumed.
    has_waited: bool,
    last_place: Place,
    /// How often each key was handed out to the test.
    handed: BTreeMap<Key, u64>,
    /// The tickets that the test has, and the numbers of their runs.
    tickets: BTreeMap<Ticket, Place>,
    flushes: Vec<Flush>,
    figures: Figures,
}

/// A key that the queue has.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Known {
    key: Key,
    phase: Phase,
    /// The key's own deadline, in any phase.
    deadline: Option<Deadline>,
    held_until: Option<Instant>,
    record: AnyRecord,
    /// Its place among the keys without work.
    recorded: Option<Place>,
    /// A suspension has timed out, and no run has been told.
    timed_out: bool,
    /// How many pauses of a poll there were in a row.
    pauses: u32,
    /// When it first became ready since its last success.
    first: Option<Instant>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
enum Phase {
    #[default]
    Idle,
    Ready(Asked),
    Active(Run),
    Suspended(Suspension),
}

/// A run that was asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Asked {
    level: u8,
    /// Its place in the line of its level.
    place: Place,
    /// Since when the key is ready or dirty.
    since: Instant,
    /// Tells this run from others.
    number: Place,
    /// The end of a pause asked for it.
    by_pause: bool,
}

/// A run that has begun.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Run {
    /// Tells this run from others.
    number: Place,
    /// The number under which it was asked for.
    serves: Place,
    level: u8,
    began: Instant,
    is_cancelled: bool,
    /// The last of `suspend` and `resume` was `resume`.
    is_resumed: bool,
    /// The key is suspended until then once the run ends.
    suspends: Option<Instant>,
    /// The next run, if the key is dirty.
    again: Option<Asked>,
    /// How many pauses there were in a row before the run.
    pauses: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Suspension {
    timeout: Deadline,
    /// The level of the run that was asked for.
    asked: Option<u8>,
}

/// A point in time at which something comes, and the open window before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct Deadline {
    opens: Instant,
    ends: Instant,
    /// Its place among equal ones.
    place: Place,
    level: u8,
    by_limiter: bool,
    /// When the first of the debounced adds came that have set it.
    series: Option<Instant>,
    is_pause: bool,
    /// It was set after the shutdown, and does not count.
    is_left: bool,
}

/// What the end of a run asks for.
#[derive(Clone, Debug)]
enum Wish {
    Nothing,
    Later(Duration, Deadline),
    Suspension(Deadline),
}

#[derive(Clone, Debug, Default)]
struct Group {
    name: u8,
    own: Option<Cap>,
    is_paused: bool,
    /// It was paused at the shutdown, and keeps its place.
    was_paused: bool,
    bucket: Option<(Rate, Bucket)>,
    /// Its last run took the last token, and no look has noticed another.
    lacks_token: bool,
    /// Since when nothing is left of it but the tokens that it has used.
    left: Option<Place>,
    /// Its turn in each level.
    turns: Vec<Option<Turn>>,
    /// Since when it has ready keys and is blocked.
    waits: Option<Place>,
}

#[derive(Clone, Copy, Debug)]
struct Turn {
    place: Place,
    /// How many keys it has given in this turn.
    given: u16,
}

/// What a wait for the work of a key waits for.
#[derive(Clone, Debug)]
struct Flush {
    key: Key,
    /// The run that was under way.
    run: Option<Place>,
    /// The run that was asked for.
    work: Option<Place>,
}

impl Known {
    fn is_idle(&self) -> bool {
        matches!(self.phase, Phase::Idle)
    }

    fn is_ready(&self) -> bool {
        self.ready().is_some()
    }

    fn is_active(&self) -> bool {
        self.run().is_some()
    }

    fn is_suspended(&self) -> bool {
        self.suspension().is_some()
    }

    fn is_dirty(&self) -> bool {
        self.run().is_some_and(|run| run.again.is_some())
    }

    fn ready(&self) -> Option<&Asked> {
        match &self.phase {
            Phase::Ready(asked) => Some(asked),
            _ => None,
        }
    }

    fn run(&self) -> Option<&Run> {
        match &self.phase {
            Phase::Active(run) => Some(run),
            _ => None,
        }
    }

    fn suspension(&self) -> Option<&Suspension> {
        match &self.phase {
            Phase::Suspended(suspension) => Some(suspension),
            _ => None,
        }
    }

    /// The next run, if the key is ready or dirty.
    fn asked(&self) -> Option<&Asked> {
        self.run().map_or(self.ready(), |run| run.again.as_ref())
    }

    /// The level at which it was asked to run again.
    fn asked_level(&self) -> Option<u8> {
        let of_suspended = self.suspension().and_then(|it| it.asked);
        of_suspended.or(self.asked().map(|asked| asked.level))
    }

    /// Whether there is work to be done.
    fn has_work(&self) -> bool {
        !self.is_idle() || self.deadline.is_some()
    }

    /// Its place in the order of the deadlines. That of a suspended key is its timeout.
    fn due(&self) -> Option<&Deadline> {
        let timeout = self.suspension().map(|it| &it.timeout);
        timeout.or(self.deadline.as_ref())
    }

    fn deadlines_mut(&mut self) -> impl Iterator<Item = &mut Deadline> {
        let timeout = match &mut self.phase {
            Phase::Suspended(suspension) => Some(&mut suspension.timeout),
            _ => None,
        };
        self.deadline.iter_mut().chain(timeout)
    }

    /// The end of its hold, if it is held then.
    fn hold_at(&self, at: Instant) -> Option<Instant> {
        self.held_until.filter(|until| lasts(*until, at))
    }

    /// Remembers when it first became ready or dirty.
    ///
    /// > A debounced add begins no series then, a hold that begins does not end, a rate allows only
    /// > its burst, and no `time_to_success` begins.
    fn begins(&mut self, since: Instant) {
        self.first = self.first.or(Some(since)).filter(|at| !at.is_never());
    }
}

impl Model {
    /// An empty queue with room for `capacity` keys, of one level and without groups.
    pub fn new(setup: &Configuration, capacity: Option<usize>) -> Self {
        let mut model = Self {
            has_times: true,
            max_keys: capacity.unwrap_or(usize::MAX),
            records_max: setup.failure_records_max,
            limiter: setup.limiter.build(),
            ..Self::default()
        };
        model.set_policy(&setup.policy);
        model
    }

    /// The same with what else a queue can do.
    pub fn with_abilities(mut self, abilities: &Abilities) -> Self {
        self.can = *abilities;
        self
    }

    /// The same, whether or not the queue knows when its runs began.
    pub fn with_times(mut self, has_times: bool) -> Self {
        self.has_times = has_times;
        self
    }

    fn known(&self, key: Key) -> Option<&Known> {
        self.keys.iter().find(|known| known.key == key)
    }

    fn known_mut(&mut self, key: Key) -> Option<&mut Known> {
        self.keys.iter_mut().find(|known| known.key == key)
    }

    fn is(&self, key: Key, what: impl Fn(&Known) -> bool) -> bool {
        self.known(key).is_some_and(what)
    }

    fn count(&self, what: impl Fn(&Known) -> bool) -> usize {
        self.keys.iter().filter(|known| what(known)).count()
    }

    fn next_place(&mut self) -> Place {
        self.last_place += 1;
        self.last_place
    }

    fn is_closed(&self) -> bool {
        self.closed_at.is_some()
    }

    /// Whether a key is ready or active.
    fn is_busy(&self) -> bool {
        self.count(|known| known.is_ready() || known.is_active()) > 0
    }
}

// The operations by their names.

impl Subject for Model {
    fn new(setup: &Configuration) -> Self {
        let capacity = Some(setup.max_keys).filter(|keys| *keys < usize::MAX);
        let abilities = Abilities {
            levels: 32,
            ages: true,
            limits_keys: true,
            ..Abilities::default()
        };
        Self::new(setup, capacity).with_abilities(&abilities)
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        use Operation as O;
        match *operation {
            O::Add(key) => Answer::Added(self.add_plainly(key)),
            O::AddAfter(key, delay) => Answer::Added(self.add_delayed(key, delay, Duration::ZERO)),
            O::AddWithin(key, delay, slack) => Answer::Added(self.add_delayed(key, delay, slack)),
            O::AddAt(key, due) => Answer::Added(self.add_at(key, due)),
            O::AddRateLimited(key) => {
                let options = AddOptions {
                    rate_limited: true,
                    ..AddOptions::new()
                };
                self.add_with(key, options)
            }
            O::AddWith(key, options) => self.add_with(key, options),
            O::AddDisplacing(key, options) => Answer::Displaced(self.add_asked(key, options, true)),
            O::AddDebounced(key, quiet, max) => Answer::Added(self.add_debounced(key, quiet, max)),
            O::AddMany(ref keys) => self.add_many(keys),
            O::Restore(left) => Answer::Restored(self.restore(left)),
            O::Forget(key) => Answer::Count(self.forget(key) as usize),
            O::CancelKey(key) => Answer::State(self.cancel(key)),
            O::CancelDelay(key) => Answer::Due(self.cancel_delay(key)),
            O::Expedite(key) => Answer::Is(self.expedite(key)),
            O::RetainBelow(key) => Answer::Count(self.take_all_back(|_, it| it >= key)),
            O::Suspend(key, timeout) => Answer::Is(self.suspend(key, timeout)),
            O::Resume(key) => Answer::Is(self.resume(key)),
            O::Order(ref order) => self.order_groups(order),

            O::TryGet => Answer::Work(self.take().map(|handed| self.hand(handed))),
            O::Get(_) => Answer::Next(self.take_or_wait()),
            O::GetMany(max, _) => Answer::NextMany(self.take_many(max)),
            O::Next(run, action, _) => {
                let finished = self.finish_run(run, action);
                Answer::Turn(finished, self.take_or_wait())
            }
            O::DoneKey(key) => Answer::Finished(self.release_key(key)),
            O::Done(run) => Answer::Finished(self.finish_run(run, Action::Release)),
            O::Complete(run, action) => Answer::Finished(self.finish_run(run, action)),
            O::CompleteMany(ref runs, action) => {
                let ends = runs.iter().map(|run| self.finish_run(*run, action));
                Answer::Count(ends.filter(|end| *end == Finished::Stale).count())
            }

            O::BeginDrain => {
                self.close(true);
                self.drains.push(self.shut_downs);
                Answer::Drain(Drain(self.drains.len().saturating_sub(1)))
            }
            O::Drained(Drain(number)) => {
                let status = self.drain_status(number);
                status.map_or(Answer::Lacking, Answer::Drained)
            }
            O::TakeDelayed => Answer::Left(self.take_delayed()),
            O::TakeReady => Answer::Left(self.take_ready()),

            O::Len => {
                self.look_at_all();
                Answer::Count(self.count(Known::is_ready))
            }
            O::Snapshot => Answer::Snapshot(self.snapshot()),
            O::State(key) => {
                self.look(Some(key));
                Answer::State(self.state_of(key))
            }
            O::Contains(key) => Answer::Is(self.is(key, Known::has_work)),
            O::Failures(key) => Answer::Count(self.failures_of(key) as usize),
            O::Why(key) => Answer::Why(self.reason(key)),
            O::Stats => Answer::Stats(self.stats_now()),
            O::Group(name) => Answer::Group(self.group_figures(name)),
            O::IsPaused => Answer::Is(self.is_paused),
            O::IsIdle => {
                self.look(None);
                Answer::Is(!self.is_busy())
            }
            O::IsSettled => Answer::Is(self.count(Known::has_work) == 0),
            O::IsShuttingDown => Answer::Is(self.is_closed()),
            O::NextLook => Answer::Look(match self.next_to_run() {
                Some(_) => Next::Work(()),
                None => self.wait(),
            }),
            O::IsWithin(..) if self.can.groups > 0 => Answer::Lacking,
            O::IsWithin(ready_max, run_max) => Answer::Is(self.keeps_up(ready_max, run_max)),

            _ => self.change(operation),
        }
    }

    fn capacity(&self) -> Option<usize> {
        Some(self.max_keys).filter(|keys| *keys < usize::MAX)
    }

    fn abilities(&self) -> Abilities {
        self.can
    }

    fn figures(&mut self) -> Option<Figures> {
        self.read_gauges();
        Some(self.figures.clone())
    }

    fn now(&self) -> Instant {
        self.now
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
    }

    /// > **Q5** A slot is in the list of failure records, once, exactly if it is idle without a
    /// > deadline.
    fn assert_valid(&mut self) {
        for known in &self.keys {
            let is_record = known.recorded.is_some();
            assert_eq!(is_record, !known.has_work(), "the record of {}", known.key);
        }
    }
}

impl Model {
    /// Applies an operation that answers nothing.
    fn change(&mut self, operation: &Operation) -> Answer {
        use Operation as O;
        match *operation {
            O::ExpediteAll => self.expedite_all(),
            O::Pause => self.is_paused |= !self.is_closed(),
            O::Unpause => self.is_paused = false,
            O::AgeAfter(after) => self.age_limit = after,
            O::LimitKeys(keys) => {
                self.max_keys = keys;
                self.discard_too_many();
            }
            O::LimitFailureRecords(keys) => {
                self.records_max = keys;
                self.discard_too_many();
            }
            O::LimitDueKeys(keys) => self.can.due_keys_max = Some(keys),
            O::SetPolicy(ref policy) => self.set_policy(policy),
            O::Leave(_) | O::PanicUnderLock => {}
            O::ReportRunning => self.report_running(),
            O::ShutDown => self.close(false),
            O::Advance(by) => self.advance(by),
            O::Rewind(by) => {
                let before = self.now.saturating_since(Instant::EPOCH + by);
                self.now = Instant::EPOCH + before;
            }
            _ => return Answer::Lacking,
        }
        Answer::Done
    }

    // Adds.

    /// > Marks a key as having work to do.
    fn add_plainly(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        let added = self.add_asked(key, AddOptions::new(), false)?;
        Ok(added.0.added)
    }

    /// > it changes nothing for a key that is ready or active until it is over, and an `add`
    ///
    /// > A `delay` of zero is an add, with any slack.
    fn add_delayed(
        &mut self,
        key: Key,
        delay: Duration,
        slack: Duration,
    ) -> Result<Added, Rejected<Key>> {
        self.enter(key, 0, false)?;
        self.figures.retries += 1;
        let deadline = self.deadline(self.now + delay, slack, 0);
        Ok(match self.is_now(delay) {
            true => self.add_now(key, 0, Merge::Earliest, false),
            false => self.add_later(key, deadline, Merge::Earliest),
        })
    }

    /// > Adds a key at a point in time, or now if that has passed.
    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        self.enter(key, 0, false)?;
        self.figures.retries += 1;
        let deadline = self.deadline(due, Duration::ZERO, 0);
        Ok(match due > self.now || due.is_never() {
            true => self.add_later(key, deadline, Merge::Earliest),
            false => self.add_now(key, 0, Merge::Earliest, false),
        })
    }

    /// > Adds keys in order, each as `add`
    ///
    /// > Passes every key that is not taken to `rejected`, and continues with the others.
    fn add_many(&mut self, keys: &[Key]) -> Answer {
        let (mut many, mut refused) = (AddedMany::default(), Vec::new());
        for key in keys {
            match self.add_plainly(*key) {
                Ok(Added::Ready) => many.ready += 1,
                Ok(Added::Dirty) => many.dirty += 1,
                Ok(Added::Delayed | Added::Sooner | Added::Later) => many.delayed += 1,
                Ok(_) => many.coalesced += 1,
                Err(rejected) => refused.push(rejected),
            }
        }
        many.rejected = refused.len();
        Answer::AddedMany(many, refused)
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Answer {
        let added = self.add_asked(key, options, false);
        Answer::Scheduled(added.map(|(scheduled, _)| scheduled))
    }

    /// > Counts a failure, and asks the limiter how long the key waits, as `add_rate_limited`
    ///
    /// > With `hold_failures`, a hold lasts as long as the limiter's delay, even if `after` is
    /// > shorter.
    ///
    /// > A rate-limited add whose `after` is shorter than the limiter's delay is another call.
    ///
    /// > At this time, an add without a delay under `Replace` or `Latest` keeps such a deadline,
    /// > does not make the key ready, and ends its series of debounced adds.
    fn add_asked(&mut self, key: Key, options: AddOptions, displaces: bool) -> Displaced {
        let displaced = self.enter(key, options.priority.unwrap_or(0), displaces)?;
        let before = self.known(key).cloned().unwrap_or_default();
        let level = level_of(&before, &options);
        let failed = options.rate_limited.then(|| self.count_failure(key));
        let is_shorter = options.after.is_some_and(|after| Some(after) < failed);
        let asked = if is_shorter {
            options.after
        } else {
            failed.or(options.after)
        };
        self.figures.retries += u64::from(asked.is_some());
        let is_later = asked.is_some_and(|delay| !self.is_now(delay));
        let delay = asked.unwrap_or_default();
        let backoff = failed.filter(|_| self.holds_failures);
        if let Some(backoff) = backoff {
            self.hold(key, backoff);
        }
        let is_never = self.now.is_never() && before.deadline.is_some();
        let is_same = is_never && matches!(options.merge, Merge::Latest | Merge::Replace);
        let added = if is_later || is_same {
            let slack = share(delay, options.slack);
            let deadline = Deadline {
                by_limiter: failed.is_some() && !is_shorter,
                ..self.deadline(self.now + delay, slack, level)
            };
            self.add_later(key, deadline, options.merge)
        } else {
            self.add_now(key, level, options.merge, backoff.is_some())
        };
        let is_held = |known: &Known| known.hold_at(self.now).is_some();
        let holds = backoff.is_some() && self.is(key, is_held);
        let added = match holds && !before.is_active() {
            true => self.put_off(key, &before, is_later, added),
            false => added,
        };
        Ok((Scheduled { delay, added }, displaced))
    }

    /// A failure holds a key that was just added. Returns what the add has changed.
    ///
    /// > The answer is `Delayed` if the key was ready or had no deadline, and `Later` if the hold
    /// > moved an earlier deadline. Otherwise it is the answer of the add.
    fn put_off(&mut self, key: Key, before: &Known, is_later: bool, added: Added) -> Added {
        self.obey_hold(key);
        let after = self.known(key).and_then(|known| known.deadline.as_ref());
        let is_asked = before.is_suspended() && !is_later;
        match (&before.deadline, after) {
            _ if before.is_ready() => Added::Delayed,
            (Some(before), Some(after)) if is_asked && after.ends == before.ends => added,
            (Some(before), Some(after)) => moved(before, after),
            (None, Some(_)) => Added::Delayed,
            _ => added,
        }
    }

    /// > Adds a key that another queue returned, with its remaining delay, its priority level and
    /// > its failures.
    ///
    /// > If the queue already has the key, the earlier deadline, the higher priority level and the
    /// > larger number of failures count.
    fn restore(&mut self, left: Left) -> Result<Added, Rejected<Left>> {
        let (key, level) = (left.key, left.priority);
        if let Err(rejected) = self.enter(key, level, false) {
            return Err(match rejected {
                Rejected::Full(_) => Rejected::Full(left),
                Rejected::UnknownPriority(_) => Rejected::UnknownPriority(left),
                _ => Rejected::Closed(left),
            });
        }
        let (limiter, failures) = (self.limiter.clone(), self.failures_of(key));
        if let Some(known) = self.known_mut(key).filter(|_| left.failures > failures) {
            limiter.set_failures(&mut known.record, left.failures);
        }
        if left.left.is_zero() {
            return Ok(self.add_now(key, level, Merge::Earliest, false));
        }
        self.figures.retries += 1;
        let deadline = self.deadline(self.now + left.left, Duration::ZERO, level);
        Ok(self.add_later(key, deadline, Merge::Earliest))
    }

    /// > Otherwise, the deadline is `quiet` from now, and at most `max` after the first add of the
    /// > series. Each call uses its own `quiet` and `max`. If this time has come, the deadline is
    /// > removed, the key is added now at the level of the deadline, and the series ends.
    ///
    /// > Only the deadline of a series is made later. If another call has asked for an earlier one,
    /// > that one stays. If it has asked for a later one, a series replaces it, and may move beyond
    /// > it. A key that is ready or dirty runs after this add in any case, and stays as it is.
    ///
    /// > A debounced add of a held key asks at least for the end of the hold.
    fn add_debounced(
        &mut self,
        key: Key,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<Key>> {
        self.enter(key, 0, false)?;
        self.figures.retries += 1;
        let now = self.now;
        let known = self.known(key).cloned().unwrap_or_default();
        if known.asked_level().is_some() {
            return Ok(Added::Coalesced);
        }
        let series = known.deadline.as_ref().and_then(|it| it.series);
        let first = series.unwrap_or(now);
        let hold = known.hold_at(now).filter(|_| known.is_idle());
        let due = (now + quiet).min(first + max);
        let due = due.max(hold.unwrap_or_default());
        let stays = known.deadline.is_some_and(|it| it.ends == due);
        let merge = match series {
            Some(_) if stays => Merge::Keep,
            Some(_) => Merge::Replace,
            None => Merge::Earliest,
        };
        if due <= now && !due.is_never() {
            return Ok(self.add_now(key, 0, merge, false));
        }
        let deadline = Deadline {
            series: Some(first).filter(|first| !first.is_never()),
            ..self.deadline(due, Duration::ZERO, 0)
        };
        Ok(self.add_later(key, deadline, merge))
    }

    /// Gives a key its place, or says why not. Returns the key that was evicted.
    ///
    /// > An add is refused as `Closed` first, then as `UnknownPriority`, then as `Full`.
    ///
    /// > An add that is refused as `Full` has looked. An add that is refused for another reason has
    /// > not.
    ///
    /// > `add_displacing` looks twice if it evicts a key: for the add that finds no room, and for
    /// > the add after it.
    fn enter(
        &mut self,
        key: Key,
        level: u8,
        displaces: bool,
    ) -> Result<Option<Left>, Rejected<Key>> {
        if self.is_closed() {
            return Err(Rejected::Closed(key));
        }
        if level >= self.can.levels {
            return Err(Rejected::UnknownPriority(key));
        }
        self.look(Some(key));
        if self.known(key).is_some() {
            return Ok(None);
        }
        let Some(displaced) = self.make_room(key, displaces.then_some(level)) else {
            return Err(Rejected::Full(key));
        };
        if displaced.is_some() {
            self.look(Some(key));
        }
        self.keys.push(Known {
            key,
            ..Known::default()
        });
        self.open_group(group_of(&key));
        Ok(displaced)
    }

    /// An add without a delay.
    ///
    /// > A key that is ready, active or dirty stays so: no rule undoes an earlier add.
    ///
    /// > An add that removes a deadline asks for the higher of the two levels.
    ///
    /// > Otherwise, an add of a held key for an earlier time asks for the end of the hold.
    fn add_now(&mut self, key: Key, level: u8, merge: Merge, fails: bool) -> Added {
        let (now, mut level) = (self.now, level);
        let deadline = self.deadline(now, Duration::ZERO, level);
        let Some(known) = self.known_mut(key) else {
            return Added::Coalesced;
        };
        let may_be_held = known.is_idle() || fails && known.is_ready();
        if may_be_held && known.hold_at(now).is_some() {
            return self.add_later(key, deadline, merge);
        }
        if matches!(merge, Merge::Latest | Merge::Keep)
            && let Some(deadline) = &mut known.deadline
        {
            return raised(&mut deadline.level, level);
        }
        if matches!(merge, Merge::Once | Merge::Replace) {
            let removed = known.deadline.take();
            level = level.max(removed.map_or(0, |it| it.level));
        }
        self.ask(key, level, now, false)
    }

    /// Asks for a run of a key that is not held.
    ///
    /// > A ready key stays where it is. An active key will run again after its present run.
    fn ask(&mut self, key: Key, level: u8, since: Instant, by_pause: bool) -> Added {
        let place = self.next_place();
        if self.is(key, |known| known.asked_level().is_some()) {
            return self.raise(key, level, since);
        }
        let asked = Asked {
            level,
            place,
            since,
            number: place,
            by_pause,
        };
        let Some(known) = self.known_mut(key) else {
            return Added::Coalesced;
        };
        let added = match &mut known.phase {
            Phase::Suspended(suspension) => {
                suspension.asked = Some(level);
                return Added::Delayed;
            }
            Phase::Active(run) => {
                run.again = Some(asked);
                Added::Dirty
            }
            _ => {
                known.phase = Phase::Ready(asked);
                known.recorded = None;
                Added::Ready
            }
        };
        known.begins(since);
        self.figures.adds += 1;
        self.regroup(group_of(&key), since);
        added
    }

    /// > An add never lowers a key's level. An add that raises it moves the key to the end of the
    /// > higher level.
    ///
    /// > A key that is raised leaves its line and joins another: if it is the only ready key of its
    /// > group, the group has had one since the raise.
    fn raise(&mut self, key: Key, level: u8, at: Instant) -> Added {
        let place = self.next_place();
        let Some(known) = self.known_mut(key) else {
            return Added::Coalesced;
        };
        let asked = match &mut known.phase {
            Phase::Ready(asked) if asked.level < level => asked.clone(),
            Phase::Active(Run {
                again: Some(asked), ..
            }) => return raised(&mut asked.level, level),
            Phase::Suspended(Suspension {
                asked: Some(asked), ..
            }) => return raised(asked, level),
            _ => return Added::Coalesced,
        };
        // It leaves its line, and joins another.
        for phase in [
            Phase::Idle,
            Phase::Ready(Asked {
                level,
                place,
                ..asked
            }),
        ] {
            if let Some(known) = self.known_mut(key) {
                known.phase = phase;
            }
            self.regroup(group_of(&key), at);
        }
        Added::Raised
    }

    /// An add with a delay.
    ///
    /// > A delayed add of a key that is ready or dirty sets no deadline, and removes a pending one,
    /// > even an earlier one.
    ///
    /// > A window that opens during a hold opens when the hold ends. A window that ends during a
    /// > hold ends with the hold.
    ///
    /// > `why` names `BackingOff` if the deadline is that of the limiter. If a longer hold has
    /// > moved it, and is forgotten, it names `Delayed`.
    fn add_later(&mut self, key: Key, deadline: Deadline, merge: Merge) -> Added {
        let (now, mut new) = (self.now, deadline);
        let Some(known) = self.known_mut(key) else {
            return Added::Coalesced;
        };
        if merge == Merge::Once && known.asked_level().is_some() {
            let removed = known.deadline.take();
            let level = new.level.max(removed.map_or(0, |it| it.level));
            return self.raise(key, level, now);
        }
        if known.is_suspended() {
            new.opens = new.ends;
        }
        if let Some(until) = known.hold_at(now).filter(|_| !known.is_active()) {
            new.by_limiter &= new.ends >= until;
            (new.opens, new.ends) = (new.opens.max(until), new.ends.max(until));
        }
        known.recorded = None;
        let Some(old) = known.deadline.take() else {
            known.deadline = Some(new);
            return Added::Delayed;
        };
        let merged = old.merged(new, merge);
        let added = moved(&old, &merged);
        known.deadline = Some(merged);
        added
    }

    /// Whether a delay is over at once.
    ///
    /// > A clock must not return it, because a delay of zero that begins then never ends.
    fn is_now(&self, delay: Duration) -> bool {
        delay.is_zero() && !self.now.is_never()
    }

    /// A deadline that is set now, and opens then.
    ///
    /// > The end is at most one nanosecond before `Instant::NEVER`, and a delay that never ends has
    /// > no slack.
    ///
    /// > It is never earlier than the shutdown.
    fn deadline(&mut self, opens: Instant, slack: Duration, level: u8) -> Deadline {
        let has_slack = self.can.slackens && !slack.is_zero() && !opens.is_never();
        let last = Instant::from_nanos(u64::MAX - 1);
        let opens = opens.max(self.closed_at.unwrap_or_default());
        Deadline {
            opens,
            ends: if has_slack {
                (opens + slack).min(last)
            } else {
                opens
            },
            place: self.next_place(),
            level,
            is_left: self.is_closed(),
            ..Deadline::default()
        }
    }
}

impl Deadline {
    /// > The rule applies to each by itself. Under `Earliest` and `Once` the earlier beginning and
    /// > the earlier end count, under `Latest` the later ones. The result of the add compares the
    /// > ends.
    ///
    /// > A rule that moves the deadline ends a backoff, a pause of `poll` and a series of debounced
    /// > adds. A rule that leaves the deadline leaves the backoff and the pause.
    fn merged(self, new: Self, merge: Merge) -> Self {
        let (opens, ends) = match merge {
            Merge::Earliest | Merge::Once => (self.opens.min(new.opens), self.ends.min(new.ends)),
            Merge::Latest => (self.opens.max(new.opens), self.ends.max(new.ends)),
            Merge::Replace => (new.opens, new.ends),
            _ => (self.opens, self.ends),
        };
        let level = self.level.max(new.level);
        let mut merged = if ends == self.ends { self } else { new };
        if new.ends == self.ends {
            merged.by_limiter |= new.by_limiter;
            let stays = merge == Merge::Keep || new.series.is_some();
            merged.series = merged.series.filter(|_| stays);
        }
        Self {
            opens,
            ends,
            level,
            ..merged
        }
    }
}

/// > Otherwise it is `Sooner` or `Later` if the deadline moves, `Raised` if only its level rises,
/// > and `Coalesced` if neither does.
fn moved(before: &Deadline, after: &Deadline) -> Added {
    match after.ends.cmp(&before.ends) {
        Ordering::Less => Added::Sooner,
        Ordering::Greater => Added::Later,
        Ordering::Equal if after.level > before.level => Added::Raised,
        Ordering::Equal => Added::Coalesced,
    }
}

fn raised(level: &mut u8, to: u8) -> Added {
    if *level >= to {
        return Added::Coalesced;
    }
    *level = to;
    Added::Raised
}

/// > `None` means 0, or the level of the present run if the add is rate-limited and the key is
/// > active.
fn level_of(known: &Known, options: &AddOptions) -> u8 {
    let run = known.run().filter(|_| options.rate_limited);
    let level = options.priority.or(run.map(|run| run.level));
    level.unwrap_or(0)
}

/// Whether a hold has not ended.
///
/// > At the end of its hold, a key is no longer held.
///
/// > A deadline, hold or timeout of `Instant::NEVER` does not pass, even at shutdown.
fn lasts(until: Instant, now: Instant) -> bool {
    until > now || until.is_never()
}

/// So many percent of a delay.
///
/// > The slack of an action is rounded down to a nanosecond.
fn share(delay: Duration, percent: u8) -> Duration {
    let nanos = delay.as_nanos().saturating_mul(u128::from(percent)) / 100;
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

// Deadlines and looks.

impl Model {
    /// Whether something has come. The own deadline of a suspended key does not come.
    ///
    /// > Deadlines and timeouts up to the time of the shutdown that were set before it have passed.
    /// > A deadline that is set later does not end, even if the clock goes on.
    fn is_open(&self, due: &Deadline) -> bool {
        let has_come = match self.closed_at {
            None => due.opens <= self.now,
            Some(at) => due.ends <= at && !due.is_left,
        };
        has_come && !due.ends.is_never()
    }

    fn is_due(&self, key: Key) -> bool {
        self.is(key, |known| {
            known.due().is_some_and(|due| self.is_open(due))
        })
    }

    /// The key whose time ends first, if it may become ready.
    ///
    /// > Such a call looks at the keys in the order of their deadlines, equal ones in the order in
    /// > which they were set. It makes the first key ready if its window is open, then the next
    /// > one. It stops at the first key whose window is still closed: the keys behind it wait, even
    /// > if their own windows are open.
    fn first_due(&self) -> Option<(Instant, Key)> {
        let (due, key) = self.next_due()?;
        self.is_open(due).then_some((due.ends, key))
    }

    fn next_due(&self) -> Option<(&Deadline, Key)> {
        let known = self.keys.iter();
        let due = known.filter_map(|known| Some((known.due()?, known.key)));
        due.min_by_key(|(due, _)| (due.ends, due.place))
    }

    /// Makes due keys ready, and lets groups take their turns whose rate allows a run again.
    fn look(&mut self, named: Option<Key>) {
        self.look_as_of(self.now, named);
    }

    /// The same with the tokens of groups at a time.
    ///
    /// > A look makes at most n due keys ready, in the order of their deadlines.
    ///
    /// > If an operation names a due key, the key is at the latest the last of the n.
    ///
    /// > In the same look, up to n groups whose rate allows a run again rejoin the turn. Keys and
    /// > groups are counted apart, and are handled in the order of their times. At equal times, the
    /// > group is first.
    ///
    /// > If the suspension of a named key has ended, and a hold that delayed it further has ended
    /// > too, the key passes both in one look, each at its time.
    ///
    /// > A group whose time is later than that of the next key in order rejoins after the named
    /// > key.
    fn look_as_of(&mut self, at: Instant, named: Option<Key>) {
        let most = self.can.due_keys_max;
        let most = most.map_or(usize::MAX, |keys| usize::from(keys.max(1)));
        let (mut keys, mut groups) = (most, most);
        loop {
            let named = named.filter(|key| self.is_due(*key));
            let first = self.first_due();
            let first = first.or(named.map(|key| (Instant::NEVER, key)));
            let last = named.filter(|_| keys == 1);
            let due = first.map(|(ends, key)| (ends, last.unwrap_or(key)));
            let token = self.first_token(at).filter(|_| groups > 0);
            match (due.filter(|_| keys > 0), token) {
                (Some((ends, key)), token) if token.is_none_or(|(at, _)| ends < at) => {
                    self.end_delay(key);
                    let is_left = last.is_some() && self.is_due(key);
                    let is_counted = keys > 1 || !(is_left || self.is_exempt(key));
                    keys -= usize::from(is_counted);
                }
                (_, Some((_, name))) => {
                    groups -= 1;
                    self.notice_token(name);
                }
                _ => break,
            }
        }
        if let Some(key) = named.filter(|_| !self.is_closed()) {
            self.pass_own_deadline(key);
        }
    }

    /// Whether a key does not use up the last place of a look.
    ///
    /// > the last of the n places has an exception. A deadline does not use it up if no key is
    /// > ready or active afterwards. The look continues with the next due key, until a key becomes
    /// > ready or none is due. After shutdown, in every queue, a key that a hold delays does not
    /// > use it up either, even if other keys are ready or active.
    fn is_exempt(&self, key: Key) -> bool {
        let is_delayed = self.is(key, |it| it.is_idle() && it.held_until.is_some());
        (self.has_waited && !self.is_busy()) || (self.is_closed() && is_delayed)
    }

    /// > The deadline of a suspended key stays. If it passes, it counts as an add once the
    /// > suspension ends or an operation names the key. From then on `state` shows no deadline, and
    /// > an add is `Coalesced`.
    fn pass_own_deadline(&mut self, key: Key) -> Option<()> {
        let now = self.now;
        let known = self.known_mut(key)?;
        if let Phase::Suspended(suspension) = &mut known.phase {
            let has_passed = |it: &mut Deadline| it.ends <= now && !it.ends.is_never();
            let deadline = known.deadline.take_if(has_passed)?;
            suspension.asked = Some(deadline.level).max(suspension.asked);
        }
        Some(())
    }

    /// > `len`, `expedite_all`, `retain`, `clear`, `take_delayed` and the `stats` of a `WorkQueue`
    /// > look until nothing is due.
    fn look_at_all(&mut self) {
        self.look(None);
        while self.has_more(self.now) {
            self.look(None);
        }
    }

    /// Whether a look with the tokens of a time finds something.
    fn has_more(&self, at: Instant) -> bool {
        self.first_due().is_some() || self.first_token(at).is_some()
    }

    /// Whether deadlines have passed that no operation has applied.
    pub(crate) fn has_backlog(&self) -> bool {
        let dues = self.keys.iter().filter_map(Known::due);
        let mut passed = dues.filter(|due| due.ends <= self.now);
        passed.any(|due| self.is_open(due))
    }

    /// The delay or the suspension of a key ends by itself.
    ///
    /// > A key that becomes ready counts as added at its deadline, or now if its window is open and
    /// > has not ended. If it is active, it becomes dirty. If it is ready or dirty already, its
    /// > deadline is removed, and can raise its level.
    ///
    /// > A pause starts a run only if the key became ready at the end of that pause, or in its open
    /// > window.
    fn end_delay(&mut self, key: Key) -> Option<()> {
        let known = self.known_mut(key)?;
        if known.is_suspended() {
            return self.time_out(key);
        }
        let deadline = known.deadline.take()?;
        let by_pause = deadline.is_pause && known.is_idle();
        let since = self.time_of(&deadline);
        self.ask(key, deadline.level, since, by_pause);
        Some(())
    }

    /// When a deadline that ends adds its key.
    ///
    /// > After that, no window counts
    fn time_of(&self, deadline: &Deadline) -> Instant {
        let now = self.now.min(deadline.ends);
        self.closed_at.map_or(now, |_| deadline.ends)
    }

    /// > Cancels the deadline of a key. Returns it, or `None` if the key is not delayed.
    ///
    /// > A key that is also ready or active stays so. A deadline that has passed has added the key
    /// > already.
    fn cancel_delay(&mut self, key: Key) -> Option<Instant> {
        self.look(Some(key));
        let deadline = self.known_mut(key)?.deadline.take()?;
        self.rest(key, false);
        Some(deadline.ends)
    }

    /// > Ends the delay of a key now, as if its deadline had passed. Returns whether it had one.
    ///
    /// > The key becomes ready, or dirty if it is active; if it is ready, it stays where it is.
    fn expedite(&mut self, key: Key) -> bool {
        if self.is_closed() {
            return false;
        }
        self.look(Some(key));
        self.hurry(key).is_some()
    }

    /// > `expedite` of a held key with a deadline returns true. A deadline after the hold moves to
    /// > the end of the hold, without slack and at its level. It is no longer part of a backoff, of
    /// > debounced adds or of a pause of `poll`. A deadline at the end of the hold stays.
    fn hurry(&mut self, key: Key) -> Option<()> {
        let now = self.now;
        let known = self.known(key)?;
        let (hold, deadline) = (known.hold_at(now), known.deadline?);
        let hold = hold.filter(|_| !known.is_active());
        let at_hold = hold.filter(|until| deadline.ends > *until);
        let at_hold = at_hold.map(|until| self.deadline(until, Duration::ZERO, deadline.level));
        let known = self.known_mut(key)?;
        if hold.is_some() {
            known.deadline = at_hold.or(known.deadline);
        } else {
            known.deadline = None;
            self.ask(key, deadline.level, now, false);
        }
        Some(())
    }

    /// > Ends the delays of some keys now, in the order of their deadlines, as `expedite`
    fn expedite_all(&mut self) {
        if self.is_closed() {
            return;
        }
        self.look_at_all();
        let deadlines = self.keys.iter().filter_map(|known| {
            let deadline = known.deadline?;
            Some((deadline.ends, deadline.place, known.key))
        });
        let mut deadlines: Vec<_> = deadlines.collect();
        deadlines.sort_unstable();
        for (_, _, key) in deadlines {
            self.hurry(key);
        }
    }

    /// Whether the order is specified in which delays end that `ExpediteAll` ends together.
    ///
    /// > delays end in no order: the delay of a held key cannot end.
    pub(crate) fn ends_delays_in_order(&self) -> bool {
        let is_ordered = !(self.has_held || self.has_waited);
        is_ordered || self.is_closed() || self.count(|known| known.deadline.is_some()) <= 1
    }

    /// The earliest time that will come and at which something does.
    ///
    /// > `next_deadline` is the earliest of three times, even if it has passed. The first is the
    /// > first deadline or timeout. The second is the next token of a group with ready keys, even
    /// > if the group is paused or at its limit. The third is the next token for a run, if the last
    /// > run took the last token and a key is ready whose group may run. It is `None` while the
    /// > queue is paused. After shutdown only the tokens count. `Instant::NEVER` does not count.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        if self.is_paused {
            return None;
        }
        let dues = self.keys.iter().filter_map(Known::due);
        let ends = dues.filter(|_| !self.is_closed()).map(|due| due.ends);
        let of_groups = self.groups.iter().filter_map(|group| self.token_of(group));
        let may_run = |known: &Known| self.group(group_of(&known.key)).is_none_or(Group::is_free);
        let is_next = self.count(|known| known.is_ready() && may_run(known)) > 0;
        let run_rate = self.run_rate.as_ref().map(Bucket::next_at);
        let run_rate = run_rate.filter(|_| self.lacks_token && is_next);
        let times = ends.chain(of_groups).chain(run_rate);
        times.filter(|time| !time.is_never()).min()
    }

    /// When a key may run for which `why` has named the time `until`.
    ///
    /// > may run earlier, until this time at the latest.
    pub(crate) fn opens(&self, key: Key, until: Instant) -> Instant {
        let due = self.known(key).and_then(Known::due);
        let due = due.filter(|due| due.ends == until);
        due.map_or(until, |due| due.opens)
    }

    // Runs.

    /// > Takes the first ready key, if there is one.
    fn take(&mut self) -> Option<Handed> {
        let key = self.next_to_run()?;
        if let Some(bucket) = &mut self.run_rate {
            bucket.take(self.now);
            self.lacks_token = !bucket.has_token(self.now);
        }
        self.begin_run(key)
    }

    /// Looks, and finds the key that may run now.
    ///
    /// > A get first checks the group in front. If the present limits block it, the group leaves
    /// > its turn, and the next group is checked. Then the get looks. It names the key that is
    /// > first before the look, regardless of age. If no key is ready, it names none. If another
    /// > key is first after the look, because a group got a token, a deadline of that key that has
    /// > passed is applied too. Then the get takes the first key, or the key that has aged.
    ///
    /// > After its look, a get chooses the oldest aged key of those that are next at their levels.
    /// > If a deadline of this key has passed, it is applied first, which may raise the key to the
    /// > end of a higher level. Then the get chooses once more. If a deadline of the second choice
    /// > has passed too, or if no key has aged, the get takes the first key of the highest level.
    fn next_to_run(&mut self) -> Option<Key> {
        let before = self.first_in_turn();
        self.look(before);
        let other = self.first_in_turn().filter(|key| Some(*key) != before);
        if let Some(key) = other.filter(|key| self.is_due(*key)) {
            self.end_delay(key);
        }
        if let Some(key) = self.oldest_aged().filter(|key| self.is_due(*key)) {
            self.end_delay(key);
        }
        let aged = self.oldest_aged().filter(|key| !self.is_due(*key));
        let first = aged.or_else(|| self.first_in_turn());
        first.filter(|_| !self.is_paused && self.has_run_token())
    }

    /// > The highest level that has a ready key is served first, and within a level the key that
    /// > became ready first.
    fn first_in_turn(&mut self) -> Option<Key> {
        let levels = (0..self.can.levels).rev();
        let mut nexts = levels.filter_map(|level| self.next_of_level(level));
        nexts.next().map(|(_, key)| key)
    }

    /// > Of each level, the key that is next there is looked at. Of those that have waited for
    /// > longer than the time, the one that has waited longest is served; if there is none, the
    /// > highest level is, as without aging.
    ///
    /// > A key has aged if it has waited longer than the time that `age_after` sets.
    fn oldest_aged(&mut self) -> Option<Key> {
        let (now, limit) = (self.now, self.age_limit?);
        let levels = (0..self.can.levels).rev();
        let nexts = levels.filter_map(|level| self.next_of_level(level));
        let aged = nexts.filter(|(since, _)| now.saturating_since(*since) > limit);
        aged.min_by_key(|(since, _)| *since).map(|(_, key)| key)
    }

    /// The key that is next at a level, and since when it has waited.
    ///
    /// > With groups, the key that is next at a level is the first key of the group whose turn it
    /// > is at that level.
    fn next_of_level(&mut self, level: u8) -> Option<(Instant, Key)> {
        let group = match self.can.groups {
            0 => None,
            _ => Some(self.group_in_front(level)?),
        };
        self.line(level, group).first().copied()
    }

    /// The ready keys of a level in their order, of a group or of all, and since when each has
    /// waited.
    fn line(&self, level: u8, group: Option<u8>) -> Vec<(Instant, Key)> {
        let ready = self.keys.iter().filter_map(|known| {
            let asked = known.ready().filter(|asked| asked.level == level)?;
            let is_here = group.is_none_or(|name| group_of(&known.key) == name);
            is_here.then_some((asked.place, (asked.since, known.key)))
        });
        let line: BTreeMap<Place, (Instant, Key)> = ready.collect();
        line.into_values().collect()
    }

    /// A ready key begins to run.
    ///
    /// > A run is told of a timeout if the last suspension of the key ended by its timeout, and no
    /// > run has ended since.
    fn begin_run(&mut self, key: Key) -> Option<Handed> {
        let (now, number, failures) = (self.now, self.next_place(), self.failures_of(key));
        let known = self.known_mut(key)?;
        let asked = known.ready()?.clone();
        let handed = Handed::of(key, failures, asked.level, known.timed_out);
        known.timed_out = false;
        known.pauses = if asked.by_pause { known.pauses } else { 0 };
        if let Some(deadline) = &mut known.deadline {
            deadline.is_pause = false;
        }
        known.phase = Phase::Active(Run {
            number,
            serves: asked.number,
            level: asked.level,
            began: now,
            pauses: known.pauses,
            ..Run::default()
        });
        let waited = now.saturating_since(asked.since);
        self.figures.latencies.push(waited);
        self.serve_turn(group_of(&key), asked.level);
        Some(handed)
    }

    /// Numbers a run that the test sees.
    fn hand(&mut self, mut handed: Handed) -> Handed {
        let runs = self.handed.entry(handed.key).or_default();
        *runs += 1;
        handed.ticket.run = *runs;
        let run = self.known(handed.key).and_then(Known::run);
        let number = run.map_or(0, |run| run.number);
        self.tickets.insert(handed.ticket, number);
        handed
    }

    /// > Takes the first ready key, or returns until when to wait.
    fn take_or_wait(&mut self) -> Next<Handed> {
        match self.take() {
            Some(handed) => Next::Work(self.hand(handed)),
            None => self.wait(),
        }
    }

    /// > If there is no key to return, `next_look` and `poll_get` answer `Closed` if the queue is
    /// > shut down and no key is ready, nor dirty in a drain.
    fn wait<T>(&self) -> Next<T> {
        let until = self.next_deadline();
        match self.is_exhausted() {
            true => Next::Closed,
            false => Next::Wait { until },
        }
    }

    /// > Takes up to `max` ready keys in order, each as `poll_get`
    ///
    /// > A `max` of zero counts as one.
    fn take_many(&mut self, max: usize) -> Next<Vec<Handed>> {
        let most = max.max(1);
        let takes = (0..most).map_while(|_| self.take().map(|handed| self.hand(handed)));
        let many: Vec<_> = takes.collect();
        match many.is_empty() {
            true => self.wait(),
            false => Next::Work(many),
        }
    }

    /// What a call gets that looks again for as long as it is told to do so at once.
    pub(crate) fn get(&mut self) -> Option<Handed> {
        let mut handed = self.take();
        while handed.is_none() && self.has_more(self.now) {
            handed = self.take();
        }
        handed.map(|handed| self.hand(handed))
    }

    /// Whether there is a key now for a call that sleeps. An open window wakes no call.
    pub(crate) fn has_a_key_now(&self) -> bool {
        let mut model = self.clone();
        for known in &mut model.keys {
            if let Some(deadline) = &mut known.deadline {
                deadline.opens = deadline.ends;
            }
            if let Phase::Suspended(Suspension { timeout, .. }) = &mut known.phase {
                timeout.opens = timeout.ends;
            }
        }
        model.look_at_all();
        model.next_to_run().is_some()
    }

    /// A worker takes the first ready key and completes its run before the test has seen it.
    pub(crate) fn work_unseen(&mut self, action: Action) -> Option<(Key, Finished)> {
        let key = self.take()?.key;
        let number = self.known(key)?.run()?.number;
        Some((key, self.finish(key, number, action)))
    }

    /// The key of a run. `None` if the run is over.
    pub fn key_of(&self, ticket: Ticket) -> Option<Key> {
        let number = self.tickets.get(&ticket)?;
        let run = self.known(ticket.key)?.run()?;
        (run.number == *number).then_some(ticket.key)
    }

    /// > Returns `Finished::Stale` if the run had ended before.
    fn finish_run(&mut self, run: RunOf, action: Action) -> Finished {
        let RunOf::Of(ticket) = run else {
            return Finished::Stale;
        };
        match self.tickets.remove(&ticket) {
            Some(number) => self.finish(ticket.key, number, action),
            None => Finished::Stale,
        }
    }

    /// > Ends the run of a key, as client-go's `Done`: the key's failures stay as they are.
    ///
    /// > Returns `Finished::Stale` if the key is not active: nothing changes.
    fn release_key(&mut self, key: Key) -> Finished {
        let run = self.known(key).and_then(Known::run);
        let number = run.map_or(0, |run| run.number);
        self.finish(key, number, Action::Release)
    }

    fn finish(&mut self, key: Key, number: Place, action: Action) -> Finished {
        let finished = self.end_run(key, number, action);
        finished.unwrap_or(Finished::Stale)
    }

    /// > These happen in this order: the look, the failures and the hold of the action, its
    /// > deadline, the end of the run, the cool-down, and then the suspension, the hold or the next
    /// > run of the key.
    ///
    /// > After shutdown, the end of a run whose dirty key does not become ready looks a second
    /// > time. In a queue that has suspensions, so does a `cancel` of a key with work, before it
    /// > cancels. The second look names no key. This way, a drain does not end before the keys that
    /// > are due.
    fn end_run(&mut self, key: Key, number: Place, action: Action) -> Option<Finished> {
        self.known(key)?.run().filter(|run| run.number == number)?;
        self.look(Some(key));
        let mut run = self.known(key)?.run()?.clone();
        let lasted = self.now.saturating_since(run.began);
        self.figures.work_durations.push(lasted);
        let wish = self.judge(key, &run, action);
        let wish = self.fulfil(key, &mut run, wish);
        let asks = run.again.is_some();
        self.known_mut(key)?.phase = Phase::Idle;
        self.lift(group_of(&key));
        if !self.cool_down.is_zero() {
            self.hold(key, self.cool_down);
        }
        let pause = match (&wish, action.into_parts().0) {
            (Wish::Later(_, pause), Action::Poll(..)) if !asks => Some(pause.ends),
            _ => None,
        };
        let finished = self.after_run(key, run, &wish);
        self.count_pause(key, pause);
        self.rest(key, true);
        self.check_records();
        if self.is_closed() && asks && !self.is(key, Known::is_ready) {
            self.look(None);
        }
        Some(finished)
    }

    /// What an action counts, and what it asks for.
    ///
    /// > `Success` and `RequeueAfter` say that the run worked. `Retry` and `GiveUp` say that it
    /// > failed. The other actions say neither.
    ///
    /// > `Action::Suspend` replaces an earlier `suspend`. After a `resume`, it is an action with a
    /// > delay of zero.
    ///
    /// > It also counts each run that ends before shutdown with `Retry`, `RequeueAfter`, `Snooze`,
    /// > `poll`, or `Suspend` after a `resume`.
    fn judge(&mut self, key: Key, run: &Run, action: Action) -> Wish {
        let (plain, priority) = action.into_parts();
        let can_suspend = self.can.suspends;
        let suspends = matches!(plain, Action::Suspend(_)) && can_suspend && !run.is_resumed;
        match plain {
            Action::Success | Action::RequeueAfter(_) => self.clear(key, run, true),
            Action::GiveUp => self.clear(key, run, false),
            Action::Poll(..) => self.has_waited |= can_suspend,
            _ => {}
        }
        let delay = match plain {
            Action::Suspend(_) if can_suspend && run.is_resumed => Duration::ZERO,
            Action::RequeueAfter(delay) | Action::Snooze(delay) | Action::Suspend(delay) => delay,
            Action::Poll(min, most) => self.pause_of(key, run, min, most),
            Action::Retry => {
                let backoff = self.count_failure(key);
                if self.holds_failures {
                    self.hold(key, backoff);
                }
                backoff
            }
            _ => return Wish::Nothing,
        };
        self.figures.retries += u64::from(!self.is_closed() && !suspends);
        let slack = if self.is_closed() { 0 } else { action.slack() };
        let level = priority.map_or(run.level, |level| {
            level.min(self.can.levels.saturating_sub(1))
        });
        let deadline = Deadline {
            by_limiter: plain == Action::Retry,
            ..self.deadline(self.now + delay, share(delay, slack), level)
        };
        match suspends {
            true => Wish::Suspension(deadline),
            false => Wish::Later(delay, deadline),
        }
    }

    /// Sets the deadline of an action, or asks for a run now. Returns what is left to do.
    ///
    /// > Before shutdown, an action with a delay of zero is an add during the run, at the level of
    /// > `with_priority`, or else of the run.
    ///
    /// > At the end of a run, an action with a delay sets a deadline unless the key is dirty, also
    /// > if the delay is zero.
    fn fulfil(&mut self, key: Key, run: &mut Run, wish: Wish) -> Wish {
        let (now, place, is_closed) = (self.now, self.next_place(), self.is_closed());
        let Wish::Later(delay, deadline) = wish else {
            return wish;
        };
        if self.is_now(delay) && !is_closed {
            self.figures.adds += u64::from(run.again.is_none());
            let asked = run.again.get_or_insert(Asked {
                place,
                since: now,
                number: place,
                ..Asked::default()
            });
            asked.level = asked.level.max(deadline.level);
            if let Some(known) = self.known_mut(key) {
                known.begins(now);
            }
            return Wish::Nothing;
        }
        if !is_closed || run.again.is_none() {
            self.add_later(key, deadline, Merge::Earliest);
        }
        wish
    }

    /// The key after its run.
    ///
    /// > A key that was added during its run is `Ready`, whatever delay its action has, unless it
    /// > is held or suspended then.
    ///
    /// > If the key is not dirty when its run ends, `Finished::Delayed` has the longer of the
    /// > action's delay and the rest of the hold.
    ///
    /// > A key that is suspended is `Leftover` with the timeout, even if it was dirty.
    fn after_run(&mut self, key: Key, run: Run, wish: &Wish) -> Finished {
        let (now, closed_at) = (self.now, self.closed_at);
        let put_off = |left: Duration| match closed_at {
            Some(_) => Finished::Leftover(left),
            None => Finished::Delayed(left),
        };
        let asked = run.again.as_ref().map(|asked| asked.level);
        let plan = run.suspends;
        let plan = plan.map(|until| self.deadline(until, Duration::ZERO, 0));
        let (timeout, asked) = match wish {
            Wish::Suspension(timeout) => (Some(*timeout), Some(timeout.level).max(asked)),
            _ => (plan, asked),
        };
        if let Some(timeout) = timeout {
            self.begin_suspension(key, timeout, asked);
            self.obey_hold(key);
            let left = left_until(timeout.opens, now);
            return closed_at.map_or(Finished::Suspended(left), |_| put_off(left));
        }
        let hold = self.known(key).and_then(|known| known.hold_at(now));
        let held = hold.map(|until| left_until(until, now));
        let finished = match (run.again, wish, held) {
            (Some(asked), _, Some(held)) => {
                self.wait_for_hold(key, asked.level);
                put_off(held)
            }
            (Some(asked), _, None) => {
                self.ready_after_run(key, asked);
                Finished::Ready
            }
            (None, Wish::Later(delay, _), held) => put_off(held.unwrap_or_default().max(*delay)),
            _ => Finished::Idle,
        };
        self.obey_hold(key);
        finished
    }

    /// > A dirty key that is held when its run ends is delayed until the end of the hold, and
    /// > `Finished::Delayed` has the rest of the hold. This deadline replaces every other deadline
    /// > of the key, also a later one of its action. The highest level counts.
    fn wait_for_hold(&mut self, key: Key, level: u8) {
        let deadline = self.deadline(self.now, Duration::ZERO, level);
        self.add_later(key, deadline, Merge::Replace);
    }

    /// > When a run ends, its group rejoins the turn before its dirty key becomes ready. So a dirty
    /// > key is behind the other ready keys of its group.
    fn ready_after_run(&mut self, key: Key, asked: Asked) {
        let (now, place) = (self.now, self.next_place());
        if let Some(known) = self.known_mut(key) {
            known.phase = Phase::Ready(Asked { place, ..asked });
        }
        self.regroup(group_of(&key), now);
    }

    /// The pause of a poll.
    ///
    /// > If a run began because a pause ended, its own pause is twice as long.
    ///
    /// > The longest pause is the largest multiple of `min` up to `max`, and at most 2^18 - 1 times
    /// > `min`.
    fn pause_of(&mut self, key: Key, run: &Run, min: Duration, most: u32) -> Duration {
        if !self.can.suspends {
            return min;
        }
        let times = 1_u32.checked_shl(run.pauses).unwrap_or(u32::MAX);
        let times = times.min(most.max(1)).min((1 << 18) - 1);
        if let Some(known) = self.known_mut(key) {
            known.pauses = run.pauses.saturating_add(1).min(18);
        }
        min.saturating_mul(times)
    }

    /// > A pause counts only if the run ends with the key delayed until the end of the pause, or
    /// > until a hold that ends later. It does not count for a dirty key, after shutdown, or after
    /// > a `suspend` during the run.
    fn count_pause(&mut self, key: Key, pause: Option<Instant>) -> Option<()> {
        let counts = self.can.suspends && !self.is_closed();
        let known = self.known_mut(key).filter(|it| counts && it.is_idle())?;
        let ends = known.held_until.max(pause).filter(|_| pause.is_some());
        let deadline = known.deadline.as_mut()?;
        deadline.is_pause = Some(deadline.ends) == ends;
        Some(())
    }

    /// A key that has nothing to do keeps its record, or leaves the queue.
    ///
    /// > A key without work that was held stays as a record after its hold, also without failures:
    /// > until the end of a later run of any key drops it, or it is forgotten or evicted.
    fn rest(&mut self, key: Key, is_end_of_run: bool) -> Option<()> {
        let (now, place) = (self.now, self.next_place());
        let known = self.known_mut(key).filter(|known| !known.has_work())?;
        known.first = None;
        known.timed_out = false;
        let is_held = |until: Instant| !is_end_of_run || lasts(until, now);
        if known.record != AnyRecord::default() || known.held_until.is_some_and(is_held) {
            known.recorded = known.recorded.or(Some(place));
            self.discard_too_many();
        } else {
            self.remove(key);
        }
        Some(())
    }

    fn remove(&mut self, key: Key) {
        self.keys.retain(|known| known.key != key);
        self.regroup(group_of(&key), self.now);
    }

    /// > Cancels the work of a key: it is no longer ready, dirty, delayed or suspended.
    fn cancel(&mut self, key: Key) -> Option<KeyState> {
        self.look(Some(key));
        if self.is_closed() && self.has_waited && self.is(key, Known::has_work) {
            self.look(None);
        }
        self.take_back(key)
    }

    /// > No later run is told of a timeout that ended before. The other keys keep their order.
    fn take_back(&mut self, key: Key) -> Option<KeyState> {
        let was = self.state_of(key)?;
        let known = self.known_mut(key).filter(|known| known.has_work())?;
        known.deadline = None;
        known.timed_out = false;
        if let Phase::Active(run) = &mut known.phase {
            (run.again, run.suspends, run.is_cancelled) = (None, None, true);
        } else {
            known.phase = Phase::Idle;
        }
        self.regroup(group_of(&key), self.now);
        self.rest(key, false);
        Some(was)
    }

    /// > Asks about each key that is ready, active, delayed or suspended, in no order.
    fn take_all_back(&mut self, goes: impl Fn(&Self, Key) -> bool) -> usize {
        self.look_at_all();
        let keys = self.keys.iter().map(|known| known.key);
        let all: Vec<Key> = keys.filter(|key| goes(self, *key)).collect();
        all.into_iter().filter_map(|it| self.take_back(it)).count()
    }

    /// Whether it is specified which failure records are left of keys whose work is taken back
    /// together, which windows open when they are gone, and which group leaves first.
    ///
    /// > The order in which failure records are discarded when room is short is not specified for
    /// > keys that were cancelled together.
    ///
    /// > `retain` does not specify which keys behind the windows of cancelled keys become ready, nor
    /// > which records it leaves if they do not all fit, nor which of two groups leaves first.
    pub(crate) fn cancels_in_order(&self, key: Key) -> bool {
        let works = |known: &Known| known.key >= key && known.has_work();
        let records = self.count(|known| {
            let is_kept = known.record != AnyRecord::default() || known.held_until.is_some();
            works(known) && !known.is_active() && is_kept
        });
        let fits = self.keys.len() <= self.max_keys;
        let is_specified = records == 0 || (records == 1 && fits) || self.count(works) <= 1;
        let mut after = self.clone();
        after.take_all_back(|_, it| it >= key);
        let left = |it: &Self| it.groups.iter().filter(|it| it.left.is_some()).count();
        let leaves_alone = left(&after) <= left(self) + 1;
        // Behind a closed window that is cancelled, a key may become ready before it is cancelled.
        let mut opened = self.clone();
        opened.take_all_back(|it, other| other >= key && !it.is_due(other));
        is_specified && leaves_alone && opened.first_due().is_none()
    }

    // Holds and failures.

    fn failures_of(&self, key: Key) -> u32 {
        let known = self.known(key);
        known.map_or(0, |known| self.limiter.failures(&known.record))
    }

    /// > Counts a failure of the key, and returns how long the key has to wait.
    fn count_failure(&mut self, key: Key) -> Duration {
        let now = self.now;
        let mut record = self.known(key).map_or(0, |known| known.record);
        let delay = self.limiter.when(&mut record, now);
        if let Some(known) = self.known_mut(key) {
            known.record = record;
        }
        delay
    }

    /// > A new hold never shortens another: the later of two ends counts.
    fn hold(&mut self, key: Key, pause: Duration) {
        let until = self.now + pause;
        if let Some(known) = self.known_mut(key) {
            let later = known.held_until.max(Some(until));
            known.held_until = later.filter(|until| *until > Instant::EPOCH);
        }
    }

    /// Moves the deadline of a key that is not active, or the run that it is ready for, to the end
    /// of its hold.
    ///
    /// > During a run its key is not held. Adds, delays and `expedite` act at once, and obey the
    /// > hold after the run.
    fn obey_hold(&mut self, key: Key) -> Option<()> {
        let now = self.now;
        let known = self.known(key).filter(|known| !known.is_active())?;
        let until = known.held_until?;
        let ready = known.ready().filter(|_| lasts(until, now));
        let ready = ready.map(|asked| asked.level);
        let is_early = |deadline: &Deadline| deadline.ends < until;
        let early = known.deadline.filter(is_early).map(|deadline| Deadline {
            is_pause: deadline.is_pause,
            ..self.deadline(until, Duration::ZERO, deadline.level)
        });
        let known = self.known_mut(key)?;
        known.deadline = early.or(known.deadline);
        if let Some(deadline) = &mut known.deadline {
            deadline.opens = deadline.opens.max(until);
            // An add has made the key ready, and not the end of the pause.
            deadline.is_pause &= ready.is_none();
        }
        if let Some(level) = ready {
            known.phase = Phase::Idle;
            let deadline = self.deadline(now, Duration::ZERO, level);
            self.add_later(key, deadline, Merge::Earliest);
            self.regroup(group_of(&key), now);
        }
        Some(())
    }

    /// > Forgets the failures of a key in any state. A pending delay stays. O(1). Once a key was
    /// > suspended or polled, first makes due keys ready, in O(log n).
    ///
    /// > Returns how many failures were forgotten: zero for a key that the queue does not have.
    fn forget(&mut self, key: Key) -> u32 {
        if self.has_waited {
            self.look(Some(key));
        }
        let failures = self.failures_of(key);
        if let Some(known) = self.known_mut(key) {
            (known.record, known.held_until) = Default::default();
        }
        self.rest(key, false);
        failures
    }

    /// > In a queue whose policy holds keys, or has held keys, each run that ends checks two
    /// > records: the oldest, and then the next oldest. A record that is still held ends the check.
    /// > A record without failures is dropped. A record with failures whose hold has ended becomes
    /// > the youngest.
    fn check_records(&mut self) -> Option<()> {
        let now = self.now;
        for _ in 0..2 {
            let place = self.next_place();
            let key = self.oldest_record().filter(|_| self.has_held)?;
            let known = self.known_mut(key)?;
            if known.hold_at(now).is_some() {
                return None;
            }
            known.recorded = Some(place);
            if known.record == AnyRecord::default() {
                self.remove(key);
            }
        }
        Some(())
    }

    /// > Keys that are held stay so, for as long as the former policy has said. A run rate begins
    /// > with its burst.
    fn set_policy(&mut self, policy: &PolicySpec) {
        self.cool_down = Duration::from_nanos(policy.cool_down_ns);
        self.holds_failures = policy.hold_failures;
        self.has_held |= policy.holds();
        self.run_rate = policy.run_rate.and_then(Bucket::of_runs);
        self.lacks_token = false;
    }
}

// Rates.

/// Tokens that are earned over time. Times are in parts of a nanosecond.
///
/// > The rate is exact over time: rounding errors do not add up.
#[derive(Clone, Debug)]
struct Bucket {
    burst: u32,
    /// How long it takes to earn a token. `None`: none is ever earned.
    interval: Option<u128>,
    /// When the bucket is full.
    full_at: u128,
    /// How many tokens are left, if none is ever earned.
    left: u32,
    /// When the last token was taken.
    taken_at: Instant,
}

/// A nanosecond has 2^32 parts.
const PARTS: u32 = 32;

impl Bucket {
    /// > the burst, and then none, as with burst 0
    fn new(rate: Rate) -> Self {
        let per_second = rate.per_second.0;
        let parts = 1e9 / per_second * (1_u64 << PARTS) as f64;
        Self {
            burst: rate.burst,
            interval: (per_second > 0.0).then_some(parts as u128),
            full_at: 0,
            left: rate.burst,
            taken_at: Instant::EPOCH,
        }
    }

    fn of_runs(rate: Rate) -> Option<Self> {
        let is_unlimited = rate.per_second.0 >= TokenBucket::UNLIMITED_RATE;
        (!is_unlimited).then(|| Self::new(rate))
    }

    /// From when on there is a token, if any is earned.
    fn next_in_parts(&self) -> Option<u128> {
        let others = u128::from(self.burst.checked_sub(1)?);
        let saved = self.interval?.saturating_mul(others);
        Some(self.full_at.saturating_sub(saved))
    }

    fn next_at(&self) -> Instant {
        match self.next_in_parts() {
            Some(parts) => {
                let nanos = parts.div_ceil(1 << PARTS);
                Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
            None if self.interval.is_none() && self.left > 0 => Instant::EPOCH,
            None => Instant::NEVER,
        }
    }

    fn has_token(&self, at: Instant) -> bool {
        let is_left = self.interval.is_none() && self.left > 0;
        let at = u128::from(at.as_nanos()) << PARTS;
        self.next_in_parts().map_or(is_left, |next| next <= at)
    }

    /// Keeps the tokens that there were after the last run if the clock is behind it.
    fn follow(&mut self, now: Instant) {
        let behind = self.taken_at.saturating_since(now).as_nanos();
        self.full_at = self.full_at.saturating_sub(behind << PARTS);
    }

    /// > Up to `burst` unused tokens are saved, so a queue that was idle may start `burst` runs in
    /// > a row.
    ///
    /// > A token that is earned between two nanoseconds can be used at the later one. The next
    /// > token is counted from the exact time.
    fn take(&mut self, now: Instant) {
        self.follow(now);
        self.taken_at = now;
        let now = u128::from(now.as_nanos());
        if self.full_at.div_ceil(1 << PARTS) < now {
            self.full_at = now << PARTS;
        }
        match self.interval {
            Some(interval) => self.full_at = self.full_at.saturating_add(interval),
            None => self.left = self.left.saturating_sub(1),
        }
    }
}

impl Model {
    /// Whether the rate of runs allows a run now.
    ///
    /// > If the clock is behind the last run, a rate of runs has the tokens that it had after that
    /// > run.
    fn has_run_token(&self) -> bool {
        self.run_rate.clone().is_none_or(|mut bucket| {
            bucket.follow(self.now);
            bucket.has_token(self.now)
        })
    }
}

// Groups.

impl Group {
    /// When the rate allows a run.
    fn next_token(&self) -> Option<Instant> {
        self.bucket.as_ref().map(|(_, bucket)| bucket.next_at())
    }

    /// Whether it may start a run, as far as is known.
    fn is_free(&self) -> bool {
        self.waits.is_none()
    }

    /// Whether anything is set for it by name.
    fn is_set(&self) -> bool {
        self.own.is_some() || self.is_paused || self.was_paused
    }
}

impl Model {
    fn group(&self, name: u8) -> Option<&Group> {
        self.groups.iter().find(|group| group.name == name)
    }

    fn group_mut(&mut self, name: u8) -> Option<&mut Group> {
        self.groups.iter_mut().find(|group| group.name == name)
    }

    /// Makes a group, unless it is there.
    fn open_group(&mut self, name: u8) {
        if self.can.groups > 0 && self.group(name).is_none() {
            self.groups.push(Group {
                name,
                turns: vec![None; usize::from(self.can.levels)],
                ..Group::default()
            });
            self.fill_bucket(name);
        }
    }

    fn cap_of(&self, group: &Group) -> Cap {
        group.own.unwrap_or(self.limits)
    }

    /// > A rate that changes begins with a full burst, also if it changes back. The same rate and
    /// > burst keep their tokens.
    fn fill_bucket(&mut self, name: u8) -> Option<()> {
        let rate = self.cap_of(self.group(name)?).rate.filter(Rate::is_valid);
        let group = self.group_mut(name)?;
        if group.bucket.as_ref().map(|(of, _)| *of) != rate {
            group.bucket = rate.map(|rate| (rate, Bucket::new(rate)));
            group.lacks_token = false;
        }
        Some(())
    }

    fn keys_of(&self, name: u8, what: impl Fn(&Known) -> bool) -> usize {
        self.count(|known| group_of(&known.key) == name && what(known))
    }

    /// Forgets the groups of which nothing is left.
    ///
    /// > A group comes and goes with its keys, or stays while limits are set for it by name. Once
    /// > its last key has left, one with a rate stays until the tokens it has used are earned
    /// > again, or until its room is needed.
    fn tidy_groups(&mut self) {
        let place = self.next_place();
        let is_used = |group: &Group| group.is_set() || self.keys_of(group.name, |_| true) > 0;
        let used: Vec<bool> = self.groups.iter().map(is_used).collect();
        for (group, is_used) in self.groups.iter_mut().zip(used) {
            group.left = group.left.or(Some(place)).filter(|_| !is_used);
        }
        let is_there = |group: &Group| group.left.is_none() || group.bucket.is_some();
        self.groups.retain(is_there);
    }

    /// Makes a place for one more group, if it needs one. Returns whether there is one.
    ///
    /// > A new group without a place takes the place of a group that has left and stays for its
    /// > rate: the group that left first, even if its tokens are not earned again. If none has
    /// > left, the new group takes the place of a group that has only failure records, and no
    /// > limits of its own and no pause.
    fn make_place(&mut self, name: u8) -> bool {
        self.tidy_groups();
        let is_there = self.can.groups == 0 || self.group(name).is_some();
        if is_there || self.groups.len() < self.can.groups {
            return true;
        }
        let left = self.groups.iter().filter(|group| group.left.is_some());
        let left = left.min_by_key(|group| group.left);
        let has_records_alone = |name: u8| {
            let is_set = self.group(name).is_some_and(Group::is_set);
            !is_set && self.keys_of(name, Known::has_work) == 0
        };
        let records = self.keys.iter().filter_map(|known| {
            let name = group_of(&known.key);
            has_records_alone(name).then_some((known.recorded, name))
        });
        let oldest = records.min().map(|(_, name)| name);
        let Some(other) = left.map(|group| group.name).or(oldest) else {
            return false;
        };
        self.keys.retain(|known| group_of(&known.key) != other);
        self.groups.retain(|group| group.name != other);
        true
    }

    /// > With zero none is handed out: after shutdown one at a time is, because a drain has to end.
    ///
    /// > If the rate is not a positive number, or the burst is zero, no key is handed out, as with
    /// > a `max_active`
    fn is_at_limit(&self, group: &Group) -> bool {
        let most = self.cap_of(group).most_active();
        let most = if self.is_closed() { most.max(1) } else { most };
        self.keys_of(group.name, Known::is_active) >= most
    }

    fn may_run(&self, group: &Group, at: Instant) -> bool {
        let lacks_token = group.lacks_token && group.next_token() > Some(at);
        !group.is_paused && !self.is_at_limit(group) && !lacks_token
    }

    /// The time of the token of a group with ready keys that no look has noticed.
    fn token_of(&self, group: &Group) -> Option<Instant> {
        let is_ready = self.keys_of(group.name, Known::is_ready) > 0;
        group.next_token().filter(|_| is_ready && group.lacks_token)
    }

    /// > If two groups get their tokens at the same time, the group that has had a ready key for
    /// > longer is first.
    fn first_token(&self, by: Instant) -> Option<(Instant, u8)> {
        let tokens = self.groups.iter().filter_map(|group| {
            let at = self.token_of(group)?;
            (at <= by && !at.is_never()).then_some((at, group.waits, group.name))
        });
        tokens.min().map(|(at, _, name)| (at, name))
    }

    /// > Only a look notices a token. It also notices the token of a group that is paused or at its
    /// > limit, if the group has ready keys.
    fn notice_token(&mut self, name: u8) {
        for group in &mut self.groups {
            group.lacks_token &= group.name != name;
        }
        self.lift(name);
    }

    /// Keeps the turns of a group in line with its ready keys, of which one has become ready at a
    /// time.
    ///
    /// > Each level has its own turn. A group joins the end of the turn when its first key becomes
    /// > ready at that level, and leaves when its last ready key there leaves.
    ///
    /// > After a run has taken a token, a group with less than one token left waits until it has
    /// > one, even if it has no ready key at present. If its next key has a deadline at or after
    /// > the time of that token, or is added then, the group does not wait.
    fn regroup(&mut self, name: u8, at: Instant) -> Option<()> {
        let place = self.next_place();
        let levels = 0..self.can.levels;
        let ready = levels.map(|level| !self.line(level, Some(name)).is_empty());
        let ready: Vec<bool> = ready.collect();
        let may_run = self.may_run(self.group(name)?, at);
        let group = self.group_mut(name)?;
        for (turn, is_ready) in group.turns.iter_mut().zip(&ready) {
            turn.take_if(|_| !is_ready);
        }
        if !ready.contains(&true) {
            group.waits = None;
        } else if group.is_free() && group.turns.iter().all(Option::is_none) {
            group.lacks_token &= group.next_token() > Some(at);
            group.waits = Some(place).filter(|_| !may_run);
        }
        for (turn, is_ready) in group.turns.iter_mut().zip(&ready) {
            if *is_ready && group.waits.is_none() {
                turn.get_or_insert(Turn { place, given: 0 });
            }
        }
        self.tidy_groups();
        Some(())
    }

    /// Checks whether a group is blocked.
    ///
    /// > A blocked group is checked again when one of its runs ends, and when a look comes to the
    /// > time of its token. It is also checked when its own limits or its pause change, and when
    /// > the common limits change.
    ///
    /// > A group that reaches its limit leaves the turns of all levels, even before its weight is
    /// > used up. When it may run again, it joins the end of the turn of each level at which it has
    /// > ready keys.
    fn lift(&mut self, name: u8) -> Option<()> {
        let (now, place) = (self.now, self.next_place());
        let group = self.group(name)?;
        let may_run = !group.lacks_token && self.may_run(group, now);
        let group = self.group_mut(name)?;
        if may_run {
            group.waits = None;
        } else {
            group.turns.fill(None);
            group.waits = group.waits.or(Some(place));
        }
        self.regroup(name, now)
    }

    /// A group has given a key.
    ///
    /// > A group stays in front until it has given as many keys as its weight says at that moment.
    /// > Then it moves to the end of the turn. Only keys that a get hands out count.
    fn serve_turn(&mut self, name: u8, level: u8) -> Option<()> {
        let (now, place) = (self.now, self.next_place());
        let weight = self.cap_of(self.group(name)?).weight.max(1);
        let group = self.group_mut(name)?;
        if let Some((_, bucket)) = &mut group.bucket {
            bucket.take(now);
            group.lacks_token = !bucket.has_token(now);
        }
        if let Some(turn) = group.turns.get_mut(usize::from(level))? {
            turn.given = turn.given.saturating_add(1);
            if turn.given >= weight {
                *turn = Turn { place, given: 0 };
            }
        }
        self.lift(name)
    }

    /// The groups that have a turn in a level, in its order.
    fn turns_of(&self, level: u8) -> Vec<u8> {
        let turns = self.groups.iter().filter_map(|group| {
            let turn = group.turns.get(usize::from(level))?.as_ref()?;
            Some((turn.place, group.name))
        });
        let turns: BTreeMap<Place, u8> = turns.collect();
        turns.into_values().collect()
    }

    fn group_in_front(&mut self, level: u8) -> Option<u8> {
        loop {
            let name = *self.turns_of(level).first()?;
            if self.may_run(self.group(name)?, self.now) {
                return Some(name);
            }
            self.lift(name);
        }
    }

    /// > If there is no place, an add is refused as `Full`, and `limit_group(name, Some(_))` and
    /// > `pause_group` return the name. `limit_group(name, None)` and `unpause_group` need no
    /// > place.
    fn order_groups(&mut self, order: &GroupOrder) -> Answer {
        self.look(None);
        let (name, needs_place) = match *order {
            GroupOrder::LimitAll(cap) => {
                self.limit_groups(cap);
                return Answer::Done;
            }
            GroupOrder::Limit(name, cap) => (name, cap.is_some()),
            GroupOrder::Pause(name) => (name, !self.is_closed()),
            GroupOrder::Unpause(name) => (name, false),
        };
        if needs_place && !self.make_place(name) {
            return Answer::NoPlace;
        }
        if needs_place {
            self.open_group(name);
        }
        self.change_group(name, order);
        Answer::Done
    }

    /// > Sets the limits of a group by name, which then stays although it may have no keys. With
    /// > `None` it has those of all groups again.
    ///
    /// > Everything else continues, and shutdown ends the pause: see
    ///
    /// > Hands out keys of a group again, at the end of the turn.
    fn change_group(&mut self, name: u8, order: &GroupOrder) -> Option<()> {
        let is_closed = self.is_closed();
        let group = self.group_mut(name)?;
        match *order {
            GroupOrder::Limit(_, cap) => group.own = cap,
            GroupOrder::Pause(_) => group.is_paused = !is_closed,
            _ => (group.is_paused, group.was_paused) = (false, false),
        }
        self.fill_bucket(name);
        self.lift(name)
    }

    /// > Groups that wait for a limit and need not any more take their turns in the order in which
    /// > they began to wait.
    ///
    /// > `limit_groups` checks the first eight groups in turn at once, those of the highest level
    /// > first. A group counts once for each level.
    fn limit_groups(&mut self, cap: Cap) {
        self.limits = cap;
        let names: Vec<u8> = self.groups.iter().map(|group| group.name).collect();
        for name in names {
            self.fill_bucket(name);
        }
        let mut left = 8;
        for level in (0..self.can.levels).rev() {
            for name in self.turns_of(level).into_iter().take(left) {
                left -= 1;
                let group = self.group(name);
                if group.is_some_and(|group| !self.may_run(group, self.now)) {
                    self.lift(name);
                }
            }
        }
        self.lift_all();
    }

    fn lift_all(&mut self) {
        let waiting = self.groups.iter().filter(|group| !group.is_free());
        let waiting = waiting.map(|group| (group.waits, group.name));
        for name in waiting.collect::<BTreeMap<_, u8>>().into_values() {
            self.lift(name);
        }
    }

    /// > Whether it may not start a run at present, because of its limits or a pause. Its rate
    /// > counts only while it has ready keys.
    ///
    /// > A due key counts as ready, and a group with a new token as not blocked, once an operation
    /// > has noticed.
    fn group_figures(&self, name: u8) -> Option<GroupFigures> {
        let held = self.keys_of(name, |_| true);
        let group = self.group(name).filter(|_| held > 0)?;
        Some(GroupFigures {
            ready: self.keys_of(name, Known::is_ready),
            active: self.keys_of(name, Known::is_active),
            held,
            blocked: group.is_paused || self.is_at_limit(group) || !group.is_free(),
            paused: group.is_paused,
        })
    }

    // Suspensions.

    /// > Returns whether the key is suspended now, or will be when its run ends.
    ///
    /// > Returns `false` and changes nothing if the queue does not have the key or has only its
    /// > failures, and after shutdown.
    fn suspend(&mut self, key: Key, timeout: Duration) -> bool {
        if self.is_closed() {
            return false;
        }
        self.look(Some(key));
        let timeout = self.deadline(self.now + timeout, Duration::ZERO, 0);
        let Some(known) = self.known_mut(key).filter(|known| known.has_work()) else {
            return false;
        };
        let asked = known.asked_level();
        if let Phase::Active(run) = &mut known.phase {
            (run.suspends, run.is_resumed) = (Some(timeout.ends), false);
        } else {
            self.begin_suspension(key, timeout, asked);
        }
        self.has_waited = true;
        true
    }

    /// > A suspended key keeps its own deadline without slack, at the end of the window
    fn begin_suspension(&mut self, key: Key, timeout: Deadline, asked: Option<u8>) -> Option<()> {
        self.has_waited = true;
        let known = self.known_mut(key)?;
        if let Some(deadline) = &mut known.deadline {
            deadline.opens = deadline.ends;
            deadline.is_pause = false;
        }
        known.timed_out = false;
        known.phase = Phase::Suspended(Suspension { timeout, asked });
        self.regroup(group_of(&key), self.now)
    }

    /// A suspension ends by itself.
    ///
    /// > it runs in any case, because an event may have been missed. Its level is the lowest,
    /// > unless an add asked for a higher one. The run is told
    fn time_out(&mut self, key: Key) -> Option<()> {
        let since = self.time_of(&self.known(key)?.suspension()?.timeout);
        let known = self.known_mut(key)?;
        known.timed_out = true;
        let asked = known.asked_level().unwrap_or(0);
        let passed = known.deadline.take_if(|it| it.ends <= since);
        let level = passed.map_or(asked, |it| it.level.max(asked));
        self.after_suspension(key, Some(level), since)
    }

    /// > The key becomes ready if it was added meanwhile, or was ready before, or if
    /// > `Action::Suspend`
    ///
    /// > A deadline that has not passed when the suspension ends counts as set again.
    ///
    /// > If the suspension ends first, the key is delayed until the end of the hold, and its run is
    /// > still told of a timeout.
    fn after_suspension(&mut self, key: Key, asked: Option<u8>, since: Instant) -> Option<()> {
        let (place, closed_at) = (self.next_place(), self.closed_at);
        let known = self.known_mut(key)?;
        known.phase = Phase::Idle;
        if let Some(deadline) = &mut known.deadline {
            deadline.place = place;
        }
        match (asked, known.hold_at(since)) {
            (Some(level), Some(until)) => {
                // The hold may have ended before the shutdown.
                let deadline = Deadline {
                    opens: until,
                    ends: until,
                    ..self.deadline(until, Duration::ZERO, level)
                };
                self.add_later(key, deadline, Merge::Earliest);
            }
            (Some(level), None) => {
                self.ask(key, level, since, false);
            }
            (None, _) => {}
        }
        // What is set after the shutdown is not earlier than it.
        if let Some(deadline) = &mut self.known_mut(key)?.deadline {
            deadline.is_left = closed_at.is_some_and(|at| deadline.ends >= at);
        }
        self.rest(key, false)
    }

    /// > Ends the suspension of a key, or takes back the one that would begin when its run ends.
    /// > Returns whether there was one.
    ///
    /// > If the key is active, the call is kept until its run ends, so that an event is not lost
    /// > that is faster than the run: an `Action::Suspend` of that run makes the key ready.
    ///
    /// > Does nothing for any other key, and after shutdown.
    fn resume(&mut self, key: Key) -> bool {
        if self.is_closed() {
            return false;
        }
        self.look(Some(key));
        let Some(known) = self.known_mut(key) else {
            return false;
        };
        let asked = known.asked_level();
        match &mut known.phase {
            Phase::Active(run) => {
                run.is_resumed = true;
                let had_plan = run.suspends.take().is_some();
                self.has_waited = true;
                had_plan
            }
            Phase::Suspended(_) => {
                self.after_suspension(key, asked, self.now);
                true
            }
            _ => false,
        }
    }

    // Room.

    /// > Records are discarded in the order in which their keys lost their work
    fn oldest_record(&self) -> Option<Key> {
        let records = self.keys.iter();
        let records = records.filter_map(|known| Some((known.recorded?, known.key)));
        records.min().map(|(_, key)| key)
    }

    fn records(&self) -> usize {
        self.count(|known| known.recorded.is_some())
    }

    /// > A queue that has more keys than that keeps all that have work, and discards failure
    /// > records, the oldest first.
    fn discard_too_many(&mut self) {
        while self.records() > self.records_max || self.keys.len() > self.max_keys {
            let Some(key) = self.oldest_record() else {
                return;
            };
            self.remove(key);
        }
    }

    /// Makes room for a new key. Returns the key that was evicted, or `None` if there is no room.
    ///
    /// > A new group gets its place before the new key evicts a record. An add that is refused as
    /// > `Full` takes no place from another group, and discards no record.
    ///
    /// > It refuses new keys, and displaces none for them, until fewer keys are left than fit. With
    /// > a limit of zero it takes no new key.
    ///
    /// > The leftover has no time left, and the higher of the levels of the key and of its
    /// > deadline.
    fn make_room(&mut self, key: Key, level: Option<u8>) -> Option<Option<Left>> {
        let evicted = level.and_then(|level| self.newest_below(level));
        let vacant = self.max_keys.checked_sub(self.keys.len())?;
        let has_room = vacant > 0 || self.oldest_record().or(evicted).is_some();
        if !has_room || !self.make_place(group_of(&key)) {
            return None;
        }
        if self.keys.len() < self.max_keys {
            return Some(None);
        }
        if let Some(oldest) = self.oldest_record() {
            self.remove(oldest);
            return Some(None);
        }
        let left = self.leftover(evicted?, Duration::ZERO);
        self.remove(evicted?);
        Some(left)
    }

    /// The key that an add of this level may evict.
    fn newest_below(&self, level: u8) -> Option<Key> {
        let has_groups = self.can.groups > 0;
        (0..level).find_map(|level| {
            let last = self.turns_of(level).last().copied();
            let newest = self.line(level, last).last().copied();
            newest
                .filter(|_| last.is_some() || !has_groups)
                .map(|(_, key)| key)
        })
    }

    /// A key as something that another queue can restore.
    fn leftover(&self, key: Key, left: Duration) -> Option<Left> {
        let known = self.known(key)?;
        let of_deadline = known.deadline.map_or(0, |it| it.level);
        let of_ready = known.ready().map(|asked| asked.level.max(of_deadline));
        let level = self.level_at_timeout(known).or(of_ready);
        let failures = self.failures_of(key);
        Some(left_over(key, left, failures, level.unwrap_or(of_deadline)))
    }

    // Shutdown.

    /// > Shuts the queue down: it takes no more keys. Ready keys are still handed out. Interrupts
    /// > drains that have not ended.
    ///
    /// > Shutdown lifts what would keep a drain from ending: pauses, and limits of no active key at
    /// > all.
    fn close(&mut self, drains: bool) {
        self.look(None);
        self.closed_at = self.closed_at.or(Some(self.now));
        self.is_paused = false;
        self.drains_now = drains;
        self.shut_downs += usize::from(!drains);
        for group in &mut self.groups {
            group.was_paused |= std::mem::take(&mut group.is_paused);
        }
        self.lift_all();
    }

    /// > Until a `shut_down` interrupts the drain, getters find the queue closed once no key is
    /// > ready or dirty.
    fn is_exhausted(&self) -> bool {
        let waits_for_dirty = self.drains_now && self.count(Known::is_dirty) > 0;
        let has_more = waits_for_dirty || self.first_due().is_some();
        self.is_closed() && self.count(Known::is_ready) == 0 && !has_more
    }

    /// Whether there is no key for a call that waits, and will be none.
    pub(crate) fn is_over(&self) -> bool {
        let mut model = self.clone();
        model.look_at_all();
        model.is_exhausted()
    }

    /// > A drain that was interrupted is `Complete` once no key is ready or active. A shutdown
    /// > interrupts the drains that began before it.
    fn drain_status(&self, number: usize) -> Option<Drained> {
        let begun_after = *self.drains.get(number)?;
        Some(match begun_after < self.shut_downs {
            _ if !self.is_busy() => Drained::Complete,
            true => Drained::Interrupted,
            false => Drained::Pending,
        })
    }

    /// > Takes out the delayed or suspended key whose time ends first, after shutdown. `None`
    /// > before, and if no key is delayed or suspended.
    ///
    /// > `take_delayed` takes the rest by deadline or timeout. A suspended key is taken once, with
    /// > its timeout, and its own deadline and its adds go with it. A key that is active or ready
    /// > loses its deadline only, and can be left over again. The failures of a leftover stay as a
    /// > record.
    fn take_delayed(&mut self) -> Option<Left> {
        let closed_at = self.closed_at?;
        self.look_as_of(closed_at, None);
        while self.has_more(closed_at) {
            self.look_as_of(closed_at, None);
        }
        let (due, key) = self.next_due()?;
        let (left, level) = (left_until(due.ends, self.now), due.level);
        let mut left = self.leftover(key, left)?;
        let known = self.known_mut(key)?;
        known.deadline = None;
        if known.is_suspended() {
            known.phase = Phase::Idle;
        } else {
            left.priority = level;
        }
        self.rest(key, false);
        Some(left)
    }

    /// > Takes out the first ready key before a worker gets it, after shutdown. `None` before, and
    /// > if no key is ready.
    ///
    /// > A delay of the key is removed with it. Its failure record stays: the leftover has a copy
    /// > of the count.
    ///
    /// > `take_ready` looks twice: first it names no key, and then the first ready key.
    fn take_ready(&mut self) -> Option<Left> {
        let closed_at = self.closed_at?;
        self.look_as_of(closed_at, None);
        let named = self.first_left();
        self.look_as_of(closed_at, named);
        while self.count(Known::is_ready) == 0 && self.first_due().is_some() {
            self.look_as_of(closed_at, None);
        }
        let key = self.first_left()?;
        let left = self.leftover(key, Duration::ZERO);
        let known = self.known_mut(key)?;
        known.deadline = None;
        known.phase = Phase::Idle;
        self.regroup(group_of(&key), self.now);
        self.rest(key, false);
        left
    }

    /// The first ready key of those that are left over.
    ///
    /// > With groups, the keys that a worker could get come first, then those of the groups that
    /// > have waited longest for a limit, at whatever level.
    ///
    /// > Then it takes the keys of blocked groups: all keys of the group that was blocked first,
    /// > from its highest level down, and then those of the next.
    fn first_left(&mut self) -> Option<Key> {
        let first = self.first_in_turn();
        let waiting = self.groups.iter().filter(|group| !group.is_free());
        let longest = waiting.min_by_key(|group| group.waits);
        let longest = longest.map(|group| group.name);
        first.or_else(|| {
            let levels = (0..self.can.levels).rev();
            let mut lines = levels.map(|level| self.line(level, Some(longest?)).first().copied());
            lines.find_map(|first| first).map(|(_, key)| key)
        })
    }
}

/// > `Duration::MAX` for a key that was to wait for ever
fn left_until(ends: Instant, now: Instant) -> Duration {
    match ends.is_never() {
        true => Duration::MAX,
        false => ends.saturating_since(now),
    }
}

// What can be seen.

impl Model {
    /// > Returns what the queue knows about a key, `None` if it does not have the key.
    ///
    /// > The priority level at which the key is ready, or will be when its run ends. If it is
    /// > neither, the level of its run; else that of its deadline.
    fn state_of(&self, key: Key) -> Option<KeyState> {
        let known = self.known(key)?;
        let run = known.run();
        let of_run = run.map(|run| run.level);
        let of_deadline = known.deadline.map(|it| it.level);
        let level = self.level_at_timeout(known).or(known.asked_level());
        let mut state = KeyState::default();
        state.ready = known.is_ready();
        state.active = known.is_active();
        state.dirty = known.is_dirty();
        state.cancelled = run.is_some_and(|run| run.is_cancelled);
        state.due = known.deadline.map(|it| it.ends);
        state.suspended = known.suspension().map(|it| it.timeout.ends);
        state.failures = self.failures_of(key);
        state.priority = level.or(of_run).or(of_deadline).unwrap_or(0);
        state.active_since = run.map(|run| run.began).filter(|_| self.has_times);
        Some(state)
    }

    /// > `state` shows the level of a run at the timeout.
    fn level_at_timeout(&self, known: &Known) -> Option<u8> {
        let suspension = known.suspension()?;
        let ends = suspension.timeout.ends;
        let deadline = known.deadline.filter(|it| it.ends <= ends);
        let of_deadline = deadline.map(|it| it.level);
        suspension.asked.max(of_deadline).or(Some(0))
    }

    /// > In a snapshot each key is as `state` would find it.
    fn snapshot(&self) -> Vec<(Key, KeyState)> {
        let keys = self.keys.iter().map(|known| known.key);
        let states = keys.filter_map(|key| {
            let mut model = self.clone();
            while model.is_due(key) {
                model.end_delay(key);
            }
            Some((key, model.state_of(key)?))
        });
        let mut states: Vec<_> = states.collect();
        states.sort_by_key(|(key, _)| *key);
        states
    }

    /// > Keys that wait for a deadline, including those that are also ready or active. Without
    /// > suspended keys.
    fn stats_now(&self) -> Stats {
        let mut stats = Stats::default();
        stats.total = self.keys.len();
        stats.ready = self.count(Known::is_ready);
        stats.active = self.count(Known::is_active);
        stats.dirty = self.count(Known::is_dirty);
        stats.delayed = self.count(|known| known.deadline.is_some() && !known.is_suspended());
        stats.suspended = self.count(Known::is_suspended);
        stats.failure_records = self.records();
        stats.max_keys = Subject::capacity(self);
        stats.next_deadline = self.next_deadline();
        stats.paused = self.is_paused;
        stats.shutting_down = self.is_closed();
        stats
    }

    /// > A key passes these rows from the first to the last. The answer is the first one that
    /// > applies to it
    ///
    /// > a hold ends no earlier than its deadline
    ///
    /// > debounced adds have set its deadline
    fn reason(&mut self, key: Key) -> Why {
        self.look(Some(key));
        let known = self.known(key).cloned().unwrap_or_default();
        let due = known.due().copied().unwrap_or_default();
        let (until, failures) = (due.ends, self.failures_of(key));
        let hold = known.hold_at(self.now).unwrap_or(Instant::EPOCH);
        match &known.phase {
            Phase::Active(run) => Why::Running {
                since: Some(run.began).filter(|_| self.has_times),
                again: run.again.is_some(),
            },
            Phase::Ready(_) => self.reason_of_ready(group_of(&key)),
            _ if self.is_closed() => Why::Closed,
            Phase::Suspended(Suspension { asked, .. }) => Why::Suspended {
                until,
                again: asked.is_some(),
            },
            _ if known.deadline.is_none() => Why::Idle,
            _ if hold >= until => Why::Held { until, failures },
            _ if due.series.is_some() => Why::Debounced { until },
            _ if due.by_limiter => Why::BackingOff { until, failures },
            _ => Why::Delayed { until },
        }
    }

    /// > If both the group's rate and the run rate make the key wait, the later time is named.
    ///
    /// > A token whose time has come is not named, even if no call has looked since.
    fn reason_of_ready(&self, name: u8) -> Why {
        let run_rate = self.run_rate.as_ref().map(Bucket::next_at);
        let run_rate = run_rate.filter(|_| !self.has_run_token());
        let group = self.group(name);
        let lacking = group.filter(|group| group.lacks_token);
        let bucket = lacking.and_then(|group| group.bucket.as_ref());
        let rate = bucket.map(|(_, bucket)| bucket.next_at());
        let rate = rate.filter(|until| lasts(*until, self.now));
        match (rate, run_rate) {
            _ if self.is_paused => Why::Paused,
            _ if group.is_some_and(|group| group.is_paused) => Why::GroupPaused,
            _ if group.is_some_and(|group| self.is_at_limit(group)) => Why::GroupAtLimit,
            (Some(until), _) if rate >= run_rate => Why::GroupNoToken { until },
            (_, Some(until)) => Why::NoToken { until },
            _ => Why::Ready,
        }
    }

    /// > Returns whether the queue keeps up: no ready key has waited for longer than `ready_max`,
    /// > no run has lasted longer than `run_max`, and no deadline passed longer than `ready_max`
    /// > ago without making its key ready.
    ///
    /// > Deadlines do not count after shutdown.
    ///
    /// > Of the runs, only the one that began first counts.
    fn keeps_up(&mut self, ready_max: Duration, run_max: Duration) -> bool {
        self.look(None);
        let lines = (0..self.can.levels).map(|level| self.line(level, None));
        let firsts = lines.filter_map(|line| line.first().map(|(since, _)| *since));
        let dues = self.keys.iter().filter_map(Known::due);
        let passed = dues.filter(|_| !self.is_closed()).map(|due| due.ends);
        let mut ready = firsts.chain(passed.filter(|ends| !ends.is_never()));
        self.has_times
            && ready.all(|since| self.now.saturating_since(since) <= ready_max)
            && self.longest_running() <= run_max
    }

    // Metrics.

    /// A run ends after which the failures and the hold of a key are forgotten.
    ///
    /// > `time_to_success` begins when the key first became ready or dirty since its last success,
    /// > since it was given up, or since it had no work.
    ///
    /// > An add during the run that succeeds begins the next time.
    ///
    /// > `attempts_at_success` is one more than the failures that the success forgets.
    fn clear(&mut self, key: Key, run: &Run, succeeds: bool) {
        let (now, failures) = (self.now, self.failures_of(key));
        let Some(known) = self.known_mut(key) else {
            return;
        };
        let first = known.first.filter(|_| succeeds);
        (known.first, known.record, known.held_until) = Default::default();
        if let Some(again) = &run.again {
            known.begins(again.since);
        }
        if let Some(first) = first {
            let attempt = failures.saturating_add(1);
            self.figures.attempts_at_success.push(attempt);
            let time = now.saturating_since(first);
            self.figures.times_to_success.push(time);
        }
    }

    /// > `longest_running` is the time of the active run that began first, in the order of the
    /// > gets.
    fn longest_running(&self) -> Duration {
        let runs = self.keys.iter().filter_map(Known::run);
        let first = runs.min_by_key(|run| run.number);
        first.map_or(Duration::ZERO, |run| self.now.saturating_since(run.began))
    }

    /// > Reports nothing after shutdown.
    ///
    /// > `unfinished_work` is an exception: the time until the start of a run that began later than
    /// > now is subtracted from the sum. The sum is never below zero.
    fn report_running(&mut self) {
        if self.is_closed() {
            return;
        }
        self.look(None);
        let runs = || self.keys.iter().filter_map(Known::run);
        let lasted = |run: &Run| self.now.saturating_since(run.began);
        let ahead = |run: &Run| run.began.saturating_since(self.now);
        let [sum, ahead]: [Duration; 2] = [runs().map(lasted).sum(), runs().map(ahead).sum()];
        self.figures.unfinished = sum.saturating_sub(ahead);
        self.figures.longest = self.longest_running();
        self.figures.reports += 1;
    }

    /// > Receives the number of keys that are ready or dirty: a gauge.
    ///
    /// > Receives the number of keys of one priority level that are ready or dirty: a gauge.
    fn read_gauges(&mut self) {
        let asked = self.keys.iter().filter_map(Known::asked);
        let levels: Vec<u8> = asked.map(|asked| asked.level).collect();
        self.figures.depth = i64::try_from(levels.len()).unwrap_or(i64::MAX);
        self.figures.depths.clear();
        for level in levels.into_iter().filter(|_| self.can.levels > 1) {
            *self.figures.depths.entry(level).or_default() += 1;
        }
    }

    // Waits for a key.

    /// Begins to wait for the work of a key. Returns the number of the wait.
    ///
    /// > That is the present run if the key is active, and one more if the key is ready or dirty. A
    /// > delay that has not passed is not waited for, nor work that a hold delays.
    pub fn begin_flush(&mut self, key: Key) -> usize {
        self.look(Some(key));
        let known = self.known(key);
        let run = known.and_then(Known::run).map(|run| run.number);
        let work = known.and_then(Known::asked).map(|asked| asked.number);
        self.flushes.push(Flush { key, run, work });
        self.flushes.len().saturating_sub(1)
    }

    /// Whether a wait is over.
    pub fn is_flushed(&self, number: usize) -> bool {
        let waits = self.flush(number);
        waits.is_none_or(|(run, next)| !run && !next)
    }

    /// Whether a wait waits for the run that is under way, and for the one that was asked for.
    ///
    /// > A flush ends if the work is put off: by `suspend`, by a failure that holds the ready key,
    /// > or at the end of the run by `Suspend` or a hold.
    pub fn flush(&self, number: usize) -> Option<(bool, bool)> {
        let flush = self.flushes.get(number)?;
        let known = self.known(flush.key);
        let asked = known.and_then(Known::asked).map(|asked| asked.number);
        let run = known.and_then(Known::run);
        let is_run = |run: &Run| flush.run == Some(run.number) || flush.work == Some(run.serves);
        let is_next = asked.is_some() && asked == flush.work;
        Some((run.is_some_and(is_run), is_next))
    }
}

// What a reader of a failing test wants to know.

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut keys: Vec<&Known> = self.keys.iter().collect();
        keys.sort_by_key(|known| {
            let ready = known.ready().map(|it| (Reverse(it.level), it.place));
            (ready, known.deadline.map(|it| (it.ends, it.place)))
        });
        let part = |what: &str, tell: &dyn Fn(&Known) -> Option<String>| {
            let told = |known: &&Known| Some(format!("{}{}", known.key, tell(known)?));
            let told: Vec<String> = keys.iter().filter_map(told).collect();
            (!told.is_empty()).then(|| format!("{what} {}", told.join(", ")))
        };
        let until = |at: Instant| Some(format!(" until {at}"));
        let blocked = self.groups.iter().filter(|group| !group.is_free());
        let blocked = blocked.map(|group| format!("group {} waits", group.name));
        let parts = [
            part("ready", &|it| it.ready().map(|_| String::new())),
            part("active", &|it| it.run().map(|_| String::new())),
            part("dirty", &|it| it.is_dirty().then(String::new)),
            part("delayed", &|it| until(it.deadline?.ends)),
            part("suspended", &|it| until(it.suspension()?.timeout.ends)),
            part("held", &|it| until(it.hold_at(self.now)?)),
            part("failures of", &|it| {
                (it.record > 0).then(|| format!(" with {}", it.record))
            }),
            self.is_paused.then(|| String::from("paused")),
            self.is_closed().then(|| String::from("shut down")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().chain(blocked).collect();
        let nothing = if parts.is_empty() { "nothing" } else { "" };
        write!(f, "{}: {}{nothing}", self.now, parts.join("; "))
    }
}

// The fingerprint.

/// What of a [`Model`] a later call can still tell.
///
/// Two models with the same fingerprint answer every later call alike, but for what they have
/// reported to their metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint {
    now: Instant,
    /// Places are ranks, and what only metrics tell is left out.
    keys: Vec<Known>,
    /// After shutdown: the keys that are due, which their deadlines do not say.
    due: Vec<Key>,
    /// All else.
    settings: String,
}

impl Fingerprint {
    /// Returns the same with all times relative to now, for limiters that do not read the time.
    ///
    /// Deadlines that have passed are now. Their order stays. No later call can tell, unless it
    /// asks for the deadline itself, or adds at a time that has passed.
    #[must_use]
    pub fn relative(mut self) -> Self {
        let now = self.now;
        let left = |at: &mut Instant| {
            if !at.is_never() {
                *at = Instant::EPOCH + at.saturating_since(now);
            }
        };
        for known in &mut self.keys {
            known.held_until.iter_mut().for_each(left);
            if let Phase::Active(run) = &mut known.phase {
                run.suspends.iter_mut().for_each(left);
            }
            for deadline in known.deadlines_mut() {
                if let Some(first) = &mut deadline.series {
                    *first = Instant::EPOCH + now.saturating_since(*first);
                }
                left(&mut deadline.opens);
                left(&mut deadline.ends);
            }
        }
        self.now = Instant::EPOCH;
        self
    }
}

impl Model {
    /// Returns what of the model a later call can still tell.
    pub fn fingerprint(&self) -> Fingerprint {
        let mut told = self.clone();
        told.keys.sort_by_key(|known| known.key);
        told.groups.sort_by_key(|group| group.name);
        let is_open = |known: &Known| self.is_closed() && self.is_due(known.key);
        let due = told.keys.iter().filter(|known| is_open(known));
        let due = due.map(|known| known.key).collect();
        // Of a shutdown it matters which tokens there were.
        let tokens = told.groups.iter();
        let tokens = tokens.map(|group| group.next_token() <= self.closed_at);
        let tokens: Vec<bool> = tokens.collect();
        for known in &mut told.keys {
            known.first = None;
            let asked = match &mut known.phase {
                Phase::Ready(asked) => Some(asked),
                Phase::Active(run) => {
                    (run.number, run.serves, run.began) = Default::default();
                    run.again.iter_mut().for_each(|asked| asked.place = 0);
                    run.again.as_mut()
                }
                _ => None,
            };
            if let Some(asked) = asked {
                asked.number = 0;
                asked.since = Some(asked.since)
                    .filter(|_| self.age_limit.is_some())
                    .unwrap_or_default();
            }
        }
        rank(
            told.keys
                .iter_mut()
                .filter_map(|known| match &mut known.phase {
                    Phase::Ready(asked) => Some((Instant::EPOCH, &mut asked.place)),
                    _ => None,
                }),
        );
        let records = told.keys.iter_mut();
        let records = records.filter_map(|known| known.recorded.as_mut());
        rank(records.map(|place| (Instant::EPOCH, place)));
        let deadlines = told.keys.iter_mut().flat_map(Known::deadlines_mut);
        rank(deadlines.map(|it| (it.ends, &mut it.place)));
        rank(told.groups.iter_mut().flat_map(|group| {
            let turns = group.turns.iter_mut().flatten().map(|turn| &mut turn.place);
            let places = turns.chain(&mut group.waits).chain(&mut group.left);
            places.map(|place| (Instant::EPOCH, place))
        }));
        let of_groups = told.groups.iter_mut();
        let of_groups = of_groups.filter_map(|group| group.bucket.as_mut());
        for bucket in of_groups
            .map(|(_, bucket)| bucket)
            .chain(&mut told.run_rate)
        {
            if bucket.full_at <= u128::from(self.now.as_nanos()) << PARTS {
                bucket.full_at = 0;
            }
        }
        let plans = self.count(|known| known.run().is_some_and(|run| run.suspends.is_some()));
        let closed_at = self.closed_at.map(|at| (plans > 0).then_some(at));
        (told.last_place, told.closed_at, told.shut_downs) = Default::default();
        (told.now, told.handed, told.tickets) = Default::default();
        (told.flushes, told.figures) = Default::default();
        for drain in &mut told.drains {
            *drain = usize::from(*drain < self.shut_downs);
        }
        let keys = std::mem::take(&mut told.keys);
        Fingerprint {
            now: self.now,
            keys,
            due,
            settings: format!("{told:?} {closed_at:?} {tokens:?}"),
        }
    }
}

/// Renumbers these by their times, and equal times by their present numbers.
fn rank<'a>(places: impl Iterator<Item = (Instant, &'a mut Place)>) {
    let mut places: Vec<_> = places.collect();
    places.sort_unstable();
    for (rank, (_, place)) in (0..).zip(places) {
        *place = rank;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Operate;

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
