//! Scenarios of threads and of tasks alike. That no thread sleeps for ever is checked throughout: a
//! schedule that ends with every thread asleep has failed.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

/// Tests each scenario with each queue: `explore` under schedules that are drawn, `explore_all`
/// under every one.
macro_rules! both {
    ([$threads:ident, $tasks:ident, $boards:ident] $($rest:tt)+) => {
        both!([$threads, $tasks] $($rest)+);
        both!(boards, $boards, $($rest)+);
    };
    ([$threads:ident, $tasks:ident] $($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        both!(threads, $threads, $($explore: $($scenario),+);+);
        both!(tasks, $tasks, $($explore: $($scenario),+);+);
    };
    ($name:ident, $queue:ident, $($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        mod $name {
            use requeue_schedules::$queue as Queue;
            $($(
                #[test]
                fn $scenario() {
                    requeue_schedules::$explore::<Queue>(
                        stringify!($scenario),
                        super::$scenario::<Queue>,
                    );
                }
            )+)+
        }
    };
    ($($explore:ident: $($scenario:ident),+);+ $(;)?) => {
        both!([Threads, Tasks, Boards] $($explore: $($scenario),+);+);
    };
}

mod deadlines;
mod drains;
mod getters;
mod groups;
mod rates;
mod room;
mod run;
mod suspensions;
mod watching;
mod workers;
