//! A line of each hart that rings at odd times, beside the hart's alarm: both are one comparator.

use core::cell::Cell;

use critical_section::Mutex;

use crate::board;

/// When the line of each hart rings, and its alarm.
static TIMES: Mutex<[Cell<(u64, u64)>; 2]> =
    Mutex::new([const { Cell::new((u64::MAX, u64::MAX)) }; 2]);

/// Changes the times of a hart, and sets its comparator for the earlier.
fn change(hart: usize, change: impl FnOnce((u64, u64)) -> (u64, u64)) {
    critical_section::with(|section| {
        let times = &TIMES.borrow(section)[hart];
        let (edge, alarm) = change(times.get());
        times.set((edge, alarm));
        board::set_alarm(hart, edge.min(alarm));
    });
}

/// Sets the next edge of this hart's line, some ticks from now.
pub fn set_edge(ticks: u64) {
    change(board::hart(), |(_, alarm)| {
        (board::time().saturating_add(ticks), alarm)
    });
}

/// Sets the alarm of a hart.
pub fn set_alarm(hart: usize, at: u64) {
    change(hart, |(edge, _)| (edge, at));
}

/// The comparator has rung. Returns whether it was the line and whether it was the alarm, and turns
/// off what it was.
pub fn take_rung() -> (bool, bool) {
    let now = board::time();
    let mut rung = (false, false);
    change(board::hart(), |(edge, alarm)| {
        rung = (edge <= now, alarm <= now);
        let left = |rung: bool, at| if rung { u64::MAX } else { at };
        (left(rung.0, edge), left(rung.1, alarm))
    });
    rung
}
