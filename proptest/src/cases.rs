//! The cases of the suite: each is one rule. The first line of its documentation comment says what
//! the rule is, the line `Source:` where it comes from, and the line `Needs:` which queues can keep
//! it: [`RULES`](crate::rules::RULES) is made of them. There is a file for each group.
//!
//! A case panics if its rule does not hold.

mod aging;
mod batches;
mod calls;
mod cancel;
mod cancelled_getters;
mod capacity;
mod client_go;
mod debounce;
mod dedup;
mod delay_order;
mod differences;
mod dirty_re_add;
mod drain;
mod drain_wakes;
mod earliest_wins;
mod expedite;
mod fifo;
mod forget;
mod groups;
mod holds;
mod leftovers;
mod limited_groups;
mod limiters;
mod lock;
mod merge;
mod panicking_worker;
mod pause;
mod pauses;
mod priorities;
mod reclaim;
mod restore;
mod room_wakes;
mod run_rate;
mod run_rates;
mod shutdown;
mod slack;
mod snapshot;
mod stale_tickets;
mod ties;
mod timed_getters;
mod timer_owner_hand_over;
mod wake_obligations;
mod watch_wakes;
mod why;

use std::fmt::Debug;
use std::time::Duration;

use requeue_core::binding::{Drained, Next};
use requeue_core::{Action, Added, Finished, Rejected};

use crate::histories::{CallScript, skipped};
use crate::limiter::LimiterSpec;
use crate::recorder::Recorder;
use crate::subject::{Configuration, Drain, Handed, Key, NewSubject, Operate, Subject, Ticket};

/// What is done to a queue.
pub(crate) enum Case {
    /// Steps that never wait.
    Steps(fn(&mut Script)),
    /// A history of calls that do.
    Waits(fn() -> CallScript),
}

/// The cases of [`RULES`](crate::rules::RULES), in the same order.
pub(crate) const CASES: &[Case] = include!(concat!(env!("OUT_DIR"), "/cases.rs"));

impl Case {
    /// Why the queue lacks calls that the case makes; `None` if it has them all.
    pub(crate) fn skipped(&self, new: NewSubject) -> Option<String> {
        match self {
            Self::Steps(_) => None,
            Self::Waits(script) => skipped(&script(), new),
        }
    }

    /// Tries the case on a new queue. Threads are waited for with this patience.
    ///
    /// # Panics
    ///
    /// If its rule does not hold.
    pub(crate) fn run(&self, new: NewSubject, patience: Duration) {
        match self {
            Self::Steps(case) => case(&mut Script {
                subject: Recorder::new(new, &setup()),
                new,
            }),
            Self::Waits(script) => script().play(new, patience),
        }
    }
}

/// A subject, and a vocabulary in which a case reads as a script. Time is in milliseconds.
pub(crate) struct Script {
    subject: Recorder,
    new: NewSubject,
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl Script {
    /// Begins again with a new queue.
    fn restart(&mut self) {
        self.renew(&setup());
    }

    /// Begins again with a queue that is made like this.
    fn renew(&mut self, setup: &Configuration) {
        self.subject = Recorder::new(self.new, setup);
    }

    /// Fills the queue with ready keys 1, 2 and so on, and returns a key that is new.
    fn fill(&mut self) -> Key {
        let capacity = self.capacity();
        for key in 1..=capacity {
            self.add(key, Added::Ready);
        }
        capacity + 1
    }

    /// How many keys there is room for, in a queue that does not grow.
    fn capacity(&self) -> Key {
        let capacity = self.subject.capacity();
        capacity.map_or(0, |capacity| {
            Key::try_from(capacity).unwrap_or(Key::MAX - 1)
        })
    }

    #[track_caller]
    fn add(&mut self, key: Key, expected: Added) {
        assert_eq!(self.subject.add(key), Ok(expected), "add {key}");
    }

    #[track_caller]
    fn add_after(&mut self, key: Key, millis: u64, expected: Added) {
        let added = self.subject.add_after(key, ms(millis));
        assert_eq!(added, Ok(expected), "add_after {key}, {millis} ms");
    }

    /// A failure of a key, and the milliseconds that it has to wait.
    #[track_caller]
    fn fail(&mut self, key: Key, expected: u64) {
        let retried = self.subject.add_rate_limited(key);
        let delay = retried.map(|retried| retried.delay);
        assert_eq!(delay, Ok(ms(expected)), "add_rate_limited {key}");
    }

    /// Takes the next key, which is `expected`.
    #[track_caller]
    fn get(&mut self, expected: Key) -> Ticket {
        let handed = self.subject.try_get();
        match handed {
            Some(Handed { key, ticket, .. }) if key == expected => ticket,
            other => unexpected(format!("key {expected}"), &other),
        }
    }

    /// A call that waits finds nothing, and goes.
    #[track_caller]
    fn nothing_to_get(&mut self) {
        let getter = 0;
        match self.subject.get(getter) {
            Next::Wait { .. } => self.subject.leave(getter),
            other => unexpected(String::from("a wait"), &other),
        }
    }

    /// A worker is sent home.
    #[track_caller]
    fn closed(&mut self) {
        let next = self.subject.get(0);
        if !matches!(next, Next::Closed) {
            unexpected(String::from("closed"), &next)
        }
    }

    #[track_caller]
    fn done(&mut self, key: Key) {
        let finished = self.subject.release_key(key);
        assert_ne!(finished, Finished::Stale, "done {key}");
    }

    #[track_caller]
    fn len(&mut self, expected: usize) {
        assert_eq!(self.subject.len(), expected, "len");
    }

    #[track_caller]
    fn failures(&mut self, key: Key, expected: u32) {
        assert_eq!(self.subject.failures(key), expected, "failures {key}");
    }

    /// The whole run of the next key.
    #[track_caller]
    fn run(&mut self, key: Key) {
        self.get(key);
        self.done(key);
    }

    #[track_caller]
    fn finish(&mut self, ticket: Ticket, action: Action, expected: Finished) {
        assert_eq!(self.subject.finish(ticket, action), expected, "{action:?}");
    }

    /// The run of the next key succeeds, after which nothing is left to do for it.
    #[track_caller]
    fn succeed(&mut self, key: Key) {
        let ticket = self.get(key);
        self.finish(ticket, Action::Success, Finished::Idle);
    }

    /// So much time passes, and until the last moment of it there is nothing to get.
    #[track_caller]
    fn not_before(&mut self, millis: u64) {
        self.advance(millis - 1);
        self.nothing_to_get();
        self.advance(1);
    }

    fn advance(&mut self, millis: u64) {
        self.subject.advance(ms(millis));
    }

    #[track_caller]
    fn drained(&mut self, drain: &Drain, expected: Drained) {
        assert_eq!(self.subject.drained(drain), expected, "drained");
    }

    #[track_caller]
    fn refused(&mut self, key: Key, expected: Rejected<Key>) {
        assert_eq!(self.subject.add(key), Err(expected), "add {key}");
    }
}

#[track_caller]
#[expect(clippy::panic, reason = "this is how a case fails")]
fn unexpected(expected: String, got: &impl Debug) -> ! {
    panic!("expected {expected}, got {got:?}")
}

/// A queue whose failed keys wait 1 ms, 2 ms and so on.
fn setup() -> Configuration {
    Configuration::new(LimiterSpec::Exponential {
        base_ns: 1_000_000,
        max_ns: 1_000_000_000,
    })
}

/// The same, which makes two due keys ready with each operation.
fn setup_with_backlog() -> Configuration {
    Configuration {
        due_keys_max: 2,
        ..setup()
    }
}
