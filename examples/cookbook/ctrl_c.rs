//! After the first ctrl-c, workers take ready keys for ten more seconds, and finish the runs that
//! have begun. The second ctrl-c ends the process immediately.
//!
//! ```text
//! working on node-7
//! stopping; once more to stop at once
//! node-7 was to run again in 60s
//! ```

use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue, Workers};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> std::io::Result<()> {
    let queue = WorkQueue::new();
    let _ = queue.add("node-7");

    let stop = CancellationToken::new();
    let workers = Workers::new(4).drain_timeout(Duration::from_secs(10));
    let service = queue.run(workers, |node| async move {
        println!("working on {node}");
        // This example presses ctrl-c itself.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGINT);
        Action::RequeueAfter(Duration::from_secs(60))
    });
    let service = service.shut_down_on(stop.clone());
    let signals = async {
        tokio::signal::ctrl_c().await?;
        println!("stopping; once more to stop at once");
        stop.cancel();
        tokio::signal::ctrl_c().await?;
        std::process::exit(130)
    };
    let leftovers = tokio::select! {
        biased; // Installs the handler before the first run.
        stopped = signals => return stopped,
        leftovers = service => leftovers,
    };
    for left in leftovers {
        println!("{} was to run again in {:?}", left.key, left.left);
    }
    Ok(())
}
