//! What a failure is.
#![cfg(feature = "alloc")]
#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::error::Error;
use std::fmt;
use std::num::ParseIntError;
use std::time::Duration;

use requeue_core::Failure;

const MINUTE: Duration = Duration::from_secs(60);

/// What it shows is what its error shows, and so is what caused it.
#[test]
fn a_failure_is_an_error_with_the_cause_of_its_own() {
    let timed_out: Failure<std::io::Error> = Failure::TimedOut(MINUTE);
    let timed_out: Box<dyn Error> = Box::new(timed_out);
    assert_eq!(timed_out.to_string(), "took longer than 60s");
    assert!(timed_out.source().is_none());

    #[derive(Debug)]
    struct Unreachable(ParseIntError);
    impl fmt::Display for Unreachable {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("unreachable")
        }
    }
    impl Error for Unreachable {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }
    let failure = Failure::Error(Unreachable("x".parse::<u8>().unwrap_err()));
    assert_eq!(failure.to_string(), "unreachable");
    let source = Error::source(&failure).unwrap();
    assert!(source.is::<ParseIntError>());
}
