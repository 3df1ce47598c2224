//! Which rule is broken where calls answer otherwise than the model says.

use requeue_core::{Drained, Instant};

use super::Step;
use super::judge::{End, Fault, Outstanding};
use super::pair::Pair;
use crate::rules::Rule;
use crate::subject::{Answer, CallId, Handed, Key, Known, Subject, Totals};

/// What has happened that could have been taken badly.
#[derive(Debug, Default)]
pub(super) struct Since {
    /// Since everything settled last: a call was cancelled.
    was_cancelled: bool,
    /// Since everything settled last: keys became ready otherwise than by the passing of time.
    was_added: bool,
    /// A call was cancelled.
    ever_cancelled: bool,
    /// A key's deadline has moved forward.
    moved_forward: bool,
    /// A deadline was set before all others.
    came_before: bool,
    /// A call has ended without a key.
    pub(super) gave_up: bool,
    /// Keys that calls were to complete which were dropped before they ran.
    pub(super) dropped_unrun: Vec<Key>,
}

impl Since {
    pub(super) fn cancelled(&mut self) {
        self.was_cancelled = true;
        self.ever_cancelled = true;
    }

    pub(super) fn settled(&mut self) {
        self.was_cancelled = false;
        self.was_added = false;
    }

    pub(super) fn operation(
        &mut self,
        step: &Step,
        before: Totals,
        after: Totals,
        became_ready: bool,
    ) {
        if step.passes_time() {
            return;
        }
        self.was_added |= became_ready;
        let is_before =
            |earlier: Instant, later: Option<Instant>| later.is_some_and(|later| earlier < later);
        if after
            .next_deadline
            .is_some_and(|due| is_before(due, before.next_deadline))
        {
            if after.delayed == before.delayed {
                self.moved_forward = true;
            } else {
                self.came_before = true;
            }
        }
    }

    /// The rule that is broken if things do not look as they should in the end.
    pub(super) fn blame_for_a_sight(&self) -> Option<&'static Rule> {
        let name = "a_place_is_given_back";
        self.ever_cancelled
            .then(|| Rule::named("cancelled_getters", name))
    }

    /// The rule that is broken if a key is ready and a getter sleeps.
    fn blame_for_a_key(&self, served: bool) -> &'static Rule {
        let cancelled = |name| Rule::named("cancelled_getters", name);
        let keeper = |name| Rule::named("timer_owner_hand_over", name);
        let wakes = |name| Rule::named("wake_obligations", name);
        if self.was_cancelled && self.was_added {
            cancelled("a_woken_getter_passes_the_wake_on")
        } else if served {
            wakes("a_getter_that_is_served_wakes_the_next")
        } else if self.was_added {
            wakes("a_ready_key_wakes_a_getter")
        } else if self.moved_forward {
            keeper("a_deadline_that_moves_forward_is_watched")
        } else if self.came_before {
            keeper("a_deadline_before_the_watched_one_is_watched")
        } else if self.ever_cancelled {
            cancelled("a_cancelled_timer_owner_hands_the_timer_over")
        } else if self.gave_up {
            keeper("a_timer_owner_that_times_out_hands_the_timer_over")
        } else {
            keeper("a_deadline_wakes_a_getter")
        }
    }
}

/// The rule of calls that were to complete a key and were dropped.
pub(super) fn leak() -> &'static Rule {
    let name = "a_run_that_was_declared_over_is_completed";
    Rule::named("cancelled_getters", name)
}

impl Pair {
    /// The rule that is broken if a key is still active that a call was to complete.
    pub(super) fn blame_for_a_leak(&mut self) -> Option<&'static Rule> {
        let Self {
            subject,
            model,
            since,
            ..
        } = self;
        let leaks = |key: &Key| {
            let is_active = |known: Option<Known>| known.is_some_and(|known| known.active);
            is_active(subject.state(*key)) && !is_active(model.state(*key))
        };
        since.dropped_unrun.iter().any(leaks).then(leak)
    }

    /// A key is ready, and a getter that should have got it has not.
    pub(super) fn missing_key(
        &self,
        missing: &Handed,
        empty_handed: &[Outstanding],
        served: bool,
    ) -> Fault {
        let answer = |call: &Outstanding| self.answers.get(&call.id);
        let ended = empty_handed
            .iter()
            .find_map(|call| answer(call).map(|answer| (call.id, answer)));
        let asleep = empty_handed.iter().find(|call| answer(call).is_none());
        let should = format!("should have answered key {}", missing.key);
        let wrong = match (asleep, ended) {
            (Some(call), _) => format!("call #{} {should}, and it sleeps on", call.id),
            (None, Some((id, answer))) => format!("call #{id} {should}, and it answers {answer:?}"),
            (None, None) => format!("a call {should}"),
        };
        let rule = match ended {
            Some((_, Answer::TimedOut)) if asleep.is_none() => Rule::named(
                "timed_getters",
                "a_key_that_comes_in_the_last_moment_is_handed_out",
            ),
            Some(_) if asleep.is_none() => Rule::named(
                "wake_obligations",
                "what_is_ready_is_handed_out_before_calls_end",
            ),
            _ => self.since.blame_for_a_key(served),
        };
        Fault {
            wrong,
            rule,
            may_come: asleep.is_some(),
        }
    }

    /// A call has a key that it should not have.
    pub(super) fn unexpected_key(&self, id: CallId, got: &Handed) -> Fault {
        let key = got.key;
        let twice = Rule::named(
            "dirty_re_add",
            "an_active_key_is_handed_out_to_no_other_call",
        );
        let fifo = "keys_come_out_in_the_order_in_which_they_became_ready";
        let has_it_too = |(other, answer): (&CallId, &Answer)| match answer {
            Answer::Work(handed) if handed.key == key && *other != id => Some(*other),
            _ => None,
        };
        let known = self.model.clone().state(key);
        let (wrong, rule) = match self.answers.iter().find_map(has_it_too) {
            Some(other) => (
                format!("call #{other} has key {key}, and call #{id} too"),
                twice,
            ),
            None if known.is_some_and(|known| known.active) => {
                (format!("call #{id} has key {key}, which is active"), twice)
            }
            None => {
                let wrong = format!("call #{id} has {got}, which is not to be handed out");
                (wrong, Rule::named("fifo", fifo))
            }
        };
        Fault {
            wrong,
            rule,
            may_come: false,
        }
    }

    /// A call has not ended as it should have, or has ended.
    pub(super) fn wrong_end(
        &self,
        id: CallId,
        expected: Option<End>,
        answer: Option<&Answer>,
    ) -> Fault {
        let wrong = match (expected, answer) {
            (Some(end), None) => format!("call #{id} should have ended: {end:?}, and it sleeps on"),
            (Some(end), Some(answer)) => {
                format!("call #{id} should have ended: {end:?}, and it answers {answer:?}")
            }
            (None, Some(answer)) => format!("call #{id} should wait, and it answers {answer:?}"),
            (None, None) => format!("call #{id}"),
        };
        let rule = match (expected, answer) {
            (_, Some(Answer::Refused)) => Rule::named("cancelled_getters", "a_place_is_given_back"),
            (Some(End::Closed), _) | (None, Some(Answer::Closed)) => {
                Rule::named("wake_obligations", "shutting_down_wakes_every_call")
            }
            (Some(End::TimedOut | End::TimedOutOrClosed), _) | (None, Some(Answer::TimedOut)) => {
                Rule::named(
                    "timed_getters",
                    "a_getter_gives_up_at_its_time_and_not_before",
                )
            }
            (Some(End::Drained(Drained::Interrupted)), _) => {
                Rule::named("drain_wakes", "shutting_down_ends_the_wait_for_the_drain")
            }
            (Some(End::Drained(Drained::Pending)), _) => {
                Rule::named("drain_wakes", "a_drain_that_takes_too_long_is_given_up")
            }
            (Some(End::Refused), _) => Rule::named(
                "wake_obligations",
                "a_call_that_finds_no_place_harms_no_other",
            ),
            (Some(End::Added(_)), _) | (None, Some(Answer::Added(_))) => {
                Rule::named("room_wakes", "a_place_that_becomes_free_wakes_one_waiter")
            }
            (Some(End::Cancelled(_)), _) | (None, Some(Answer::Cancelled(_))) => Rule::named(
                "watch_wakes",
                "a_cancelled_key_is_waited_for_until_its_run_has_ended",
            ),
            (Some(End::Done), _) | (None, Some(Answer::Done)) => {
                Rule::named("watch_wakes", "the_end_of_the_last_run_wakes_every_waiter")
            }
            _ => Rule::named("drain_wakes", "the_last_active_key_ends_the_drain"),
        };
        Fault {
            wrong,
            rule,
            may_come: expected.is_some() && answer.is_none(),
        }
    }

    /// Not every call comes to rest.
    pub(super) fn no_rest(&self) -> Fault {
        let deadline = self.model.clone().totals().next_deadline;
        let deadline = deadline.map_or(String::new(), |due| format!(", and a key is due at {due}"));
        Fault {
            wrong: format!(
                "a call with nothing to do does not sleep, or none watches the clock{deadline}"
            ),
            rule: self.since.blame_for_a_key(false),
            may_come: true,
        }
    }
}
