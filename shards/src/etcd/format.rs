//! The stored keys, and the text of their values. [`Etcd`](super::Etcd) documents them in a table.

use std::time::{Duration, SystemTime};

use etcd_client::KeyValue;

use crate::engine::Mark;
use crate::error::EngineError;
use crate::shard::{Fence, Shard};
use crate::view::{Membership, Owner};

/// The version of the format, stored beside the number of shards.
const VERSION: &str = "2";

/// How many bytes of a value are shown.
const SHOWN_MAX: usize = 64;

/// The member or shard that a key names.
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

/// The key of the last fence of a shard. It outlives the owner.
pub(super) fn fence_key(set: &str, shard: Shard) -> Result<String, EngineError> {
    Ok(format!("{}fence/{shard}", prefix(set)?))
}

pub(super) fn mark_key(set: &str, shard: Shard, key: &[u8]) -> Result<Vec<u8>, EngineError> {
    let mut whole = mark_range(set, shard)?.0;
    whole.extend_from_slice(key);
    Ok(whole)
}

/// The range of the keys of members and owners.
pub(super) fn view_range(set: &str) -> Result<(Vec<u8>, Vec<u8>), EngineError> {
    let prefix = prefix(set)?;
    // '0' is after '/'.
    let (from, to) = (format!("{prefix}member/"), format!("{prefix}owner0"));
    Ok((from.into_bytes(), to.into_bytes()))
}

/// The range of the keys of a shard's marks.
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

pub(super) fn owner_value(since: SystemTime, fence: Fence, member: &str) -> String {
    format!("{} {fence} {member}", millis(since))
}

pub(super) fn fence_value(fence: Fence) -> String {
    fence.to_string()
}

/// The fence of the next owner: greater than the last one, and at least the microseconds since
/// 1970. So it is also greater than fences that etcd has lost, unless a clock has gone back.
pub(super) fn next_fence(last: Option<Fence>, now: SystemTime) -> Fence {
    let since = now.duration_since(SystemTime::UNIX_EPOCH);
    let micros = since.unwrap_or_default().as_micros();
    let next = last.map_or(0, |last| last.0.saturating_add(1));
    Fence(next.max(u64::try_from(micros).unwrap_or(0)))
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

/// Reads the name in a key of [`view_range`]. `None` if this version does not know it.
pub(super) fn read_name(pair: &KeyValue, prefix: &str) -> Option<Named> {
    let name = pair.key_str().ok()?.strip_prefix(prefix)?;
    if let Some(member) = name.strip_prefix("member/") {
        return Some(Named::Member(member.to_owned()));
    }
    let shard = name.strip_prefix("owner/")?.parse().ok()?;
    Some(Named::Owner(Shard(shard)))
}

/// `None` if it cannot be read, or if it has no session that could end it.
pub(super) fn read_member(pair: &KeyValue) -> Option<Membership> {
    let (since, state) = owned_words(pair)?;
    let is_retiring = match state {
        "active" => false,
        "retiring" => true,
        _ => return None,
    };
    Some(Membership {
        since: time(since)?,
        is_retiring,
    })
}

/// As [`read_member`].
pub(super) fn read_owner(pair: &KeyValue) -> Option<Owner> {
    let (since, rest) = owned_words(pair)?;
    let (fence, member) = rest.split_once(' ')?;
    Some(Owner {
        member: member.to_owned(),
        fence: fence_of(fence)?,
        since: time(since)?,
    })
}

/// `None` if it cannot be read. Then only the clock decides the next fence.
pub(super) fn read_fence(pair: &KeyValue) -> Option<Fence> {
    fence_of(pair.value_str().ok()?)
}

/// Databases have no greater integers than `i64::MAX`.
fn fence_of(word: &str) -> Option<Fence> {
    let fence: i64 = word.parse().ok()?;
    u64::try_from(fence).ok().map(Fence)
}

/// Reads the time of a mark. The error is the unreadable value.
pub(super) fn read_not_before(pair: &KeyValue) -> Result<Option<SystemTime>, String> {
    match pair.value_str().ok().map(|text| (text, time(text))) {
        Some(("", _)) => Ok(None),
        Some((_, Some(time))) => Ok(Some(time)),
        _ => Err(shown_value(pair)),
    }
}

/// Reads a mark of [`mark_range`]. If its time cannot be read, it runs at once, so it is not lost.
pub(super) fn read_mark(pair: &KeyValue, from: &[u8], shard: Shard, is_old: bool) -> Mark {
    let key = pair.key().strip_prefix(from).unwrap_or_default();
    let not_before = read_not_before(pair);
    Mark {
        shard,
        key: key.to_vec(),
        version: pair.mod_revision().unsigned_abs(),
        is_old,
        unreadable: not_before.as_ref().err().cloned(),
        not_before: not_before.unwrap_or_default(),
    }
}

fn owned_words(pair: &KeyValue) -> Option<(&str, &str)> {
    let is_owned = pair.lease() != 0;
    pair.value_str().ok()?.split_once(' ').filter(|_| is_owned)
}

fn words(pair: &KeyValue) -> Result<(&str, &str), EngineError> {
    let words = text(pair)?.split_once(' ');
    words.ok_or_else(|| unreadable(pair))
}

fn text(pair: &KeyValue) -> Result<&str, EngineError> {
    pair.value_str().map_err(|_| unreadable(pair))
}

fn unreadable(pair: &KeyValue) -> EngineError {
    EngineError::Unreadable(format!("{} = {}", shown_key(pair), shown_value(pair)))
}

pub(super) fn shown_key(pair: &KeyValue) -> String {
    pair.key().escape_ascii().to_string()
}

/// The beginning of a value.
pub(super) fn shown_value(pair: &KeyValue) -> String {
    let value = pair.value();
    let shown = value.get(..SHOWN_MAX).unwrap_or(value).escape_ascii();
    let rest = if value.len() > SHOWN_MAX { "…" } else { "" };
    format!("{shown}{rest}")
}

/// Milliseconds since 1970, rounded up, so that a stored mark does not run early.
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
    fn fences_rise_by_the_last_one_and_by_the_clock() {
        let at = |micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let now = 1_763_827_200_000_000;
        assert_eq!(next_fence(None, at(now)), Fence(now));
        // A store has seen 900, and etcd has forgotten that.
        assert_eq!(next_fence(Some(Fence(1)), at(now)), Fence(now));
        // A clock that is behind, or has gone back to before 1970.
        let last = Fence(now + 5);
        assert_eq!(next_fence(Some(last), at(now)), Fence(now + 6));
        let before = SystemTime::UNIX_EPOCH - Duration::from_secs(1);
        assert_eq!(next_fence(Some(last), before), Fence(now + 6));
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
