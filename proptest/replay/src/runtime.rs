//! The queues that recordings are replayed on, by name.

use std::fmt;
use std::str::FromStr;

use requeue_core::priority::{Levels, Plain};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::subject::{Direct, Embassy, Key, Loops, OnWorkQueue, Tasks, Threads};

use crate::kind::Kind;
use crate::player::{Play, Player};
use crate::recording::{LEVELS, Recording};
use crate::report::Stop;

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
    /// requeue-bare, likewise.
    Bare,
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
        Self::Bare,
    ];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::CoreFixed => "core-fixed",
            Self::CoreGrowable => "core-growable",
            Self::Std => "std",
            Self::Tokio => "tokio",
            Self::Embassy => "embassy",
            Self::Bare => "bare",
        }
    }

    /// Returns what makes this runtime's queue, with room for `keys` keys.
    pub(crate) fn subject(self, kind: Kind, keys: Key) -> Result<NewSubject, Stop> {
        if kind == Kind::Priority {
            return self.leveled(keys);
        }
        Ok(match self {
            Self::CoreFixed => return fixed(keys),
            Self::CoreGrowable => Player::<Direct<Plain, Growable>>::boxed,
            Self::Std => Player::<OnWorkQueue<Threads>>::boxed,
            Self::Tokio => Player::<OnWorkQueue<Tasks>>::boxed,
            Self::Embassy => match keys {
                0..=8 => Player::<OnWorkQueue<Embassy<8>>>::boxed,
                9..=64 => Player::<OnWorkQueue<Embassy<64>>>::boxed,
                65..=1024 => Player::<OnWorkQueue<Embassy<1024>>>::boxed,
                _ => return Err(too_many(keys, 1024)),
            },
            Self::Bare => match keys {
                0..=8 => Player::<OnWorkQueue<Loops<8>>>::boxed,
                9..=64 => Player::<OnWorkQueue<Loops<64>>>::boxed,
                65..=1024 => Player::<OnWorkQueue<Loops<1024>>>::boxed,
                _ => return Err(too_many(keys, 1024)),
            },
        })
    }

    /// The same with [`LEVELS`] priority levels.
    fn leveled(self, keys: Key) -> Result<NewSubject, Stop> {
        type Leveled = Levels<LEVELS>;
        if keys > 64 && matches!(self, Self::CoreFixed | Self::Embassy | Self::Bare) {
            return Err(too_many(keys, 64));
        }
        Ok(match self {
            Self::CoreFixed if keys <= 8 => Player::<Direct<Leveled, Fixed<8>>>::boxed,
            Self::CoreFixed => Player::<Direct<Leveled, Fixed<64>>>::boxed,
            Self::Embassy if keys <= 8 => Player::<OnWorkQueue<Embassy<8, Leveled>>>::boxed,
            Self::Embassy => Player::<OnWorkQueue<Embassy<64, Leveled>>>::boxed,
            Self::Bare if keys <= 8 => Player::<OnWorkQueue<Loops<8, Leveled>>>::boxed,
            Self::Bare => Player::<OnWorkQueue<Loops<64, Leveled>>>::boxed,
            Self::CoreGrowable => Player::<Direct<Leveled, Growable>>::boxed,
            Self::Std => Player::<OnWorkQueue<Threads<Leveled>>>::boxed,
            Self::Tokio => Player::<OnWorkQueue<Tasks<Leveled>>>::boxed,
        })
    }
}

/// Makes a queue for a recording, and a player on it.
type NewSubject = fn(&Recording) -> Box<dyn Play>;

/// The smallest of a few sizes that holds all keys. If it is exact no key may be refused.
fn fixed(keys: Key) -> Result<NewSubject, Stop> {
    Ok(match keys {
        0..=1 => Player::<Direct<Plain, Fixed<1>>>::boxed,
        2 => Player::<Direct<Plain, Fixed<2>>>::boxed,
        3 => Player::<Direct<Plain, Fixed<3>>>::boxed,
        4 => Player::<Direct<Plain, Fixed<4>>>::boxed,
        5 => Player::<Direct<Plain, Fixed<5>>>::boxed,
        6 => Player::<Direct<Plain, Fixed<6>>>::boxed,
        7 => Player::<Direct<Plain, Fixed<7>>>::boxed,
        8 => Player::<Direct<Plain, Fixed<8>>>::boxed,
        9..=64 => Player::<Direct<Plain, Fixed<64>>>::boxed,
        65..=255 => Player::<Direct<Plain, Fixed<255>>>::boxed,
        256..=1024 => Player::<Direct<Plain, Fixed<1024, u16>>>::boxed,
        _ => return Err(too_many(keys, 1024)),
    })
}

fn too_many(keys: Key, most: usize) -> Stop {
    Stop::Bad(format!(
        "{keys} keys: fixed storage has room for {most} here"
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
