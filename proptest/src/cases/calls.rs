//! The vocabulary of scripts whose calls wait. Time is in milliseconds.

use std::time::Duration;

use crate::histories::Step;
use crate::subject::{Call, Key};
use crate::suite::Op;

pub(super) fn get() -> Step {
    start(Call::Get)
}

pub(super) fn drain() -> Step {
    start(Call::Drain)
}

pub(super) fn start(call: Call) -> Step {
    Step::Start(call)
}

pub(super) fn cancel(pick: u8) -> Step {
    Step::Cancel(pick)
}

pub(super) fn add(key: Key) -> Step {
    do_it(Op::Add(key))
}

pub(super) fn add_after(key: Key, millis: u64) -> Step {
    do_it(Op::AddAfter(key, Duration::from_millis(millis)))
}

pub(super) fn advance(millis: u64) -> Step {
    do_it(Op::Advance(Duration::from_millis(millis)))
}

pub(super) fn shut_down() -> Step {
    do_it(Op::ShutDown)
}

pub(super) fn do_it(op: Op) -> Step {
    Step::Do(op)
}
