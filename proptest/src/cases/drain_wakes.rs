use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, advance, cancel, close, done, drain, settle, start, take};
use crate::histories::{CallScript, Operation};
use crate::subject::Call;

/// Key 1 is active.
fn active() -> [Operation; 2] {
    [add(1), take()]
}

fn script<const N: usize>(steps: [Operation; N]) -> CallScript {
    CallScript::new(active().into_iter().chain(steps))
}

/// A call that waits for the drain is woken by the last key that is completed.
///
/// Source: client-go queue.go, Done and waitForProcessing
pub(crate) fn the_last_active_key_ends_the_drain() -> CallScript {
    script([drain(), settle(), done(1), settle()])
}

/// Every call that waits for the drain is woken when it is over.
///
/// Source: docs/design.md, every_drainer_is_woken
pub(crate) fn every_call_that_waits_for_the_drain_is_woken() -> CallScript {
    let calls = [drain(), drain(), drain(), settle()];
    let done = [done(1), settle()];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}

/// A call that waits for the drain is woken by the last key that is taken back.
///
/// Source: docs/design.md, ready_keys_can_be_taken_back_after_shutdown
pub(crate) fn the_last_key_that_is_taken_back_ends_the_drain() -> CallScript {
    CallScript::new([add(1), drain(), settle(), Operation::TakeReady, settle()])
}

/// A worker that completes the last key and asks for more ends the drain.
///
/// Source: client-go queue.go, Done and waitForProcessing
pub(crate) fn a_worker_that_asks_for_more_ends_the_drain() -> CallScript {
    let next = start(Call::Next(Action::Success));
    CallScript::new([add(1), drain(), settle(), next, settle()])
}

/// A shutdown wakes those who wait for the drain.
///
/// Source: client-go queue.go, ShutDown; docs/design.md, shut_down_interrupts_drain
pub(crate) fn shutting_down_ends_the_wait_for_the_drain() -> CallScript {
    script([drain(), settle(), close(), settle()])
}

/// A wait for the drain ends at its time and not before.
///
/// Source: requeue-std, WorkQueue::drain_timeout
pub(crate) fn a_drain_that_takes_too_long_is_given_up() -> CallScript {
    let limited = start(Call::DrainTimeout(Duration::from_millis(10)));
    let times = [advance(9), settle(), advance(1), settle()];
    let calls = [limited, drain(), settle()];
    CallScript::new(active().into_iter().chain(calls).chain(times))
}

/// Of those who wait for the drain one may be cancelled, and the others are woken.
///
/// Source: docs/design.md, every_drainer_is_woken
pub(crate) fn a_cancelled_wait_for_the_drain_harms_no_other() -> CallScript {
    let calls = [drain(), drain(), settle(), cancel(0)];
    let done = [done(1), settle()];
    CallScript::new(active().into_iter().chain(calls).chain(done))
}
