//! Which rule is broken where a queue and the model part.

use requeue_core::Action;

use super::Step;
use crate::rules::Rule;

/// The rule that an operation is mostly about, where it goes wrong like this.
pub(super) fn of_an_operation(op: &Step, wrong: &str) -> Option<&'static Rule> {
    if let Some(rule) = of_what_is_seen(wrong) {
        return Some(rule);
    }
    Some(match op {
        Step::Add(_) | Step::AddMany(_) => Rule::named(
            "dirty_re_add",
            "an_active_key_is_handed_out_to_no_other_call",
        ),
        Step::AddDisplacing(..) => Rule::named(
            "priorities",
            "a_key_of_the_lowest_level_makes_way_for_a_higher_one",
        ),
        Step::AddAfter(..) | Step::AddAt(..) => {
            Rule::named("earliest_wins", "the_earlier_deadline_counts")
        }
        Step::AddDebounced(..) => Rule::named("debounce", "each_add_of_a_burst_moves_its_deadline"),
        Step::AddRateLimited(_) => {
            Rule::named("limiters", "each_failure_of_a_key_doubles_its_delay")
        }
        Step::Forget(_) => Rule::named("forget", "a_key_that_is_forgotten_starts_again"),
        Step::TryGet | Step::Get | Step::GetMany(_) | Step::LookAgain(_) => Rule::named(
            "fifo",
            "keys_come_out_in_the_order_in_which_they_became_ready",
        ),
        Step::DoneKey(_) | Step::Done(_) => of_a_completion(Action::Release),
        Step::Complete(_, how) | Step::CompleteMany(_, how) | Step::Next(_, how) => {
            of_a_completion(*how)
        }
        Step::CancelKey(_) => Rule::named("cancel", "a_key_that_is_cancelled_is_not_handed_out"),
        Step::CancelDelay(_) => Rule::named("cancel", "a_deadline_that_is_cancelled_never_comes"),
        Step::RetainBelow(_) => Rule::named("cancel", "many_keys_are_cancelled_together"),
        Step::Expedite(_) => Rule::named("expedite", "a_key_whose_delay_is_ended_is_ready"),
        Step::Snapshot => Rule::named("snapshot", "each_key_is_seen_once_as_it_is"),
        Step::Restore(_) => Rule::named("restore", "what_was_left_goes_on_as_it_was"),
        Step::ExpediteAll => Rule::named("expedite", "all_delays_end_in_their_order"),
        Step::Pause | Step::Resume => Rule::named(
            "pause",
            "a_paused_queue_hands_out_nothing_and_loses_nothing",
        ),
        Step::AgeAfter(_) => Rule::named("aging", "a_key_that_has_waited_too_long_comes_first"),
        Step::Order(_) => Rule::named("groups", "a_limit_can_be_changed_while_keys_wait"),
        Step::PanicAtWork => Rule::named("panicking_worker", "its_key_comes_back_as_failed"),
        Step::TakeDelayed | Step::TakeReady => {
            Rule::named("leftovers", "nothing_that_was_not_worked_on_is_lost")
        }
        Step::ShutDown | Step::BeginDrain => {
            Rule::named("shutdown", "keys_that_are_ready_are_still_handed_out")
        }
        _ => return None,
    })
}

/// What tells more than the operation that was done.
fn of_what_is_seen(wrong: &str) -> Option<&'static Rule> {
    let (group, name) = if wrong.contains("NotActive") {
        ("stale_tickets", "a_run_is_completed_once")
    } else if wrong.contains("drained: expected Complete") {
        ("drain", "a_queue_with_nothing_to_do_has_drained")
    } else if wrong.contains(": len: ") {
        ("client_go", "len")
    } else {
        return None;
    };
    Some(Rule::named(group, name))
}

fn of_a_completion(how: Action) -> &'static Rule {
    match how {
        Action::Success | Action::RequeueAfter(_) => {
            Rule::named("forget", "a_run_that_succeeded_forgets")
        }
        Action::Retry => Rule::named("limiters", "a_run_that_failed_is_charged"),
        Action::RetryAfter(_) => Rule::named("limiters", "a_run_that_is_put_off_is_not_charged"),
        _ => Rule::named("dirty_re_add", "a_key_added_while_active_comes_back_once"),
    }
}

/// The rule of those who sleep.
pub(super) fn of_a_wake() -> Option<&'static Rule> {
    let name = "a_ready_key_wakes_a_getter";
    Some(Rule::named("wake_obligations", name))
}
