use requeue_core::{Action, Added, Finished};

use super::{Script, ms};
use crate::subject::{Operate, Subject};

/// Takes key 1, and ends its run with a poll from 1 ms to 5 ms. Returns what became of it.
#[track_caller]
fn poll(script: &mut Script) -> Finished {
    let ticket = script.get(1);
    script.subject.finish(ticket, Action::poll(ms(1), ms(5)))
}

/// Each pause that ends by itself is followed by one twice as long, and no failure is counted.
///
/// Source: requeue-core, Action::poll
/// Needs: Suspensions
pub(crate) fn pauses_double_while_nothing_changes(script: &mut Script) {
    script.add(1, Added::Ready);
    for pause in [1, 2, 4, 5, 5] {
        assert_eq!(poll(script), Finished::Delayed(ms(pause)));
        script.not_before(pause);
        script.failures(1, 0);
    }
    // The key is ready already, so the add changes nothing.
    script.add(1, Added::Coalesced);
    assert_eq!(poll(script), Finished::Delayed(ms(5)));
}

/// The first pause follows a run that began for another reason than the end of a pause.
///
/// Source: requeue-core, Action::poll
/// Needs: Suspensions
pub(crate) fn what_cuts_a_pause_short_starts_them_again(script: &mut Script) {
    let cuts: [fn(&mut Script); 3] = [
        |script| script.add(1, Added::Ready),
        |script| assert!(script.subject.expedite(1)),
        |script| {
            script.add_after(1, 1, Added::Sooner);
            script.advance(1);
        },
    ];
    script.add(1, Added::Ready);
    for cut in cuts {
        assert_eq!(poll(script), Finished::Delayed(ms(1)));
        script.advance(1);
        assert_eq!(poll(script), Finished::Delayed(ms(2)));
        cut(script);
    }
    let ticket = script.get(1);
    let again = script.subject.finish(ticket, Action::Snooze(ms(1)));
    assert_eq!(again, Finished::Delayed(ms(1)));
    script.advance(1);
    assert_eq!(poll(script), Finished::Delayed(ms(1)), "it did not poll");
}

/// A key whose pause has not ended is left over, with the time that is left.
///
/// Source: requeue-core, Action::poll
pub(crate) fn a_key_that_polls_is_a_leftover(script: &mut Script) {
    script.add(1, Added::Ready);
    let ticket = script.get(1);
    script.subject.shut_down();
    script.finish(
        ticket,
        Action::poll(ms(3), ms(5)),
        Finished::Leftover(ms(3)),
    );
    script.advance(1);
    assert_eq!(
        script.subject.take_delayed().map(|left| left.left),
        Some(ms(2))
    );
}

/// A success is timed from the first add, through retries and pauses, and its failures are counted.
///
/// Source: requeue-core, Metrics::time_to_success
pub(crate) fn a_success_is_timed_from_the_first_add(script: &mut Script) {
    let before = script.subject.figures();
    script.add(1, Added::Ready);
    script.advance(5);
    let _ = poll(script);
    script.advance(1);
    let ticket = script.get(1);
    let Finished::Delayed(backoff) = script.subject.finish(ticket, Action::Retry) else {
        unreachable!("a retry is delayed");
    };
    script.subject.advance(backoff);
    let ticket = script.get(1);
    script.advance(2);
    script.subject.finish(ticket, Action::Success);
    if let (Some(_), Some(figures)) = (before, script.subject.figures()) {
        assert_eq!(figures.times_to_success, [ms(8) + backoff]);
        assert_eq!(figures.attempts_at_success, [2]);
    }
}
