//! Signals that end a program.

use std::io;

use requeue::tokio::CancellationToken;

/// Returns a token that SIGTERM or ctrl-c cancels, to be passed to
/// [`Controller::run`](crate::Controller::run): the controller drains, and gives its lease back.
///
/// A second signal ends the process at once, with the exit code of a shell: 143 after SIGTERM, 130
/// after ctrl-c. The signals count from this call on, also those that come before the controller
/// runs. On Windows ctrl-c is the only signal. Spawns a task.
///
/// # Errors
///
/// If the operating system refuses a handler, for instance because SIGTERM is blocked.
///
/// # Panics
///
/// As `tokio::signal`, outside of a Tokio runtime whose I/O is enabled.
///
/// # Examples
///
/// ```no_run
/// use std::sync::Arc;
/// use k8s_openapi::api::core::v1::ConfigMap;
/// use kube::runtime::watcher;
/// use kube::{Api, Client};
/// use requeue_kube::{Action, Context, Controller, shutdown_on_signal};
///
/// async fn reconcile(_: Arc<ConfigMap>, _: Context<ConfigMap>) -> kube::Result<Action> {
///     Ok(Action::Success)
/// }
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let stop = shutdown_on_signal()?;
///     let maps = Api::<ConfigMap>::all(Client::try_default().await?);
///     let left = Controller::new(maps, watcher::Config::default())
///         .run(4, stop, reconcile)
///         .await?;
///     println!("not done: {}", left.len());
///     Ok(())
/// }
/// ```
pub fn shutdown_on_signal() -> io::Result<CancellationToken> {
    let mut signals = Signals::new()?;
    let stop = CancellationToken::new();
    let stopping = stop.clone();
    tokio::spawn(async move {
        let name = signals.next().await.0;
        tracing::info!(target: "requeue", signal = name, "shutting down");
        stopping.cancel();
        let (name, exit_code) = signals.next().await;
        tracing::warn!(target: "requeue", signal = name, "exits at once");
        std::process::exit(exit_code);
    });
    Ok(stop)
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    /// Waits for a signal. Returns its name and the exit code for it.
    async fn next(&mut self) -> (&'static str, i32) {
        use futures::future::{Either, select};
        use std::pin::pin;
        let (interrupt, terminate) = (self.interrupt.recv(), self.terminate.recv());
        match select(pin!(interrupt), pin!(terminate)).await {
            Either::Left(_) => ("SIGINT", 130),
            Either::Right(_) => ("SIGTERM", 143),
        }
    }
}

#[cfg(windows)]
struct Signals(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl Signals {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) -> (&'static str, i32) {
        let _ = self.0.recv().await;
        ("ctrl-c", 130)
    }
}
