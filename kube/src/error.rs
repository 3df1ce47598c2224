//! Why a controller ends by itself.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use kube::runtime::watcher;

/// Why a controller ended before it was asked to.
///
/// # Examples
///
/// ```
/// use requeue_kube::Error;
///
/// fn exit_code(error: &Error) -> u8 {
///     match error {
///         // Another replica works now, and this one has to begin again.
///         Error::LeaseLost { .. } => 0,
///         _ => 1,
///     }
/// }
/// # assert_eq!(exit_code(&Error::LeaseTimes), 1);
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A kind could not be listed within the
    /// [time allowed for it](crate::Controller::sync_timeout): its CRD is missing, RBAC forbids it,
    /// or the API server cannot be reached.
    NotSynced {
        /// The kind, as `deployments.apps`.
        kind: String,
        /// How long the controller has waited.
        waited: Duration,
        /// Why the last attempt failed, if one has. Controllers that share a watch share its errors.
        last: Option<Arc<watcher::Error>>,
    },
    /// The lease could not be renewed in time, or another holds it. The workers have stopped.
    LeaseLost {
        /// The lease, as `namespace/name`.
        lease: String,
    },
    /// The times of the lease are not in order: the retry period has to be shorter than the renew
    /// deadline, and that shorter than the lease, which the API counts in 2³¹ − 1 seconds at most.
    LeaseTimes,
    /// Two controllers of a [`Manager`](crate::Manager) have this name, so that their metrics could
    /// not be told apart.
    SameName(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotSynced { kind, waited, last } => {
                write!(f, "{kind} could not be listed within {waited:?}")?;
                match last {
                    Some(last) => write!(f, ": {last}"),
                    None => Ok(()),
                }
            }
            Self::LeaseLost { lease } => write!(f, "the lease {lease} was lost"),
            Self::SameName(name) => write!(f, "two controllers are named {name}"),
            Self::LeaseTimes => {
                f.write_str("a lease needs 0 < retry period < renew deadline < duration < 68 years")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotSynced { last, .. } => last.as_deref().map(|last| last as _),
            Self::LeaseLost { .. } | Self::LeaseTimes | Self::SameName(_) => None,
        }
    }
}
