//! A key that is added by an interrupt handler.

use core::hint::black_box;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::WorkQueue;
use requeue_embassy::core::default_item_based;
use requeue_firmware::{board, handler, println};

use crate::meter::instructions;

static KEYS: WorkQueue<CriticalSectionRawMutex, u16, 16> = WorkQueue::new(default_item_based());

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
    println!(
        "\n| instructions of an interrupt, without those of one that does nothing | |\n|---|--:|"
    );
    println!("| that adds a key | {} |", first - nothing);
    println!("| that adds a key which is ready | {} |", storm - nothing);
}
