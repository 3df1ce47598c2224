//! How long small groups wait behind a large one, counted in keys handed out, so the result is
//! exact.

use crate::subject::Subject;

/// How many small groups there are, of one key each.
pub const SMALL_GROUPS: u64 = 999;

/// The group of a key: its upper half.
pub fn group_of(key: &u64) -> u64 {
    key >> 32
}

/// How many keys are handed out until the last small group has had its turn. The large group is
/// added first, and one worker completes each key before it takes the next.
pub fn wait_of_the_last<Q: Subject<u64>>(mut subject: Q, large: u64) -> u64 {
    for number in 0..large {
        subject.add(number, 0);
    }
    for group in 1..=SMALL_GROUPS {
        subject.add(group << 32, 0);
    }
    let mut left = SMALL_GROUPS;
    let mut handed_out = 0;
    while left > 0 {
        let Some((key, run)) = subject.get(0) else {
            break;
        };
        handed_out += 1;
        left -= u64::from(group_of(&key) > 0);
        subject.done(&key, run, 0);
    }
    handed_out
}
