//! The members and owners of a set, for people to read.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use crate::shard::Shard;
use crate::view::{Membership, Owner, View};

/// The members of a set and the owner of each shard. Its `Display` is a table.
///
/// # Examples
///
/// ```
/// use requeue_shards::{Engine, Memory, Shards};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), requeue_shards::EngineError> {
/// let engine = Memory::new();
/// engine.open("webhooks", 64).await?;
/// let status = Shards::builder(engine, "webhooks").build().status().await?;
/// assert_eq!(status.shards.len(), 64);
/// assert_eq!(status.free().count(), 64);
/// println!("{status}");
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Status {
    /// The name of the set.
    pub set: String,
    /// The members by their names, with the number of shards that each owns.
    pub members: BTreeMap<String, (Membership, usize)>,
    /// The owner of each shard. `None` if the shard is free.
    pub shards: Vec<Option<Owner>>,
    /// The unreadable values, as in [`View::unreadable`].
    pub unreadable: BTreeMap<String, String>,
}

impl Status {
    pub(crate) fn new(set: &str, count: NonZeroU32, view: &View) -> Self {
        let shards = (0..count.get()).map(|shard| view.owners.get(&Shard(shard)).cloned());
        let owned = |name: &str| {
            view.owners
                .values()
                .filter(|owner| owner.member == name)
                .count()
        };
        let members = view.members.iter();
        Self {
            set: set.to_owned(),
            members: members
                .map(|(name, member)| (name.clone(), (member.clone(), owned(name))))
                .collect(),
            shards: shards.collect(),
            unreadable: view.unreadable.clone(),
        }
    }

    /// Returns the shards that no member owns.
    pub fn free(&self) -> impl Iterator<Item = Shard> + '_ {
        let shards = (0..).map(Shard).zip(&self.shards);
        shards
            .filter(|(_, owner)| owner.is_none())
            .map(|(shard, _)| shard)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (set, count, free) = (&self.set, self.shards.len(), self.free().count());
        writeln!(f, "{set}: {count} shards, {free} free")?;
        let names = self.members.keys().map(|name| name.chars().count());
        let width = names.max().unwrap_or_default().max("member".len());
        writeln!(f, "\n{:width$}  shards  since (UTC)", "member")?;
        for (name, (member, owned)) in &self.members {
            let retiring = if member.is_retiring { "  leaves" } else { "" };
            let since = utc(member.since);
            writeln!(f, "{name:width$}  {owned:6}  {since}{retiring}")?;
        }
        let fences = self.shards.iter().flatten();
        let fences = fences.map(|owner| owner.fence.to_string().len());
        let digits = fences.max().unwrap_or_default().max("fence".len());
        writeln!(
            f,
            "\nshard  {:width$}  {:>digits$}  since (UTC)",
            "owner", "fence"
        )?;
        for (shard, owner) in self.shards.iter().enumerate() {
            match owner {
                Some(Owner {
                    member,
                    fence,
                    since,
                }) => {
                    let since = utc(*since);
                    writeln!(
                        f,
                        "{shard:5}  {member:width$}  {:>digits$}  {since}",
                        fence.0
                    )?;
                }
                None => writeln!(f, "{shard:5}  -")?,
            }
        }
        for (at, value) in &self.unreadable {
            writeln!(f, "\nunreadable: {at} = {value}")?;
        }
        Ok(())
    }
}

/// A time as RFC 3339, clamped to the years 1970 to 9999.
fn utc(time: SystemTime) -> impl fmt::Display {
    let last = SystemTime::UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    humantime::format_rfc3339_seconds(time.clamp(SystemTime::UNIX_EPOCH, last))
}
