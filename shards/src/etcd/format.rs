//! What is stored: keys, and the text of their values. The table is in the documentation of
//! [`Etcd`](super::Etcd).

use std::time::{Duration, SystemTime};

use etcd_client::KeyValue;

use crate::engine::Mark;
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::{Membership, Owner};

/// The version of the format, stored beside the number of shards.
const VERSION: &str = "1";

/// What a key below a set names.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Named {
    Member(String),
    Owner(Shard),
}

/// The prefix of everything that belongs to a set.
pub(super) fn prefix(set: &str) -> Result<String, EngineError> {
    if set.is_empty() || set.contains('/') {
        return Err(EngineError::Unsupported(
            "sets whose name is empty or has a slash",
        ));
    }
    Ok(format!("/requeue/{set}/"))
}

pub(super) fn count_key(set: &str) -> Result<String, EngineError> {
    Ok(prefix(set)? + "count")
}

pub(super) fn member_key(set: &str, member: &str) -> Result<String, EngineError> {
    Ok(prefix(set)? + "member/" + member)
}

pub(super) fn owner_key(set: &str, shard: Shard) -> Result<String, EngineError> {
    Ok(format!("{}owner/{shard}", prefix(set)?))
}

pub(super) fn mark_key(set: &str, shard: Shard, key: &[u8]) -> Result<Vec<u8>, EngineError> {
    let mut whole = mark_range(set, shard)?.0;
    whole.extend_from_slice(key);
    Ok(whole)
}

/// The keys of the members and owners: from the first, to what is after the last.
pub(super) fn view_range(set: &str) -> Result<(Vec<u8>, Vec<u8>), EngineError> {
    let prefix = prefix(set)?;
    // '0' is after '/'.
    let (from, to) = (format!("{prefix}member/"), format!("{prefix}owner0"));
    Ok((from.into_bytes(), to.into_bytes()))
}

/// The keys of the marks of a shard.
pub(super) fn mark_range(set: &str, shard: Shard) -> Result<(Vec<u8>, Vec<u8>), EngineError> {
    let prefix = prefix(set)?;
    let (from, to) = (
        format!("{prefix}mark/{shard}/"),
        format!("{prefix}mark/{shard}0"),
    );
    Ok((from.into_bytes(), to.into_bytes()))
}

pub(super) fn count_value(count: u32) -> String {
    format!("{VERSION} {count}")
}

pub(super) fn member_value(since: SystemTime, is_retiring: bool) -> String {
    let state = if is_retiring { "retiring" } else { "active" };
    format!("{} {state}", millis(since))
}

pub(super) fn owner_value(since: SystemTime, member: &str) -> String {
    format!("{} {member}", millis(since))
}

pub(super) fn mark_value(not_before: Option<SystemTime>) -> String {
    not_before.map_or(String::new(), |time| millis(time).to_string())
}

pub(super) fn read_count(pair: &KeyValue) -> Result<u32, EngineError> {
    let (version, count) = words(pair)?;
    if version != VERSION {
        return Err(unreadable(pair));
    }
    count.parse().map_err(|_| unreadable(pair))
}

/// What a key of [`view_range`] names, `None` if this version does not know it.
pub(super) fn read_name(pair: &KeyValue, prefix: &str) -> Option<Named> {
    let name = pair.key_str().ok()?.strip_prefix(prefix)?;
    if let Some(member) = name.strip_prefix("member/") {
        return Some(Named::Member(member.to_owned()));
    }
    let shard = name.strip_prefix("owner/")?.parse().ok()?;
    Some(Named::Owner(Shard(shard)))
}

pub(super) fn read_member(pair: &KeyValue) -> Result<Membership, EngineError> {
    let (since, state) = words(pair)?;
    Ok(Membership {
        since: time(since).ok_or_else(|| unreadable(pair))?,
        is_retiring: state == "retiring",
    })
}

pub(super) fn read_owner(pair: &KeyValue) -> Result<Owner, EngineError> {
    let (since, member) = words(pair)?;
    Ok(Owner {
        member: member.to_owned(),
        fence: Fence(pair.create_revision().unsigned_abs()),
        since: time(since).ok_or_else(|| unreadable(pair))?,
    })
}

pub(super) fn read_not_before(pair: &KeyValue) -> Result<Option<SystemTime>, EngineError> {
    match text(pair)? {
        "" => Ok(None),
        millis => time(millis).map(Some).ok_or_else(|| unreadable(pair)),
    }
}

/// The mark of a pair whose key begins with that of [`mark_range`].
pub(super) fn read_mark(pair: &KeyValue, from: &[u8], shard: Shard) -> Result<Mark, EngineError> {
    let key = pair.key().strip_prefix(from);
    Ok(Mark {
        shard,
        key: key.ok_or_else(|| unreadable(pair))?.to_vec(),
        version: pair.mod_revision().unsigned_abs(),
        not_before: read_not_before(pair)?,
    })
}

fn words(pair: &KeyValue) -> Result<(&str, &str), EngineError> {
    let words = text(pair)?.split_once(' ');
    words.ok_or_else(|| unreadable(pair))
}

fn text(pair: &KeyValue) -> Result<&str, EngineError> {
    pair.value_str().map_err(|_| unreadable(pair))
}

pub(super) fn unreadable(pair: &KeyValue) -> EngineError {
    let key = pair.key().escape_ascii();
    let value = pair.value().escape_ascii();
    EngineError::Unreadable(format!("{key} = {value}"))
}

/// Milliseconds since 1970, rounded up: a mark runs no sooner for having been stored.
fn millis(time: SystemTime) -> u128 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |since| since.as_nanos().div_ceil(1_000_000))
}

fn time(millis: &str) -> Option<SystemTime> {
    let millis = Duration::from_millis(millis.parse().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(millis)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_do_not_reach_into_each_other() {
        assert!(prefix("").is_err());
        assert!(prefix("a/b").is_err());
        assert_eq!(prefix("a").unwrap(), "/requeue/a/");
    }

    #[test]
    fn a_range_holds_the_keys_of_its_shard_alone() {
        let (from, to) = mark_range("a", Shard(7)).unwrap();
        let is_within = |shard, key: &[u8]| {
            let key = mark_key("a", Shard(shard), key).unwrap();
            from <= key && key < to
        };
        assert!(is_within(7, b"") && is_within(7, b"\xff\xff") && is_within(7, b"\0/"));
        assert!(!is_within(70, b"") && !is_within(6, b"\xff") && !is_within(8, b""));
        let (from, to) = view_range("a").unwrap();
        for key in [
            member_key("a", "\u{10ffff}"),
            owner_key("a", Shard(u32::MAX)),
        ] {
            let key = key.unwrap().into_bytes();
            assert!(from <= key && key < to);
        }
        assert!(count_key("a").unwrap().into_bytes() < from);
        assert!(mark_key("a", Shard(7), b"\xff").unwrap() < from);
    }

    #[test]
    fn times_survive_and_never_come_sooner() {
        for millis in [0, 1, 1_763_827_200_000] {
            let then = SystemTime::UNIX_EPOCH + Duration::from_millis(millis);
            assert_eq!(time(&mark_value(Some(then))), Some(then));
            let later = then + Duration::from_nanos(1);
            assert!(time(&mark_value(Some(later))) > Some(then));
        }
        assert_eq!(time("-1"), None);
        assert_eq!(time("99999999999999999999999"), None);
    }
}
