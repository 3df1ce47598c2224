use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, advance, cancel, drain, shut_down, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

/// Key 1 is active.
fn active() -> [Step; 2] {
    [add(1), Step::TryGet]
}

fn script<const N: usize>(steps: [Step; N]) -> CallScript {
    CallScript::new(active().into_iter().chain(steps))
}

pub(crate) fn the_last_active_key_ends_the_drain() -> CallScript {
    script([drain(), Step::Settle, Step::DoneKey(1), Step::Settle])
}

pub(crate) fn every_call_that_waits_for_the_drain_is_woken() -> CallScript {
    let calls = [drain(), drain(), drain(), Step::Settle];
    let done = [Step::DoneKey(1), Step::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}

pub(crate) fn the_last_key_that_is_taken_back_ends_the_drain() -> CallScript {
    CallScript::new([add(1), drain(), Step::Settle, Step::TakeReady, Step::Settle])
}

pub(crate) fn a_worker_that_asks_for_more_ends_the_drain() -> CallScript {
    let next = start(Call::Next(Action::Success));
    CallScript::new([add(1), drain(), Step::Settle, next, Step::Settle])
}

pub(crate) fn shutting_down_ends_the_wait_for_the_drain() -> CallScript {
    script([drain(), Step::Settle, shut_down(), Step::Settle])
}

pub(crate) fn a_drain_that_takes_too_long_is_given_up() -> CallScript {
    let limited = start(Call::DrainTimeout(Duration::from_millis(10)));
    let times = [advance(9), Step::Settle, advance(1), Step::Settle];
    let calls = [limited, drain(), Step::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(times))
}

pub(crate) fn a_cancelled_wait_for_the_drain_harms_no_other() -> CallScript {
    let calls = [drain(), drain(), Step::Settle, cancel(0)];
    let done = [Step::DoneKey(1), Step::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}
