//! The world outside: lines that raise interrupts. The application does not know it.

use embassy_time::{Duration, Ticker};
use portable_atomic::{AtomicBool, Ordering};
use requeue_firmware::board;

use crate::{COMES_BACK_AT, DIES_AT};

/// Sensor 1 has died, and has not replied since.
static IS_DEAD: AtomicBool = AtomicBool::new(false);

/// Edges of one bounce.
pub const EDGES: u32 = 500;

/// A sensor that has data every `period_ms`, and raises its interrupt.
#[embassy_executor::task(pool_size = 2)]
pub async fn line(sensor: usize, period_ms: u64) {
    let mut ticker = Ticker::every(Duration::from_millis(period_ms));
    let mut now = 0;
    loop {
        ticker.next().await;
        now += period_ms;
        if sensor == 1 && (DIES_AT..COMES_BACK_AT).contains(&now) {
            IS_DEAD.store(true, Ordering::Relaxed);
        }
        if sensor != 1 || !IS_DEAD.load(Ordering::Relaxed) {
            board::pend(board::LINES[sensor]);
        }
    }
}

/// Sensor 1 replies. Returns whether it had been dead.
pub fn revive() -> bool {
    IS_DEAD.swap(false, Ordering::Relaxed)
}

/// Makes the line of sensor 2 bounce, for 20 ms at most.
pub fn bounce() {
    board::bounce(EDGES);
}
