//! What keys that collide cost, counted in comparisons: those of an attacker who knows the seed of
//! the hasher, and of one who does not.
#![cfg(feature = "std")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::cell::Cell;
use std::hash::{BuildHasher, Hash, Hasher};

use foldhash::fast::FixedState;
use requeue_core::{Added, Growable, Instant, NoLimit, NoMetrics, Queue, RandomState};

thread_local! {
    static COMPARISONS: Cell<u64> = const { Cell::new(0) };
}

#[derive(Debug)]
struct Key(u64);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        COMPARISONS.with(|count| count.set(count.get() + 1));
        self.0 == other.0
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

/// How many keys collide: in one table of the index, with 256 buckets.
const KEYS: usize = 200;

/// The seed that the attacker knows.
fn known() -> FixedState {
    FixedState::with_seed(7)
}

/// Keys with the same bits of their hash wherever the index looks: the lowest eight select a
/// bucket, the highest seven tell the entries apart.
fn crafted() -> Vec<u64> {
    let hasher = known();
    let seen = |key: &u64| hasher.hash_one(Key(*key)).rotate_left(7) & 0x7FFF;
    (0..).filter(|key| seen(key) == 0).take(KEYS).collect()
}

/// How many comparisons it costs to add keys that are new, and to add them again.
fn comparisons<H: BuildHasher>(keys: &[u64], hasher: H) -> (u64, u64) {
    let mut queue: Queue<Key, Growable<H>, NoLimit> =
        Queue::from_parts(NoLimit, NoMetrics, hasher, 0);
    let mut add = |expected| {
        let before = COMPARISONS.get();
        for key in keys {
            let added = queue.add(Key(*key), Instant::EPOCH).value;
            assert_eq!(added.unwrap(), expected);
        }
        COMPARISONS.get() - before
    };
    (add(Added::Ready), add(Added::Coalesced))
}

#[test]
fn keys_that_are_made_to_collide_cost_a_comparison_with_each_other() {
    let keys = crafted();
    let all = KEYS as u64;
    let (new, again) = comparisons(&keys, known());
    assert_eq!(new, all * (all - 1) / 2, "each with all that are there");
    assert_eq!(again, all * (all + 1) / 2, "half of them on average");
}

/// Two per key would be many: chance makes one in 128 a false alarm for each entry of a group.
#[test]
fn the_same_keys_cost_next_to_nothing_with_an_unknown_seed() {
    let (new, again) = comparisons(&crafted(), RandomState::default());
    assert!(new <= KEYS as u64, "{new}");
    assert!(again <= 2 * KEYS as u64, "{again}");
}
