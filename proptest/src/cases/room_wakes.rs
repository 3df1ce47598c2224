use requeue_core::Action;

use super::calls::{add, cancel, shut_down, start};
use crate::histories::{CallScript, Step};
use crate::subject::{Call, Key};

/// More keys than most queues have room for: the rest is refused.
const MANY: Key = 64;

/// The first three keys are active, and a queue with a capacity up to [`MANY`] is full.
fn full<const N: usize>(steps: [Step; N]) -> CallScript {
    let fill = [
        Step::AddMany((1..=MANY).collect()),
        Step::TryGet,
        Step::TryGet,
        Step::TryGet,
    ];
    CallScript::new(fill.into_iter().chain(steps))
}

fn wait(place: Key) -> Step {
    start(Call::AddWait(MANY + place))
}

pub(crate) fn a_place_that_becomes_free_wakes_one_waiter() -> CallScript {
    full([
        wait(1),
        Step::Settle,
        Step::Complete(0, Action::Success),
        Step::Settle,
        wait(2),
        Step::CancelKey(4),
        Step::Settle,
    ])
}

pub(crate) fn calls_that_wait_for_room_are_served_in_order() -> CallScript {
    full([
        wait(1),
        wait(2),
        wait(3),
        Step::DoneKey(1),
        Step::Settle,
        Step::DoneKey(2),
        Step::Settle,
        Step::DoneKey(3),
        Step::Settle,
    ])
}

pub(crate) fn places_that_become_free_together_reach_as_many() -> CallScript {
    full([
        wait(1),
        wait(2),
        wait(3),
        Step::Settle,
        Step::CompleteMany(vec![0, 0], Action::Success),
        Step::Settle,
    ])
}

pub(crate) fn a_cancelled_wait_for_room_passes_the_place_on() -> CallScript {
    full([
        wait(1),
        wait(2),
        Step::Settle,
        Step::DoneKey(1),
        cancel(0),
        Step::Settle,
    ])
}

pub(crate) fn a_raised_limit_wakes_as_many_as_there_is_room_for() -> CallScript {
    full([
        Step::LimitKeys(1),
        wait(1),
        wait(2),
        wait(3),
        Step::Settle,
        Step::LimitKeys(usize::from(MANY) + 2),
        Step::Settle,
        Step::LimitKeys(usize::MAX),
        Step::Settle,
    ])
}

pub(crate) fn a_key_that_is_held_needs_no_room() -> CallScript {
    full([
        wait(1),
        start(Call::AddWait(1)),
        start(Call::AddWait(4)),
        Step::Settle,
    ])
}

pub(crate) fn shutting_down_hands_the_key_back() -> CallScript {
    full([
        wait(1),
        wait(2),
        Step::Settle,
        shut_down(),
        add(1),
        Step::Settle,
    ])
}
