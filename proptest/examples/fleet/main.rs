//! A controller with a bug that shows only when a change comes at the wrong moment: found, and
//! shown in a few lines; and the same without the bug.
//!
//! ```text
//! cargo run --release -p requeue-proptest --example fleet
//! ```

mod world;

use std::process::ExitCode;
use std::time::Instant;

use requeue_proptest::simulation::Check;

use crate::world::Fleet;

fn main() -> ExitCode {
    println!("With the bug:\n");
    match Check::new(Fleet::with_bug).find() {
        Ok(checked) => {
            println!("it was not found: {checked:?}");
            return ExitCode::FAILURE;
        }
        Err(failure) => println!("{failure}"),
    }
    println!("Without it:\n");
    let start = Instant::now();
    let check = Check::new(Fleet::default).seeds(20_000);
    match check.find() {
        Ok(checked) => {
            let elapsed = start.elapsed();
            println!("{checked:?} in {elapsed:.1?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}
