//! Who waits for room gets it once there is some, where groups are short as well as keys, and what
//! is remembered of failures is no reason to refuse a key.

use std::collections::BTreeSet;
use std::pin::Pin;
use std::task::Poll;

use proptest::collection::vec;
use proptest::prelude::*;
use requeue_core::binding::Reporter;
use requeue_core::limiter::{Exponential, default_item_based};
use requeue_core::priority::{Groups, Plain};
use requeue_core::storage::Fixed;
use requeue_core::{Action, Added, Finished, GroupLimits, Queue, Rejected};
use requeue_proptest::rounds;
use requeue_test_tools::{ByHand, by_hand};
use requeue_tokio::{Guard, WorkQueue};

/// The group, and a number.
type Key = (u8, u8);
type Tenants = Groups<u8, Plain, SEATS>;
type Few = WorkQueue<Key, Tenants, Exponential, Fixed<SLOTS>>;

/// How many keys there is room for.
const SLOTS: usize = 3;
/// How many groups there is room for.
const SEATS: usize = 2;
const GROUPS: u8 = 3;
const NUMBERS: u8 = 3;

#[derive(Clone, Copy, Debug)]
enum Operation {
    Add(Key),
    AddWait(Key),
    /// Leaves only what is remembered of a failure.
    FailAndCancel(Key),
    Cancel(Key),
    Forget(Key),
    Get,
    End(usize, Action),
    /// Drops a call that waits.
    GiveUp(usize),
    Limit(u8, bool),
    Pause(u8, bool),
}

/// Operations, and whether the calls that they wake look before the next.
fn operations() -> impl Strategy<Value = Vec<(Operation, bool)>> {
    let key = || (0..GROUPS, 0..NUMBERS);
    let group = || (0..GROUPS, any::<bool>());
    let action = prop_oneof![Just(Action::Success), Just(Action::Release)];
    let operation = prop_oneof![
        3 => key().prop_map(Operation::Add),
        3 => key().prop_map(Operation::AddWait),
        2 => key().prop_map(Operation::FailAndCancel),
        2 => key().prop_map(Operation::Cancel),
        1 => key().prop_map(Operation::Forget),
        3 => Just(Operation::Get),
        3 => (0..SLOTS, action).prop_map(|(place, action)| Operation::End(place, action)),
        1 => (0..4_usize).prop_map(Operation::GiveUp),
        1 => group().prop_map(|(group, on)| Operation::Limit(group, on)),
        1 => group().prop_map(|(group, on)| Operation::Pause(group, on)),
    ];
    vec((operation, any::<bool>()), 1..60)
}

type Call = Pin<Box<dyn Future<Output = Result<Added, Rejected<Key>>>>>;

/// A call that waits for room.
struct Waiting {
    key: Key,
    call: ByHand<Call>,
}

struct World {
    queue: Few,
    guards: Vec<Guard<Key, Tenants, Exponential, Fixed<SLOTS>>>,
    waiting: Vec<Waiting>,
    /// Groups with limits of their own, and paused ones: they stay without keys.
    limited: BTreeSet<u8>,
    paused: BTreeSet<u8>,
}

impl World {
    fn new() -> Self {
        let queue: Queue<Key, Tenants, _, Fixed<SLOTS>, Reporter> =
            Queue::with_groups(default_item_based(), Reporter::default(), |key: &Key| key.0);
        Self {
            queue: queue.into(),
            guards: Vec::new(),
            waiting: Vec::new(),
            limited: BTreeSet::new(),
            paused: BTreeSet::new(),
        }
    }

    fn perform(&mut self, operation: Operation) {
        match operation {
            Operation::Add(key) => {
                let has_room = self.queue.contains(&key) || self.has_room(key);
                let added = self.queue.add(key);
                assert_eq!(added.is_ok(), has_room, "{key:?}: {added:?}");
            }
            Operation::AddWait(key) => {
                let queue = self.queue.clone();
                let call = by_hand(Box::pin(async move { queue.add_wait(key).await }) as _);
                self.waiting.push(Waiting { key, call });
            }
            Operation::FailAndCancel(key) => {
                let has_room = self.queue.contains(&key) || self.has_room(key);
                let added = self.queue.add_rate_limited(key);
                assert_eq!(added.is_ok(), has_room, "{key:?}: {added:?}");
                let _ = self.queue.cancel(&key);
            }
            Operation::Cancel(key) => _ = self.queue.cancel(&key),
            Operation::Forget(key) => _ = self.queue.forget(&key),
            Operation::Get => self.guards.extend(self.queue.try_get()),
            Operation::End(place, action) if place < self.guards.len() => {
                let ended = self.guards.swap_remove(place).finish(action);
                assert_ne!(ended, Finished::Stale);
            }
            Operation::GiveUp(place) if place < self.waiting.len() => {
                drop(self.waiting.remove(place));
            }
            Operation::End(..) | Operation::GiveUp(_) => {}
            Operation::Limit(group, true) => {
                if self
                    .queue
                    .limit_group(group, Some(GroupLimits::new()))
                    .is_ok()
                {
                    self.limited.insert(group);
                }
            }
            Operation::Limit(group, false) => {
                let _ = self.queue.limit_group(group, None);
                self.limited.remove(&group);
            }
            Operation::Pause(group, true) => {
                if self.queue.pause_group(group).is_ok() {
                    self.paused.insert(group);
                }
            }
            Operation::Pause(group, false) => {
                self.queue.unpause_group(&group);
                self.paused.remove(&group);
            }
        }
    }

    /// Polls the calls that were woken until none is. A call that is woken by its own look, or two
    /// that wake each other, would go on.
    fn settle(&mut self) {
        let looks_max = 4 * (self.waiting.len() + 1);
        let looks = (0..looks_max).take_while(|_| self.look()).count();
        assert!(
            looks < looks_max,
            "calls that wait wake each other for ever"
        );
    }

    /// Polls a call that was woken, if there is one.
    fn look(&mut self) -> bool {
        let woken = |waiting: &Waiting| waiting.call.is_woken();
        let Some(place) = self.waiting.iter().position(woken) else {
            return false;
        };
        if let Poll::Ready(added) = self.waiting[place].call.poll() {
            assert!(added.is_ok(), "{added:?}");
            drop(self.waiting.remove(place));
        }
        true
    }

    /// Whether there is room for a key that is not held, by what the pages promise.
    fn has_room(&self, key: Key) -> bool {
        let keys = (0..GROUPS).flat_map(|group| (0..NUMBERS).map(move |number| (group, number)));
        let works = |key: &Key| {
            let state = self.queue.state(key);
            state.is_some_and(|state| state.ready || state.active || state.due.is_some())
        };
        let working: Vec<Key> = keys.filter(works).collect();
        let mut groups: BTreeSet<u8> = working.iter().map(|key| key.0).collect();
        groups.extend(self.limited.union(&self.paused));
        let has_seat = groups.contains(&key.0) || groups.len() < SEATS;
        has_seat && working.len() < SLOTS
    }

    fn check(&self) {
        for call in &self.waiting {
            let has_room = self.has_room(call.key);
            assert!(!has_room, "{:?} waits, and there is room", call.key);
        }
    }
}

proptest! {
    #![proptest_config({
        let mut config = ProptestConfig::default();
        config.cases *= rounds(4);
        config
    })]

    #[test]
    fn who_waits_for_room_gets_it_though_groups_are_short(operations in operations()) {
        let mut world = World::new();
        for (operation, settles) in operations {
            world.perform(operation);
            if settles {
                world.settle();
                world.check();
            }
        }
        for guard in world.guards.drain(..) {
            prop_assert_ne!(guard.release(), Finished::Stale);
        }
    }
}
