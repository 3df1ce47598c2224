use std::time::Duration;

use super::calls::{add, advance, get, settle, start};
use crate::histories::{CallScript, Operation};
use crate::subject::Call;

fn get_within(millis: u64) -> Operation {
    start(Call::GetTimeout(Duration::from_millis(millis)))
}

/// A call with a time limit gives up when its time has come, and not before.
///
/// Source: requeue-std, WorkQueue::get_timeout
pub(crate) fn a_getter_gives_up_at_its_time_and_not_before() -> CallScript {
    let early = [get_within(10), settle(), advance(9), settle()];
    CallScript::new(early.into_iter().chain([advance(1), settle()]))
}

/// A call that waits for no time takes a key that is ready, or gives up at once.
///
/// Source: requeue-std, WorkQueue::get_timeout
pub(crate) fn no_time_is_no_wait() -> CallScript {
    CallScript::new([get_within(0), settle(), add(1), get_within(0), settle()])
}

/// A call whose time has come looks once more before it gives up.
///
/// Source: requeue-std, WorkQueue::get_timeout
pub(crate) fn a_key_that_comes_in_the_last_moment_is_handed_out() -> CallScript {
    CallScript::new([get_within(10), settle(), advance(10), add(1), settle()])
}

/// A call that gives up passes on a wake that was meant for it.
///
/// Source: docs/design.md, Wake needed
pub(crate) fn a_getter_that_gives_up_takes_no_wake_along() -> CallScript {
    let calls = [get_within(10), get(), settle(), advance(10), settle()];
    CallScript::new(calls.into_iter().chain([add(1), settle()]))
}
