//! What does not hold in a history.

use std::fmt;

/// A kind of promise that a history can break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Property {
    /// [`World::always`](super::World::always), after some step.
    Always,
    /// [`World::eventually`](super::World::eventually), once all was quiet.
    Eventually,
    /// A run ends.
    RunEnds,
    /// A history ends: it does not take steps for ever.
    HistoryEnds,
    /// The world's own code does not panic.
    WorldPanics,
    /// The same seed gives the same history.
    SameSeedSameHistory,
}

/// A property that does not hold, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Breach {
    /// The property that does not hold.
    pub property: Property,
    /// The reason in words, with the virtual time, and the key if there is one.
    pub reason: String,
}

impl fmt::Display for Breach {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.property {
            Property::Always => "`always` does not hold",
            Property::Eventually => "`eventually` does not hold",
            Property::RunEnds => "a run does not end",
            Property::HistoryEnds => "there is no end to it",
            Property::WorldPanics => "the world panics",
            Property::SameSeedSameHistory => "the same seed gives another history",
        };
        write!(f, "{what}: {}", self.reason)
    }
}

impl std::error::Error for Breach {}
