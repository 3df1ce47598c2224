use std::time::Duration;

use super::calls::{add, advance, get, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

fn get_within(millis: u64) -> Step {
    start(Call::GetTimeout(Duration::from_millis(millis)))
}

pub(crate) fn a_getter_gives_up_at_its_time_and_not_before() -> CallScript {
    let early = [get_within(10), Step::Settle, advance(9), Step::Settle];
    CallScript::new(early.into_iter().chain([advance(1), Step::Settle]))
}

pub(crate) fn no_time_is_no_wait() -> CallScript {
    CallScript::new([
        get_within(0),
        Step::Settle,
        add(1),
        get_within(0),
        Step::Settle,
    ])
}

pub(crate) fn a_key_that_comes_in_the_last_moment_is_handed_out() -> CallScript {
    CallScript::new([
        get_within(10),
        Step::Settle,
        advance(10),
        add(1),
        Step::Settle,
    ])
}

pub(crate) fn a_getter_that_gives_up_takes_no_wake_along() -> CallScript {
    let calls = [
        get_within(10),
        get(),
        Step::Settle,
        advance(10),
        Step::Settle,
    ];
    CallScript::new(calls.into_iter().chain([add(1), Step::Settle]))
}
