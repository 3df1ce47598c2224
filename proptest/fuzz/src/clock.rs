//! The queue on a clock that breaks its contract: it jumps, stands still and goes backwards.
//!
//! No model predicts when a key leaves then. What is left is what must hold on any clock: the
//! invariants, and what becomes of each key from one operation to the next. A key with work keeps
//! it until the key is handed out, which is neither earlier nor later than asked for. No key is
//! handed out twice at once.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use requeue_core::binding::Next;
use requeue_core::priority::{Levels, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{AddOptions, Finished, Instant, KeyState, Merge};
use requeue_proptest::combinations::Uses;
use requeue_proptest::histories::{Operation as O, Run, Sleeper, operations_of};
use requeue_proptest::subject::{Answer, Direct, Home, Key, Kind, Operate, Subject, Ticket};

use crate::draw;
use crate::queue::combination;

/// Does what the bytes say to one of core's queues, at the times that they say.
///
/// # Panics
///
/// If a promise is broken that holds on any clock.
pub fn clock(bytes: &[u8]) {
    let mut bytes = Unstructured::new(bytes);
    // Bytes that run out have tried enough.
    let _ = match bytes.int_in_range(0..=5_u8) {
        Ok(0) => run::<WithSuspension, Fixed<1>>(&mut bytes),
        Ok(1) => run::<WithSuspension, Fixed<3>>(&mut bytes),
        Ok(2) => run::<WithSuspension, Fixed<6>>(&mut bytes),
        Ok(3) => run::<WithSuspension<Levels<3>>, Fixed<3>>(&mut bytes),
        Ok(4) => run::<Levels<3>, Growable>(&mut bytes),
        _ => run::<Plain, Growable>(&mut bytes),
    };
}

const KEYS: Key = 6;

fn run<P: Kind, S: Home>(bytes: &mut Unstructured) -> Result<()> {
    let setup = combination(bytes)?.configuration;
    let now = draw::instant(bytes)?;
    let times = bytes.len() / 4;
    let mut times = Unstructured::new(bytes.bytes(times)?);
    // Of each of these it is known when a key has to run.
    let uses = Uses {
        suspend: true,
        poll: true,
        merge: true,
        restore: true,
        ..Uses::default()
    };
    let mut world = World::<P, S> {
        holds: S::abilities::<P>().governs && setup.policy.holds(),
        queue: Direct::new(&setup),
        now,
        latest: Instant::EPOCH,
        known: BTreeMap::new(),
        tickets: Vec::new(),
        sleepers: Vec::new(),
        last_sleeper: 0,
    };
    for operation in operations_of(bytes.bytes(bytes.len())?, KEYS, uses) {
        // Without a byte the clock stands still.
        let _ = world.tell_time(&mut times);
        world.step(operation);
    }
    Ok(())
}

struct World<P: Kind, S: Home> {
    queue: Direct<P, S>,
    holds: bool,
    now: Instant,
    /// The latest time that the queue has seen.
    latest: Instant,
    /// What the queue knew of each key after the last operation.
    known: BTreeMap<Key, KeyState>,
    tickets: Vec<Ticket>,
    sleepers: Vec<u32>,
    last_sleeper: u32,
}

/// When a key has to run at the latest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Now,
    Time(Instant),
}

/// What an operation has done to a key.
#[derive(Debug, Default)]
struct Change {
    asked: Option<By>,
    /// An add has moved a deadline, or has left it: on such a clock only the queue knows which.
    is_merged: bool,
    is_handed_out: bool,
    is_given_back: bool,
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
        Ok(())
    }

    fn step(&mut self, operation: O) {
        self.latest = self.latest.max(self.now);
        self.queue.set_now(self.now);
        let mut changes: BTreeMap<Key, Change> = BTreeMap::new();
        if let Some(operation) = self.resolved(operation) {
            let answer = self.queue.apply(&operation);
            if let Some((key, by)) = self.asked(&operation, &answer) {
                let change = changes.entry(key).or_default();
                change.asked = Some(by);
                if let O::AddWith(_, AddOptions { merge, .. }) = operation {
                    change.is_merged = !matches!(merge, Merge::Earliest | Merge::Once);
                }
            }
            if let Answer::Left(Some(left)) = answer {
                changes.entry(left.key).or_default().is_given_back = true;
            }
            if let Some(ticket) = self.begun(&operation, &answer) {
                let is_held = self.tickets.iter().any(|other| other.key == ticket.key);
                assert!(!is_held, "{ticket:?} was handed out twice at once");
                self.tickets.push(ticket);
                changes.entry(ticket.key).or_default().is_handed_out = true;
            }
        }
        let _ = self.queue.wakes();
        self.queue.assert_valid();
        assert_eq!(self.queue.stats().active, self.tickets.len());
        assert_eq!(self.queue.asleep(), Some(self.sleepers.len()));
        for key in 1..=KEYS {
            self.judge(key, changes.remove(&key).unwrap_or_default());
        }
    }

    /// The operation on the runs and the calls that it picks; none if there is none to pick, or if
    /// it is about many keys.
    fn resolved(&mut self, operation: O) -> Option<O> {
        let Self {
            tickets, sleepers, ..
        } = self;
        self.last_sleeper += 1;
        let new = Sleeper::Of(self.last_sleeper);
        Some(match operation {
            O::Get(_) => O::Get(new),
            O::LookAgain(pick) => O::Get(Sleeper::Of(picked(sleepers, pick)?)),
            O::Leave(Sleeper::Pick(pick)) => O::Leave(Sleeper::Of(picked(sleepers, pick)?)),
            O::Done(Run::Pick(pick)) => O::Done(picked(tickets, pick)?.into()),
            O::Complete(Run::Pick(pick), action) => {
                O::Complete(picked(tickets, pick)?.into(), action)
            }
            O::Next(Run::Pick(pick), action, _) => {
                O::Next(picked(tickets, pick)?.into(), action, new)
            }
            O::AddMany(_)
            | O::GetMany(..)
            | O::CompleteMany(..)
            | O::DoneKey(_)
            | O::Suspend(..)
            | O::Resume(_) => return None,
            other => other,
        })
    }

    /// The key that an operation asks to run, and by when.
    fn asked(&self, operation: &O, answer: &Answer) -> Option<(Key, By)> {
        let now = self.now;
        let by = |due: Instant| match due > now || due.is_never() {
            true => By::Time(due),
            false => By::Now,
        };
        Some(match (operation, answer) {
            (O::Add(key), Answer::Added(Ok(_))) => (*key, By::Now),
            (O::AddAfter(key, delay), Answer::Added(Ok(_))) => (*key, by(now + *delay)),
            (O::AddAt(key, due), Answer::Added(Ok(_))) => (*key, by(*due)),
            (O::AddWith(key, options), Answer::Scheduled(Ok(_))) if !options.needs_time() => {
                (*key, By::Now)
            }
            (O::AddWith(key, _) | O::AddRateLimited(key), Answer::Scheduled(Ok(added))) => {
                (*key, by(now + added.delay))
            }
            (O::Restore(left), Answer::Restored(Ok(_))) if left.left.is_zero() => {
                (left.key, By::Now)
            }
            (O::Restore(left), Answer::Restored(Ok(_))) => (left.key, by(now + left.left)),
            (O::Next(Run::Of(run), ..), Answer::Turn(finished, _))
            | (O::Complete(Run::Of(run), _) | O::Done(Run::Of(run)), Answer::Finished(finished)) => {
                match *finished {
                    Finished::Idle => return None,
                    Finished::Ready => (run.key, By::Now),
                    // Even a key that is due at once waits: to be handed back.
                    Finished::Delayed(delay)
                    | Finished::Suspended(delay)
                    | Finished::Leftover(delay) => (run.key, By::Time(now + delay)),
                    other => unreachable!("{operation:?}: {other:?}"),
                }
            }
            _ => return None,
        })
    }

    /// The run that has begun. A call that sleeps instead is kept.
    fn begun(&mut self, operation: &O, answer: &Answer) -> Option<Ticket> {
        let next = match answer {
            Answer::Work(handed) => return Some(handed.as_ref()?.ticket),
            Answer::Next(next) | Answer::Turn(_, next) => next,
            _ => return None,
        };
        match (next, operation) {
            (Next::Work(handed), _) => return Some(handed.ticket),
            (Next::Wait { .. }, O::Get(Sleeper::Of(it)) | O::Next(_, _, Sleeper::Of(it))) => {
                self.sleepers.push(*it);
            }
            _ => {}
        }
        None
    }

    /// Holds what the queue knows of a key against what it knew, and what was asked for since.
    fn judge(&mut self, key: Key, change: Change) {
        let is_closed = self.queue.is_shutting_down();
        let (now, latest) = (self.now, self.latest);
        let state = self.queue.state(key);
        let before = match state {
            Some(state) => self.known.insert(key, state),
            None => self.known.remove(&key),
        };
        let context = || format!("{key} at {now}, {change:?}: {before:?} became {state:?}");
        let promised = before.and_then(|before| promise(&before));
        let Some(by) = promised.into_iter().chain(change.asked).min() else {
            let is_there = !change.is_handed_out && !change.is_given_back;
            assert!(is_there, "{}: for no reason", context());
            return;
        };
        let has_come = match by {
            By::Now => true,
            By::Time(by) => by <= latest && !by.is_never(),
        };
        if change.is_handed_out || change.is_given_back {
            assert!(has_come || change.is_given_back, "{}: too early", context());
            return;
        }
        let Some((state, due)) = state.and_then(|it| Some((it, promise(&it)?))) else {
            unreachable!("{}: lost", context());
        };
        if let By::Time(due) = due {
            let is_waiting = due > now || due.is_never() || is_closed;
            assert!(is_waiting, "{}: overdue", context());
        }
        if change.is_merged && promised != Some(By::Now) {
            return;
        }
        let is_early = due < by && !(due == By::Now && has_come);
        assert!(!is_early, "{}: too early", context());
        if due <= by || state.suspended.is_some() {
            return;
        }
        // After shutdown, what is to run again later is handed back instead.
        let may_wait = self.holds || is_closed && by != By::Now;
        assert!(may_wait, "{}: too late", context());
        // A hold ends with the failures of its key, and leaves its deadline.
        if before.is_some_and(|before| before.failures > state.failures) {
            return;
        }
        // A delay that is ended early lasts until the hold is over: this one does already.
        let _ = self.queue.expedite(key);
        let is_held = self.queue.state(key) == Some(state);
        assert!(is_held, "{}: not held", context());
    }
}

/// When a key has to run, as the queue says.
fn promise(state: &KeyState) -> Option<By> {
    match state.ready || state.dirty {
        true => Some(By::Now),
        false => state.suspended.or(state.due).map(By::Time),
    }
}

fn picked<T>(list: &mut Vec<T>, pick: u8) -> Option<T> {
    let index = usize::from(pick).checked_rem(list.len())?;
    Some(list.swap_remove(index))
}
