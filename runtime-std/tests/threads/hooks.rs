//! Hooks that panic, of which each is contained, and those that decide.

use std::panic::resume_unwind;
use std::sync::Mutex;

use requeue_std::{Action, Workers};

use super::queue;

/// So that no key is lost silently.
#[test]
fn a_hook_that_panics_keeps_no_other_from_being_called() {
    let (queue, _) = queue();
    queue.add(1).unwrap();
    queue.shut_down();
    let given_up = Mutex::new(Vec::new());
    let workers = Workers::new(1)
        .max_retries(0)
        .on_event(|_, _| resume_unwind(Box::new("quietly")))
        .on_error(|_, _, _| resume_unwind(Box::new("quietly")))
        .on_give_up(|key, _| given_up.lock().unwrap().push(*key));
    let left = queue.run(workers, |_| Err::<(), _>("down")).unwrap();
    assert!(left.is_empty());
    assert_eq!(*given_up.lock().unwrap(), [1]);
}

#[test]
fn an_error_that_no_retry_helps_gives_its_key_up_at_once() {
    let (queue, _) = queue();
    assert!(queue.add_many([1, 2]).rejected.is_empty());
    queue.shut_down();
    let given_up = Mutex::new(Vec::new());
    let workers = Workers::new(1)
        .give_up_if(|_, error| *error == "deleted")
        .on_give_up(|key, failure| given_up.lock().unwrap().push((*key, failure.to_string())));
    let errors = ["deleted", "down"];
    let left = queue
        .run(workers, |key| Err::<Action, _>(errors[*key as usize - 1]))
        .unwrap();
    assert_eq!(*given_up.lock().unwrap(), [(1, String::from("deleted"))]);
    assert_eq!((left.len(), left[0].key, left[0].failures), (1, 2, 1));
}
