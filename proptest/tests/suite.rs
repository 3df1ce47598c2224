//! Sequences of operations that were once found to fail.

use std::time::Duration;

use requeue_core::{Fixed, Growable};
use requeue_proptest::subject::{Direct, Setup};
use requeue_proptest::suite::{self, Looks, Op};

/// Found by the suite: the ready list was damaged where ready keys and memories share their links.
#[test]
fn a_delay_leaves_a_ready_key_in_its_place() {
    let ops = [
        Op::Add(1),
        Op::Add(2),
        Op::AddAfter(2, Duration::from_nanos(1)),
        Op::TryGet,
        Op::TryGet,
    ];
    let setup = Setup::exponential();
    assert_eq!(
        suite::check::<Direct<Fixed<2>>>(&setup, &ops, Looks::Always),
        Ok(())
    );
    assert_eq!(
        suite::check::<Direct<Growable>>(&setup, &ops, Looks::Always),
        Ok(())
    );
}
