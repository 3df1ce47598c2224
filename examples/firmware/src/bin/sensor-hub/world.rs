//! What is outside: lines that make interrupts happen. The application knows nothing of it.

use embassy_time::{Duration, Ticker};
use portable_atomic::{AtomicBool, Ordering};
use requeue_firmware::board;

use crate::{COMES_BACK_AT, DIES_AT};

/// Sensor 1 has died, and nobody has had an answer since.
static IS_DEAD: AtomicBool = AtomicBool::new(false);

/// How often a line bounces.
pub const EDGES: u32 = 500;

/// A sensor that has data every so many milliseconds, and tells by its interrupt.
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

/// Sensor 1 answers. Whether it had been dead.
pub fn revive() -> bool {
    IS_DEAD.swap(false, Ordering::Relaxed)
}

/// The line of sensor 2 bounces, for 20 ms at most.
pub fn bounce() {
    board::bounce(EDGES);
}
