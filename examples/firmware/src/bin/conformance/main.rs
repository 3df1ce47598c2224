//! What the real client-go did, replayed on the board through the Embassy queue.
//!
//! The recordings stand in flash, packed by the build. Every answer is compared, every length,
//! every figure. Keys are taken in three ways: without waiting, by a `get` that is polled once, and
//! by one that sleeps while the time passes that makes its key due.

#![no_std]
#![no_main]

mod figures;
mod limiter;
mod player;
mod recording;

use requeue_firmware::{board, end, println};

use player::{Outcome, replay};
use recording::Bytes;

static RECORDINGS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recordings.bin"));

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    let mut bytes = Bytes::new(RECORDINGS);
    let traces = bytes.number();
    let mut total = Outcome::default();
    for _ in 0..traces {
        replay(&mut bytes, &mut total);
    }
    let Outcome {
        steps,
        mismatches,
        differences,
        waited,
    } = total;
    println!("traces {traces}, steps {steps}, mismatches {mismatches}");
    println!("{waited} keys were waited for; {differences} drains waited longer, as documented");
    end(mismatches == 0 && traces > 0)
}
