//! Operations on core's queue and on the reference model, side by side.
#![cfg_attr(fuzzing, no_main)]

requeue_fuzz::target!(queue);
