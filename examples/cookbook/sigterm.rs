//! A service on threads. After SIGTERM or ctrl-c it takes ready keys for ten more seconds, and
//! finishes the runs that have begun. A second signal ends the process immediately.
//!
//! ```text
//! working on node-7
//! stopping
//! node-7 is left, with its delay
//! ```

use std::time::Duration;

use requeue::std::{Action, WorkQueue, Workers, on_ctrl_c};

fn main() -> std::io::Result<()> {
    let queue = WorkQueue::new();
    let _ = queue.add("node-7");

    let stopping = queue.clone();
    on_ctrl_c(move || {
        println!("stopping");
        stopping.shut_down();
    })?;

    let workers = Workers::new(4).drain_timeout(Duration::from_secs(10));
    let leftovers = queue.run(workers, |node| {
        println!("working on {node}");
        // This example sends the signal to itself.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
        Action::RequeueAfter(Duration::from_secs(60))
    })?;
    for left in leftovers {
        println!("{} is left, with its delay", left.key);
    }
    Ok(())
}
