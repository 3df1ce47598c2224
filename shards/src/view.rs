//! The view of an engine: the members and the owners.

use std::collections::BTreeMap;
use std::time::SystemTime;

use crate::shard::{Fence, Shard};

/// The members of a set and the owners of its shards, as last shown by an engine.
///
/// A view may be out of date. Only [`Engine::claim`](crate::Engine::claim) decides who owns a
/// shard.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// Whether the view shows the whole set. False before the first list, and after an error of
    /// [`Engine::follow`](crate::Engine::follow).
    pub is_complete: bool,
    /// The members by their names.
    pub members: BTreeMap<String, Membership>,
    /// The owners of the shards that are owned.
    pub owners: BTreeMap<Shard, Owner>,
    /// The unreadable values, by their place in the engine. They count as missing: such a member
    /// does not exist, and such a shard is free.
    pub unreadable: BTreeMap<String, String>,
}

/// A member as the engine shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Membership {
    /// When it joined, by its own clock.
    pub since: SystemTime,
    /// Whether it is about to leave, so that it gets no shards.
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
