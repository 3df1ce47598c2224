//! Bytes made operations: what a fuzzer drives, and what is driven without one.
//!
//! | target | what the bytes say | what must hold |
//! |---|---|---|
//! | [`queue`] | a queue of core's, and operations | the model agrees, and the invariants hold |
//! | [`clock`] | the same, on a clock that also goes back | the same |
//! | [`limiters`] | limiters with any parameters | what each promises of its delays |
//! | [`backoff`] | backoffs with any parameters | what they promise of their pauses |
//!
//! ```sh
//! cargo xtask ci fuzz                                      # a minute of all of them
//! cargo +nightly fuzz run queue --fuzz-dir proptest/fuzz   # one of them, until it fails
//! cargo run -p requeue-fuzz --bin queue -- FILE            # what such a failure was, in words
//! ```
//!
//! Neither the first nor the last needs cargo-fuzz; the last needs no nightly Rust. The corpus and
//! random bytes are tests of this package: see `tests/bytes.rs`.

mod backoff;
mod draw;
mod limiters;
mod queue;
mod replay;

pub use backoff::backoff;
pub use limiters::limiters;
pub use queue::{clock, queue};
pub use replay::replay;

/// Writes a program for a fuzzer. Built without one, the program runs the files that you name.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requeue_fuzz::$name(bytes));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            requeue_fuzz::replay(requeue_fuzz::$name)
        }
    };
}
