use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, advance, get, settle, take};
use crate::histories::{CallScript, Operation, Run};
use crate::limiter::FloatBits;
use crate::subject::{Cap, GroupOrder, Rate};

fn at_most_one() -> Operation {
    let cap = Cap {
        max_active: Some(1),
        ..Cap::default()
    };
    Operation::Order(GroupOrder::LimitAll(cap))
}

/// The end of a run lets a key of its group pass, and wakes a call that waits.
///
/// Source: requeue-core, GroupLimits::max_active
/// Needs: 2 keys
pub(crate) fn the_end_of_a_run_wakes_a_getter_of_its_group() -> CallScript {
    CallScript::new([
        at_most_one(),
        add(3),
        take(),
        add(6),
        get(),
        get(),
        settle(),
        Operation::Complete(Run::Pick(0), Action::Success),
        settle(),
    ])
}

/// A call that waits is the timer of a group whose rate allows no run yet.
///
/// Source: requeue-core, GroupLimits::rate
/// Needs: 2 keys
pub(crate) fn a_sleeping_getter_is_the_timer_of_a_rate() -> CallScript {
    let rate = Rate {
        per_second: FloatBits(100.0),
        burst: 1,
    };
    let cap = Cap {
        rate: Some(rate),
        ..Cap::default()
    };
    CallScript::new([
        Operation::Order(GroupOrder::LimitAll(cap)),
        add(3),
        add(6),
        take(),
        get(),
        get(),
        settle(),
        advance(10),
        settle(),
    ])
}

/// A group whose pause is over wakes a call that waits.
///
/// Source: requeue-core, Queue::unpause_group
pub(crate) fn a_group_that_is_unpaused_wakes_a_getter() -> CallScript {
    CallScript::new([
        Operation::Order(GroupOrder::Pause(0)),
        get(),
        add(3),
        settle(),
        Operation::Advance(Duration::from_millis(1)),
        Operation::Order(GroupOrder::Unpause(0)),
        settle(),
    ])
}
