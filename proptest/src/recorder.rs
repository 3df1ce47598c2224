//! A queue whose every call is written down, so that a case that fails can tell how it got there.

use std::cell::RefCell;
use std::fmt::Write;
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Wake;

use crate::Figures;
use crate::histories::write_timeline;
use crate::operation::{Answer, Operation};
use crate::subject::{Abilities, Configuration, NewSubject, PolicySpec, Subject};

/// Does what another subject does, checks its invariants, and writes it down.
pub(crate) struct Recorder(Box<dyn Subject>);

/// Forgets what was written down on this thread.
pub(crate) fn begin() {
    CALLS.take();
}

/// Returns what was written down on this thread, a line for each call.
pub(crate) fn timeline() -> String {
    let mut timeline = String::new();
    // Writing to a string does not fail.
    let _ = write_timeline(&mut timeline, &CALLS.take());
    timeline
}

thread_local! {
    static CALLS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Writes a call down, makes it, and adds what it returns.
fn record<T>(call: String, work: impl FnOnce() -> T, show: impl FnOnce(&T) -> String) -> T {
    // Before it is made, since it may panic.
    CALLS.with_borrow_mut(|calls| calls.push(call));
    let answer = work();
    let shown = show(&answer);
    CALLS.with_borrow_mut(|calls| {
        if let Some(line) = calls.last_mut().filter(|_| !shown.is_empty()) {
            line.push_str(": ");
            line.push_str(&shown);
        }
    });
    answer
}

impl Recorder {
    pub(crate) fn new(new: NewSubject, setup: &Configuration) -> Self {
        let Configuration {
            limiter,
            policy,
            max_keys,
            failure_records_max,
            due_keys_max,
            ..
        } = setup;
        let mut call = format!("a new queue, limited by {limiter:?}");
        if *policy != PolicySpec::default() {
            let _ = write!(call, ", under {policy:?}");
        }
        if *max_keys < usize::MAX {
            let _ = write!(call, ", with room for {max_keys} keys");
        }
        if *failure_records_max < usize::MAX {
            let _ = write!(call, ", with room for {failure_records_max} records");
        }
        if *due_keys_max < Configuration::exponential().due_keys_max {
            let _ = write!(call, ", that releases {due_keys_max} at once");
        }
        Self(record(call, || new(setup), |_| String::new()))
    }
}

impl Subject for Recorder {
    fn new(setup: &Configuration) -> Self {
        Self::new(crate::subject::boxed::<crate::Model>, setup)
    }

    fn capacity(&self) -> Option<usize> {
        self.0.capacity()
    }

    fn apply(&mut self, operation: &Operation) -> Answer {
        let what = match operation {
            Operation::PanicAtWork => {
                String::from("a worker takes the first ready key, and panics")
            }
            Operation::PanicUnderLock => String::from("a panic while the lock is held"),
            operation => format!("{operation:?}"),
        };
        let show = |answer: &Answer| match answer {
            Answer::Done => String::new(),
            _ if matches!(
                operation,
                Operation::PanicAtWork | Operation::PanicUnderLock
            ) =>
            {
                String::new()
            }
            answer => answer.to_string(),
        };
        let apply = || {
            let answer = self.0.apply(operation);
            // A case looks itself at what a panic has left.
            if *operation != Operation::PanicUnderLock {
                self.0.assert_valid();
            }
            answer
        };
        record(what, apply, show)
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn figures(&mut self) -> Option<Figures> {
        self.0.figures()
    }

    fn advance(&mut self, by: Duration) {
        let call = format!("{:?}", Operation::Advance(by));
        record(call, || self.0.advance(by), |()| String::new());
    }

    fn now(&self) -> Instant {
        self.0.now()
    }

    fn asleep(&mut self) -> Option<usize> {
        self.0.asleep()
    }

    fn wakes(&mut self) -> Option<Wake> {
        self.0.wakes()
    }

    fn assert_valid(&mut self) {
        self.0.assert_valid();
    }
}
