//! Replays on the board, through the Embassy queue, what the real client-go did. On RISC-V, also
//! through the queue of bare loops.
//!
//! The recordings are in flash, packed by the build script. Every result, length and figure is
//! compared. Keys are taken in three ways: without waiting, by a `get` that is polled once, and by
//! a `get` that sleeps until its key is due.

#![no_std]
#![no_main]

mod backoff;
mod drains;
mod figures;
mod guards;
mod judge;
mod limiter;
mod player;
mod recording;
mod ties;

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll, Waker};

use requeue_embassy::ManualClock;
use requeue_firmware::{board, end, println};

use judge::{Judge, KINDS};
use recording::Bytes;

static RECORDINGS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/recordings.bin"));

#[cfg_attr(target_arch = "arm", cortex_m_rt::entry)]
#[cfg_attr(target_arch = "riscv32", riscv_rt::entry)]
fn main() -> ! {
    board::start();
    let mut bytes = Bytes::new(RECORDINGS);
    let traces = bytes.number();
    let mut judge = Judge::default();
    let mut bare = Judge::default();
    for _ in 0..traces {
        let kind = bytes.byte();
        let seed = bytes.number();
        judge.begin(usize::from(kind), seed);
        bare.begin(usize::from(kind), seed);
        match kind {
            0 | 1 => {
                #[cfg(feature = "virt")]
                {
                    let clock = ManualClock::new();
                    player::replay::<player::bare::Keys<'_>>(&clock, &mut bytes.clone(), &mut bare);
                }
                let clock = ManualClock::new();
                player::replay::<player::Keys<'_>>(&clock, &mut bytes, &mut judge);
            }
            2 => ties::replay(&mut bytes, &mut judge),
            3 => limiter::replay(&mut bytes, &mut judge),
            _ => backoff::replay(&mut bytes, &mut judge),
        }
    }
    let (steps, mismatches) = (judge.steps, judge.mismatches);
    println!("traces {traces}, steps {steps}, mismatches {mismatches}");
    for (kind, traces) in KINDS.iter().zip(judge.traces) {
        println!("  {traces} of {kind}");
    }
    let (waited, differences) = (judge.waited, judge.differences);
    println!(
        "{waited} keys were waited for; {differences} times a drain waited longer, as documented"
    );
    if cfg!(feature = "virt") {
        println!(
            "a bare loop: steps {}, mismatches {}",
            bare.steps, bare.mismatches
        );
    }
    guards::check();
    let mismatches = mismatches + bare.mismatches;
    end(mismatches == 0 && judge.traces.iter().all(|count| *count > 0))
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
