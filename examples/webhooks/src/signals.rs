//! The signals that stop the program.

/// Ctrl-C and SIGTERM.
pub(crate) struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
}

impl Signals {
    /// Listens from now on, in place of what the system would do.
    pub(crate) fn new() -> std::io::Result<Self> {
        Ok(Self {
            #[cfg(unix)]
            terminate: {
                use tokio::signal::unix::{SignalKind, signal};
                signal(SignalKind::terminate())?
            },
        })
    }

    /// Waits for Ctrl-C or SIGTERM.
    #[cfg(unix)]
    pub(crate) async fn next(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            // An error means that Ctrl-C is not received; SIGTERM still is.
            Ok(()) = tokio::signal::ctrl_c() => {}
        }
    }

    /// Waits for Ctrl-C.
    #[cfg(not(unix))]
    pub(crate) async fn next(&mut self) {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending().await
        }
    }
}
