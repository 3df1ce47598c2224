//! The history that the store records.

use std::time::Duration;

/// A run of a key. The store assigns the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// The source of truth has a new version of a key.
    Changed {
        /// The key.
        key: String,
        /// Rises with each change of the key.
        version: u64,
    },
    /// A replica began to process a key.
    Begun {
        /// The run.
        run: RunId,
        /// The key.
        key: String,
        /// Its shard.
        shard: u32,
        /// The fence of the replica's ownership.
        fence: u64,
        /// The replica.
        replica: String,
    },
    /// A write of a run was accepted.
    Accepted {
        /// The run.
        run: RunId,
        /// The version of the key that was processed.
        version: u64,
    },
    /// A write of a run was refused, because its fence was smaller than the key's.
    Refused {
        /// The run.
        run: RunId,
    },
    /// A run ended without a write, because it was given up or its process died.
    Dropped {
        /// The run.
        run: RunId,
    },
}

/// An event and when the store recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Since the store was started.
    pub at: Duration,
    /// What happened.
    pub event: Event,
}

/// A replica was stopped for longer than the TTL, so that only the fence helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The replica.
    pub replica: String,
    /// When it was stopped.
    pub from: Duration,
    /// When it had been continued for a while. `None` while it is stopped.
    pub to: Option<Duration>,
}

/// Everything that the check needs.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// The events in their order.
    pub entries: Vec<Entry>,
    /// The pauses.
    pub pauses: Vec<Pause>,
}

impl History {
    /// Whether a replica was paused at a time.
    pub fn is_paused(&self, replica: &str, at: Duration) -> bool {
        self.pauses.iter().any(|pause| {
            pause.replica == replica && pause.from <= at && pause.to.is_none_or(|to| at <= to)
        })
    }
}
