//! The queue on a clock that breaks its contract: it jumps, stands still and goes backwards.
//!
//! No model predicts when a key leaves then. What is left is what must hold on any clock: the
//! invariants, that nothing is lost, handed out twice at once or without a reason, and that no key
//! leaves earlier than the latest time that the queue has seen.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use requeue_core::binding::{Drained, Getter, Next, Ticket, Work};
use requeue_core::priority::{Levels, Plain, WithPolicy};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, Finished, Instant, Leftover, Merge, Queue};
use requeue_proptest::Figures;
use requeue_proptest::limiter::AnyLimiter;
use requeue_proptest::subject::{Home, Key, Kind};

use crate::{draw, script};

/// Does what the bytes say to one of core's queues, at the times that they say.
///
/// # Panics
///
/// If a promise is broken that holds on any clock.
pub fn clock(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that run out have tried enough.
    let _ = match bytes.int_in_range(0..=5_u8) {
        Ok(0) => run::<WithPolicy, Fixed<1>>(&mut bytes),
        Ok(1) => run::<WithPolicy, Fixed<3>>(&mut bytes),
        Ok(2) => run::<WithPolicy, Fixed<6>>(&mut bytes),
        Ok(3) => run::<WithPolicy<Levels<3>>, Fixed<3>>(&mut bytes),
        Ok(4) => run::<Levels<3>, Growable>(&mut bytes),
        _ => run::<Plain, Growable>(&mut bytes),
    };
}

const KEYS: Key = 6;
/// A sequence that fails need not be long, and one that is takes long.
const OPERATIONS_MAX: usize = 200;

fn run<P: Kind, S: Home>(bytes: &mut Unstructured) -> Result<()> {
    let setup = script::setup(bytes)?;
    let mut world = World::<P, S> {
        holds: S::governs::<P>() && setup.policy.holds(),
        queue: S::build(&setup, Figures::default()),
        now: draw::instant(bytes)?,
        latest: Instant::EPOCH,
        owed: BTreeMap::new(),
        tickets: Vec::new(),
        sleepers: Vec::new(),
    };
    for _ in 0..OPERATIONS_MAX {
        world.tell_time(bytes)?;
        world.step(bytes)?;
        world.assert_nothing_lost();
    }
    Ok(())
}

struct World<P: Kind, S: Home> {
    queue: Queue<Key, P, AnyLimiter, S, Figures>,
    holds: bool,
    now: Instant,
    /// The latest time that the queue has seen.
    latest: Instant,
    /// Why a key is owed a run.
    owed: BTreeMap<Key, Owed>,
    tickets: Vec<(Key, Ticket)>,
    sleepers: Vec<Getter>,
}

/// What has been asked for since a key was last handed out.
#[derive(Debug, Default)]
struct Owed {
    at_once: bool,
    /// The earliest of the times asked for.
    due: Option<Instant>,
}

impl<P: Kind, S: Home> World<P, S> {
    fn tell_time(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let now = self.now.as_nanos();
        self.now = match bytes.int_in_range(0..=7_u8)? {
            0 => draw::instant(bytes)?,
            1 => Instant::from_nanos(now.saturating_sub(bytes.int_in_range(0..=9)?)),
            2..=4 => Instant::from_nanos(now.saturating_add(bytes.int_in_range(0..=9)?)),
            _ => self.now,
        };
        self.latest = self.latest.max(self.now);
        Ok(())
    }

    fn step(&mut self, bytes: &mut Unstructured) -> Result<()> {
        match bytes.int_in_range(0..=15_u8)? {
            0..=5 => self.add(bytes),
            6..=9 => self.get(bytes),
            10..=13 => self.finish(bytes),
            _ => self.rest(bytes),
        }
    }

    fn add(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let key = script::key(bytes, KEYS)?;
        let (queue, now) = (&mut self.queue, self.now);
        let mut moves = false;
        let added = match bytes.int_in_range(0..=5_u8)? {
            0 => queue.at(now).add(key).map(|_| None),
            1 => {
                let delay = draw::duration(bytes)?;
                let added = queue.at(now).add_after(key, delay);
                added.map(|_| Some(now + delay))
            }
            2 => {
                let due = draw::instant(bytes)?;
                queue.at(now).add_at(key, due).map(|_| Some(due))
            }
            3 => {
                let options = script::options(bytes)?;
                moves = !matches!(options.merge, Merge::Earliest | Merge::Once);
                let added = queue.at(now).add_with(key, options);
                added.map(|scheduled| options.needs_time().then_some(now + scheduled.delay))
            }
            4 => {
                let leftover = script::left(bytes, KEYS)?;
                let Leftover {
                    key: other, left, ..
                } = leftover;
                let restored = queue.at(now).restore(leftover);
                let due = (!left.is_zero()).then_some(now + left);
                match restored {
                    Ok(_) => self.owe(other, due),
                    Err(rejected) => assert_eq!(rejected.into_key(), leftover),
                }
                return Ok(());
            }
            _ => {
                let added = queue.at(now).add_rate_limited(key);
                added.map(|scheduled| Some(now + scheduled.delay))
            }
        };
        match added {
            Ok(_) if moves => self.meet_deadline(key),
            Ok(due) => self.owe(key, due),
            Err(rejected) => assert_eq!(rejected.into_key(), key),
        }
        Ok(())
    }

    /// A key is to run by then; at once if no time is named.
    fn owe(&mut self, key: Key, due: Option<Instant>) {
        match due.filter(|due| *due > self.now || due.is_never()) {
            None => {
                self.owed.entry(key).or_default().at_once = true;
                self.owe_hold(key);
            }
            Some(due) => self.owe_later(key, due),
        }
    }

    /// A clock that has gone back is before the end of holds that were over. If the key is ready,
    /// an add waits for that end beside it, and the key runs once more.
    fn owe_hold(&mut self, key: Key) {
        if self.holds && self.now < self.latest {
            let state = self.queue.at(self.now).state(&key);
            if let Some(due) = state.and_then(|state| state.due) {
                self.owe_later(key, due);
            }
        }
    }

    /// An add has moved a deadline, or has left it: on such a clock only the queue knows which. The
    /// key is not lost.
    fn meet_deadline(&mut self, key: Key) {
        let owed = self.owed.entry(key).or_default();
        owed.due = None;
        self.owe_what_waits(key);
        let owed = self.owed.entry(key).or_default();
        assert!(owed.at_once || owed.due.is_some(), "{key} is lost");
    }

    /// A key waits for this, or for what it waits for already if that is earlier.
    fn owe_later(&mut self, key: Key, due: Instant) {
        let owed = self.owed.entry(key).or_default();
        owed.due = Some(owed.due.map_or(due, |other| other.min(due)));
    }

    fn get(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let (mut getter, now) = (Getter::new(), self.now);
        let pick = usize::from(bytes.arbitrary::<u8>()?).checked_rem(self.sleepers.len());
        match bytes.int_in_range(0..=5_u8)? {
            0..=1 => {
                let work = self.queue.at(now).try_get();
                work.into_iter().for_each(|work| self.handed_out(work));
                return Ok(());
            }
            2..=3 => {}
            _ => match pick {
                Some(pick) => getter = self.sleepers.swap_remove(pick),
                None => return Ok(()),
            },
        }
        if bytes.int_in_range(0..=5_u8)? == 0 {
            self.queue.at(now).leave(&mut getter);
            return Ok(());
        }
        let next = self.queue.at(now).poll_get(&mut getter);
        self.came_back(next, getter);
        Ok(())
    }

    fn came_back(&mut self, next: Next<Work<Key>>, getter: Getter) {
        match next {
            Next::Work(work) => self.handed_out(work),
            Next::Wait { .. } => self.sleepers.push(getter),
            Next::Closed => assert!(self.queue.is_shutting_down()),
        }
    }

    /// No other worker has the key, and it was asked for, and not for later.
    fn handed_out(&mut self, work: Work<Key>) {
        let key = work.key;
        let held = self.tickets.iter().any(|(other, _)| *other == key);
        assert!(!held, "{key} was handed out twice at once");
        let owed = self.owed.remove(&key).unwrap_or_default();
        let was_due = owed
            .due
            .is_some_and(|due| due <= self.latest && !due.is_never());
        assert!(
            owed.at_once || was_due,
            "{key} was handed out: {owed:?}, {}",
            self.latest
        );
        self.tickets.push((key, work.ticket));
        // A later time than the one for which the key was handed out may stand all the same.
        if owed.due.is_some() {
            self.owe_what_waits(key);
        }
    }

    fn finish(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let pick = usize::from(bytes.arbitrary::<u8>()?).checked_rem(self.tickets.len());
        let (Some(pick), now) = (pick, self.now) else {
            return Ok(());
        };
        let (key, ticket) = self.tickets.swap_remove(pick);
        let how = script::action(bytes)?;
        match bytes.int_in_range(0..=3_u8)? {
            0 => {
                assert_ne!(self.queue.at(now).release_key(&key), Finished::Stale);
                let finished = self.queue.at(now).release(ticket);
                assert_eq!(finished, Finished::Stale, "{key} is done");
            }
            1 => {
                let mut getter = Getter::new();
                let mut session = self.queue.at(now);
                let finished = session.finish(ticket, how);
                let next = session.poll_get(&mut getter);
                self.completed(key, how, finished);
                self.came_back(next, getter);
            }
            _ => {
                let finished = self.queue.at(now).finish(ticket, how);
                self.completed(key, how, finished);
            }
        }
        Ok(())
    }

    fn completed(&mut self, key: Key, how: Action, finished: Finished) {
        match finished {
            Finished::Idle => {}
            // It may come back a second time: it was added, and asked to.
            Finished::Ready => {
                self.owe(key, None);
                self.owe_what_waits(key);
            }
            // Even one that is due at once waits: to be handed back.
            Finished::Delayed(delay) | Finished::Suspended(delay) | Finished::Leftover(delay) => {
                self.owe_later(key, self.now + delay);
            }
            other => unreachable!("{key}: {how:?}: {other:?}"),
        }
    }

    fn rest(&mut self, bytes: &mut Unstructured) -> Result<()> {
        let now = self.now;
        match bytes.int_in_range(0..=7_u8)? {
            0 => self.queue.at(now).shut_down(),
            1 => {
                let drain = self.queue.at(now).begin_drain();
                let drained = self.queue.drain_status(&drain) == Drained::Complete;
                assert!(!drained || self.tickets.is_empty());
            }
            2 => {
                let left = self.queue.at(now).take_delayed();
                left.into_iter().for_each(|left| self.gave_back(left.key));
            }
            3 => {
                let left = self.queue.at(now).take_ready();
                left.into_iter().for_each(|left| self.gave_back(left.key));
            }
            4 => self.queue.at(now).report_running(),
            5 => {
                let key = script::key(bytes, KEYS)?;
                self.queue.at(now).forget(&key);
            }
            _ => {
                let _ = self.queue.at(now).len();
            }
        }
        Ok(())
    }

    /// A leftover was asked for, and is not any more unless the queue knows of more.
    fn gave_back(&mut self, key: Key) {
        assert!(self.queue.is_shutting_down());
        assert!(self.owed.remove(&key).is_some(), "{key} was not asked for");
        self.owe_what_waits(key);
    }

    /// Takes the queue's word for what it still has to do.
    fn owe_what_waits(&mut self, key: Key) {
        if let Some(state) = self.queue.at(self.now).state(&key) {
            if state.ready || state.dirty {
                self.owe(key, None);
            }
            for due in state.due.into_iter().chain(state.suspended) {
                self.owe_later(key, due);
            }
        }
    }

    /// A key that was asked for is ready or dirty, or waits for a deadline that is not over. That
    /// is not later than asked for, unless the key is held or suspended: from then on it is owed at
    /// the end of that.
    fn assert_nothing_lost(&mut self) {
        let (queue, now) = (&mut self.queue, self.now);
        let _ = queue.at(now).close();
        queue.assert_valid();
        assert_eq!(queue.stats().active, self.tickets.len());
        assert_eq!(queue.asleep(), self.sleepers.len());
        let closed = queue.is_shutting_down();
        for (&key, owed) in &mut self.owed {
            let Some(state) = queue.at(now).state(&key) else {
                unreachable!("{key} is lost: {owed:?}");
            };
            if state.ready || state.dirty {
                continue;
            }
            let Some(due) = state.suspended.or(state.due) else {
                unreachable!("{key} is lost: {owed:?}, {state:?}");
            };
            let waits = due > now || due.is_never() || closed;
            assert!(waits, "{key} is overdue: {owed:?}, {state:?}, {now}");
            let asked = owed.due.filter(|_| !owed.at_once);
            if asked.is_some_and(|asked| due <= asked) {
                continue;
            }
            // After shutdown, what is to run again later is handed back instead.
            let is_suspended = state.suspended.is_some();
            let may_wait = is_suspended || self.holds || closed && !owed.at_once;
            assert!(may_wait, "{key} is late: {owed:?}, {state:?}");
            if !is_suspended {
                // A delay that is ended early lasts until the hold is over: this one does already.
                let _ = queue.at(now).expedite(&key);
                let held = queue.at(now).state(&key) == Some(state);
                assert!(held, "{key} is not held: {owed:?}, {state:?}");
            }
            *owed = Owed {
                at_once: false,
                due: Some(due),
            };
        }
    }
}
