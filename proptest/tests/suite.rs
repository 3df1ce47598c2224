//! Histories that were once found to fail.

use std::time::Duration;

use requeue_core::{Fixed, Growable};
use requeue_proptest::histories::{Looks, Step, check};
use requeue_proptest::subject::{Direct, Setup};

/// Found by the suite: the ready list was damaged where ready keys and memories share their links.
#[test]
fn a_delay_leaves_a_ready_key_in_its_place() {
    let steps = [
        Step::Add(1),
        Step::Add(2),
        Step::AddAfter(2, Duration::from_nanos(1)),
        Step::TryGet,
        Step::TryGet,
    ];
    let setup = Setup::exponential();
    assert_eq!(
        check::<Direct<Fixed<2>>>(&setup, &steps, Looks::Always),
        Ok(())
    );
    assert_eq!(
        check::<Direct<Growable>>(&setup, &steps, Looks::Always),
        Ok(())
    );
}
