use std::time::Duration;

use requeue_core::Action;

use super::calls::{add, add_after, advance, cancel, close, done, drain, get, settle, start, take};
use crate::histories::{CallScript, Operation};
use crate::subject::Call;

/// While a call sleeps, a key that becomes ready wakes one.
///
/// Source: client-go queue.go, Add: cond.Signal; docs/design.md, Wake needed and W1
pub(crate) fn a_ready_key_wakes_a_getter() -> CallScript {
    CallScript::new([get(), settle(), add(1), settle()])
}

/// One wake is under way at a time: a call that leaves with a key wakes the next.
///
/// Source: docs/design.md, One wake in flight, Wake needed
/// Needs: 2 keys
pub(crate) fn a_getter_that_is_served_wakes_the_next() -> CallScript {
    let together = Operation::AddMany(vec![1, 2]);
    CallScript::new([get(), get(), get(), settle(), together, settle()])
}

/// As many keys as become ready reach as many of those who sleep.
///
/// Source: client-go queue.go, Add: cond.Signal; docs/design.md, Wake needed
/// Needs: 3 keys
pub(crate) fn each_of_several_keys_reaches_a_sleeper() -> CallScript {
    let adds = [add(1), add(2), add(3)];
    let calls = [get(), get(), get(), settle()];
    CallScript::new(calls.into_iter().chain(adds).chain([settle()]))
}

/// A call that is woken for a key that another took waits again and is woken again.
///
/// Source: docs/design.md, One wake in flight
/// Needs: 2 keys
pub(crate) fn a_wake_for_a_key_that_is_gone_is_not_missed_later() -> CallScript {
    CallScript::new([
        get(),
        get(),
        add(1),
        take(),
        add(2),
        settle(),
        done(1),
        add(1),
        settle(),
    ])
}

/// A key that was added while active wakes a sleeper when that run is over.
///
/// Source: client-go queue.go, Done: cond.Signal
pub(crate) fn a_key_that_comes_back_wakes_a_getter() -> CallScript {
    CallScript::new([add(1), take(), add(1), get(), settle(), done(1), settle()])
}

/// In a drain a call waits for a key that is dirty, and so the drain ends.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn a_dirty_key_reaches_a_getter_while_the_queue_drains() -> CallScript {
    CallScript::new([
        add(1),
        take(),
        add(1),
        get(),
        get(),
        settle(),
        drain(),
        settle(),
        done(1),
        settle(),
        done(1),
        settle(),
    ])
}

/// In a drain a call ends when no key is ready and none can become so.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn getters_end_when_the_last_dirty_key_is_cancelled() -> CallScript {
    CallScript::new([
        add(1),
        take(),
        add(1),
        drain(),
        get(),
        get(),
        settle(),
        Operation::CancelKey(1),
        settle(),
    ])
}

/// A call that waits for a dirty key ends when a shutdown interrupts the drain.
///
/// Source: docs/design.md, Differences from client-go
pub(crate) fn a_drain_that_is_interrupted_sends_getters_home() -> CallScript {
    CallScript::new([
        add(1),
        take(),
        add(1),
        drain(),
        get(),
        get(),
        settle(),
        close(),
        settle(),
    ])
}

/// A worker that completes a key and waits for the next is woken like any other.
///
/// Source: client-go queue.go, Done and Get
/// Needs: 2 keys
pub(crate) fn a_worker_that_asks_for_more_leaves_nothing_behind() -> CallScript {
    let next = start(Call::Next(Action::Success));
    CallScript::new([
        add(1),
        next.clone(),
        settle(),
        add(2),
        add(1),
        settle(),
        next,
    ])
}

/// A shutdown wakes all who sleep, and each learns that the queue is closed.
///
/// Source: client-go queue.go, ShutDown: cond.Broadcast
pub(crate) fn shutting_down_wakes_every_call() -> CallScript {
    let limited = start(Call::GetTimeout(Duration::from_millis(9)));
    CallScript::new([get(), limited, get(), settle(), close(), settle()])
}

/// After shutdown those who wait take what is ready before they are closed.
///
/// Source: client-go queue.go, Get
pub(crate) fn what_is_ready_is_handed_out_before_calls_end() -> CallScript {
    CallScript::new([get(), get(), settle(), add(1), close(), settle()])
}

/// A call that looks without having been woken loses no later wake.
///
/// Source: Rust's Future::poll: only the last waker is to be woken
pub(crate) fn a_getter_polled_without_a_wake_keeps_waiting() -> CallScript {
    let (polled, polled_too) = (Operation::Nudge(0), Operation::Nudge(1));
    let calls = [get(), get(), polled, polled_too, settle()];
    let later = [
        add_after(1, 5),
        settle(),
        Operation::Nudge(0),
        advance(5),
        settle(),
    ];
    CallScript::new(
        calls
            .into_iter()
            .chain(later)
            .chain([Operation::Nudge(0), add(1)]),
    )
}

/// A call that finds no place to wait is refused, and those who wait are served.
///
/// Source: docs/design.md, Waiting
pub(crate) fn a_call_that_finds_no_place_harms_no_other() -> CallScript {
    // More than a table of wakers is likely to hold.
    let calls = std::iter::repeat_with(get).take(12);
    let served = [settle(), add(1), settle(), add_after(1, 1), advance(1)];
    CallScript::new(calls.chain(served).chain([cancel(0)]))
}
