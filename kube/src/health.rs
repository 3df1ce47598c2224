//! Whether a controller is well, as values for an HTTP server.

use std::fmt::Write;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::time::Instant;

/// The health of a controller, or of all controllers of a [`Manager`](crate::Manager), to be served
/// as `/healthz` and `/readyz`. Clones observe the same controllers. See
/// [`Controller::health`](crate::Controller::health).
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
    /// One of each elector.
    leases: Vec<Lease>,
}

#[derive(Debug)]
struct Watch {
    /// The kind, after the name of the controller if that has one and is one of several.
    title: String,
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
            let kind = &watch.title;
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
    /// O(n²) in the controllers.
    pub fn live(&self) -> Probe {
        let state = self.lock();
        let mut probe = Probe {
            passes: true,
            body: String::new(),
        };
        let now = Instant::now();
        for (index, Lease { name, .. }) in state.leases.iter().enumerate() {
            // Controllers with clones of one leader have one line.
            let is_same = |other: &&Lease| other.name == *name;
            if state.leases.iter().take(index).any(|other| is_same(&other)) {
                continue;
            }
            let ends = state.leases.iter().filter(is_same);
            match ends.filter_map(|lease| lease.held_until).min() {
                Some(until) if until < now => {
                    probe.line(false, &format!("lease {name} expired while it was held"));
                }
                Some(_) => probe.line(true, &format!("lease {name} held")),
                None => probe.line(true, &format!("lease {name} not held")),
            }
        }
        probe.close("healthz")
    }

    /// Adds the watches of a controller. Returns the number of the first one.
    pub(crate) fn watches<'k>(
        &self,
        controller: Option<&str>,
        kinds: impl Iterator<Item = &'k str>,
    ) -> usize {
        let mut state = self.lock();
        let first = state.watches.len();
        state.watches.extend(kinds.map(|kind| Watch {
            title: match controller {
                Some(controller) => format!("{controller}: {kind}"),
                None => kind.to_owned(),
            },
            synced: false,
            error: None,
        }));
        first
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

    /// Adds an elector. Returns its number.
    pub(crate) fn elector(&self, lease: &str) -> usize {
        let mut state = self.lock();
        state.leases.push(Lease {
            name: lease.to_owned(),
            held_until: None,
        });
        state.leases.len() - 1
    }

    pub(crate) fn lease(&self, elector: usize, held_until: Option<Instant>) {
        if let Some(lease) = self.lock().leases.get_mut(elector) {
            lease.held_until = held_until;
        }
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
