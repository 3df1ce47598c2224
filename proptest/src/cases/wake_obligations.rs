use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, add_after, advance, cancel, drain, get, shut_down, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

pub(crate) fn a_ready_key_wakes_a_getter() -> CallScript {
    CallScript::new([get(), Step::Settle, add(1), Step::Settle])
}

pub(crate) fn a_getter_that_is_served_wakes_the_next() -> CallScript {
    let together = Step::AddMany(vec![1, 2]);
    CallScript::new([get(), get(), get(), Step::Settle, together, Step::Settle])
}

pub(crate) fn each_of_several_keys_reaches_a_sleeper() -> CallScript {
    let adds = [add(1), add(2), add(3)];
    let calls = [get(), get(), get(), Step::Settle];
    CallScript::new(calls.into_iter().chain(adds).chain([Step::Settle]))
}

pub(crate) fn a_wake_for_a_key_that_is_gone_is_not_missed_later() -> CallScript {
    CallScript::new([
        get(),
        get(),
        add(1),
        Step::TryGet,
        add(2),
        Step::Settle,
        Step::DoneKey(1),
        add(1),
        Step::Settle,
    ])
}

pub(crate) fn a_key_that_comes_back_wakes_a_getter() -> CallScript {
    CallScript::new([
        add(1),
        Step::TryGet,
        add(1),
        get(),
        Step::Settle,
        Step::DoneKey(1),
        Step::Settle,
    ])
}

pub(crate) fn a_dirty_key_reaches_a_getter_while_the_queue_drains() -> CallScript {
    CallScript::new([
        add(1),
        Step::TryGet,
        add(1),
        get(),
        get(),
        Step::Settle,
        drain(),
        Step::Settle,
        Step::DoneKey(1),
        Step::Settle,
        Step::DoneKey(1),
        Step::Settle,
    ])
}

pub(crate) fn getters_end_when_the_last_dirty_key_is_cancelled() -> CallScript {
    CallScript::new([
        add(1),
        Step::TryGet,
        add(1),
        drain(),
        get(),
        get(),
        Step::Settle,
        Step::CancelKey(1),
        Step::Settle,
    ])
}

pub(crate) fn a_drain_that_is_interrupted_sends_getters_home() -> CallScript {
    CallScript::new([
        add(1),
        Step::TryGet,
        add(1),
        drain(),
        get(),
        get(),
        Step::Settle,
        shut_down(),
        Step::Settle,
    ])
}

pub(crate) fn a_worker_that_asks_for_more_leaves_nothing_behind() -> CallScript {
    let next = start(Call::Next(Action::Success));
    CallScript::new([
        add(1),
        next.clone(),
        Step::Settle,
        add(2),
        add(1),
        Step::Settle,
        next,
    ])
}

pub(crate) fn shutting_down_wakes_every_call() -> CallScript {
    let limited = start(Call::GetTimeout(Duration::from_millis(9)));
    CallScript::new([
        get(),
        limited,
        get(),
        Step::Settle,
        shut_down(),
        Step::Settle,
    ])
}

pub(crate) fn what_is_ready_is_handed_out_before_calls_end() -> CallScript {
    CallScript::new([
        get(),
        get(),
        Step::Settle,
        add(1),
        shut_down(),
        Step::Settle,
    ])
}

pub(crate) fn a_getter_polled_without_a_wake_keeps_waiting() -> CallScript {
    let (polled, polled_too) = (Step::Nudge(0), Step::Nudge(1));
    let calls = [get(), get(), polled, polled_too, Step::Settle];
    let later = [
        add_after(1, 5),
        Step::Settle,
        Step::Nudge(0),
        advance(5),
        Step::Settle,
    ];
    CallScript::new(
        calls
            .into_iter()
            .chain(later)
            .chain([Step::Nudge(0), add(1)]),
    )
}

pub(crate) fn a_call_that_finds_no_place_harms_no_other() -> CallScript {
    // More than a table of wakers is likely to hold.
    let calls = std::iter::repeat_with(get).take(12);
    let served = [
        Step::Settle,
        add(1),
        Step::Settle,
        add_after(1, 1),
        advance(1),
    ];
    CallScript::new(calls.chain(served).chain([cancel(0)]))
}
