//! The record of a limiter that is composed at run time.

/// What an [`AnyLimiter`](super::AnyLimiter) remembers of a key.
///
/// Its shape follows the limiter's.
///
/// A memory in which nothing has failed is always [`Fresh`](AnyRecord::Fresh), however the limiter
/// is nested, because a queue tells by that value whether a key still costs room.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AnyRecord {
    /// Nothing.
    #[default]
    Fresh,
    /// So many failures.
    Failures(u32),
    /// What two limiters remember.
    Both(Box<(AnyRecord, AnyRecord)>),
}

impl AnyRecord {
    pub(super) fn failures(&self) -> u32 {
        match self {
            Self::Failures(failures) => *failures,
            _ => 0,
        }
    }

    pub(super) fn both(&self) -> (AnyRecord, AnyRecord) {
        match self {
            Self::Both(both) => (**both).clone(),
            _ => Default::default(),
        }
    }

    pub(super) fn with_failures<T>(&mut self, change: impl FnOnce(&mut u32) -> T) -> T {
        let mut failures = self.failures();
        let outcome = change(&mut failures);
        *self = match failures {
            0 => Self::Fresh,
            _ => Self::Failures(failures),
        };
        outcome
    }

    pub(super) fn with_both<T>(
        &mut self,
        change: impl FnOnce(&mut (AnyRecord, AnyRecord)) -> T,
    ) -> T {
        let mut both = self.both();
        let outcome = change(&mut both);
        *self = if both == Default::default() {
            Self::Fresh
        } else {
            Self::Both(Box::new(both))
        };
        outcome
    }
}
