use requeue_core::{Action, AddOptions, Added, Finished, Merge, Why};

use super::run_rate::paced;
use super::{Script, ms, setup};
use crate::limiter::FloatBits;
use crate::subject::{Cap, GroupOrder, Key, Operate, Rate, Subject};

#[track_caller]
fn why(script: &mut Script, key: Key, expected: Why) {
    assert_eq!(script.subject.why(key), expected, "key {key}");
}

/// A key is active. When its run began is known only with metrics.
#[track_caller]
fn runs(script: &mut Script, key: Key, expected: bool) {
    let why = script.subject.why(key);
    let is_so = matches!(why, Why::Running { again, .. } if again == expected);
    assert!(is_so, "key {key}: {why:?}");
}

/// A key that does not run is idle or ready, and one that runs says since when.
///
/// Source: requeue-core, Queue::why
/// Needs: 2 keys
pub(crate) fn a_key_is_in_each_state_as_it_goes_round(script: &mut Script) {
    why(script, 1, Why::Idle);
    script.add(1, Added::Ready);
    why(script, 1, Why::Ready);
    let begin = script.subject.now();
    let ticket = script.get(1);
    script.advance(3);
    let since = script.subject.figures().map(|_| begin);
    let again = false;
    why(script, 1, Why::Running { since, again });
    script.add_after(1, 10, Added::Delayed);
    runs(script, 1, false);
    script.advance(10);
    runs(script, 1, true);
    assert_eq!(script.subject.release(ticket), Finished::Ready);
    why(script, 1, Why::Ready);
    script.run(1);
    why(script, 1, Why::Idle);
    why(script, 2, Why::Idle);
}

/// A key backs off until another call sets its deadline, whatever its failures.
///
/// Source: requeue-core, Queue::why
pub(crate) fn a_backoff_is_no_delay_that_was_asked_for(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.finish(ticket, Action::Retry, Finished::Delayed(ms(1)));
    let until = script.subject.now() + ms(1);
    why(script, 1, Why::BackingOff { until, failures: 1 });
    // A later deadline does not count, and an equal one is that of the limiter, too.
    script.add_after(1, 5, Added::Coalesced);
    script.add_after(1, 1, Added::Coalesced);
    why(script, 1, Why::BackingOff { until, failures: 1 });
    script.subject.forget(1);
    why(script, 1, Why::BackingOff { until, failures: 0 });

    script.fail(1, 1);
    script.fail(1, 2);
    assert!(script.subject.cancel_delay(1).is_some());
    why(script, 1, Why::Idle);
    let until = script.subject.now() + ms(4);
    script.fail(1, 4);
    why(script, 1, Why::BackingOff { until, failures: 3 });
    // An earlier deadline is none of the limiter's, although the failures stay.
    let until = script.subject.now() + ms(2);
    script.add_after(1, 2, Added::Sooner);
    why(script, 1, Why::Delayed { until });
    script.fail(1, 8);
    why(script, 1, Why::Delayed { until });

    let later = |rate_limited, merge| AddOptions {
        after: Some(ms(20)),
        rate_limited,
        merge,
        ..AddOptions::default()
    };
    let now = script.subject.now();
    let moved = script.subject.add_with(1, later(true, Merge::Replace));
    assert_eq!(moved.map(|it| it.added), Ok(Added::Later));
    let until = now + ms(16);
    why(script, 1, Why::BackingOff { until, failures: 5 });
    let moved = script.subject.add_with(1, later(false, Merge::Latest));
    assert_eq!(moved.map(|it| it.added), Ok(Added::Later));
    let until = now + ms(20);
    why(script, 1, Why::Delayed { until });
    script.advance(20);
    why(script, 1, Why::Ready);
    let ticket = script.get(1);
    let until = script.subject.now() + ms(7);
    script.finish(ticket, Action::Snooze(ms(7)), Finished::Delayed(ms(7)));
    why(script, 1, Why::Delayed { until });
}

/// A delayed key says whether a hold or a burst of debounced adds delays it.
///
/// Source: requeue-core, Queue::why
/// Needs: Policy
pub(crate) fn a_hold_and_a_burst_differ_from_a_delay(script: &mut Script) {
    let mut holding = setup();
    holding.policy.cool_down_ns = 5_000_000;
    script.renew(&holding);
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.done(1);
    let until = script.subject.now() + ms(5);
    why(script, 1, Why::Held { until, failures: 0 });
    assert!(script.subject.cancel_key(1).is_some());
    why(script, 1, Why::Idle);
    let later = script.subject.now() + ms(6);
    script.add_after(1, 6, Added::Delayed);
    why(script, 1, Why::Delayed { until: later });
    assert!(script.subject.expedite(1));
    why(script, 1, Why::Held { until, failures: 0 });
    script.advance(5);
    why(script, 1, Why::Ready);

    holding.policy.cool_down_ns = 0;
    holding.policy.hold_failures = true;
    script.renew(&holding);
    let until = script.subject.now() + ms(1);
    script.fail(1, 1);
    why(script, 1, Why::Held { until, failures: 1 });

    script.restart();
    let until = script.subject.now() + ms(4);
    let added = script.subject.add_debounced(1, ms(4), ms(10));
    assert_eq!(added, Ok(Added::Delayed));
    why(script, 1, Why::Debounced { until });
    script.add_after(1, 4, Added::Coalesced);
    why(script, 1, Why::Delayed { until });
}

/// A ready key names the pause of the queue, and else the time of the next token.
///
/// Source: requeue-core, Queue::why
/// Needs: 3 keys, Policy
pub(crate) fn a_ready_key_waits_for_the_end_of_a_pause_and_for_a_token(script: &mut Script) {
    script.renew(&paced());
    let until = script.subject.now() + ms(10);
    for key in [1, 2, 3] {
        script.add(key, Added::Ready);
        why(script, key, Why::Ready);
    }
    script.get(1);
    script.get(2);
    why(script, 3, Why::NoToken { until });
    script.subject.pause();
    why(script, 3, Why::Paused);
    script.advance(10);
    why(script, 3, Why::Paused);
    script.subject.unpause();
    why(script, 3, Why::Ready);
    script.get(3);
}

/// A ready key names the pause, the limit or the next token of its group.
///
/// Source: requeue-core, Queue::why
/// Needs: 3 keys, Groups
pub(crate) fn a_ready_key_waits_for_its_group(script: &mut Script) {
    let cap = |max_active, rate| Cap {
        max_active,
        rate,
        ..Cap::default()
    };
    let rate = Rate {
        per_second: FloatBits(100.0),
        burst: 1,
    };
    // 3 and 6 are of group 0.
    for key in [3, 6, 1] {
        script.add(key, Added::Ready);
    }
    let limit = |rate| GroupOrder::LimitAll(cap(Some(1), rate));
    script.subject.order(&limit(Some(rate)));
    let until = script.subject.now() + ms(10);
    script.get(3);
    why(script, 6, Why::GroupAtLimit);
    script.subject.order(&GroupOrder::Pause(0));
    why(script, 6, Why::GroupPaused);
    why(script, 1, Why::Ready);
    script.subject.pause();
    why(script, 6, Why::Paused);
    script.subject.unpause();
    script.subject.order(&GroupOrder::Unpause(0));
    script.done(3);
    why(script, 6, Why::GroupNoToken { until });
    script.advance(9);
    why(script, 6, Why::GroupNoToken { until });
    script.advance(1);
    why(script, 6, Why::Ready);
    script.get(1);
    script.run(6);
    script.add(3, Added::Ready);
    script.subject.order(&limit(None));
    why(script, 3, Why::Ready);
    script.get(3);
}

/// After shutdown a key that is neither ready nor active says that it will not run.
///
/// Source: requeue-core, Queue::why
/// Needs: 3 keys
pub(crate) fn after_shutdown_only_what_is_ready_or_active_still_runs(script: &mut Script) {
    script.add(1, Added::Ready);
    script.get(1);
    script.add(1, Added::Dirty);
    script.add(2, Added::Ready);
    script.add_after(3, 10, Added::Delayed);
    script.subject.shut_down();
    script.advance(10);
    runs(script, 1, true);
    why(script, 2, Why::Ready);
    why(script, 3, Why::Closed);
    why(script, 4, Why::Closed);
    script.done(1);
    why(script, 1, Why::Ready);
    script.get(2);
    script.run(1);
    why(script, 1, Why::Closed);
}
