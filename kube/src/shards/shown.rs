//! What the watch has shown of a set. Times are arguments.

use std::collections::BTreeMap;
use std::time::SystemTime;

use k8s_openapi::api::coordination::v1::Lease;
use requeue_shards::{Fence, Membership, Owner, Shard, View};
use tokio::time::Instant;

use crate::lease::Record;

use super::format;

/// The Leases of a set.
#[derive(Default)]
pub(super) struct Shown {
    members: BTreeMap<String, Member>,
    owners: BTreeMap<Shard, Owned>,
    /// What is wrong with a Lease of a shard, by its name.
    unreadable: BTreeMap<String, String>,
}

struct Member {
    record: Record,
    shown: Membership,
    /// When its session is to be ended unless it is renewed, `None` while that is tried.
    due: Option<Instant>,
}

#[derive(PartialEq)]
struct Owned {
    holder: String,
    fence: Fence,
    since: SystemTime,
}

impl Shown {
    /// Returns whether a view differs.
    pub(super) fn member(&mut self, name: &str, record: Record, due: Instant) -> bool {
        if record.lease().metadata.deletion_timestamp.is_some() {
            return self.members.remove(name).is_some();
        }
        let new = Member {
            shown: format::membership(record.lease()),
            record,
            due: Some(due),
        };
        let is_same = |old: &Member| uid(&old.record) == uid(&new.record) && old.shown == new.shown;
        let differs = !self.members.get(name).is_some_and(is_same);
        self.members.insert(name.to_owned(), new);
        differs
    }

    /// Returns whether the session of this Lease is shown.
    pub(super) fn has(&self, name: &str, lease: &Lease) -> bool {
        let asked = lease.metadata.uid.as_deref().unwrap_or_default();
        let is_it = |member: &Member| uid(&member.record) == asked;
        self.members.get(name).is_some_and(is_it)
    }

    /// The session has ended. Returns whether a view differs.
    pub(super) fn member_is_gone(&mut self, name: &str, lease: &Lease) -> bool {
        self.has(name, lease) && self.members.remove(name).is_some()
    }

    /// Returns whether a view differs.
    pub(super) fn shard(&mut self, shard: Shard, record: &Record) -> bool {
        let differs = self.read(record.lease());
        self.owner(shard, record) || differs
    }

    /// Notes whether a Lease can be read. Returns whether a view differs.
    fn read(&mut self, lease: &Lease) -> bool {
        let name = lease.metadata.name.clone().unwrap_or_default();
        match format::defect(lease) {
            Some(defect) => self.unreadable.insert(name, defect.clone()) != Some(defect),
            None => self.unreadable.remove(&name).is_some(),
        }
    }

    fn owner(&mut self, shard: Shard, record: &Record) -> bool {
        let owned = record.holder().zip(format::fence(record.lease()).ok());
        let new = owned.map(|(holder, fence)| Owned {
            holder: holder.to_owned(),
            fence,
            since: format::since(record.lease()),
        });
        match new {
            Some(new) => {
                let is_new = self.owners.get(&shard) != Some(&new);
                self.owners.insert(shard, new);
                is_new
            }
            None => self.owners.remove(&shard).is_some(),
        }
    }

    /// Returns whether a view differs.
    pub(super) fn shard_is_gone(&mut self, shard: Shard, name: &str) -> bool {
        let was_unreadable = self.unreadable.remove(name).is_some();
        self.owners.remove(&shard).is_some() || was_unreadable
    }

    /// The members and the shards that they own. O(M + S log M).
    pub(super) fn view(&self) -> View {
        let members = self.members.iter();
        let owners = self.owners.iter().filter_map(|(shard, owned)| {
            let (member, session) = format::parts(&owned.holder)?;
            let is_it = |member: &Member| uid(&member.record) == session;
            let owner = Owner::new(member.to_owned(), owned.fence, owned.since);
            self.members
                .get(member)
                .is_some_and(is_it)
                .then_some((*shard, owner))
        });
        let mut view = View::default();
        view.is_complete = true;
        view.members = members
            .map(|(name, member)| (name.clone(), member.shown.clone()))
            .collect();
        view.owners = owners.collect();
        view.unreadable = self.unreadable.clone();
        view
    }

    /// The members that have not been renewed in time. They are not returned again before
    /// [`try_again_at`](Self::try_again_at), or another renewal.
    pub(super) fn expired(&mut self, now: Instant) -> Vec<(String, Record)> {
        let expired = self.members.iter_mut().filter_map(|(name, member)| {
            member.due.take_if(|due| now >= *due)?;
            Some((name.clone(), member.record.clone()))
        });
        expired.collect()
    }

    /// The session could not be ended, or its end was not learnt.
    pub(super) fn try_again_at(&mut self, name: &str, at: Instant) {
        if let Some(member) = self.members.get_mut(name) {
            member.due = member.due.or(Some(at));
        }
    }

    /// When the first session is to be ended.
    pub(super) fn next(&self) -> Option<Instant> {
        self.members.values().filter_map(|member| member.due).min()
    }

    /// The names of all members' Leases.
    pub(super) fn leases(&self) -> impl Iterator<Item = &str> {
        let names = self.members.values();
        names.filter_map(|member| member.record.lease().metadata.name.as_deref())
    }
}

fn uid(record: &Record) -> &str {
    record.lease().metadata.uid.as_deref().unwrap_or_default()
}
