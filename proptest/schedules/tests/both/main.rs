//! Scenarios of threads and of tasks alike. That no thread sleeps for ever is checked throughout: a
//! schedule that ends with every thread asleep has failed.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

/// Tests each scenario with both queues.
macro_rules! both {
    ([$threads:ident, $tasks:ident] $($scenario:ident),+ $(,)?) => {
        mod threads {
            $(
                #[test]
                fn $scenario() {
                    super::$scenario::<requeue_schedules::$threads>();
                }
            )+
        }
        mod tasks {
            $(
                #[test]
                fn $scenario() {
                    super::$scenario::<requeue_schedules::$tasks>();
                }
            )+
        }
    };
    ($($scenario:ident),+ $(,)?) => {
        both!([Threads, Tasks] $($scenario),+);
    };
}

mod deadlines;
mod drains;
mod getters;
mod groups;
mod rates;
mod room;
mod run;
mod watching;
mod workers;
