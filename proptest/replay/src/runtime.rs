//! The queues that recordings are replayed on.

use requeue_core::priority::{Levels, Plain};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::subject::{
    Direct, Embassy, Key, Loops, NewSubject, OnWorkQueue, Tasks, Threads, boxed,
};

use crate::kind::Kind;
use crate::recording::LEVELS;

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
    /// requeue-embassy, with room for all keys.
    Embassy,
    /// requeue-bare, likewise.
    Bare,
}

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

    /// Returns what makes this runtime's queue, with room for `keys` keys.
    pub(crate) fn subject(self, kind: Kind, keys: Key) -> NewSubject {
        type Leveled = Levels<LEVELS>;
        match (kind, self) {
            (Kind::Priority, Self::CoreFixed) => boxed::<Direct<Leveled, Fixed<8>>>,
            (Kind::Priority, Self::CoreGrowable) => boxed::<Direct<Leveled, Growable>>,
            (Kind::Priority, Self::Std) => boxed::<OnWorkQueue<Threads<Leveled>>>,
            (Kind::Priority, Self::Tokio) => boxed::<OnWorkQueue<Tasks<Leveled>>>,
            (Kind::Priority, Self::Embassy) => boxed::<OnWorkQueue<Embassy<8, Leveled>>>,
            (Kind::Priority, Self::Bare) => boxed::<OnWorkQueue<Loops<8, Leveled>>>,
            (_, Self::CoreFixed) => fixed(keys),
            (_, Self::CoreGrowable) => boxed::<Direct<Plain, Growable>>,
            (_, Self::Std) => boxed::<OnWorkQueue<Threads>>,
            (_, Self::Tokio) => boxed::<OnWorkQueue<Tasks>>,
            (_, Self::Embassy) => boxed::<OnWorkQueue<Embassy<16>>>,
            (_, Self::Bare) => boxed::<OnWorkQueue<Loops<16>>>,
        }
    }
}

/// As many keys as there are, because none of them may be refused.
fn fixed(keys: Key) -> NewSubject {
    match keys {
        0..=1 => boxed::<Direct<Plain, Fixed<1>>>,
        2 => boxed::<Direct<Plain, Fixed<2>>>,
        3 => boxed::<Direct<Plain, Fixed<3>>>,
        4 => boxed::<Direct<Plain, Fixed<4>>>,
        5 => boxed::<Direct<Plain, Fixed<5>>>,
        6 => boxed::<Direct<Plain, Fixed<6>>>,
        7 => boxed::<Direct<Plain, Fixed<7>>>,
        8 => boxed::<Direct<Plain, Fixed<8>>>,
        _ => boxed::<Direct<Plain, Fixed<16>>>,
    }
}
