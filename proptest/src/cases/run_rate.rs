use requeue_core::Added;
use requeue_core::binding::Drained;

use super::Script;
use crate::limiter::{FloatBits, LimiterSpec};
use crate::subject::{Configuration, Operate, Rate};

/// A queue of which one key is handed out every 10 ms, after a burst of two.
pub(super) fn paced() -> Configuration {
    let mut setup = Configuration::new(LimiterSpec::Exponential {
        base_ns: 1_000_000,
        max_ns: 1_000_000_000,
    });
    setup.policy.run_rate = Some(Rate {
        per_second: FloatBits(100.0),
        burst: 2,
    });
    setup
}

/// Keys wait for tokens in their order, and an add that coalesces takes none.
///
/// Source: requeue-core, Policy::run_rate
/// Needs: 6 keys, Policy
pub(crate) fn a_token_is_taken_when_a_key_is_handed_out(script: &mut Script) {
    script.renew(&paced());
    for key in [1, 2, 3] {
        script.add(key, Added::Ready);
        script.add(key, Added::Coalesced);
    }
    script.get(1);
    script.get(2);
    script.nothing_to_get();
    script.len(1);
    script.done(1);
    script.add(1, Added::Ready);
    script.not_before(10);
    script.get(3);
    script.nothing_to_get();
    script.advance(10);
    script.get(1);
    script.done(3);
    script.advance(1000);
    for key in [4, 5, 6] {
        script.add(key, Added::Ready);
    }
    script.get(4);
    script.get(5);
    script.nothing_to_get();
}

/// After shutdown keys are handed out at the same rate; leftovers take no token.
///
/// Source: requeue-core, Policy::run_rate
/// Needs: 4 keys, Policy
pub(crate) fn a_queue_that_is_shut_down_keeps_its_rate(script: &mut Script) {
    script.renew(&paced());
    for key in [1, 2, 3, 4] {
        script.add(key, Added::Ready);
    }
    let drain = script.subject.begin_drain();
    script.get(1);
    script.get(2);
    script.nothing_to_get();
    script.done(1);
    script.done(2);
    script.drained(&drain, Drained::Pending);
    script.advance(10);
    script.run(3);
    script.nothing_to_get();
    let left = script.subject.take_ready();
    assert_eq!(
        left.map(|left| left.key),
        Some(4),
        "a leftover needs no token"
    );
    script.drained(&drain, Drained::Complete);
    script.closed();
}
