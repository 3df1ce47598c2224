//! Whether calls that overlap can be put in an order.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

use std::collections::VecDeque;

use requeue_linear::{CallId, Failure, Recorder, Specification, check};

const STATES_MAX: usize = 10_000;

#[derive(Clone, Debug)]
enum Request {
    Put(u8),
    Take,
}

/// A register: `Take` reads.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Register(u8);

impl Specification for Register {
    type Request = Request;
    type Response = u8;

    fn step(&mut self, request: &Request, response: Option<&u8>) -> bool {
        if let Request::Put(value) = *request {
            self.0 = value;
        }
        response.is_none_or(|response| *response == self.0)
    }
}

/// A queue that returns zero if it is empty.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Fifo(VecDeque<u8>);

impl Specification for Fifo {
    type Request = Request;
    type Response = u8;

    fn step(&mut self, request: &Request, response: Option<&u8>) -> bool {
        let expected = match *request {
            Request::Put(value) => {
                self.0.push_back(value);
                value
            }
            Request::Take => self.0.pop_front().unwrap_or(0),
        };
        response.is_none_or(|response| *response == expected)
    }
}

/// A history in the making: each line of a test is an event.
struct Events(Recorder<Request, u8>);

impl Events {
    fn new() -> Self {
        Self(Recorder::new(3))
    }

    fn put(&self, thread: usize, value: u8) -> impl FnOnce() {
        let call = self.0.call(thread, Request::Put(value));
        move || self.0.returned(call, value)
    }

    fn take(&self, thread: usize) -> impl FnOnce(u8) {
        let call = self.0.call(thread, Request::Take);
        move |value| self.0.returned(call, value)
    }

    fn register(&self) -> Result<Vec<CallId>, Failure> {
        check(&Register(0), &self.0.history(), STATES_MAX)
    }

    fn fifo(&self) -> Result<Vec<CallId>, Failure> {
        check(&Fifo(VecDeque::new()), &self.0.history(), STATES_MAX)
    }
}

fn chart(outcome: Result<Vec<CallId>, Failure>) -> String {
    match outcome {
        Err(Failure::Inexplicable(chart)) => chart,
        other => panic!("expected no explanation, got {other:?}"),
    }
}

#[test]
fn a_read_that_overlaps_a_write_may_see_it_or_not() {
    for seen in [0, 7] {
        let events = Events::new();
        let put = events.put(0, 7);
        events.take(1)(seen);
        put();
        assert!(events.register().is_ok());
    }
}

#[test]
fn a_queue_gives_in_the_order_in_which_it_was_filled() {
    let events = Events::new();
    let (one, two) = (events.put(0, 1), events.put(1, 2));
    one();
    two();
    events.take(2)(2);
    events.take(2)(1);
    assert!(events.fifo().is_ok(), "the puts overlap");

    let events = Events::new();
    events.put(0, 1)();
    events.put(1, 2)();
    events.take(2)(2);
    assert!(events.fifo().is_err());
}

#[test]
fn only_calls_that_are_to_blame_are_marked() {
    let events = Events::new();
    events.put(0, 1)();
    let longer = events.put(2, 9);
    events.take(1)(5);
    longer();
    events.take(1)(1);
    let expected = "
  thread 0: Put(1)
  thread 0:   -> 1
  thread 2: Put(9)
! thread 1: Take
! thread 1:   -> 5
";
    assert_eq!(format!("\n{}", chart(events.fifo())), expected);
}

#[test]
fn a_call_that_never_returned_may_have_taken_effect_or_not() {
    for seen in [0, 7] {
        let events = Events::new();
        drop(events.put(0, 7));
        events.take(1)(seen);
        assert!(events.register().is_ok());
    }
    let events = Events::new();
    drop(events.put(0, 7));
    events.take(1)(7);
    events.take(1)(0);
    assert!(events.register().is_err());
}

#[test]
fn a_search_that_is_too_long_is_given_up_and_does_not_pass() {
    let events = Events::new();
    let puts: Vec<_> = (0..3)
        .map(|thread| events.put(thread, thread as u8))
        .collect();
    puts.into_iter().for_each(|put| put());
    events.take(0)(9);
    let history = events.0.history();
    let outcome = check(&Fifo(VecDeque::new()), &history, 5);
    assert_eq!(outcome, Err(Failure::Undecided(5)));
    assert!(matches!(events.fifo(), Err(Failure::Inexplicable(_))));
}
