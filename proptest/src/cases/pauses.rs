use super::calls::{add, add_after, advance, get, start};
use crate::histories::{CallScript, Step};
use crate::subject::Call;

pub(crate) fn getters_wait_until_the_queue_is_unpaused() -> CallScript {
    CallScript::new([
        get(),
        Step::Settle,
        Step::Pause,
        add(1),
        Step::Settle,
        Step::Unpause,
        Step::Settle,
    ])
}

pub(crate) fn a_deadline_that_passes_in_a_pause_is_noticed_after_it() -> CallScript {
    CallScript::new([
        Step::Pause,
        get(),
        add_after(1, 10),
        Step::Settle,
        advance(10),
        Step::Settle,
        Step::Unpause,
        Step::Settle,
    ])
}

pub(crate) fn a_call_with_a_time_limit_gives_up_in_a_pause() -> CallScript {
    CallScript::new([
        add(1),
        Step::Pause,
        start(Call::GetTimeout(super::ms(10))),
        Step::Settle,
        advance(10),
        Step::Settle,
        Step::Unpause,
        get(),
        Step::Settle,
    ])
}
