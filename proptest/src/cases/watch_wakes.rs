use requeue_core::Action;

use super::calls::{add, add_after, advance, shut_down, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

/// Key 1 is active, and `call` waits.
fn active(call: Call) -> [Step; 4] {
    [add(1), Step::TryGet, start(call), Step::Settle]
}

fn script<const N: usize>(call: Call, steps: [Step; N]) -> CallScript {
    CallScript::new(active(call).into_iter().chain(steps))
}

pub(crate) fn the_end_of_the_last_run_wakes_every_waiter() -> CallScript {
    script(
        Call::WaitIdle,
        [
            start(Call::WaitIdle),
            add(2),
            Step::DoneKey(1),
            Step::Settle,
            Step::TryGet,
            Step::DoneKey(2),
            Step::Settle,
        ],
    )
}

pub(crate) fn delayed_keys_are_waited_for_until_they_are_settled() -> CallScript {
    script(
        Call::WaitSettled,
        [
            start(Call::WaitIdle),
            Step::Complete(0, Action::RequeueAfter(super::ms(10))),
            Step::Settle,
            advance(10),
            Step::TryGet,
            Step::DoneKey(1),
            Step::Settle,
            add_after(1, 10),
            start(Call::WaitSettled),
            Step::CancelDelay(1),
            Step::Settle,
        ],
    )
}

pub(crate) fn a_ready_key_keeps_a_paused_queue_from_being_idle() -> CallScript {
    CallScript::new([
        add(1),
        Step::Pause,
        start(Call::WaitIdle),
        Step::Settle,
        Step::CancelKey(1),
        Step::Settle,
    ])
}

pub(crate) fn a_queue_may_be_waited_for_after_shutdown() -> CallScript {
    script(
        Call::WaitIdle,
        [
            shut_down(),
            Step::Settle,
            start(Call::WaitIdle),
            Step::DoneKey(1),
            Step::Settle,
        ],
    )
}

pub(crate) fn a_key_is_waited_for_until_its_run_has_ended() -> CallScript {
    CallScript::new([
        start(Call::Flush(1)),
        add(1),
        add(2),
        start(Call::Flush(1)),
        Step::TryGet,
        Step::TryGet,
        start(Call::Flush(1)),
        Step::DoneKey(2),
        Step::Settle,
        Step::DoneKey(1),
        Step::Settle,
    ])
}

pub(crate) fn a_dirty_key_is_waited_for_until_it_has_run_once_more() -> CallScript {
    CallScript::new([
        add(1),
        Step::TryGet,
        add(1),
        start(Call::Flush(1)),
        Step::DoneKey(1),
        Step::Settle,
        Step::TryGet,
        Step::Settle,
        Step::DoneKey(1),
        Step::Settle,
    ])
}

pub(crate) fn work_that_is_taken_back_is_waited_for_no_longer() -> CallScript {
    CallScript::new([
        add(1),
        start(Call::Flush(1)),
        Step::Settle,
        Step::CancelKey(1),
        Step::Settle,
    ])
}

pub(crate) fn a_cancelled_key_is_waited_for_until_its_run_has_ended() -> CallScript {
    script(
        Call::CancelAndWait(1),
        [
            add(1),
            Step::Settle,
            Step::DoneKey(1),
            Step::Settle,
            start(Call::CancelAndWait(1)),
            start(Call::CancelAndWait(1)),
            Step::Settle,
        ],
    )
}
