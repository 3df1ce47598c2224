//! What a queue survives. `REQUEUE_SOAK` multiplies the rounds of tests of chance.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod clock;
mod dropped;
mod keys;
mod load;
mod never;
mod run;

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// So long a test may take before somebody waits for nothing.
const PATIENCE: Duration = Duration::from_secs(60);

/// Does `work` on a thread of its own, and fails if it does not end.
#[track_caller]
fn in_time<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ended) = channel();
    let worker = thread::spawn(move || {
        let value = work();
        let _ = done.send(());
        value
    });
    match ended.recv_timeout(PATIENCE) {
        Err(RecvTimeoutError::Timeout) => panic!("somebody waits for nothing"),
        _ => worker.join().unwrap_or_else(|panic| resume_unwind(panic)),
    }
}

/// Steele, Lea and Flood's SplitMix64.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % sides
    }
}
