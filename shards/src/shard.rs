//! Shards, fences, and the shard of a key.

use std::borrow::Cow;
use std::fmt;
use std::hash::Hash;
use std::num::NonZeroU32;

/// One part of the key space, from 0 to one less than the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shard(pub u32);

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A number that rises with each owner of a shard.
///
/// Let your store refuse a write whose fence is smaller than the greatest it has seen. Then it
/// accepts no write of a previous owner, however long that owner was stopped. Nothing else helps
/// against a pause, because any time may pass between the last look at a clock and the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(pub u64);

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A shard that this replica has taken over, passed to the `relist` of
/// [`Shards::join`](crate::Shards::join).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// The shard.
    pub shard: Shard,
    /// The fence of this replica's ownership.
    pub fence: Fence,
}

/// A key that several machines share.
///
/// The bytes of a key decide its shard. They have to be the same on every machine and in every
/// version of your program.
///
/// # Examples
///
/// Keys of one tenant share a shard:
///
/// ```
/// use std::borrow::Cow;
/// use requeue_shards::ShardKey;
///
/// #[derive(Clone, PartialEq, Eq, Hash)]
/// struct Job {
///     tenant: String,
///     number: u64,
/// }
///
/// impl ShardKey for Job {
///     fn encode(&self) -> Cow<'_, [u8]> {
///         format!("{}/{}", self.number, self.tenant).into_bytes().into()
///     }
///
///     fn decode(bytes: &[u8]) -> Option<Self> {
///         let (number, tenant) = str::from_utf8(bytes).ok()?.split_once('/')?;
///         let number = number.parse().ok()?;
///         Some(Self { tenant: tenant.to_owned(), number })
///     }
///
///     fn placed_by(&self) -> Cow<'_, [u8]> {
///         self.tenant.as_bytes().into()
///     }
/// }
/// ```
pub trait ShardKey: Eq + Hash + Clone + Send + Sync + 'static {
    /// Returns the bytes of the key.
    fn encode(&self) -> Cow<'_, [u8]>;

    /// Returns the key with these bytes, `None` if there is no such key. Only marks need it.
    fn decode(bytes: &[u8]) -> Option<Self>;

    /// Returns the bytes that decide the shard. By default: those of [`encode`](Self::encode).
    /// Implement it if keys that belong together have to share a shard.
    fn placed_by(&self) -> Cow<'_, [u8]> {
        self.encode()
    }
}

impl ShardKey for String {
    fn encode(&self) -> Cow<'_, [u8]> {
        self.as_bytes().into()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Self::from_utf8(bytes.to_vec()).ok()
    }
}

impl ShardKey for Vec<u8> {
    fn encode(&self) -> Cow<'_, [u8]> {
        self.into()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(bytes.to_vec())
    }
}

/// Eight bytes, big-endian.
impl ShardKey for u64 {
    fn encode(&self) -> Cow<'_, [u8]> {
        self.to_be_bytes().to_vec().into()
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        Some(Self::from_be_bytes(bytes.try_into().ok()?))
    }
}

/// Returns the shard of a key: the 64-bit FNV-1a hash of [`placed_by`](ShardKey::placed_by), modulo
/// the number of shards.
///
/// This is part of the format of every set, and never changes.
///
/// # Examples
///
/// ```
/// use std::num::NonZeroU32;
/// use requeue_shards::{Shard, shard_of};
///
/// let count = NonZeroU32::new(64).unwrap();
/// assert_eq!(shard_of(&String::from("node-7"), count), Shard(53));
/// ```
pub fn shard_of<K: ShardKey>(key: &K, count: NonZeroU32) -> Shard {
    let rest = fnv1a(&key.placed_by()) % u64::from(count.get());
    Shard(u32::try_from(rest).unwrap_or_default())
}

/// FNV-1a with 64 bits: Fowler, Noll and Vo, <http://www.isthe.com/chongo/tech/comp/fnv/>.
pub(crate) fn fnv1a(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
