use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, advance, cancel, drain, shut_down, start};
use crate::histories::{CallScript, Operation};
use crate::subject::Call;

/// Key 1 is active.
fn active() -> [Operation; 2] {
    [add(1), Operation::TryGet]
}

fn script<const N: usize>(steps: [Operation; N]) -> CallScript {
    CallScript::new(active().into_iter().chain(steps))
}

/// A call that waits for the drain is woken by the last key that is completed.
///
/// Source: client-go queue.go, Done and waitForProcessing
pub(crate) fn the_last_active_key_ends_the_drain() -> CallScript {
    script([
        drain(),
        Operation::Settle,
        Operation::DoneKey(1),
        Operation::Settle,
    ])
}

/// Every call that waits for the drain is woken when it is over.
///
/// Source: docs/design.md, every_drainer_is_woken
pub(crate) fn every_call_that_waits_for_the_drain_is_woken() -> CallScript {
    let calls = [drain(), drain(), drain(), Operation::Settle];
    let done = [Operation::DoneKey(1), Operation::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}

/// A call that waits for the drain is woken by the last key that is taken back.
///
/// Source: docs/design.md, ready_keys_can_be_taken_back_after_shutdown
pub(crate) fn the_last_key_that_is_taken_back_ends_the_drain() -> CallScript {
    CallScript::new([
        add(1),
        drain(),
        Operation::Settle,
        Operation::TakeReady,
        Operation::Settle,
    ])
}

/// A worker that completes the last key and asks for more ends the drain.
///
/// Source: client-go queue.go, Done and waitForProcessing
pub(crate) fn a_worker_that_asks_for_more_ends_the_drain() -> CallScript {
    let next = start(Call::Next(Action::Success));
    CallScript::new([add(1), drain(), Operation::Settle, next, Operation::Settle])
}

/// A shutdown wakes those who wait for the drain.
///
/// Source: client-go queue.go, ShutDown; docs/design.md, shut_down_interrupts_drain
pub(crate) fn shutting_down_ends_the_wait_for_the_drain() -> CallScript {
    script([drain(), Operation::Settle, shut_down(), Operation::Settle])
}

/// A wait for the drain ends at its time and not before.
///
/// Source: requeue-std, WorkQueue::drain_timeout
pub(crate) fn a_drain_that_takes_too_long_is_given_up() -> CallScript {
    let limited = start(Call::DrainTimeout(Duration::from_millis(10)));
    let times = [advance(9), Operation::Settle, advance(1), Operation::Settle];
    let calls = [limited, drain(), Operation::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(times))
}

/// Of those who wait for the drain one may be cancelled, and the others are woken.
///
/// Source: docs/design.md, every_drainer_is_woken
pub(crate) fn a_cancelled_wait_for_the_drain_harms_no_other() -> CallScript {
    let calls = [drain(), drain(), Operation::Settle, cancel(0)];
    let done = [Operation::DoneKey(1), Operation::Settle];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}
