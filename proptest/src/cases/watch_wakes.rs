use requeue_core::Action;

use super::calls::{add, add_after, advance, close, done, settle, start, take};
use crate::histories::{CallScript, Operation, Run};
use crate::subject::Call;

/// Key 1 is active, and `call` waits.
fn active(call: Call) -> [Operation; 4] {
    [add(1), take(), start(call), settle()]
}

fn script<const N: usize>(call: Call, steps: [Operation; N]) -> CallScript {
    CallScript::new(active(call).into_iter().chain(steps))
}

/// Every call that waits until the queue is idle is woken when the last run ends.
///
/// Source: requeue-core, Queue::poll_idle
/// Needs: 2 keys
pub(crate) fn the_end_of_the_last_run_wakes_every_waiter() -> CallScript {
    script(
        Call::WaitIdle,
        [
            start(Call::WaitIdle),
            add(2),
            done(1),
            settle(),
            take(),
            done(2),
            settle(),
        ],
    )
}

/// A delayed key leaves a queue idle; it is settled once nothing is delayed either.
///
/// Source: requeue-core, Queue::poll_settled
pub(crate) fn delayed_keys_are_waited_for_until_they_are_settled() -> CallScript {
    script(
        Call::WaitSettled,
        [
            start(Call::WaitIdle),
            Operation::Complete(Run::Pick(0), Action::RequeueAfter(super::ms(10))),
            settle(),
            advance(10),
            take(),
            done(1),
            settle(),
            add_after(1, 10),
            start(Call::WaitSettled),
            Operation::CancelDelay(1),
            settle(),
        ],
    )
}

/// A paused queue with a ready key is not idle until the key is cancelled or runs.
///
/// Source: requeue-core, Queue::is_idle
pub(crate) fn a_ready_key_keeps_a_paused_queue_from_being_idle() -> CallScript {
    CallScript::new([
        add(1),
        Operation::Pause,
        start(Call::WaitIdle),
        settle(),
        Operation::CancelKey(1),
        settle(),
    ])
}

/// A call that waits until the queue is idle is woken after shutdown, too.
///
/// Source: requeue-core, Queue::poll_idle
pub(crate) fn a_queue_may_be_waited_for_after_shutdown() -> CallScript {
    script(
        Call::WaitIdle,
        [close(), settle(), start(Call::WaitIdle), done(1), settle()],
    )
}

/// A wait for the work of a key ends with the run that does it, and not before.
///
/// Source: Linux workqueue, flush_work; requeue-core, Queue::begin_flush
/// Needs: 2 keys
pub(crate) fn a_key_is_waited_for_until_its_run_has_ended() -> CallScript {
    CallScript::new([
        start(Call::Flush(1)),
        add(1),
        add(2),
        start(Call::Flush(1)),
        take(),
        take(),
        start(Call::Flush(1)),
        done(2),
        settle(),
        done(1),
        settle(),
    ])
}

/// A wait for the work of a dirty key ends with the run after the present one.
///
/// Source: Linux workqueue, flush_work; requeue-core, Queue::begin_flush
pub(crate) fn a_dirty_key_is_waited_for_until_it_has_run_once_more() -> CallScript {
    CallScript::new([
        add(1),
        take(),
        add(1),
        start(Call::Flush(1)),
        done(1),
        settle(),
        take(),
        settle(),
        done(1),
        settle(),
    ])
}

/// A wait for the work of a key ends when the key is cancelled before it runs.
///
/// Source: requeue-core, Queue::begin_flush
pub(crate) fn work_that_is_taken_back_is_waited_for_no_longer() -> CallScript {
    CallScript::new([
        add(1),
        start(Call::Flush(1)),
        settle(),
        Operation::CancelKey(1),
        settle(),
    ])
}

/// A cancel that waits ends with the present run, whatever is added meanwhile.
///
/// Source: Linux workqueue, cancel_work_sync; requeue-core, Session::cancel
pub(crate) fn a_cancelled_key_is_waited_for_until_its_run_has_ended() -> CallScript {
    script(
        Call::CancelAndWait(1),
        [
            add(1),
            settle(),
            done(1),
            settle(),
            start(Call::CancelAndWait(1)),
            start(Call::CancelAndWait(1)),
            settle(),
        ],
    )
}
