//! Panics that are findings like any other: reported in a timeline, and not on the standard error.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::thread;

/// Runs `work`, without a message on the standard error if it panics.
///
/// # Errors
///
/// If `work` panics: its message, and where it was. What it worked on may be looked at then, and
/// not be used any more.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    caught(work).map_err(|payload| describe(&*payload))
}

/// Runs `work`, and returns the payload if it panics.
///
/// Shortening plays a history that panics hundreds of times, and what the hook for panics would
/// print each time would bury its timeline. What panics elsewhere in the program is printed as
/// ever.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> thread::Result<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(install);
    let before = IS_CAUGHT.replace(true);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    IS_CAUGHT.set(before);
    outcome
}

/// Describes the panic that was just caught: its message, and where it was.
pub(crate) fn describe(payload: &(dyn Any + Send)) -> String {
    let message = payload.downcast_ref::<&str>().copied();
    let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
    let message = message.unwrap_or("(no message)");
    match PLACE.take() {
        Some(place) => format!("{message}, at {place}"),
        // The unwinding was simulated: there was no panic.
        None => String::from(message),
    }
}

fn install() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        if IS_CAUGHT.get() {
            PLACE.set(info.location().map(ToString::to_string));
        } else {
            others(info);
        }
    }));
}

thread_local! {
    /// Whether a panic of this thread becomes part of a history.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last of them was.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}
