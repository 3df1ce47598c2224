//! Whether a controller is well, as values for an HTTP server.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The health of a controller, to be served as `/healthz` and `/readyz`. Clones observe the same
/// controller. See [`Controller::health`](crate::Controller::health).
#[derive(Clone, Debug, Default)]
pub struct Health(Arc<Mutex<State>>);

/// The answer to a probe.
///
/// # Examples
///
/// ```
/// use requeue_kube::Probe;
///
/// fn respond(probe: &Probe) -> String {
///     let status = if probe.passes { "200 OK" } else { "500 Internal Server Error" };
///     format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{}", probe.body.len(), probe.body)
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
#[non_exhaustive]
pub struct Probe {
    /// Whether the status is 200; 500 otherwise.
    pub passes: bool,
    /// One line per check, as the API server's own probes with `?verbose`.
    pub body: String,
}

#[derive(Debug, Default)]
struct State {
    watches: Vec<Watch>,
    lease: Option<Lease>,
}

#[derive(Debug)]
struct Watch {
    kind: String,
    synced: bool,
    error: Option<String>,
}

#[derive(Debug)]
struct Lease {
    name: String,
    /// When others may take the lease, if it is held.
    held_until: Option<Instant>,
}

impl Health {
    /// Returns whether every watched kind has been listed, for `/readyz`. A controller that waits
    /// for its lease is ready: its caches are warm. The body says why the last attempt of a watch
    /// failed, also if the kind was listed before. O(watches).
    pub fn ready(&self) -> Probe {
        let state = self.lock();
        let mut probe = Probe {
            passes: true,
            body: String::new(),
        };
        for watch in &state.watches {
            let error = watch.error.as_deref();
            let detail = error.map_or(String::new(), |error| format!(": {error}"));
            let kind = &watch.kind;
            if watch.synced {
                probe.line(true, &format!("{kind} ok{detail}"));
            } else {
                probe.line(false, &format!("{kind} not listed yet{detail}"));
            }
        }
        probe.close("readyz")
    }

    /// Returns whether the controller has not missed its own end, for `/healthz`: it fails if the
    /// lease may be another's and the controller has not stopped, because its runtime is blocked.
    /// O(1).
    pub fn live(&self) -> Probe {
        let state = self.lock();
        let mut probe = Probe {
            passes: true,
            body: String::new(),
        };
        if let Some(lease) = &state.lease {
            let name = &lease.name;
            match lease.held_until {
                Some(until) if until < Instant::now() => {
                    probe.line(false, &format!("lease {name} expired while it was held"));
                }
                Some(_) => probe.line(true, &format!("lease {name} held")),
                None => probe.line(true, &format!("lease {name} not held")),
            }
        }
        probe.close("healthz")
    }

    pub(crate) fn watches(&self, kinds: impl Iterator<Item = String>) {
        self.lock().watches = kinds
            .map(|kind| Watch {
                kind,
                synced: false,
                error: None,
            })
            .collect();
    }

    pub(crate) fn synced(&self, watch: usize) {
        if let Some(watch) = self.lock().watches.get_mut(watch) {
            watch.synced = true;
            watch.error = None;
        }
    }

    /// Notes that a watch works, or why it does not.
    pub(crate) fn watch(&self, watch: usize, error: Option<String>) {
        if let Some(watch) = self.lock().watches.get_mut(watch) {
            watch.error = error;
        }
    }

    pub(crate) fn lease(&self, name: &str, held_until: Option<Instant>) {
        let name = name.to_owned();
        self.lock().lease = Some(Lease { name, held_until });
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Probe {
    fn line(&mut self, passes: bool, text: &str) {
        self.passes &= passes;
        let mark = if passes { '+' } else { '-' };
        // Writing to a string cannot fail.
        let _ = writeln!(self.body, "[{mark}]{text}");
    }

    fn close(mut self, probe: &str) -> Self {
        let verdict = if self.passes { "passed" } else { "failed" };
        let _ = writeln!(self.body, "{probe} check {verdict}");
        self
    }
}
