//! Counts the edges that a bouncing line still has to make.

use core::cell::Cell;

use critical_section::Mutex;

static LEFT: Mutex<Cell<u32>> = Mutex::new(Cell::new(0));

/// Sets the number of edges.
pub(crate) fn set(edges: u32) {
    critical_section::with(|section| LEFT.borrow(section).set(edges));
}

/// Counts one edge. Returns whether it was the last.
pub(crate) fn take() -> bool {
    critical_section::with(|section| {
        let left = LEFT.borrow(section);
        left.set(left.get().saturating_sub(1));
        left.get() == 0
    })
}
