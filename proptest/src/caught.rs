//! Panics that are findings like any other: told in a story, and not on the standard error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::thread;

/// Runs `work`, and answers what is [to be told](told) if it panics. What it worked on must not be
/// used any more then, but to be looked at.
pub(crate) fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    caught(work).map_err(|payload| told(&*payload))
}

/// Runs `work`, and answers the payload if it panics.
///
/// Shortening plays a history that panics hundreds of times, and what the hook for panics would
/// print each time would bury its story. What panics elsewhere in the program is printed as ever.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(install);
    let before = IS_TOLD.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_TOLD.set(before);
    outcome
}

/// What is told of the panic that was just caught: its message, and where it was.
pub(crate) fn told(payload: &(dyn Any + Send)) -> String {
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
    let message = message.unwrap_or("(no message)");
    match PLACE.take() {
        Some(place) => format!("{message}, at {place}"),
        // Nobody panicked: the unwinding was simulated.
        None => String::from(message),
    }
}

fn install() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_TOLD.get() {
            PLACE.set(info.location().map(ToString::to_string));
        } else {
            others(info);
        }
    }));
}

thread_local! {
    /// Whether a panic of this thread becomes part of a history.
    static IS_TOLD: Cell<bool> = const { Cell::new(false) };
    /// Where the last of them was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}
