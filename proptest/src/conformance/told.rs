//! A queue whose every call is written down, so that a case that fails can tell how it got there.

use std::cell::RefCell;
use std::fmt::{Debug, Write};
use std::time::Duration;

use requeue_core::{
    AddOptions, Added, AddedMany, Completion, Drained, Finished, Instant, Next, NotActive,
    Rejected, Wake,
};

use crate::Figures;
use crate::subject::{Handed, Key, Known, Left, Retried, Setup, Subject, Totals, Turn};

/// Does what `S` does, and writes it down.
pub(super) struct Told<S>(S);

/// Forgets what was written down on this thread.
pub(super) fn begin() {
    STORY.take();
}

/// What was written down on this thread, a line for each call.
pub(super) fn story() -> String {
    let mut story = String::new();
    for (index, line) in STORY.take().iter().enumerate() {
        // Writing to a string does not fail.
        let _ = writeln!(story, "{:3}. {line}", index + 1);
    }
    story
}

thread_local! {
    static STORY: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Makes a call, and writes it down with what it answers.
fn tell<T>(call: String, work: impl FnOnce() -> T, told: impl FnOnce(&T) -> String) -> T {
    // Before it is made, since it may panic.
    STORY.with_borrow_mut(|story| story.push(call));
    let answer = work();
    let told = told(&answer);
    STORY.with_borrow_mut(|story| {
        if let Some(line) = story.last_mut().filter(|_| !told.is_empty()) {
            line.push_str(": ");
            line.push_str(&told);
        }
    });
    answer
}

/// A call whose arguments and answer are told as they are.
macro_rules! told {
    ($self:ident.$call:ident($($argument:ident),*)) => {{
        let arguments: &[String] = &[$(format!("{:?}", $argument)),*];
        let call = format!("{}({})", stringify!($call), arguments.join(", "));
        tell(call, || $self.0.$call($($argument),*), debug)
    }};
}

fn debug(answer: &impl Debug) -> String {
    format!("{answer:?}")
}

fn nothing<T>(_: &T) -> String {
    String::new()
}

fn handed<T>(handed: &Option<Handed<T>>) -> String {
    handed
        .as_ref()
        .map_or_else(|| String::from("no key"), Handed::to_string)
}

fn next<T>(next: &Next<Handed<T>>) -> String {
    match next {
        Next::Work(handed) => handed.to_string(),
        Next::Wait { until } => debug(&Next::<()>::Wait { until: *until }),
        Next::Closed => debug(&Next::<()>::Closed),
    }
}

impl<S: Subject> Subject for Told<S> {
    type Ticket = S::Ticket;
    type Getter = S::Getter;
    type Drain = S::Drain;
    const GIVES_BACK: bool = S::GIVES_BACK;

    fn new(setup: &Setup) -> Self {
        let Setup {
            limiter,
            memories_max,
        } = setup;
        let mut call = format!("a new queue, limited by {limiter:?}");
        if *memories_max < usize::MAX {
            let _ = write!(call, ", with room for {memories_max} memories");
        }
        Self(tell(call, || S::new(setup), nothing))
    }

    fn capacity(&self) -> Option<usize> {
        self.0.capacity()
    }

    fn levels(&self) -> u8 {
        self.0.levels()
    }

    fn add(&mut self, key: Key) -> Result<Added, Rejected<Key>> {
        told!(self.add(key))
    }

    fn add_after(&mut self, key: Key, delay: Duration) -> Result<Added, Rejected<Key>> {
        told!(self.add_after(key, delay))
    }

    fn add_at(&mut self, key: Key, due: Instant) -> Result<Added, Rejected<Key>> {
        told!(self.add_at(key, due))
    }

    fn add_rate_limited(&mut self, key: Key) -> Result<Retried, Rejected<Key>> {
        told!(self.add_rate_limited(key))
    }

    fn add_with(&mut self, key: Key, options: AddOptions) -> Result<Retried, Rejected<Key>> {
        told!(self.add_with(key, options))
    }

    fn add_many(&mut self, keys: &[Key]) -> (AddedMany, Vec<Rejected<Key>>) {
        told!(self.add_many(keys))
    }

    fn forget(&mut self, key: Key) -> u32 {
        told!(self.forget(key))
    }

    fn try_get(&mut self) -> Option<Handed<Self::Ticket>> {
        tell(String::from("try_get()"), || self.0.try_get(), handed)
    }

    fn get(&mut self, getter: &mut Self::Getter) -> Next<Handed<Self::Ticket>> {
        tell(String::from("get()"), || self.0.get(getter), next)
    }

    fn get_many(
        &mut self,
        max: usize,
        getter: &mut Self::Getter,
    ) -> Next<Vec<Handed<Self::Ticket>>> {
        let call = format!("get_many({max})");
        tell(call, || self.0.get_many(max, getter), debug)
    }

    fn next(
        &mut self,
        ticket: Self::Ticket,
        completion: Completion,
        getter: &mut Self::Getter,
    ) -> Turn<Self::Ticket> {
        let call = format!("next({ticket:?}, {completion:?})");
        let told = |turn: &Turn<_>| format!("{:?}, {}", turn.0, next(&turn.1));
        tell(call, || self.0.next(ticket, completion, getter), told)
    }

    fn leave(&mut self, getter: &mut Self::Getter) {
        tell(String::from("leave()"), || self.0.leave(getter), nothing);
    }

    fn done_key(&mut self, key: Key) -> Result<(), NotActive> {
        told!(self.done_key(key))
    }

    fn done(&mut self, ticket: Self::Ticket) -> Result<(), NotActive> {
        told!(self.done(ticket))
    }

    fn complete_many(
        &mut self,
        tickets: Vec<Self::Ticket>,
        completion: Completion,
    ) -> Result<(), NotActive> {
        told!(self.complete_many(tickets, completion))
    }

    fn complete(
        &mut self,
        ticket: Self::Ticket,
        completion: Completion,
    ) -> Result<Finished, NotActive> {
        told!(self.complete(ticket, completion))
    }

    fn panic_at_work(&mut self) {
        let call = String::from("a worker takes the first ready key, and panics");
        tell(call, || self.0.panic_at_work(), nothing);
    }

    fn shut_down(&mut self) {
        tell(String::from("shut_down()"), || self.0.shut_down(), nothing);
    }

    fn begin_drain(&mut self) -> Self::Drain {
        tell(
            String::from("begin_drain()"),
            || self.0.begin_drain(),
            nothing,
        )
    }

    fn drained(&mut self, drain: &Self::Drain) -> Drained {
        tell(String::from("drained()"), || self.0.drained(drain), debug)
    }

    fn take_delayed(&mut self) -> Option<Left> {
        told!(self.take_delayed())
    }

    fn take_ready(&mut self) -> Option<Left> {
        told!(self.take_ready())
    }

    fn len(&mut self) -> usize {
        told!(self.len())
    }

    fn state(&mut self, key: Key) -> Option<Known> {
        told!(self.state(key))
    }

    fn contains(&mut self, key: Key) -> bool {
        told!(self.contains(key))
    }

    fn num_requeues(&mut self, key: Key) -> u32 {
        told!(self.num_requeues(key))
    }

    fn totals(&mut self) -> Totals {
        told!(self.totals())
    }

    fn shutting_down(&mut self) -> bool {
        told!(self.shutting_down())
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

    fn advance(&mut self, by: Duration) {
        let call = format!("advance({by:?})");
        tell(call, || self.0.advance(by), nothing);
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
