//! A systemd service: reports when it is ready and when it drains. Kubernetes sends SIGTERM too.
//!
//! ```text
//! notified: READY=1
//! working on node-7
//! notified: STOPPING=1
//! 1 key is left over
//! ```

use std::time::Duration;

use requeue::tokio::{Action, CancellationToken, WorkQueue, Workers};
use tokio::signal::unix::{SignalKind, signal};

/// `sd_notify`: one datagram to the socket of the service manager, if there is one.
fn notify(state: &str) -> std::io::Result<()> {
    println!("notified: {state}");
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else {
        return Ok(()); // Not started by systemd.
    };
    let socket = std::os::unix::net::UnixDatagram::unbound()?;
    socket.send_to(state.as_bytes(), path).map(drop)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let queue = WorkQueue::new();
    let stop = CancellationToken::new();
    let workers = Workers::new(4).drain_timeout(Duration::from_secs(20));
    let service = queue.run(workers, |node| async move {
        println!("working on {node}");
        let _ = signal_hook::low_level::raise(signal_hook::consts::SIGTERM); // As `systemctl stop`.
        Action::RequeueAfter(Duration::from_secs(60))
    });
    let service = tokio::spawn(service.shut_down_on(stop.clone()));

    let mut terminated = signal(SignalKind::terminate())?;
    notify("READY=1")?;
    let _ = queue.add("node-7"); // A service lists its objects here.
    terminated.recv().await;
    notify("STOPPING=1")?;
    stop.cancel();
    println!("{} key is left over", service.await?.len());
    Ok(())
}
