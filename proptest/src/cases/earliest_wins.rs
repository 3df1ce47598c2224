use requeue_core::{Added, Instant};

use super::{Script, ms};
use crate::subject::Operate;

/// Of two delays of a key the one that ends first counts.
///
/// Source: client-go delaying_queue.go, insert
pub(crate) fn the_earlier_deadline_counts(script: &mut Script) {
    script.add_after(1, 30, Added::Delayed);
    script.add_after(1, 40, Added::Coalesced);
    script.add_after(1, 30, Added::Coalesced);
    let sooner = script.subject.add_at(1, Instant::EPOCH + ms(10));
    assert_eq!(sooner, Ok(Added::Sooner), "add_at 1, 10 ms");
    script.not_before(10);
    script.run(1);
    script.advance(40);
    script.nothing_to_get();
}

/// A failure whose delay ends later leaves the deadline that the key has.
///
/// Source: client-go rate_limiting_queue.go, AddRateLimited, and delaying_queue.go, insert
pub(crate) fn a_failure_does_not_put_an_earlier_deadline_off(script: &mut Script) {
    script.fail(1, 1);
    script.fail(1, 2);
    script.fail(1, 4);
    script.advance(1);
    script.run(1);
    script.advance(4);
    script.nothing_to_get();
    script.failures(1, 3);
}
