//! Histories of calls that overlap, and whether some order of the calls explains every response.
//!
//! A shared queue is **linearizable** if each call takes effect at one point between its beginning
//! and its end: if one thread made the calls in the order of these points, it would get the same
//! responses. A lock promises this. It fails once a call looks at something before it takes the
//! lock, or does its work under two locks.
//!
//! A [`Recorder`] records which thread called what and when; [`check`] looks for the order. It is
//! the search of Wing and Gong ("Testing and verifying concurrent objects", 1993) with the memory
//! that Lowe gave it ("Testing for linearizability", 2017): a set of calls that has led to a state
//! once is not tried again. The search is bounded. It reports when it gives up, and passes nothing
//! that it has not decided.
//!
//! A history without an order is [shown](Failure::Inexplicable) up to where it has none, and the
//! calls that contradict each other are marked.
//!
//! For work queues [`QueueSpec`] is the reference model as a [`Specification`], [`seeded_programs`]
//! draws what several threads do to a [`Shared`] queue, and a [`Trial`] runs such a program.
//! `proptest/schedules/tests/linear` runs them under shuttle, whose scheduler decides at each lock
//! which thread runs next.
//!
//! # Examples
//!
//! A register that two threads share:
//!
//! ```
//! use requeue_linear::{Failure, Recorder, Specification, check};
//!
//! #[derive(Clone, PartialEq, Eq, Hash)]
//! struct Register(u8);
//!
//! #[derive(Clone, Debug)]
//! enum Request {
//!     Write(u8),
//!     Read,
//! }
//!
//! impl Specification for Register {
//!     type Request = Request;
//!     type Response = u8;
//!
//!     fn step(&mut self, request: &Request, response: Option<&u8>) -> bool {
//!         if let Request::Write(value) = *request {
//!             self.0 = value;
//!         }
//!         response.is_none_or(|response| *response == self.0)
//!     }
//! }
//!
//! let recorder = Recorder::new(2);
//! let write = recorder.call(0, Request::Write(7));
//! let read = recorder.call(1, Request::Read);
//! recorder.returned(read, 7);
//! let again = recorder.call(1, Request::Read);
//! recorder.returned(again, 0);
//! recorder.returned(write, 7);
//!
//! // The write had happened, and then it had not.
//! let failure = check(&Register(0), &recorder.history(), 1000).unwrap_err();
//! assert!(matches!(failure, Failure::Inexplicable(_)));
//! ```

#![forbid(unsafe_code)]

mod check;
mod history;
mod minimise;
mod program;
mod search;
mod spec;
mod trial;

pub use check::{Failure, Specification, check};
pub use history::{Call, CallId, History, Recorder};
pub use program::{Program, seeded_programs};
pub use spec::QueueSpec;
pub use trial::{Runs, Shared, Trial, without_waiting};
