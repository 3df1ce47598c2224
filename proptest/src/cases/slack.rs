use requeue_core::{Action, AddOptions, Added, Finished, Merge};

use super::{Script, ms};
use crate::subject::{Key, Operate, Subject};

/// Adds a key for a window of milliseconds from now.
#[track_caller]
fn add_within(script: &mut Script, key: Key, opens: u64, ends: u64, expected: Added) {
    let added = script.subject.add_within(key, ms(opens), ms(ends - opens));
    assert_eq!(
        added,
        Ok(expected),
        "add_within {key}, {opens} to {ends} ms"
    );
}

/// When the deadline of a key is, in milliseconds from now.
#[track_caller]
fn due_in(script: &mut Script, key: Key, expected: u64) {
    let now = script.subject.now();
    let due = script.subject.state(key).and_then(|state| state.due);
    assert_eq!(due, Some(now + ms(expected)), "the deadline of {key}");
}

/// One look makes each key ready whose window is open, in the order of the deadlines.
///
/// Source: requeue-core, Session::add_within
/// Needs: Slack, 3 keys
pub(crate) fn one_wake_serves_each_open_window(script: &mut Script) {
    add_within(script, 1, 10, 60, Added::Delayed);
    add_within(script, 2, 30, 40, Added::Delayed);
    add_within(script, 3, 20, 50, Added::Delayed);
    script.not_before(30);
    for key in [2, 3, 1] {
        script.get(key);
    }
}

/// A key is ready at the end of its window, though nothing has looked before.
///
/// Source: requeue-core, Session::add_within
/// Needs: Slack, 2 keys
pub(crate) fn a_window_ends_at_its_deadline(script: &mut Script) {
    add_within(script, 1, 10, 60, Added::Delayed);
    script.add_after(2, 60, Added::Delayed);
    due_in(script, 1, 60);
    script.advance(60);
    script.len(2);
    script.get(1);
}

/// A key waits behind a closed window with an earlier deadline, until an operation names the key.
///
/// Source: docs/book/src/model.md, Slack
/// Needs: Slack, 2 keys
pub(crate) fn a_closed_window_hides_those_behind_it(script: &mut Script) {
    add_within(script, 1, 10, 60, Added::Delayed);
    script.add_after(2, 40, Added::Delayed);
    script.advance(20);
    script.nothing_to_get();
    script.add(1, Added::Coalesced);
    script.run(1);
    script.nothing_to_get();
    script.not_before(20);
    script.run(2);
}

/// Two windows of a key have the earlier beginning and the earlier end.
///
/// Source: docs/book/src/model.md, Slack
/// Needs: Slack
pub(crate) fn of_two_windows_both_earlier_ends_count(script: &mut Script) {
    add_within(script, 1, 30, 40, Added::Delayed);
    add_within(script, 1, 20, 90, Added::Coalesced);
    due_in(script, 1, 40);
    script.not_before(20);
    script.run(1);
    add_within(script, 1, 20, 90, Added::Delayed);
    script.add_after(1, 50, Added::Sooner);
    due_in(script, 1, 50);
    script.not_before(20);
    script.run(1);
}

/// With `Merge::Latest` the later beginning and the later end count.
///
/// Source: requeue-core, Merge
/// Needs: Slack
pub(crate) fn of_two_windows_both_later_ends_can_count(script: &mut Script) {
    let latest = |after, slack| AddOptions {
        after: Some(ms(after)),
        slack,
        merge: Merge::Latest,
        ..AddOptions::new()
    };
    add_within(script, 1, 10, 40, Added::Delayed);
    for (options, expected, due) in [
        (latest(20, 50), Added::Coalesced, 40),
        (latest(30, 100), Added::Later, 60),
    ] {
        let scheduled = script.subject.add_with(1, options);
        let scheduled = scheduled.map(|it| (it.added, it.delay));
        let delay = options.after.unwrap_or_default();
        assert_eq!(scheduled, Ok((expected, delay)), "a delay has no slack");
        due_in(script, 1, due);
    }
    script.not_before(30);
    script.run(1);
}

/// The end of a run with slack says how long the key waits at least.
///
/// Source: requeue-core, Action::with_slack
/// Needs: Slack
pub(crate) fn an_action_may_have_slack(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    let again = Action::RequeueAfter(ms(20)).with_slack(50);
    script.finish(ticket, again, Finished::Delayed(ms(20)));
    due_in(script, 1, 30);
    script.not_before(20);
    script.run(1);
}

/// After shutdown a window counts no more, and what is left counts to its end.
///
/// Source: docs/book/src/model.md, Slack
/// Needs: Slack, 2 keys
pub(crate) fn shutdown_closes_every_window(script: &mut Script) {
    script.add_after(1, 20, Added::Delayed);
    add_within(script, 2, 10, 50, Added::Delayed);
    script.advance(15);
    script.subject.shut_down();
    script.advance(10);
    script.closed();
    let left = std::iter::from_fn(|| script.subject.take_delayed());
    let left: Vec<_> = left.map(|left| (left.key, left.left)).collect();
    assert_eq!(left, [(1, ms(0)), (2, ms(25))]);
}
