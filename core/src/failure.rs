//! Why a run failed. Owns the value that hooks and observers see; never decides what becomes of the
//! key.

#[cfg(feature = "alloc")]
use alloc::{boxed::Box, string::String};
#[cfg(feature = "alloc")]
use core::any::Any;
use core::error::Error;
use core::fmt;
use core::time::Duration;

use crate::action::Action;

/// Why a run failed.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue::Failure;
///
/// fn describe(failure: &Failure<&str>) -> String {
///     match failure {
///         Failure::Error(error) => format!("error: {error}"),
///         other => other.to_string(),
///     }
/// }
///
/// assert_eq!(describe(&Failure::Error("no route to node-7")), "error: no route to node-7");
/// assert_eq!(describe(&Failure::TimedOut(Duration::from_secs(5))), "took longer than 5s");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// The reconciler returned an error.
    Error(E),
    /// The reconciler returned [`Action::Retry`](crate::Action::Retry), without an error.
    Retry,
    /// The reconciler returned [`Action::GiveUp`](crate::Action::GiveUp), without an error.
    GiveUp,
    /// The reconciler panicked, with this payload. Only with an allocator.
    #[cfg(feature = "alloc")]
    Panic(Box<dyn Any + Send>),
    /// The run took longer than this timeout, and was stopped.
    TimedOut(Duration),
}

impl<E> Failure<E> {
    /// The failure that a reconciler reports by an action, if it does. For runtimes.
    #[doc(hidden)]
    pub fn of(action: Action) -> Option<Self> {
        match action.into_parts().0 {
            Action::Retry => Some(Self::Retry),
            Action::GiveUp => Some(Self::GiveUp),
            _ => None,
        }
    }

    /// Writes why the run failed, with the error as `show` writes it.
    pub(crate) fn show(
        &self,
        f: &mut fmt::Formatter<'_>,
        show: impl FnOnce(&E, &mut fmt::Formatter<'_>) -> fmt::Result,
    ) -> fmt::Result {
        match self {
            Self::Error(error) => show(error, f),
            Self::Retry => f.write_str("asked for a retry"),
            Self::GiveUp => f.write_str("asked to be given up"),
            #[cfg(feature = "alloc")]
            Self::Panic(payload) => {
                let message = payload.downcast_ref::<&str>().copied();
                let message = message.or_else(|| payload.downcast_ref::<String>().map(|s| &**s));
                write!(f, "panicked: {}", message.unwrap_or("(no message)"))
            }
            Self::TimedOut(limit) => write!(f, "took longer than {limit:?}"),
        }
    }
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.show(f, E::fmt)
    }
}

#[cfg(feature = "defmt")]
impl<E: defmt::Format> defmt::Format for Failure<E> {
    fn format(&self, f: defmt::Formatter<'_>) {
        match self {
            Self::Error(error) => error.format(f),
            Self::Retry => defmt::write!(f, "asked for a retry"),
            Self::GiveUp => defmt::write!(f, "asked to be given up"),
            #[cfg(feature = "alloc")]
            Self::Panic(_) => defmt::write!(f, "panicked"),
            Self::TimedOut(limit) => defmt::write!(f, "took longer than {}", limit),
        }
    }
}

/// It shows its error, so its source is that of the error.
impl<E: Error + 'static> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Self::Error(error) => error.source(),
            _ => None,
        }
    }
}
