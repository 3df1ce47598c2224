//! What happened, as the store has recorded it.

use std::time::Duration;

/// A run of a key. Numbers are given out by the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u64);

/// One thing that happened.
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
    /// A run ended without a write: it was given up, or its process has died.
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

/// A replica was stopped for longer than the TTL, so that nothing but the fence helps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pause {
    /// The replica.
    pub replica: String,
    /// When it was stopped.
    pub from: Duration,
    /// When it had been continued for a while; `None` while it is stopped.
    pub to: Option<Duration>,
}

/// Everything that is checked.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// In the order in which they happened.
    pub entries: Vec<Entry>,
    /// The pauses.
    pub pauses: Vec<Pause>,
}

impl History {
    /// Whether a replica was paused at that time.
    pub fn is_paused(&self, replica: &str, at: Duration) -> bool {
        self.pauses.iter().any(|pause| {
            pause.replica == replica && pause.from <= at && pause.to.is_none_or(|to| at <= to)
        })
    }
}
