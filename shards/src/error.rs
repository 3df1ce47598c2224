//! What can go wrong, and what to do about it.

use std::error;
use std::sync::Arc;

use thiserror::Error;

/// The error of an engine's client.
pub type Source = Arc<dyn error::Error + Send + Sync>;

/// Why an operation of an [`Engine`](crate::Engine) failed.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine was not reached, or gave no reply in time. The operation may have taken place.
    #[error("the engine is not reachable: {0}")]
    Unreachable(#[source] Source),

    /// The engine refused the credentials, or what they permit.
    #[error("the engine denies access: {0}")]
    Denied(#[source] Source),

    /// The session has ended: what it owned may belong to others.
    #[error("the session has ended")]
    SessionEnded,

    /// The engine has lost what it acknowledged: it was emptied, replaced, or restored from a
    /// backup. Every session that began before has ended, and marks may be gone.
    #[error("the engine has lost what it acknowledged: {0}")]
    StateLost(String),

    /// Another session has the name of the member.
    #[error("another member is called {member:?}")]
    NameTaken {
        /// The name.
        member: String,
    },

    /// The set has another number of shards. That number is fixed for the life of the set, because
    /// replicas that count differently would own the same key at once.
    #[error("the set {set:?} has {stored} shards, not {asked}")]
    CountDiffers {
        /// The name of the set.
        set: String,
        /// The number that is stored.
        stored: u32,
        /// The number that was asked for.
        asked: u32,
    },

    /// The engine cannot do that.
    #[error("this engine has no {0}")]
    Unsupported(&'static str),

    /// The engine stores what this library has not written, or answered what it does not
    /// understand.
    #[error("the engine returned what cannot be read: {0}")]
    Unreadable(String),

    /// The engine refused for another reason.
    #[error("the engine refused: {0}")]
    Refused(#[source] Source),
}

impl EngineError {
    /// Returns whether to try again is of use: the engine may be reached later, or a session of the
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
