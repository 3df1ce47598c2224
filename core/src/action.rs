//! What a reconciler answers, and when a key that keeps failing is given up.

use core::time::Duration;

use crate::outcome::Completion;

/// What is to be done with a key that was worked on successfully.
///
/// # Examples
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Action, Completion};
///
/// assert_eq!(Action::Done.completion(), Completion::Succeeded);
/// let hourly = Duration::from_secs(3600);
/// assert_eq!(
///     Action::RequeueAfter(hourly).completion(),
///     Completion::SucceededAgainAfter(hourly),
/// );
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[non_exhaustive]
pub enum Action {
    /// Nothing until somebody adds the key again.
    #[default]
    Done,
    /// Work on the key again after this long, changes or not.
    RequeueAfter(Duration),
    /// This was no run to speak of: work on the key again after this long, neither failed nor
    /// succeeded. For a key that a limit elsewhere has turned away, and that may have failed
    /// before.
    PutOff(Duration),
}

impl Action {
    /// How a run with this answer is completed: its failures are forgotten, unless it was put off.
    pub const fn completion(self) -> Completion {
        match self {
            Self::Done => Completion::Succeeded,
            Self::RequeueAfter(delay) => Completion::SucceededAgainAfter(delay),
            Self::PutOff(delay) => Completion::RetryAfter(delay),
        }
    }
}

/// How many times a key that fails is tried again.
///
/// # Examples
///
/// ```
/// use requeue_core::{Completion, Retries};
///
/// let twice = Retries::at_most(2);
/// assert_eq!(twice.completion(0), Some(Completion::Retry));
/// assert_eq!(twice.completion(1), Some(Completion::Retry));
/// assert_eq!(twice.completion(2), None, "it has been tried three times");
/// assert_eq!(Retries::UNLIMITED.completion(u32::MAX), Some(Completion::Retry));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Retries(Option<u32>);

impl Retries {
    /// A key is tried again until it succeeds.
    pub const UNLIMITED: Self = Self(None);

    /// A key is tried `retries` more times after its first failure.
    pub const fn at_most(retries: u32) -> Self {
        Self(Some(retries))
    }

    /// How a failed run is completed whose key had failed `requeues` times before; nothing if the
    /// key is to be given up.
    pub const fn completion(self, requeues: u32) -> Option<Completion> {
        match self.0 {
            Some(retries) if requeues >= retries => None,
            _ => Some(Completion::Retry),
        }
    }
}
