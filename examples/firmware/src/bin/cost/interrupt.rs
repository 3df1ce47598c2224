//! A key that is added by an interrupt handler.

use core::hint::black_box;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::WorkQueue;
use requeue_embassy::core::default_item_based;
use requeue_firmware::{board, handler, println};

use crate::meter::instructions;

const KEYS_MAX: usize = 32;
const SECOND: Duration = Duration::from_secs(1);

/// Of a size that is measured nowhere else: kinds of queue that share code would not be inlined.
static KEYS: WorkQueue<CriticalSectionRawMutex, u16, KEYS_MAX> =
    WorkQueue::new(default_item_based());

/// Makes the interrupt happen.
fn happen() {
    board::pend(board::LINES[0]);
}

pub fn print() {
    handler::set(|_| ());
    let nothing = instructions(happen);
    handler::set(|_| {
        let _ = KEYS.add(black_box(7));
    });
    let first = instructions(happen);
    let storm = instructions(happen);
    assert_eq!(KEYS.len(), 1, "the interrupt has happened");
    for key in 8..38 {
        let later = SECOND * u32::from(key);
        KEYS.add_after(key, later).expect("room");
    }
    handler::set(|_| {
        let _ = KEYS.add_after(black_box(38), SECOND);
    });
    let delayed = instructions(happen);
    assert_eq!(KEYS.delayed_len(), KEYS_MAX - 1);
    println!(
        "\n| instructions of an interrupt, without those of one that does nothing | |\n|---|--:|"
    );
    println!("| that adds a key | {} |", first - nothing);
    println!("| that adds a key which is ready | {} |", storm - nothing);
    println!(
        "| that adds a key after a delay, sooner than 30 others; with the board's clock | {} |",
        delayed - nothing
    );
}
