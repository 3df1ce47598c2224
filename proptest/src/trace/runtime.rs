//! The queues that recordings are replayed on, by name.

use std::fmt;
use std::str::FromStr;

use requeue_core::{Fixed, Growable, Levels, RandomState};

use super::priority::LEVELS;
use super::report::Stop;
use crate::Model;
use crate::subject::{Direct, Embassy, Key, OnWorkQueue, Subject, Tasks, Threads};

/// One of our queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runtime {
    /// The state machine without an allocator, with room for as many keys as a recording has.
    CoreFixed,
    /// The state machine with storage that grows.
    CoreGrowable,
    /// requeue-std.
    Std,
    /// requeue-tokio.
    Tokio,
    /// requeue-embassy, with room for as many keys as a recording has.
    Embassy,
    /// The reference model itself.
    Model,
}

/// A name that stands for no runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownRuntime(String);

impl Runtime {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::CoreFixed,
        Self::CoreGrowable,
        Self::Std,
        Self::Tokio,
        Self::Embassy,
        Self::Model,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CoreFixed => "core-fixed",
            Self::CoreGrowable => "core-growable",
            Self::Std => "std",
            Self::Tokio => "tokio",
            Self::Embassy => "embassy",
            Self::Model => "model",
        }
    }

    /// Runs `visitor` on this runtime's kind of queue, with room for `keys` keys.
    pub(super) fn visit(self, keys: Key, visitor: impl Visitor) -> Result<(), Stop> {
        match self {
            Self::CoreFixed => visit_fixed(keys, visitor),
            Self::CoreGrowable => visitor.visit::<Direct<Growable>>(),
            Self::Std => visitor.visit::<OnWorkQueue<Threads>>(),
            Self::Tokio => visitor.visit::<OnWorkQueue<Tasks>>(),
            Self::Embassy => visit_embassy(keys, visitor),
            Self::Model => visitor.visit::<Model>(),
        }
    }

    /// The same with [`LEVELS`] priority levels.
    pub(super) fn visit_leveled(self, keys: Key, visitor: impl Visitor) -> Result<(), Stop> {
        match self {
            Self::CoreFixed if keys <= 8 => visitor.visit::<Direct<Fixed<8, u8, Levels<LEVELS>>>>(),
            Self::Embassy if keys <= 8 => {
                visitor.visit::<OnWorkQueue<Embassy<8, Levels<LEVELS>>>>()
            }
            Self::CoreFixed => visitor.visit::<Direct<Fixed<64, u8, Levels<LEVELS>>>>(),
            Self::Embassy => visitor.visit::<OnWorkQueue<Embassy<64, Levels<LEVELS>>>>(),
            Self::CoreGrowable => visitor.visit::<Direct<Leveled>>(),
            Self::Std => visitor.visit::<OnWorkQueue<Threads<Leveled>>>(),
            Self::Tokio => visitor.visit::<OnWorkQueue<Tasks<Leveled>>>(),
            Self::Model => visitor.visit::<Model>(),
        }
    }
}

type Leveled = Growable<RandomState, Levels<LEVELS>>;

/// What is done with a queue whose type is chosen by name.
pub(super) trait Visitor {
    fn visit<S: Subject>(self) -> Result<(), Stop>;
}

/// The smallest of a few sizes that holds all keys: where it is exact, nothing may be refused.
fn visit_fixed(keys: Key, visitor: impl Visitor) -> Result<(), Stop> {
    match keys {
        0..=1 => visitor.visit::<Direct<Fixed<1>>>(),
        2 => visitor.visit::<Direct<Fixed<2>>>(),
        3 => visitor.visit::<Direct<Fixed<3>>>(),
        4 => visitor.visit::<Direct<Fixed<4>>>(),
        5 => visitor.visit::<Direct<Fixed<5>>>(),
        6 => visitor.visit::<Direct<Fixed<6>>>(),
        7 => visitor.visit::<Direct<Fixed<7>>>(),
        8 => visitor.visit::<Direct<Fixed<8>>>(),
        9..=64 => visitor.visit::<Direct<Fixed<64>>>(),
        65..=255 => visitor.visit::<Direct<Fixed<255>>>(),
        256..=1024 => visitor.visit::<Direct<Fixed<1024, u16>>>(),
        _ => Err(too_many(keys)),
    }
}

fn visit_embassy(keys: Key, visitor: impl Visitor) -> Result<(), Stop> {
    match keys {
        0..=8 => visitor.visit::<OnWorkQueue<Embassy<8>>>(),
        9..=64 => visitor.visit::<OnWorkQueue<Embassy<64>>>(),
        65..=1024 => visitor.visit::<OnWorkQueue<Embassy<1024>>>(),
        _ => Err(too_many(keys)),
    }
}

fn too_many(keys: Key) -> Stop {
    Stop::Bad(format!(
        "{keys} keys: fixed storage has room for 1024 at most here"
    ))
}

impl FromStr for Runtime {
    type Err = UnknownRuntime;

    fn from_str(name: &str) -> Result<Self, UnknownRuntime> {
        Self::ALL
            .into_iter()
            .find(|runtime| runtime.name() == name)
            .ok_or_else(|| UnknownRuntime(name.to_owned()))
    }
}

impl fmt::Display for UnknownRuntime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Runtime::ALL.map(Runtime::name).join(", ");
        write!(f, "no runtime {:?}: there are {names}", self.0)
    }
}

impl std::error::Error for UnknownRuntime {}
