//! The vocabulary of scripts whose calls wait. Time is in milliseconds.

use std::time::Duration;

use crate::histories::Step;
use crate::subject::{Call, Key};

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
    Step::Add(key)
}

pub(super) fn add_after(key: Key, millis: u64) -> Step {
    Step::AddAfter(key, Duration::from_millis(millis))
}

pub(super) fn advance(millis: u64) -> Step {
    Step::Advance(Duration::from_millis(millis))
}

pub(super) fn shut_down() -> Step {
    Step::ShutDown
}
