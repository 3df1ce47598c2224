use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, advance, get};
use crate::histories::{CallScript, Step};
use crate::limiter::FloatBits;
use crate::subject::{Cap, GroupOrder, Rate};

fn at_most_one() -> Step {
    let cap = Cap {
        max_active: Some(1),
        ..Cap::default()
    };
    Step::Order(GroupOrder::LimitAll(cap))
}

pub(crate) fn the_end_of_a_run_wakes_a_getter_of_its_group() -> CallScript {
    CallScript::new([
        at_most_one(),
        add(3),
        Step::TryGet,
        add(6),
        get(),
        get(),
        Step::Settle,
        Step::Complete(0, Action::Success),
        Step::Settle,
    ])
}

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
        Step::Order(GroupOrder::LimitAll(cap)),
        add(3),
        add(6),
        Step::TryGet,
        get(),
        get(),
        Step::Settle,
        advance(10),
        Step::Settle,
    ])
}

pub(crate) fn a_group_that_is_unpaused_wakes_a_getter() -> CallScript {
    CallScript::new([
        Step::Order(GroupOrder::Pause(0)),
        get(),
        add(3),
        Step::Settle,
        Step::Advance(Duration::from_millis(1)),
        Step::Order(GroupOrder::Unpause(0)),
        Step::Settle,
    ])
}
