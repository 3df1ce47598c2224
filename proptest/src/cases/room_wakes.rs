use requeue_core::Action;

use super::calls::{add, cancel, close, done, settle, start, take};
use crate::histories::{CallScript, Operation, Run};
use crate::subject::{Call, Key};

/// More keys than most queues have room for: the rest is refused.
const MANY: Key = 64;

/// The first three keys are active, and a queue with a capacity up to [`MANY`] is full.
fn full<const N: usize>(steps: [Operation; N]) -> CallScript {
    let fill = [
        Operation::AddMany((1..=MANY).collect()),
        take(),
        take(),
        take(),
    ];
    CallScript::new(fill.into_iter().chain(steps))
}

fn wait(place: Key) -> Operation {
    start(Call::AddWait(MANY + place))
}

/// A call that waits for room adds its key when a key leaves the queue.
///
/// Source: requeue-core, Queue::poll_add
pub(crate) fn a_place_that_becomes_free_wakes_one_waiter() -> CallScript {
    full([
        wait(1),
        settle(),
        Operation::Complete(Run::Pick(0), Action::Success),
        settle(),
        wait(2),
        Operation::CancelKey(4),
        settle(),
    ])
}

/// Each place goes to the call that has waited longest.
///
/// Source: requeue-core, Queue::poll_add
pub(crate) fn calls_that_wait_for_room_are_served_in_order() -> CallScript {
    full([
        wait(1),
        wait(2),
        wait(3),
        done(1),
        settle(),
        done(2),
        settle(),
        done(3),
        settle(),
    ])
}

/// As many places as become free reach as many of those who wait for room.
///
/// Source: requeue-core, Queue::poll_add
pub(crate) fn places_that_become_free_together_reach_as_many() -> CallScript {
    full([
        wait(1),
        wait(2),
        wait(3),
        settle(),
        Operation::CompleteMany(vec![Run::Pick(0), Run::Pick(0)], Action::Success),
        settle(),
    ])
}

/// A call that was woken for a place and is cancelled passes it on.
///
/// Source: requeue-core, Queue::leave
pub(crate) fn a_cancelled_wait_for_room_passes_the_place_on() -> CallScript {
    full([wait(1), wait(2), settle(), done(1), cancel(0), settle()])
}

/// If more keys fit than before, as many of those who wait for room add theirs.
///
/// Source: requeue-core, Queue::limit_keys
/// Needs: 3 keys, Limit
pub(crate) fn a_raised_limit_wakes_as_many_as_there_is_room_for() -> CallScript {
    full([
        Operation::LimitKeys(1),
        wait(1),
        wait(2),
        wait(3),
        settle(),
        Operation::LimitKeys(usize::from(MANY) + 2),
        settle(),
        Operation::LimitKeys(usize::MAX),
        settle(),
    ])
}

/// An add of a key that the queue holds does not wait for room.
///
/// Source: requeue-core, Queue::poll_add
pub(crate) fn a_key_that_is_held_needs_no_room() -> CallScript {
    full([
        wait(1),
        start(Call::AddWait(1)),
        start(Call::AddWait(4)),
        settle(),
    ])
}

/// A shutdown wakes those who wait for room, and each gets its key back.
///
/// Source: requeue-core, Queue::poll_add
pub(crate) fn shutting_down_hands_the_key_back() -> CallScript {
    full([wait(1), wait(2), settle(), close(), add(1), settle()])
}
