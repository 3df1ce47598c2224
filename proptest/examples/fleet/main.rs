//! A controller with a bug that shows only when a change comes at the wrong moment: found, and
//! shown in a few lines; and the same without the bug.
//!
//! ```text
//! cargo run --release -p requeue-proptest --example fleet
//! ```

mod world;

use std::time::Instant;

use requeue_proptest::simulation::{Check, Failure};

use crate::world::Fleet;

fn main() -> Result<(), Failure> {
    println!("With the bug:\n");
    match Check::new(Fleet::with_bug).find() {
        Ok(checked) => println!("it was not found: {checked:?}"),
        Err(failure) => println!("{failure}"),
    }
    println!("Without it:\n");
    let start = Instant::now();
    let checked = Check::new(Fleet::default).seeds(20_000).find()?;
    println!("{checked:?} in {:.1?}", start.elapsed());
    Ok(())
}
