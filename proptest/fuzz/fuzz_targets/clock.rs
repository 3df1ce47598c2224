//! Operations on core's queue whose clock does what it likes.
#![cfg_attr(fuzzing, no_main)]

requeue_fuzz::target!(clock);
