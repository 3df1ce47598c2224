//! The scripts of the suite: each is one rule, of which [`conformance`](crate::conformance) says
//! what it is and where it comes from. There is a file for each group.
//!
//! A script panics if its rule does not hold, or its call by call history does.

pub(crate) mod batches;
mod calls;
pub(crate) mod cancelled_getters;
pub(crate) mod capacity;
pub(crate) mod client_go;
pub(crate) mod dedup;
pub(crate) mod delay_order;
pub(crate) mod differences;
pub(crate) mod dirty_re_add;
pub(crate) mod drain;
pub(crate) mod drain_wakes;
pub(crate) mod earliest_wins;
pub(crate) mod fifo;
pub(crate) mod forget;
pub(crate) mod leftovers;
pub(crate) mod limiters;
pub(crate) mod panicking_worker;
pub(crate) mod priorities;
pub(crate) mod reclaim;
pub(crate) mod shutdown;
pub(crate) mod stale_tickets;
pub(crate) mod ties;
pub(crate) mod timed_getters;
pub(crate) mod timekeeper_hand_over;
pub(crate) mod wake_obligations;

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::{Added, Drained, Next, Rejected};

use crate::conformance::not_tried;
use crate::subject::{Handed, Key, Setup, Subject};

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

/// A queue that is full of ready keys 1, 2 and so on, and a key that is new; nothing if the queue
/// grows.
fn full<S: Subject>() -> Option<(Script<S>, Key)> {
    let mut script = Script::<S>::new();
    let capacity = Key::try_from(capacity(&script)?).ok()?;
    for key in 1..=capacity {
        script.add(key, Added::Ready);
    }
    Some((script, capacity + 1))
}

/// How much room there is; nothing if the queue grows.
fn capacity<S: Subject>(script: &Script<S>) -> Option<usize> {
    let capacity = script.subject.capacity();
    if capacity.is_none() {
        not_tried("the queue has no capacity");
    }
    capacity
}

/// Whether a key comes back whose worker panics.
fn gives_back<S: Subject>() -> bool {
    if !S::GIVES_BACK {
        not_tried("the queue does not give keys back with which a worker panics");
    }
    S::GIVES_BACK
}
