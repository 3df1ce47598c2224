//! The errors of engines.

use std::error;
use std::sync::Arc;

use thiserror::Error;

/// The error of an engine's client.
pub type Source = Arc<dyn error::Error + Send + Sync>;

/// Why an operation of an [`Engine`](crate::Engine) failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine was not reached, or did not reply in time. The operation may have taken effect.
    #[error("the engine is not reachable: {0}")]
    Unreachable(#[source] Source),

    /// The engine refused the credentials, or they do not permit the operation.
    #[error("the engine denies access: {0}")]
    Denied(#[source] Source),

    /// The session has ended. Its shards may belong to others.
    #[error("the session has ended")]
    SessionEnded,

    /// The engine has lost acknowledged writes: it was emptied, replaced, or restored from a
    /// backup. Every earlier session has ended, and marks may be lost.
    #[error("the engine has lost acknowledged writes: {0}")]
    StateLost(String),

    /// Another session uses the member's name.
    #[error("another member is called {member:?}")]
    NameTaken {
        /// The name.
        member: String,
    },

    /// The set has another number of shards. The number is fixed for the life of the set, because
    /// replicas with different numbers could own the same key at once.
    #[error("the set {set:?} has {stored} shards, not {asked}")]
    CountDiffers {
        /// The name of the set.
        set: String,
        /// The number that is stored.
        stored: u32,
        /// The number that was asked for.
        asked: u32,
    },

    /// The engine does not have this capability.
    #[error("this engine has no {0}")]
    Unsupported(&'static str),

    /// The engine holds a value that this library did not write, or sent a reply that it does not
    /// understand.
    #[error("the engine returned unreadable data: {0}")]
    Unreadable(String),

    /// The engine refused for another reason.
    #[error("the engine refused: {0}")]
    Refused(#[source] Source),
}

impl EngineError {
    /// Returns whether a retry can succeed: the engine may be reached later, or a session of the
    /// same name may end.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_shards::EngineError;
    ///
    /// assert!(EngineError::SessionEnded.is_transient());
    /// let set = String::from("webhooks");
    /// let other = EngineError::CountDiffers { set, stored: 64, asked: 16 };
    /// assert!(!other.is_transient());
    /// assert_eq!(other.to_string(), r#"the set "webhooks" has 64 shards, not 16"#);
    /// ```
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable(_)
                | Self::NameTaken { .. }
                | Self::SessionEnded
                | Self::StateLost(_)
                | Self::Refused(_)
        )
    }
}
