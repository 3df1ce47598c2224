//! What the real client-go did, replayed on the board through the Embassy queue.
//!
//! The recordings stand in flash, packed by the build. Every answer is compared, every length,
//! every figure. Keys are taken in three ways: without waiting, by a `get` that is polled once, and
//! by one that sleeps while the time passes that makes its key due.

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
    for _ in 0..traces {
        let kind = bytes.byte();
        judge.begin(usize::from(kind), bytes.number());
        match kind {
            0 | 1 => player::replay(&mut bytes, &mut judge),
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
    guards::check();
    end(mismatches == 0 && judge.traces.iter().all(|count| *count > 0))
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
