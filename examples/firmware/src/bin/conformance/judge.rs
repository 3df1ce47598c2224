//! Compares what the board did with what was recorded, and counts the differences.

use core::fmt::{Debug, Display};

use requeue_firmware::println;

/// The kinds of recordings, in the order in which `build/pack.rs` numbers them.
pub const KINDS: [&str; 5] = ["queue", "quirks", "ties", "limiter", "backoff"];

/// The result of all recordings so far.
#[derive(Default)]
pub struct Judge {
    /// Recordings of each kind.
    pub traces: [u32; KINDS.len()],
    pub steps: u32,
    pub mismatches: u32,
    /// Steps at which client-go's drain had returned early, because it looks at active keys only.
    pub differences: u32,
    /// Keys that a sleeping call has returned.
    pub waited: u32,
    kind: usize,
    number: u64,
}

impl Judge {
    /// The next recording begins.
    pub fn begin(&mut self, kind: usize, number: u64) {
        (self.kind, self.number) = (kind, number);
        self.traces[kind] += 1;
    }

    pub fn expect<T: PartialEq + Debug>(
        &mut self,
        at: impl Display,
        what: &str,
        got: T,
        recorded: T,
    ) {
        if got == recorded {
            return;
        }
        self.mismatches += 1;
        // The first few say what is wrong.
        if self.mismatches <= 10 {
            let (kind, number) = (KINDS[self.kind], self.number);
            println!("{kind} {number} at {at}: {what}: {got:?}, recorded {recorded:?}");
        }
    }
}
