//! Hooks that panic: each is contained.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use requeue_tokio::{Action, WorkQueue, Workers};

/// So that no key is lost silently.
#[tokio::test]
async fn a_hook_that_panics_keeps_no_other_from_being_called() {
    let queue = WorkQueue::new();
    queue.add(1).unwrap();
    queue.shut_down();
    let given_up = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&given_up);
    let workers = Workers::new(1)
        .max_retries(0)
        .on_event(|_, _| resume_unwind(Box::new("quietly")))
        .on_error(|_, _, _| resume_unwind(Box::new("quietly")))
        .on_give_up(move |key, _| noted.lock().unwrap().push(*key));
    let left = queue.run(workers, |_| async { Err::<Action, _>("down") });
    assert!(left.await.is_empty());
    assert_eq!(*given_up.lock().unwrap(), [1]);
}
