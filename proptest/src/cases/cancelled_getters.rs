use requeue_core::Action;

use super::calls::{add, add_after, advance, cancel, get, settle};
use crate::histories::{CallScript, Operation};

/// A call that was woken and is cancelled before it looks passes the wake on.
///
/// Source: requeue-core, Wait; docs/design.md, Wake needed
pub(crate) fn a_woken_getter_passes_the_wake_on() -> CallScript {
    CallScript::new([get(), get(), settle(), add(1), cancel(0), settle()])
}

/// A call that watches the clock and is cancelled hands the timer over.
///
/// Source: docs/design.md, One timer owner, Wake needed
pub(crate) fn a_cancelled_timer_owner_hands_the_timer_over() -> CallScript {
    let owner = [add_after(1, 10), get(), get(), settle(), cancel(0)];
    CallScript::new(owner.into_iter().chain([settle(), advance(10), settle()]))
}

/// A call that sleeps and is cancelled is not woken in place of another.
///
/// Source: requeue-core, Wait
pub(crate) fn a_sleeping_getter_takes_no_wake_along() -> CallScript {
    let calls = [get(), get(), get(), settle(), cancel(0), settle()];
    CallScript::new(calls.into_iter().chain([add(1), settle()]))
}

/// However many are cancelled, each key reaches one of those who are left.
///
/// Source: docs/design.md, Wake needed
/// Needs: 2 keys
pub(crate) fn every_woken_getter_passes_its_wake_on() -> CallScript {
    let calls = [get(), get(), get(), get(), settle()];
    let keys = [
        Operation::AddMany(vec![1, 2]),
        cancel(0),
        cancel(0),
        settle(),
    ];
    CallScript::new(calls.into_iter().chain(keys))
}

/// A call that is cancelled has either returned its key, or not taken it.
///
/// Source: requeue-core, Wait
pub(crate) fn a_getter_cancelled_while_it_takes_a_key_gives_it_back() -> CallScript {
    let taken = [get(), settle(), add(1), Operation::Nudge(0), cancel(0)];
    CallScript::new(taken.into_iter().chain([get(), settle()]))
}

/// A call that is cancelled gives its place to wait back.
///
/// Source: requeue-core, Getter
pub(crate) fn a_place_is_given_back() -> CallScript {
    let rounds = [(); 20]
        .into_iter()
        .flat_map(|()| [get(), settle(), cancel(0)]);
    CallScript::new(rounds.chain([get(), settle(), add(1), settle()]))
}

/// A call that is to complete a key does so even if it is dropped before it ran.
///
/// Source: docs/design.md, Waiting
pub(crate) fn a_run_that_was_declared_over_is_completed() -> CallScript {
    let unrun = Operation::NextUnrun(Action::Retry);
    CallScript::new([add(1), unrun, get(), settle(), advance(1), settle()])
}
