//! The vocabulary of scripts whose calls wait. Time is in milliseconds.

use std::time::Duration;

use crate::histories::Operation;
use crate::subject::{Call, Key};

pub(super) fn get() -> Operation {
    start(Call::Get)
}

pub(super) fn drain() -> Operation {
    start(Call::Drain)
}

pub(super) fn start(call: Call) -> Operation {
    Operation::Start(call)
}

pub(super) fn cancel(pick: u8) -> Operation {
    Operation::Cancel(pick)
}

pub(super) fn add(key: Key) -> Operation {
    Operation::Add(key)
}

pub(super) fn add_after(key: Key, millis: u64) -> Operation {
    Operation::AddAfter(key, Duration::from_millis(millis))
}

pub(super) fn advance(millis: u64) -> Operation {
    Operation::Advance(Duration::from_millis(millis))
}

/// A key is handed out that no call waits for.
pub(super) fn take() -> Operation {
    Operation::TryGet
}

pub(super) fn done(key: Key) -> Operation {
    Operation::DoneKey(key)
}

pub(super) fn close() -> Operation {
    Operation::ShutDown
}

/// Everything runs that can.
pub(super) fn settle() -> Operation {
    Operation::Settle
}
