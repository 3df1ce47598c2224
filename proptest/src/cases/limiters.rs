use requeue_core::{Action, Added, Finished};

use super::{Script, ms};
use crate::limiter::LimiterSpec;
use crate::subject::Configuration;

const MS: u64 = 1_000_000;

/// Each failure of a key doubles its own delay, up to the longest.
///
/// Source: client-go default_rate_limiters.go, ItemExponentialFailureRateLimiter
/// Needs: 2 keys
pub(crate) fn each_failure_of_a_key_doubles_its_delay(script: &mut Script) {
    script.renew(&Configuration::new(LimiterSpec::Exponential {
        base_ns: MS,
        max_ns: 5 * MS,
    }));
    for (failures, delay) in [(1, 1), (2, 2), (3, 4), (4, 5), (5, 5)] {
        script.fail(1, delay);
        script.failures(1, failures);
    }
    script.fail(2, 1);
}

/// The first failures of a key take the short delay, the others the long one.
///
/// Source: client-go default_rate_limiters.go, ItemFastSlowRateLimiter
pub(crate) fn the_first_failures_are_fast(script: &mut Script) {
    script.renew(&Configuration::new(LimiterSpec::FastSlow {
        fast_ns: 2 * MS,
        slow_ns: 10 * MS,
        max_fast_attempts: 2,
    }));
    for delay in [2, 2, 10, 10] {
        script.fail(1, delay);
    }
}

/// Of the delays of several limiters the longest counts.
///
/// Source: client-go default_rate_limiters.go, MaxOfRateLimiter
pub(crate) fn the_longest_of_several_delays_counts(script: &mut Script) {
    let exponential = LimiterSpec::Exponential {
        base_ns: MS,
        max_ns: 100 * MS,
    };
    let fast_slow = LimiterSpec::FastSlow {
        fast_ns: 3 * MS,
        slow_ns: 3 * MS,
        max_fast_attempts: 1,
    };
    let limiters = vec![exponential, fast_slow];
    script.renew(&Configuration::new(LimiterSpec::MaxOf { limiters }));
    for delay in [3, 3, 4, 8] {
        script.fail(1, delay);
    }
}

/// A run that is completed as failed counts a failure, and its key comes back.
///
/// Source: controller-runtime controller.go, reconcileHandler: AddRateLimited
pub(crate) fn a_run_that_failed_is_charged(script: &mut Script) {
    for (failures, delay) in [(1, 1), (2, 2), (3, 4)] {
        script.add(1, Added::Ready);
        let ticket = script.get(1);
        script.finish(ticket, Action::Retry, Finished::Delayed(ms(delay)));
        script.failures(1, failures);
        script.advance(delay);
        script.run(1);
    }
}

/// A run that is put off counts no failure and forgets none.
///
/// Source: requeue-core, Action::Snooze
pub(crate) fn a_run_that_is_put_off_is_not_charged(script: &mut Script) {
    script.fail(1, 1);
    script.advance(1);
    let ticket = script.get(1);
    script.finish(ticket, Action::Snooze(ms(7)), Finished::Delayed(ms(7)));
    script.failures(1, 1);
    script.not_before(7);
    script.get(1);
}
