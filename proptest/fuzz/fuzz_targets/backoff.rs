//! Backoffs with any parameters, at any times.
#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| requeue_fuzz::backoff(bytes));

/// Without a fuzzer: runs the files that are named.
#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    requeue_fuzz::replay(requeue_fuzz::backoff)
}
