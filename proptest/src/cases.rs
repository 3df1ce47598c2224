//! Scripted cases: each is one rule, on any [`Subject`].
//!
//! - [`client_go`]: client-go's own test cases, under their names.
//! - [`differences`]: where requeue differs from client-go on purpose.
//!
//! A case panics if its rule does not hold. [`for_each_case!`](crate::for_each_case) names them
//! all.

pub mod client_go;
pub mod differences;

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::{Added, Drained, Next, Rejected};

use crate::subject::{Handed, Key, Setup, Subject};

/// Calls a macro with the path of every case, in groups of one module each.
///
/// # Examples
///
/// ```
/// use requeue_core::Growable;
/// use requeue_proptest::for_each_case;
/// use requeue_proptest::subject::Direct;
///
/// macro_rules! run {
///     ($($module:ident { $($case:ident)+ })+) => {
///         $($(requeue_proptest::cases::$module::$case::<Direct<Growable>>();)+)+
///     };
/// }
/// for_each_case!(run);
/// ```
#[macro_export]
macro_rules! for_each_case {
    ($call:ident) => {
        $call! {
            client_go {
                basic
                add_while_processing
                len
                reinsert
                collapse
                collapse_while_processing
                queue_drainage_using_shut_down_with_drain
                no_queue_drainage_using_shut_down
                force_queue_shutdown_using_shut_down
                queue_drainage_using_shut_down_with_drain_with_dirty_item
                garbage_collection
                simple_queue
                deduping
                add_two_fire_early
                copy_shifting
                rate_limiting_queue
            }
            differences {
                drain_waits_for_ready_keys
                drain_waits_for_dirty_keys
                every_drainer_is_woken
                shut_down_interrupts_drain
                done_of_inactive_key_is_an_error
                done_of_a_queued_key_does_not_queue_it_twice
                done_with_a_stale_ticket_is_an_error
                add_after_shutdown_is_an_error
                limiter_not_charged_after_shutdown
                delayed_keys_are_handed_back_after_shutdown
                ready_keys_can_be_taken_back_after_shutdown
                a_retry_after_shutdown_is_kept_among_the_delayed
                delays_saturate
                duration_max_is_never
                equal_deadlines_leave_in_insertion_order
                a_full_queue_hands_the_key_back
                a_key_that_is_held_is_never_refused
                the_oldest_memory_of_failures_makes_room
                memories_of_failures_can_be_limited
            }
        }
    };
}

/// A subject, and a vocabulary in which a case reads as a script. Time is in milliseconds.
struct Script<S: Subject> {
    subject: S,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl<S: Subject> Script<S> {
    fn new() -> Self {
        let limiter = crate::trace::limiter::LimiterSpec::Exponential {
            base_ns: 1_000_000,
            max_ns: 1_000_000_000,
        };
        Self::with(&Setup::new(limiter))
    }

    fn with(setup: &Setup) -> Self {
        Self {
            subject: S::new(setup),
        }
    }

    #[track_caller]
    fn add(&mut self, key: Key, expected: Added) {
        assert_eq!(self.subject.add(key), Ok(expected), "add {key}");
        self.subject.assert_valid();
    }

    #[track_caller]
    fn add_after(&mut self, key: Key, millis: u64, expected: Added) {
        let added = self.subject.add_after(key, ms(millis));
        assert_eq!(added, Ok(expected), "add_after {key}, {millis} ms");
        self.subject.assert_valid();
    }

    /// A failure of a key, and the milliseconds that it has to wait.
    #[track_caller]
    fn fail(&mut self, key: Key, expected: u64) {
        let retried = self.subject.add_rate_limited(key);
        let delay = retried.map(|retried| retried.delay);
        assert_eq!(delay, Ok(ms(expected)), "add_rate_limited {key}");
        self.subject.assert_valid();
    }

    /// Takes the next key, which is `expected`.
    #[track_caller]
    fn get(&mut self, expected: Key) -> S::Ticket {
        let handed = self.subject.try_get();
        self.subject.assert_valid();
        match handed {
            Some(Handed { key, ticket, .. }) if key == expected => ticket,
            other => unexpected(format!("key {expected}"), &other),
        }
    }

    /// A call that waits finds nothing, and goes.
    #[track_caller]
    fn nothing_to_get(&mut self) {
        let mut getter = S::Getter::default();
        match self.subject.get(&mut getter) {
            Next::Wait { .. } => self.subject.leave(&mut getter),
            other => unexpected(String::from("a wait"), &other),
        }
        self.subject.assert_valid();
    }

    /// A worker is sent home.
    #[track_caller]
    fn closed(&mut self) {
        let next = self.subject.get(&mut S::Getter::default());
        if !matches!(next, Next::Closed) {
            unexpected(String::from("closed"), &next)
        }
        self.subject.assert_valid();
    }

    #[track_caller]
    fn done(&mut self, key: Key) {
        assert_eq!(self.subject.done_key(key), Ok(()), "done {key}");
        self.subject.assert_valid();
    }

    #[track_caller]
    fn len(&mut self, expected: usize) {
        assert_eq!(self.subject.len(), expected, "len");
        self.subject.assert_valid();
    }

    #[track_caller]
    fn requeues(&mut self, key: Key, expected: u32) {
        assert_eq!(
            self.subject.num_requeues(key),
            expected,
            "num_requeues {key}"
        );
    }

    fn advance(&mut self, millis: u64) {
        self.subject.advance(ms(millis));
    }

    #[track_caller]
    fn drained(&mut self, drain: &S::Drain, expected: Drained) {
        assert_eq!(self.subject.drained(drain), expected, "drained");
    }

    #[track_caller]
    fn refused(&mut self, key: Key, expected: Rejected<Key>) {
        assert_eq!(self.subject.add(key), Err(expected), "add {key}");
        self.subject.assert_valid();
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "this is how a case fails")]
fn unexpected(expected: String, got: &impl Debug) -> ! {
    panic!("expected {expected}, got {got:?}")
}
