//! Every history of a few steps, and every step in every state that a few lead to.

use requeue_proptest::histories::{every_history, every_state};
use requeue_proptest::rounds;

type Explore = fn(Option<usize>, usize) -> Result<Vec<(usize, usize)>, String>;

/// Explores queues of a capacity to a depth, in the soak to another.
#[expect(clippy::panic, reason = "this is how a test fails")]
fn explored(explore: Explore, capacity: Option<usize>, [depth, in_soak]: [usize; 2]) {
    let depth = if rounds(1) > 1 { in_soak } else { depth };
    let explored = explore(capacity, depth).unwrap_or_else(|failure| panic!("{failure}"));
    println!("for {capacity:?} keys, histories, states: {explored:?}");
    assert!(explored.iter().all(|(histories, _)| *histories > 30_000));
}

#[test]
fn all_histories() {
    for capacity in [Some(1), Some(2), None] {
        explored(every_history, capacity, [3, 5]);
    }
}

/// In the soak until there is no new one.
#[test]
fn all_states() {
    explored(every_state, None, [5, usize::MAX]);
}

#[test]
fn all_states_of_a_small_queue() {
    explored(every_state, Some(1), [5, usize::MAX]);
    explored(every_state, Some(2), [5, usize::MAX]);
}
