//! The queues that recordings are replayed on.

use requeue_core::priority::{Levels, Plain};
use requeue_core::storage::{Fixed, Growable};
use requeue_proptest::subject::{
    self, Direct, Embassy, Key, Loops, NewSubject, OnWorkQueue, Tasks, Threads, boxed,
};

use crate::recording::{Kind, LEVELS};

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
    pub(crate) fn subject(self, kind: Kind, keys: Option<Key>) -> NewSubject {
        match kind {
            Kind::Priority => self.queue::<Levels<LEVELS>>(keys),
            _ => self.queue::<Plain>(keys),
        }
    }

    fn queue<P: subject::Kind + 'static>(self, keys: Option<Key>) -> NewSubject
    where
        Threads<P>: subject::Runtime,
        Loops<16, P>: subject::Runtime,
    {
        match self {
            // As many keys as there are: a queue that is full must not refuse one of them.
            Self::CoreFixed => match keys {
                Some(0..=1) => boxed::<Direct<P, Fixed<1>>>,
                Some(2) => boxed::<Direct<P, Fixed<2>>>,
                Some(3) => boxed::<Direct<P, Fixed<3>>>,
                Some(4) => boxed::<Direct<P, Fixed<4>>>,
                Some(5) => boxed::<Direct<P, Fixed<5>>>,
                Some(6) => boxed::<Direct<P, Fixed<6>>>,
                Some(7) => boxed::<Direct<P, Fixed<7>>>,
                Some(8) => boxed::<Direct<P, Fixed<8>>>,
                _ => boxed::<Direct<P, Fixed<16>>>,
            },
            Self::CoreGrowable => boxed::<Direct<P, Growable>>,
            Self::Std => boxed::<OnWorkQueue<Threads<P>>>,
            Self::Tokio => boxed::<OnWorkQueue<Tasks<P>>>,
            Self::Embassy => boxed::<OnWorkQueue<Embassy<16, P>>>,
            Self::Bare => boxed::<OnWorkQueue<Loops<16, P>>>,
        }
    }
}
