//! Backoffs with any parameters, at any times.
#![cfg_attr(fuzzing, no_main)]

requeue_fuzz::target!(backoff);
