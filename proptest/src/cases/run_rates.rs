use requeue_core::Action;

use super::calls::{add, advance, get, start};
use super::run_rate::paced;
use crate::histories::{CallScript, Step};
use crate::subject::Call;

pub(crate) fn a_getter_that_sleeps_is_the_timer_of_a_token() -> CallScript {
    let mut steps = vec![get(), get(), get(), get(), Step::Settle];
    steps.extend((1..=4).map(add));
    steps.push(Step::Settle);
    for _ in 0..2 {
        steps.extend([advance(9), Step::Settle, advance(1), Step::Settle]);
    }
    CallScript::on(paced(), steps)
}

pub(crate) fn after_shutdown_getters_wait_for_tokens_and_then_end() -> CallScript {
    let mut steps: Vec<Step> = (1..=4).map(add).collect();
    steps.extend([get(), get(), get(), get(), get(), Step::Settle]);
    steps.extend([Step::BeginDrain, start(Call::Drain), Step::Settle]);
    steps.extend([advance(10), Step::Settle, advance(10), Step::Settle]);
    steps.extend([0; 4].map(|pick| Step::Complete(pick, Action::Success)));
    steps.push(Step::Settle);
    CallScript::on(paced(), steps)
}

pub(crate) fn a_call_with_a_time_limit_gives_up_before_its_token() -> CallScript {
    let steps = [
        add(1),
        add(2),
        add(3),
        get(),
        get(),
        start(Call::GetTimeout(super::ms(5))),
        get(),
        Step::Settle,
        advance(5),
        Step::Settle,
        advance(5),
        Step::Settle,
    ];
    CallScript::on(paced(), steps)
}
