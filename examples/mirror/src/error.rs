//! Why a path could not be corrected.

use std::fmt;
use std::io;

#[derive(Debug)]
pub(crate) enum Error {
    /// The system refused.
    Io {
        doing: &'static str,
        error: io::Error,
    },
    /// The source is being written to, so a copy would be out of date.
    Unsettled,
    /// Another program is changing the target.
    Interfered,
    /// The source's root is no longer the same directory. An empty one must not empty the target.
    SourceLost,
}

/// Makes an [`Error`] of an I/O error, saying what was being done.
pub(crate) fn doing(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Io { doing, error }
}

impl Error {
    pub(crate) fn is_disk_full(&self) -> bool {
        let full = [io::ErrorKind::StorageFull, io::ErrorKind::QuotaExceeded];
        matches!(self, Self::Io { error, .. } if full.contains(&error.kind()))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, error } => write!(f, "cannot {doing}: {error}"),
            Self::Unsettled => f.write_str("the source keeps changing"),
            Self::Interfered => f.write_str("another program keeps changing the target"),
            Self::SourceLost => f.write_str("the source directory was removed or replaced"),
        }
    }
}
