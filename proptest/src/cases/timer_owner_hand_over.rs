use std::time::Duration;

use super::calls::{add, add_after, advance, get, settle, start};
use crate::histories::CallScript;
use crate::subject::Call;

/// While a call sleeps, a key is handed out when its deadline comes.
///
/// Source: client-go delaying_queue.go, waitingLoop; docs/design.md, One timer owner
pub(crate) fn a_deadline_wakes_a_getter() -> CallScript {
    let before = [add_after(1, 10), get(), settle(), advance(9), settle()];
    let after = [advance(1), settle(), get(), add_after(2, 10), settle()];
    let again = [advance(10), settle()];
    CallScript::new(before.into_iter().chain(after).chain(again))
}

/// A deadline that comes before all others is watched at once.
///
/// Source: docs/design.md, Waiting
/// Needs: 2 keys
pub(crate) fn a_deadline_before_the_watched_one_is_watched() -> CallScript {
    let watched = [get(), get(), add_after(1, 50), settle()];
    let before = [add_after(2, 10), settle(), advance(10), settle()];
    let then = [advance(40), settle()];
    CallScript::new(watched.into_iter().chain(before).chain(then))
}

/// A deadline that moves forward is watched at once.
///
/// Source: docs/design.md, Waiting
pub(crate) fn a_deadline_that_moves_forward_is_watched() -> CallScript {
    let watched = [get(), add_after(1, 50), settle()];
    let before = [add_after(1, 10), settle(), advance(10), settle()];
    CallScript::new(watched.into_iter().chain(before))
}

/// A call that watches the clock and leaves with a key hands the timer over.
///
/// Source: docs/design.md, One timer owner, Wake needed
/// Needs: 2 keys
pub(crate) fn a_timer_owner_that_is_served_hands_the_timer_over() -> CallScript {
    let owner = [add_after(1, 10), get(), get(), settle()];
    let served = [add(2), settle(), advance(10), settle()];
    CallScript::new(owner.into_iter().chain(served))
}

/// A call that watches the clock and gives up hands the timer over.
///
/// Source: docs/design.md, One timer owner, Wake needed
pub(crate) fn a_timer_owner_that_times_out_hands_the_timer_over() -> CallScript {
    let limited = start(Call::GetTimeout(Duration::from_millis(10)));
    let owner = [add_after(1, 30), limited, get(), settle()];
    let late = [advance(10), settle(), advance(20), settle()];
    CallScript::new(owner.into_iter().chain(late))
}

/// Of several keys due at once each reaches one who sleeps.
///
/// Source: docs/design.md, Due keys, Wake needed
/// Needs: 2 keys
pub(crate) fn keys_due_at_once_reach_as_many() -> CallScript {
    let calls = [get(), get(), get(), add_after(1, 10), add_after(2, 10)];
    CallScript::new(calls.into_iter().chain([settle(), advance(10), settle()]))
}

/// Each of several deadlines is watched when the one before it has come.
///
/// Source: docs/design.md, One timer owner, Wake needed
/// Needs: 3 keys
pub(crate) fn deadlines_come_one_after_another() -> CallScript {
    let keys = [add_after(1, 10), add_after(2, 20), add_after(3, 30)];
    let calls = [get(), get(), get(), settle()];
    let days = [(); 3].into_iter().flat_map(|()| [advance(10), settle()]);
    CallScript::new(keys.into_iter().chain(calls).chain(days))
}
