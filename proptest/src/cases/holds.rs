use requeue_core::binding::Drained;
use requeue_core::{Action, AddOptions, Added, Finished, Merge};

use super::{Script, ms};
use crate::limiter::LimiterSpec;
use crate::subject::{Configuration, Operate, Subject};

const MS: u64 = 1_000_000;

/// A queue whose failed keys wait 10 ms, 20 ms and so on.
fn holding(cool_down: u64, hold_failures: bool) -> Configuration {
    let mut setup = Configuration::new(LimiterSpec::Exponential {
        base_ns: 10 * MS,
        max_ns: 1000 * MS,
    });
    setup.policy.cool_down_ns = cool_down * MS;
    setup.policy.hold_failures = hold_failures;
    setup
}

/// A key whose failures are held does not run before its backoff is over, if added.
///
/// Source: requeue-core, Policy::hold_failures
/// Needs: Policy
pub(crate) fn a_key_that_failed_runs_as_often_as_its_backoff_says(script: &mut Script) {
    script.renew(&holding(0, true));
    script.add(1, Added::Ready);
    for delay in [10, 20, 40] {
        let ticket = script.get(1);
        script.add(1, Added::Dirty);
        script.finish(ticket, Action::Retry, Finished::Delayed(ms(delay)));
        script.add(1, Added::Coalesced);
        script.add_after(1, 1, Added::Coalesced);
        script.not_before(delay);
    }
    let ticket = script.get(1);
    script.finish(ticket, Action::Success, Finished::Idle);
    script.add(1, Added::Ready);
}

type AddNow = fn(&mut Script) -> Option<Added>;

fn add_with(script: &mut Script, after: Option<u64>, merge: Merge) -> Option<Added> {
    let options = AddOptions {
        after: after.map(ms),
        merge,
        ..AddOptions::default()
    };
    let scheduled = script.subject.add_with(1, options).ok();
    scheduled.map(|scheduled| scheduled.added)
}

/// A delay of zero is an add: an active key is dirty, though it is held.
///
/// Source: requeue-core, Queue::add_after
/// Needs: Policy
pub(crate) fn an_add_without_a_delay_is_one_for_a_held_key_that_runs(script: &mut Script) {
    let adds: [AddNow; 9] = [
        |script| script.subject.add(1).ok(),
        |script| script.subject.add_after(1, ms(0)).ok(),
        |script| {
            let past = script.subject.now();
            script.subject.add_at(1, past).ok()
        },
        |script| script.subject.add_debounced(1, ms(0), ms(10)).ok(),
        |script| add_with(script, Some(0), Merge::Earliest),
        |script| add_with(script, Some(0), Merge::Once),
        |script| add_with(script, None, Merge::Once),
        |script| add_with(script, Some(0), Merge::Latest),
        |script| add_with(script, Some(0), Merge::Replace),
    ];
    for add in adds {
        script.renew(&holding(0, true));
        script.add(1, Added::Ready);
        let ticket = script.get(1);
        script.fail(1, 10);
        assert!(script.subject.cancel_delay(1).is_some());
        assert_eq!(add(script), Some(Added::Dirty));
        assert_eq!(add(script), Some(Added::Coalesced));
        // Success forgets the hold.
        script.finish(ticket, Action::Success, Finished::Ready);

        let ticket = script.get(1);
        script.fail(1, 10);
        assert!(script.subject.cancel_delay(1).is_some());
        assert_eq!(add(script), Some(Added::Dirty));
        script.finish(ticket, Action::Release, Finished::Delayed(ms(10)));
        script.not_before(10);
        script.succeed(1);
    }
}

/// An add now that replaces a deadline makes an active key dirty, though it is held.
///
/// Source: requeue-core, Merge
/// Needs: Policy
pub(crate) fn an_add_now_takes_the_place_of_the_deadline_of_a_held_key_that_runs(
    script: &mut Script,
) {
    for merge in [Merge::Once, Merge::Replace] {
        script.renew(&holding(0, true));
        script.add(1, Added::Ready);
        let ticket = script.get(1);
        script.fail(1, 10);
        assert_eq!(add_with(script, None, merge), Some(Added::Dirty));
        assert_eq!(script.subject.stats().delayed, 0);
        script.finish(ticket, Action::Success, Finished::Ready);
        script.succeed(1);
    }
}

/// An active key is not held: its deadlines obey a hold when its run has ended.
///
/// Source: requeue-core, Policy
/// Needs: Policy
pub(crate) fn a_hold_counts_when_the_run_has_ended(script: &mut Script) {
    for forgets in [true, false] {
        script.renew(&holding(0, true));
        script.add(1, Added::Ready);
        let ticket = script.get(1);
        script.fail(1, 10);
        // An active key is not held: a delay of 3 ms is one.
        script.add_after(1, 3, Added::Sooner);
        let (action, waits) = match forgets {
            true => (Action::Success, 3),
            false => (Action::Release, 10),
        };
        assert_ne!(script.subject.finish(ticket, action), Finished::Stale);
        script.not_before(waits);
        script.succeed(1);
    }
}

/// An active key is not held: it is dirty once it is expedited.
///
/// Source: requeue-core, Policy
/// Needs: Policy
pub(crate) fn a_held_key_that_runs_is_expedited_at_once(script: &mut Script) {
    script.renew(&holding(0, true));
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.fail(1, 10);
    assert!(script.subject.expedite(1));
    script.finish(ticket, Action::Success, Finished::Ready);
}

/// A rate-limited add says whether its hold moved a deadline or a ready key.
///
/// Source: requeue-core, Added
/// Needs: Policy
pub(crate) fn an_add_says_what_its_hold_changes(script: &mut Script) {
    script.renew(&holding(0, true));
    let mut fail = || script.subject.add_rate_limited(1).map(|it| it.added);
    assert_eq!(fail(), Ok(Added::Delayed));
    assert_eq!(fail(), Ok(Added::Later), "20 ms instead of 10");

    script.renew(&holding(0, true));
    script.add(1, Added::Ready);
    script.add_after(1, 5, Added::Delayed);
    let added = script.subject.add_rate_limited(1).map(|it| it.added);
    assert_eq!(added, Ok(Added::Delayed), "the key is ready no longer");
}

/// A key that cools down does not run before that is over, and then once.
///
/// Source: requeue-core, Policy::cool_down
/// Needs: Policy
pub(crate) fn a_key_cools_down_after_each_run(script: &mut Script) {
    script.renew(&holding(5, false));
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.add(1, Added::Dirty);
    script.finish(ticket, Action::Success, Finished::Delayed(ms(5)));
    script.add(1, Added::Coalesced);
    script.advance(5);
    script.run(1);
    script.add(1, Added::Delayed);
    script.not_before(5);
    script.run(1);
    script.advance(5);
    script.add(1, Added::Ready);
}

/// The end of a run returns when the key runs: a dirty key once it has cooled down.
///
/// Source: requeue-core, Finished::Delayed
/// Needs: Policy
pub(crate) fn a_dirty_key_is_reported_to_run_when_it_has_cooled_down(script: &mut Script) {
    for action in [Action::RequeueAfter(ms(8)), Action::Snooze(ms(8))] {
        script.renew(&holding(5, false));
        script.add(1, Added::Ready);
        let ticket = script.get(1);
        script.add(1, Added::Dirty);
        script.finish(ticket, action, Finished::Delayed(ms(5)));
        script.advance(5);
        script.succeed(1);
    }
    script.renew(&holding(5, false));
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.add(1, Added::Dirty);
    script.subject.shut_down();
    script.finish(
        ticket,
        Action::RequeueAfter(ms(8)),
        Finished::Leftover(ms(5)),
    );
    let left = script.subject.take_delayed().map(|left| left.left);
    assert_eq!(left, Some(ms(5)));
}

/// A deadline in a hold moves to its end; a later one stays.
///
/// Source: requeue-core, Policy
/// Needs: Policy
pub(crate) fn a_deadline_in_a_hold_comes_at_its_end(script: &mut Script) {
    script.renew(&holding(5, false));
    script.add(1, Added::Ready);
    script.add_after(1, 3, Added::Delayed);
    script.run(1);
    script.advance(3);
    script.nothing_to_get();
    script.add_after(1, 1, Added::Coalesced);
    script.advance(2);
    let ticket = script.get(1);
    script.finish(
        ticket,
        Action::RequeueAfter(ms(2)),
        Finished::Delayed(ms(5)),
    );
    script.add_after(1, 9, Added::Coalesced);
    script.advance(5);
    let ticket = script.get(1);
    let finished = script.subject.finish(ticket, Action::RequeueAfter(ms(9)));
    assert_eq!(finished, Finished::Delayed(ms(9)), "later than the hold");
    script.add(1, Added::Sooner);
}

/// A key that fails while it is ready is delayed if its failures are held.
///
/// Source: requeue-core, Policy::hold_failures
/// Needs: Policy
pub(crate) fn a_ready_key_that_fails_is_held(script: &mut Script) {
    script.renew(&holding(0, true));
    script.add(1, Added::Ready);
    script.fail(1, 10);
    script.nothing_to_get();
    script.len(0);
    script.advance(10);
    script.get(1);
}

/// A hold is not ended by expediting the key, but by forgetting its failures.
///
/// Source: requeue-core, Policy
/// Needs: Policy
pub(crate) fn a_hold_ends_early_only_if_it_is_forgotten(script: &mut Script) {
    script.renew(&holding(3, true));
    script.fail(1, 10);
    script.add(1, Added::Coalesced);
    assert!(script.subject.expedite(1));
    script.nothing_to_get();
    assert!(script.subject.cancel_delay(1).is_some());
    script.add(1, Added::Delayed);
    assert_eq!(script.subject.forget(1), 1);
    script.add(1, Added::Ready);
    script.run(1);
    assert_eq!(script.subject.forget(1), 0);
    script.add(1, Added::Ready);
}

/// After shutdown a held key that would run again is left over, and no drain waits.
///
/// Source: requeue-core, Policy
/// Needs: Policy
pub(crate) fn a_held_key_is_a_leftover(script: &mut Script) {
    script.renew(&holding(0, true));
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.add(1, Added::Dirty);
    let drain = script.subject.begin_drain();
    script.finish(ticket, Action::Retry, Finished::Leftover(ms(10)));
    script.drained(&drain, Drained::Complete);
    script.closed();
    script.advance(4);
    let left = script.subject.take_delayed();
    let left = left.map(|left| (left.key, left.left, left.failures));
    assert_eq!(left, Some((1, ms(6), 1)));
}

/// Runs that end drop the records of other keys whose holds are over.
///
/// Source: requeue-core, Policy
/// Needs: 4 keys, Policy
pub(crate) fn holds_that_are_over_take_no_room(script: &mut Script) {
    script.renew(&holding(2, false));
    for key in 1..=3 {
        script.add(key, Added::Ready);
        script.run(key);
    }
    assert_eq!(script.subject.stats().total, 3);
    script.advance(2);
    for _ in 0..2 {
        script.add(4, Added::Ready);
        script.run(4);
        script.advance(2);
    }
    assert_eq!(script.subject.stats().total, 1);
}
