//! Hooks that panic, of which each is contained, and those that decide.

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

#[tokio::test]
async fn an_error_that_no_retry_helps_gives_its_key_up_at_once() {
    let queue = WorkQueue::new();
    assert!(queue.add_many([1, 2_usize]).rejected.is_empty());
    queue.shut_down();
    let given_up = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&given_up);
    let workers = Workers::new(1)
        .give_up_if(|_, error| *error == "deleted")
        .on_give_up(move |key, failure| noted.lock().unwrap().push((*key, failure.to_string())));
    let errors = ["deleted", "down"];
    let fail = move |key| async move { Err::<Action, _>(errors[key - 1]) };
    let left = queue.run(workers, fail).await;
    assert_eq!(*given_up.lock().unwrap(), [(1, String::from("deleted"))]);
    assert_eq!((left.len(), left[0].key, left[0].failures), (1, 2, 1));
}
