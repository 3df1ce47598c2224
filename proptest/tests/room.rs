//! Calls that wait for room get it once there is some, where groups are short as well as keys, and
//! failure records are no reason to refuse a key.

#![allow(clippy::panic, reason = "a test that panics has failed")]

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use requeue_core::priority::{Groups, Plain};
use requeue_core::storage::Fixed;
use requeue_proptest::histories::{Operation, calls};
use requeue_proptest::rounds;
use requeue_proptest::subject::{
    Call, CallId, Configuration, GroupOrder, Key, OnWorkQueue, Operate, Returned, Subject, Tasks,
    Ticket, group_of,
};

/// How many keys there is room for, and how many of the three groups.
const KEYS: usize = 3;
const GROUPS: usize = 2;

type Scarce = OnWorkQueue<Tasks<Groups<u8, Plain, GROUPS>, Fixed<KEYS>>>;

struct World {
    queue: Scarce,
    runs: Vec<Ticket>,
    /// The keys of the calls that wait.
    waiting: BTreeMap<CallId, Key>,
    calls: CallId,
    /// Groups that are paused, and those with limits of their own. They need no keys to stay.
    ordered: BTreeSet<(u8, bool)>,
}

impl World {
    fn perform(&mut self, step: &Operation) {
        match *step {
            Operation::Start(call @ Call::AddWait(key)) => {
                self.calls += 1;
                assert!(self.queue.start(self.calls, call));
                self.waiting.insert(self.calls, key);
            }
            Operation::Cancel(_) => {
                if let Some((id, _)) = self.waiting.pop_first() {
                    self.queue.cancel(id);
                }
            }
            Operation::Settle => self.settle(),
            Operation::Add(key) => {
                let has_room = self.queue.contains(key) || self.has_room(key);
                let added = self.queue.add(key);
                assert_eq!(added.is_ok(), has_room, "{key}: {added:?}");
            }
            Operation::Advance(by) => self.queue.advance(by),
            Operation::TryGet => {
                let handed = self.queue.try_get();
                self.runs.extend(handed.map(|handed| handed.ticket));
            }
            Operation::Complete(_, action) => {
                if let Some(ticket) = self.runs.pop() {
                    self.queue.finish(ticket, action);
                }
            }
            Operation::Order(ref order) => self.order(order),
            Operation::AddAfter(..)
            | Operation::AddRateLimited(_)
            | Operation::CancelKey(_)
            | Operation::Forget(_)
            | Operation::RetainBelow(_) => _ = self.queue.apply(step),
            _ => {}
        }
    }

    /// Left out if there is no place for the group. Groups have no rates, for which they would stay a
    /// while without keys.
    fn order(&mut self, order: &GroupOrder) {
        let (ordered, stays) = match *order {
            GroupOrder::Limit(group, cap) if cap.is_none_or(|cap| cap.rate.is_none()) => {
                ((group, false), cap.is_some())
            }
            GroupOrder::Pause(group) => ((group, true), true),
            GroupOrder::Unpause(group) => ((group, true), false),
            _ => return,
        };
        if !stays {
            self.ordered.remove(&ordered);
        } else if self.has_place(ordered.0) {
            self.ordered.insert(ordered);
        } else {
            return;
        }
        self.queue.order(order);
    }

    /// Whether there is room for a key that the queue does not have, by what the pages promise.
    fn has_room(&mut self, key: Key) -> bool {
        self.has_place(group_of(&key)) && self.working().len() < KEYS
    }

    fn has_place(&mut self, group: u8) -> bool {
        let mut groups: BTreeSet<u8> = self.working().iter().map(group_of).collect();
        groups.extend(self.ordered.iter().map(|(group, _)| group));
        groups.len() < GROUPS || groups.contains(&group)
    }

    fn working(&mut self) -> Vec<Key> {
        (1..=8).filter(|key| self.queue.contains(*key)).collect()
    }

    fn settle(&mut self) {
        assert!(self.queue.settle(), "calls wake each other for ever");
        let queue = &mut self.queue;
        self.waiting.retain(|id, _| match queue.answer(*id) {
            None => true,
            Some(Returned::Added(Ok(_))) => false,
            Some(other) => panic!("{other:?}"),
        });
        for key in self.waiting.clone().into_values() {
            assert!(!self.has_room(key), "{key} waits, and there is room");
        }
    }
}

proptest! {
    #![proptest_config({
        let mut config = ProptestConfig::default();
        config.cases *= rounds(16);
        config
    })]

    #[test]
    fn who_waits_for_room_gets_it_though_groups_are_short(steps in calls()) {
        let mut world = World {
            queue: Scarce::new(&Configuration::exponential()),
            runs: Vec::new(),
            waiting: BTreeMap::new(),
            calls: 0,
            ordered: BTreeSet::new(),
        };
        steps.iter().for_each(|step| world.perform(step));
    }
}
