//! A target without a fuzzer.

use std::env;
use std::fs;
use std::process::ExitCode;

/// Runs a target on each file that the command line names. What fails panics, in words.
pub fn replay(target: fn(&[u8])) -> ExitCode {
    let paths: Vec<String> = env::args().skip(1).collect();
    if paths.is_empty() {
        eprintln!("name the files to run; a fuzzer is linked in by `cargo xtask ci fuzz`");
        return ExitCode::from(2);
    }
    for path in paths {
        match fs::read(&path) {
            Ok(bytes) => target(&bytes),
            Err(error) => {
                eprintln!("{path}: {error}");
                return ExitCode::FAILURE;
            }
        }
        println!("{path}: nothing found");
    }
    ExitCode::SUCCESS
}
