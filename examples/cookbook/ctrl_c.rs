//! A service on Tokio. After SIGTERM or ctrl-c it takes ready keys for ten more seconds, and
//! finishes the runs that have begun. A second signal ends the process immediately.
//!
//! ```text
//! working on node-7
//! stopping; once more to stop at once
//! node-7 was to run again in 60s
//! ```

use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue, Workers};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> std::io::Result<()> {
    let queue = WorkQueue::new();
    let _ = queue.add("node-7");
    let mut ctrl_c = signal(SignalKind::interrupt())?;
    let mut sigterm = signal(SignalKind::terminate())?;

    let stop = CancellationToken::new();
    let workers = Workers::new(4).drain_timeout(Duration::from_secs(10));
    let service = queue.run(workers, |node| async move {
        println!("working on {node}");
        // This example sends the signal to itself.
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM);
        Action::RequeueAfter(Duration::from_secs(60))
    });
    let service = service.shut_down_on(stop.clone());
    let signals = async {
        let mut next =
            async || tokio::select! { _ = ctrl_c.recv() => {}, _ = sigterm.recv() => {} };
        next().await;
        println!("stopping; once more to stop at once");
        stop.cancel();
        next().await;
        std::process::exit(130)
    };
    let leftovers = tokio::select! {
        never = signals => never,
        leftovers = service => leftovers,
    };
    for left in leftovers {
        println!("{} was to run again in {:?}", left.key, left.left);
    }
    Ok(())
}
