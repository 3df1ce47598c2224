//! Operations on core's queue whose clock does what it likes.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requeue_fuzz::clock(bytes));

/// Without a fuzzer: runs the files that are named.
#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    requeue_fuzz::replay(requeue_fuzz::clock)
}
