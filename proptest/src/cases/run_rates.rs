use requeue_core::Action;

use super::calls::{add, advance, get, settle, start};
use super::run_rate::paced;
use crate::histories::{CallScript, Operation, Run};
use crate::subject::Call;

/// While getters sleep, each key is handed out when there is a token for it.
///
/// Source: requeue-core, Policy::run_rate
/// Needs: 4 keys, Policy
pub(crate) fn a_getter_that_sleeps_is_the_timer_of_a_token() -> CallScript {
    let mut steps = vec![get(), get(), get(), get(), settle()];
    steps.extend((1..=4).map(add));
    steps.push(settle());
    for _ in 0..2 {
        steps.extend([advance(9), settle(), advance(1), settle()]);
    }
    CallScript::on(paced(), steps)
}

/// After shutdown getters wait for the tokens of the last keys, and are then closed.
///
/// Source: requeue-core, Policy::run_rate
/// Needs: 4 keys, Policy
pub(crate) fn after_shutdown_getters_wait_for_tokens_and_then_end() -> CallScript {
    let mut steps: Vec<Operation> = (1..=4).map(add).collect();
    steps.extend([get(), get(), get(), get(), get(), settle()]);
    steps.extend([Operation::BeginDrain, start(Call::Drain), settle()]);
    steps.extend([advance(10), settle(), advance(10), settle()]);
    steps.extend([0; 4].map(|pick| Operation::Complete(Run::Pick(pick), Action::Success)));
    steps.push(settle());
    CallScript::on(paced(), steps)
}

/// A call with a time limit gives up before there is a token for a ready key.
///
/// Source: requeue-core, Policy::run_rate
/// Needs: 3 keys, Policy
pub(crate) fn a_call_with_a_time_limit_gives_up_before_its_token() -> CallScript {
    let steps = [
        add(1),
        add(2),
        add(3),
        get(),
        get(),
        start(Call::GetTimeout(super::ms(5))),
        get(),
        settle(),
        advance(5),
        settle(),
        advance(5),
        settle(),
    ];
    CallScript::on(paced(), steps)
}
