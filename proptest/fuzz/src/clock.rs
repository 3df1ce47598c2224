//! The queue on a clock that breaks its contract: it jumps, stands still and goes backwards.
//!
//! No model predicts when a key leaves then. What is left is what must hold on any clock: the
//! invariants, that nothing is lost, handed out twice at once or without a reason, and that no key
//! leaves earlier than the latest time that the queue has seen.

use std::collections::BTreeMap;

use arbitrary::{Result, Unstructured};
use requeue_core::binding::{Drained, Next};
use requeue_core::priority::{Levels, Plain, WithSuspension};
use requeue_core::storage::{Fixed, Growable};
use requeue_core::{Action, AddOptions, Finished, Instant, KeyState, Merge};
use requeue_proptest::combinations::Uses;
use requeue_proptest::histories::{Operation, Run, Sleeper, operations_of};
use requeue_proptest::subject::{
    Answer, Direct, Handed, Home, Key, Kind, Operate, Subject, Ticket,
};

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

/// What may be done on such a clock: it is known of each when a key has to run.
const USES: Uses = Uses {
    debounce: false,
    suspend: true,
    poll: true,
    slack: false,
    merge: true,
    displace: false,
    restore: true,
    pause: false,
    cancel: false,
    change: false,
    backlog: false,
};

fn run<P: Kind, S: Home>(bytes: &mut Unstructured) -> Result<()> {
    let setup = combination(bytes)?.configuration;
    let now = draw::instant(bytes)?;
    let times = bytes.len() / 4;
    let mut times = Unstructured::new(bytes.bytes(times)?);
    let mut world = World::<P, S> {
        holds: S::abilities::<P>().governs && setup.policy.holds(),
        queue: Direct::new(&setup),
        now,
        latest: Instant::EPOCH,
        owed: BTreeMap::new(),
        tickets: Vec::new(),
        sleepers: Vec::new(),
        last_sleeper: 0,
    };
    for operation in operations_of(bytes.bytes(bytes.len())?, KEYS, USES) {
        // Without a byte the clock stands still.
        let _ = world.tell_time(&mut times);
        world.step(operation);
        world.assert_nothing_lost();
    }
    Ok(())
}

struct World<P: Kind, S: Home> {
    queue: Direct<P, S>,
    holds: bool,
    now: Instant,
    /// The latest time that the queue has seen.
    latest: Instant,
    /// Why a key is owed a run.
    owed: BTreeMap<Key, Owed>,
    tickets: Vec<Ticket>,
    sleepers: Vec<u32>,
    last_sleeper: u32,
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
        Ok(())
    }

    fn step(&mut self, operation: Operation) {
        self.latest = self.latest.max(self.now);
        self.queue.set_now(self.now);
        let Some(operation) = self.resolved(operation) else {
            return;
        };
        match (&operation, self.queue.apply(&operation)) {
            (_, Answer::Added(Err(rejected)) | Answer::Scheduled(Err(rejected))) => {
                let key = rejected.into_key();
                assert!((1..=KEYS).contains(&key), "{key} was not added");
            }
            (Operation::Restore(left), Answer::Restored(Err(rejected))) => {
                assert_eq!(rejected.into_key(), *left);
            }
            (Operation::Restore(left), Answer::Restored(Ok(_))) => {
                let due = (!left.left.is_zero()).then_some(self.now + left.left);
                self.owe(left.key, due);
            }
            (Operation::Add(key), Answer::Added(Ok(_))) => self.owe(*key, None),
            (Operation::AddAfter(key, delay), Answer::Added(Ok(_))) => {
                self.owe(*key, Some(self.now + *delay));
            }
            (Operation::AddAt(key, due), Answer::Added(Ok(_))) => self.owe(*key, Some(*due)),
            (Operation::AddWith(key, options), Answer::Scheduled(Ok(added))) => {
                let AddOptions { merge, .. } = options;
                match merge {
                    Merge::Earliest | Merge::Once => {
                        let is_timed = options.needs_time();
                        self.owe(*key, is_timed.then_some(self.now + added.delay));
                    }
                    _ => self.meet_deadline(*key),
                }
            }
            (Operation::AddRateLimited(key), Answer::Scheduled(Ok(added))) => {
                self.owe(*key, Some(self.now + added.delay));
            }
            (_, Answer::Work(handed)) => handed.into_iter().for_each(|it| self.handed_out(it)),
            (Operation::Get(sleeper), Answer::Next(next)) => self.came_back(next, *sleeper),
            (Operation::Next(Run::Of(run), action, sleeper), Answer::Turn(finished, next)) => {
                self.completed(run.key, *action, finished);
                self.came_back(next, *sleeper);
            }
            (Operation::Complete(Run::Of(run), action), Answer::Finished(finished)) => {
                self.completed(run.key, *action, finished);
            }
            (Operation::Done(Run::Of(run)), Answer::Finished(finished)) => {
                self.completed(run.key, Action::Release, finished);
            }
            (_, Answer::Drain(drain)) => {
                let is_drained = self.queue.drained(&drain) == Drained::Complete;
                assert!(!is_drained || self.tickets.is_empty());
            }
            (_, Answer::Left(left)) => left.into_iter().for_each(|left| self.gave_back(left.key)),
            _ => {}
        }
    }

    /// The operation on the runs and the calls that it picks; none if there is none to pick, or if
    /// it is about many keys.
    fn resolved(&mut self, operation: Operation) -> Option<Operation> {
        Some(match operation {
            Operation::Get(_) => Operation::Get(self.new_sleeper()),
            Operation::LookAgain(pick) => Operation::Get(self.pick_sleeper(pick)?),
            Operation::Leave(Sleeper::Pick(pick)) => Operation::Leave(self.pick_sleeper(pick)?),
            Operation::Done(Run::Pick(pick)) => Operation::Done(self.pick_run(pick)?),
            Operation::Complete(Run::Pick(pick), action) => {
                Operation::Complete(self.pick_run(pick)?, action)
            }
            Operation::Next(Run::Pick(pick), action, _) => {
                Operation::Next(self.pick_run(pick)?, action, self.new_sleeper())
            }
            Operation::AddMany(_)
            | Operation::GetMany(..)
            | Operation::CompleteMany(..)
            | Operation::DoneKey(_)
            | Operation::Suspend(..)
            | Operation::Resume(_) => return None,
            other => other,
        })
    }

    fn new_sleeper(&mut self) -> Sleeper {
        self.last_sleeper += 1;
        Sleeper::Of(self.last_sleeper)
    }

    fn pick_sleeper(&mut self, pick: u8) -> Option<Sleeper> {
        let index = usize::from(pick).checked_rem(self.sleepers.len())?;
        Some(Sleeper::Of(self.sleepers.swap_remove(index)))
    }

    fn pick_run(&mut self, pick: u8) -> Option<Run> {
        let index = usize::from(pick).checked_rem(self.tickets.len())?;
        Some(self.tickets.swap_remove(index).into())
    }

    fn state(&mut self, key: Key) -> Option<KeyState> {
        self.queue.state(key)
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
        if self.holds
            && self.now < self.latest
            && let Some(due) = self.state(key).and_then(|state| state.due)
        {
            self.owe_later(key, due);
        }
    }

    /// An add has moved a deadline, or has left it: on such a clock only the queue knows which. The
    /// key is not lost.
    fn meet_deadline(&mut self, key: Key) {
        self.owed.entry(key).or_default().due = None;
        self.owe_what_waits(key);
        let owed = self.owed.entry(key).or_default();
        assert!(owed.at_once || owed.due.is_some(), "{key} is lost");
    }

    /// A key waits for this, or for what it waits for already if that is earlier.
    fn owe_later(&mut self, key: Key, due: Instant) {
        let owed = self.owed.entry(key).or_default();
        owed.due = Some(owed.due.map_or(due, |other| other.min(due)));
    }

    fn came_back(&mut self, next: Next<Handed>, sleeper: Sleeper) {
        match (next, sleeper) {
            (Next::Work(work), _) => self.handed_out(work),
            (Next::Wait { .. }, Sleeper::Of(number)) => self.sleepers.push(number),
            (Next::Wait { .. }, _) => {}
            (Next::Closed, _) => assert!(self.queue.is_shutting_down()),
        }
    }

    /// No other worker has the key, and it was asked for, and not for later.
    fn handed_out(&mut self, Handed { key, ticket, .. }: Handed) {
        let held = self.tickets.iter().any(|other| other.key == key);
        assert!(!held, "{key} was handed out twice at once");
        let owed = self.owed.remove(&key).unwrap_or_default();
        let latest = self.latest;
        let was_due = owed.due.is_some_and(|due| due <= latest && !due.is_never());
        assert!(
            owed.at_once || was_due,
            "{key} was handed out: {owed:?}, {latest}"
        );
        self.tickets.push(ticket);
        // A later time than the one for which the key was handed out may stand all the same.
        if owed.due.is_some() {
            self.owe_what_waits(key);
        }
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

    /// A leftover was asked for, and is not any more unless the queue knows of more.
    fn gave_back(&mut self, key: Key) {
        assert!(self.queue.is_shutting_down());
        assert!(self.owed.remove(&key).is_some(), "{key} was not asked for");
        self.owe_what_waits(key);
    }

    /// Takes the queue's word for what it still has to do.
    fn owe_what_waits(&mut self, key: Key) {
        if let Some(state) = self.state(key) {
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
        let _ = queue.wakes();
        queue.assert_valid();
        let stats = queue.stats();
        assert_eq!(stats.active, self.tickets.len());
        assert_eq!(queue.asleep(), Some(self.sleepers.len()));
        let closed = queue.is_shutting_down();
        for (&key, owed) in &mut self.owed {
            let Some(state) = queue.state(key) else {
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
                let _ = queue.expedite(key);
                let held = queue.state(key) == Some(state);
                assert!(held, "{key} is not held: {owed:?}, {state:?}");
            }
            *owed = Owed {
                at_once: false,
                due: Some(due),
            };
        }
    }
}
