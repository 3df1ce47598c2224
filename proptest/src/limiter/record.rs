//! The record of a limiter that is composed at run time.

use requeue_core::{Held, Instant};

/// What a [`Composed`](super::Composed) limiter remembers of a key.
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
    /// A key that may not run for a while.
    Held(Box<Held<AnyRecord>>),
}

impl AnyRecord {
    /// Returns the same with every time changed.
    #[must_use]
    pub fn map(self, change: impl Fn(Instant) -> Instant + Copy) -> Self {
        match self {
            Self::Both(both) => {
                let (one, two) = *both;
                Self::Both(Box::new((one.map(change), two.map(change))))
            }
            Self::Held(held) => Self::Held(Box::new(held.map(|inner| inner.map(change), change))),
            Self::Fresh | Self::Failures(_) => self,
        }
    }

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

    pub(super) fn held(&self) -> Held<AnyRecord> {
        match self {
            Self::Held(held) => (**held).clone(),
            _ => Held::default(),
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

    pub(super) fn with_held<T>(&mut self, change: impl FnOnce(&mut Held<AnyRecord>) -> T) -> T {
        let mut held = self.held();
        let outcome = change(&mut held);
        *self = if held == Held::default() {
            Self::Fresh
        } else {
            Self::Held(Box::new(held))
        };
        outcome
    }
}
