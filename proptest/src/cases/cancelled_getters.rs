use requeue_core::Action;

use super::calls::{add, add_after, advance, cancel, get};
use crate::histories::{CallScript, Step};

pub(crate) fn a_woken_getter_passes_the_wake_on() -> CallScript {
    CallScript::new([get(), get(), Step::Settle, add(1), cancel(0), Step::Settle])
}

pub(crate) fn a_cancelled_timer_owner_hands_the_timer_over() -> CallScript {
    let owner = [add_after(1, 10), get(), get(), Step::Settle, cancel(0)];
    CallScript::new(
        owner
            .into_iter()
            .chain([Step::Settle, advance(10), Step::Settle]),
    )
}

pub(crate) fn a_sleeping_getter_takes_no_wake_along() -> CallScript {
    let calls = [get(), get(), get(), Step::Settle, cancel(0), Step::Settle];
    CallScript::new(calls.into_iter().chain([add(1), Step::Settle]))
}

pub(crate) fn every_woken_getter_passes_its_wake_on() -> CallScript {
    let calls = [get(), get(), get(), get(), Step::Settle];
    let keys = [
        Step::AddMany(vec![1, 2]),
        cancel(0),
        cancel(0),
        Step::Settle,
    ];
    CallScript::new(calls.into_iter().chain(keys))
}

pub(crate) fn a_getter_cancelled_while_it_takes_a_key_gives_it_back() -> CallScript {
    let taken = [get(), Step::Settle, add(1), Step::Nudge(0), cancel(0)];
    CallScript::new(taken.into_iter().chain([get(), Step::Settle]))
}

pub(crate) fn a_place_is_given_back() -> CallScript {
    let rounds = [(); 20]
        .into_iter()
        .flat_map(|()| [get(), Step::Settle, cancel(0)]);
    CallScript::new(rounds.chain([get(), Step::Settle, add(1), Step::Settle]))
}

pub(crate) fn a_run_that_was_declared_over_is_completed() -> CallScript {
    let unrun = Step::NextUnrun(Action::Retry);
    CallScript::new([add(1), unrun, get(), Step::Settle, advance(1), Step::Settle])
}
