//! What an engine shows: the members and the owners.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::shard::{Fence, Shard};

/// The members of a set and the owners of its shards, as an engine has last shown them.
///
/// It may be behind. What matters is therefore never decided by a view but by
/// [`Engine::claim`](crate::Engine::claim).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// Whether this is everything that the engine holds. It is not before the first list, and after
    /// following the engine has failed.
    pub is_complete: bool,
    /// The members by their names.
    pub members: BTreeMap<String, Membership>,
    /// The owners of the shards that are owned.
    pub owners: BTreeMap<Shard, Owner>,
    /// The values that cannot be read, by where the engine keeps them. Each counts as missing: its
    /// member as none, its shard as free.
    pub unreadable: BTreeMap<String, String>,
}

/// A member as the engine shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// When it joined, by its own clock.
    pub since: SystemTime,
    /// Whether it is about to leave, so that no shard is placed there.
    pub is_retiring: bool,
}

impl Membership {
    /// Creates the membership of a member that is not about to leave.
    pub const fn new(since: SystemTime) -> Self {
        Self {
            since,
            is_retiring: false,
        }
    }
}

/// The owner of a shard as the engine shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Owner {
    /// The name of the member.
    pub member: String,
    /// The fence of its ownership.
    pub fence: Fence,
    /// When it took the shard, by its own clock.
    pub since: SystemTime,
}

impl Owner {
    /// Creates the owner of a shard.
    pub const fn new(member: String, fence: Fence, since: SystemTime) -> Self {
        Self {
            member,
            fence,
            since,
        }
    }
}
