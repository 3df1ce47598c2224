//! A key that is added by an interrupt handler.

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::WorkQueue;
use requeue_embassy::limiter::default_item_based;
use requeue_firmware::meter::instructions;
use requeue_firmware::{board, handler, println};

const KEYS_MAX: usize = 32;
const SECOND: Duration = Duration::from_secs(1);

/// Its size is used nowhere else, because functions that two kinds of queue share are not inlined.
static KEYS: WorkQueue<CriticalSectionRawMutex, u16, KEYS_MAX> =
    WorkQueue::new(default_item_based());

/// Raises the interrupt.
fn raise() {
    board::pend(board::LINES[0]);
}

pub fn print() {
    handler::set(|_| ());
    let nothing = instructions(raise);
    handler::set(|_| {
        let _ = KEYS.add(black_box(7));
    });
    let first = instructions(raise);
    let storm = instructions(raise);
    assert_eq!(KEYS.len(), 1, "the interrupt has happened");
    for key in 8..38 {
        let later = SECOND * u32::from(key);
        KEYS.add_after(key, later).expect("room");
    }
    handler::set(|_| {
        let _ = KEYS.add_after(black_box(38), SECOND);
    });
    let delayed = instructions(raise);
    assert_eq!(KEYS.stats().delayed, KEYS_MAX - 1);
    println!("\n| instructions of an interrupt, less those of an empty handler | |\n|---|--:|");
    println!("| that adds a key | {} |", first - nothing);
    println!("| that adds a key that is ready | {} |", storm - nothing);
    println!(
        "| that adds a key after a delay, sooner than 30 others; with the board's clock | {} |",
        delayed - nothing
    );
}
