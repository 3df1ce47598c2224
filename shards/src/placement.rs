//! Assigns each shard to a member. Every member computes the same result, without coordination.
//!
//! Rendezvous hashing (Thaler and Ravishankar, *A Name-Based Mapping Scheme for Rendezvous*, 1996)
//! with bounded loads (Mirrokni, Thorup and Zadimoghaddam, *Consistent Hashing with Bounded Loads*,
//! 2018) and the tightest bound: a shard goes to the member with the highest score that has room,
//! and members differ by one shard at most. Without a bound, one of three members gets 31 of 64
//! shards and another 13, and some of thirty members get none. The price: when a member joins or
//! leaves, 1.6 times as many shards move as have to.

use std::cmp::Reverse;

use crate::shard::fnv1a;

/// Returns the member of each shard, as its index in `members`, which are sorted by name. Empty if
/// there is no member. O(S·M) for S shards and M members.
///
/// The result is part of the protocol: members that compute it differently would contend for a
/// shard, though never own it together.
pub(crate) fn place(count: u32, members: &[&str]) -> Vec<usize> {
    let hashes: Vec<u64> = members.iter().map(|name| fnv1a(name.as_bytes())).collect();
    let Ok(size) = u32::try_from(members.len().max(1)) else {
        return Vec::new();
    };
    // Each member gets `share` shards, and `rest` of them get one more.
    let (share, mut rest) = (count / size, count % size);
    let mut loads = vec![0; members.len()];
    let mut places = Vec::new();
    for shard in (0..count).map(u64::from) {
        let most = if rest > 0 { share + 1 } else { share };
        let open = (0..)
            .zip(&hashes)
            .zip(&loads)
            .filter(|(_, load)| **load < most);
        // Of equal scores, the first name wins.
        let score =
            |((member, hash), _): &((usize, &u64), _)| (mix(*hash ^ mix(shard)), Reverse(*member));
        let Some(((best, _), _)) = open.max_by_key(score) else {
            return Vec::new();
        };
        if let Some(load) = loads.get_mut(best) {
            rest -= u32::from(*load == share);
            *load += 1;
        }
        places.push(best);
    }
    places
}

/// Spreads every bit of the input over the whole output: the finalizer of MurmurHash3.
pub(crate) fn mix(hash: u64) -> u64 {
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let hash = (hash ^ (hash >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    hash ^ (hash >> 33)
}

#[cfg(test)]
mod tests {
    use super::place;

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
    fn members_differ_by_one_shard_at_most() {
        for size in 1..80 {
            let members = named(size);
            let owners = owners(64, &members);
            assert_eq!(owners.len(), 64);
            let load = |member: &String| owners.iter().filter(|owner| *owner == member).count();
            let loads = members.iter().map(load);
            let (least, most) = (loads.clone().min().unwrap(), loads.max().unwrap());
            assert!(most - least <= 1, "{least} to {most} of {size}");
        }
        assert!(owners(64, &[]).is_empty());
    }

    /// Of 64 shards, those of the member that leaves have to move; here 1.6 times as many do, on
    /// the average, and four times at worst.
    #[test]
    fn few_shards_move_but_those_of_the_member_that_leaves() {
        let (mut moved, mut needed, mut worst) = (0, 0, 0.0_f64);
        for size in 2..=16 {
            let before = named(size);
            for leaving in 0..size {
                let mut after = before.clone();
                let gone = after.remove(leaving);
                let (before, after) = (owners(64, &before), owners(64, &after));
                let has_to = before.iter().filter(|owner| **owner == gone).count();
                let pairs = before.iter().zip(&after);
                let moves = pairs.filter(|(before, after)| before != after).count();
                worst = worst.max(moves as f64 / has_to as f64);
                needed += has_to;
                moved += moves;
            }
        }
        println!("{moved} moved, {needed} had to; {worst:.2} times at worst");
        assert!(moved * 10 <= needed * 17, "{moved} moved, {needed} had to");
        assert!(worst <= 4.0, "{worst}");
    }

    /// Replicas of different versions have to agree.
    #[test]
    fn the_places_never_change() {
        let members = named(3);
        let places: String = owners(16, &members)
            .iter()
            .map(|owner| owner.chars().last().unwrap())
            .collect();
        assert_eq!(places, "2010020121100122");
    }
}
