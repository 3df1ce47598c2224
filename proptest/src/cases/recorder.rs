//! A queue whose every call is written down, so that a case that fails can tell how it got there.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::time::Duration;

use requeue_core::binding::{Getter, Next, Wake};
use requeue_core::{
    Action, AddOptions, Added, AddedMany, Drained, Finished, Instant, Rejected, Stats, Why,
};

use crate::Figures;
use crate::histories::write_timeline;
use crate::subject::{
    Abilities, Configuration, Displaced, Drain, GroupFigures, GroupOrder, Handed, Key, Known, Left,
    NewSubject, PolicySpec, Scheduled, Subject, Ticket, Turn,
};

/// Does what another subject does, and writes it down.
pub(super) struct Recorder(Box<dyn Subject>);

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

/// Makes a call, and writes it down with what it returns.
fn record<T>(call: String, work: impl FnOnce() -> T, show: fn(&T) -> String) -> T {
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

/// The methods of [`Subject`] that are written down, with their arguments and with what they answer
/// as this function shows it.
macro_rules! record {
    ($($show:ident: $name:ident($($argument:ident: $type:ty),*) $(-> $answer:ty)?;)+) => {
        $(fn $name(&mut self, $($argument: $type),*) $(-> $answer)? {
            let arguments: &[String] = &[$(format!("{:?}", $argument)),*];
            let call = format!("{}({})", stringify!($name), arguments.join(", "));
            record(call, || self.0.$name($($argument),*), $show)
        })+
    };
}

fn debug<T: Debug>(answer: &T) -> String {
    format!("{answer:?}")
}

fn nothing<T>(_: &T) -> String {
    String::new()
}

fn handed(handed: &Option<Handed>) -> String {
    let handed = handed.as_ref();
    handed.map_or_else(|| String::from("no key"), Handed::to_string)
}

fn next(next: &Next<Handed>) -> String {
    match next {
        Next::Work(handed) => handed.to_string(),
        Next::Wait { until } => debug(&Next::<()>::Wait { until: *until }),
        Next::Closed => debug(&Next::<()>::Closed),
    }
}

impl Recorder {
    pub(super) fn new(new: NewSubject, setup: &Configuration) -> Self {
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
    record! {
        debug: add(key: Key) -> Result<Added, Rejected<Key>>;
        debug: add_after(key: Key, delay: Duration) -> Result<Added, Rejected<Key>>;
        debug: add_at(key: Key, due: Instant) -> Result<Added, Rejected<Key>>;
        debug: add_rate_limited(key: Key) -> Result<Scheduled, Rejected<Key>>;
        debug: add_with(key: Key, options: AddOptions) -> Result<Scheduled, Rejected<Key>>;
        debug: add_displacing(key: Key, options: AddOptions) -> Displaced;
        debug: add_debounced(
            key: Key,
            quiet: Duration,
            max: Duration
        ) -> Result<Added, Rejected<Key>>;
        debug: add_many(keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>);
        debug: forget(key: Key) -> u32;
        debug: cancel_key(key: Key) -> Option<Known>;
        debug: cancel_delay(key: Key) -> Option<Instant>;
        debug: expedite(key: Key) -> bool;
        nothing: expedite_all();
        debug: retain_below(key: Key) -> usize;
        debug: restore(left: Left) -> Result<Added, Rejected<Left>>;
        nothing: pause();
        nothing: unpause();
        debug: suspend(key: Key, timeout: Duration) -> bool;
        debug: resume(key: Key) -> bool;
        debug: is_paused() -> bool;
        debug: is_idle() -> bool;
        debug: is_settled() -> bool;
        nothing: order(order: &GroupOrder);
        debug: group(group: u8) -> Option<GroupFigures>;
        nothing: limit_keys(keys: usize);
        nothing: age_after(after: Option<Duration>);
        handed: try_get() -> Option<Handed>;
        next: get(getter: &mut Getter) -> Next<Handed>;
        debug: get_many(max: usize, getter: &mut Getter) -> Next<Vec<Handed>>;
        debug: next(ticket: Ticket, action: Action, getter: &mut Getter) -> Turn;
        nothing: leave(getter: &mut Getter);
        debug: release_key(key: Key) -> Finished;
        debug: release(ticket: Ticket) -> Finished;
        debug: finish_many(tickets: Vec<Ticket>, how: Action) -> usize;
        debug: finish(ticket: Ticket, how: Action) -> Finished;
        nothing: shut_down();
        debug: begin_drain() -> Drain;
        debug: drained(drain: &Drain) -> Drained;
        debug: take_delayed() -> Option<Left>;
        debug: take_ready() -> Option<Left>;
        debug: len() -> usize;
        debug: snapshot() -> Vec<(Key, Known)>;
        debug: state(key: Key) -> Option<Known>;
        debug: contains(key: Key) -> bool;
        debug: failures(key: Key) -> u32;
        debug: why(key: Key) -> Why;
        debug: stats() -> Stats;
        debug: is_shutting_down() -> bool;
        nothing: advance(by: Duration);
    }

    fn new(setup: &Configuration) -> Self {
        Self::new(crate::subject::boxed::<crate::Model>, setup)
    }

    fn capacity(&self) -> Option<usize> {
        self.0.capacity()
    }

    fn levels(&self) -> u8 {
        self.0.levels()
    }

    fn abilities(&self) -> Abilities {
        self.0.abilities()
    }

    fn panic_at_work(&mut self) -> bool {
        let call = String::from("a worker takes the first ready key, and panics");
        record(call, || self.0.panic_at_work(), nothing)
    }

    fn panic_under_lock(&mut self) -> bool {
        let call = String::from("a panic while the lock is held");
        record(call, || self.0.panic_under_lock(), nothing)
    }

    fn report_running(&mut self) {
        self.0.report_running();
    }

    fn figures(&mut self) -> Option<Figures> {
        self.0.figures()
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
