//! Ten changes of one object make one run, on threads.
//!
//! ```text
//! making default/web what it should be
//! making default/db what it should be
//! nothing is left: true
//! ```

use requeue::std::WorkQueue;

fn main() -> std::io::Result<()> {
    let queue = WorkQueue::new();
    for _ in 0..10 {
        let _ = queue.add("default/web");
    }
    let _ = queue.add("default/db");
    // A service does this on SIGTERM. Ready keys still run.
    queue.shut_down();

    let leftovers = queue.run(1, |key| {
        println!("making {key} what it should be");
    })?;
    println!("nothing is left: {}", leftovers.is_empty());
    Ok(())
}
