//! An image's own handler, for every interrupt but that of the clock.

use core::cell::Cell;

use critical_section::Mutex;

static HANDLER: Mutex<Cell<fn(u16)>> = Mutex::new(Cell::new(|_| {}));

/// Sets the handler. It is called with the interrupt's number.
pub fn set(handler: fn(u16)) {
    critical_section::with(|section| HANDLER.borrow(section).set(handler));
}

pub(crate) fn call(number: u16) {
    let handler = critical_section::with(|section| HANDLER.borrow(section).get());
    handler(number);
}
