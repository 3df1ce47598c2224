use std::time::Duration;

use super::calls::{add, add_after, advance, get, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

pub(crate) fn a_deadline_wakes_a_getter() -> CallScript {
    let before = [
        add_after(1, 10),
        get(),
        Step::Settle,
        advance(9),
        Step::Settle,
    ];
    let after = [
        advance(1),
        Step::Settle,
        get(),
        add_after(2, 10),
        Step::Settle,
    ];
    let again = [advance(10), Step::Settle];
    CallScript::new(before.into_iter().chain(after).chain(again))
}

pub(crate) fn a_deadline_before_the_watched_one_is_watched() -> CallScript {
    let watched = [get(), get(), add_after(1, 50), Step::Settle];
    let before = [add_after(2, 10), Step::Settle, advance(10), Step::Settle];
    let then = [advance(40), Step::Settle];
    CallScript::new(watched.into_iter().chain(before).chain(then))
}

pub(crate) fn a_deadline_that_moves_forward_is_watched() -> CallScript {
    let watched = [get(), add_after(1, 50), Step::Settle];
    let before = [add_after(1, 10), Step::Settle, advance(10), Step::Settle];
    CallScript::new(watched.into_iter().chain(before))
}

pub(crate) fn a_timer_owner_that_is_served_hands_the_timer_over() -> CallScript {
    let owner = [add_after(1, 10), get(), get(), Step::Settle];
    let served = [add(2), Step::Settle, advance(10), Step::Settle];
    CallScript::new(owner.into_iter().chain(served))
}

pub(crate) fn a_timer_owner_that_times_out_hands_the_timer_over() -> CallScript {
    let limited = start(Call::GetTimeout(Duration::from_millis(10)));
    let owner = [add_after(1, 30), limited, get(), Step::Settle];
    let late = [advance(10), Step::Settle, advance(20), Step::Settle];
    CallScript::new(owner.into_iter().chain(late))
}

pub(crate) fn keys_due_at_once_reach_as_many() -> CallScript {
    let calls = [get(), get(), get(), add_after(1, 10), add_after(2, 10)];
    CallScript::new(
        calls
            .into_iter()
            .chain([Step::Settle, advance(10), Step::Settle]),
    )
}

pub(crate) fn deadlines_come_one_after_another() -> CallScript {
    let keys = [add_after(1, 10), add_after(2, 20), add_after(3, 30)];
    let calls = [get(), get(), get(), Step::Settle];
    let days = [(); 3]
        .into_iter()
        .flat_map(|()| [advance(10), Step::Settle]);
    CallScript::new(keys.into_iter().chain(calls).chain(days))
}
