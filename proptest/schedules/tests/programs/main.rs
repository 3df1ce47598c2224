//! Drawn programs of threads, of tasks and of microcontrollers' tasks, with calls that wait, that
//! are dropped and that move: under many schedules of each, some order of the calls explains every
//! answer, and every call that sleeps has a reason.
//!
//! A shared queue is **linearizable** if each call takes effect at one point between its beginning
//! and its end: if one thread made the calls in the order of these points, it would get the same
//! answers. A lock promises this. It fails once a call looks at something before it takes the lock,
//! or does its work under two locks. A wake is lost if a call sleeps that has something to answer
//! when nothing else moves any more.
#![cfg(shuttle)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod draw;
mod trial;

use requeue_schedules::{Boards, Tasks, Threads, explore};
use requeue_std::priority::{Groups, WithSlack, WithSuspension};
use requeue_std::storage::{Fixed, Growable};

/// What a queue of a fixed size needs for every operation that is drawn.
type Slackened = WithSlack<WithSuspension>;

type Grouped = Groups<u8, Slackened>;

macro_rules! explored {
    ($($name:ident: $queue:ty),+ $(,)?) => {$(
        #[test]
        fn $name() {
            explore(stringify!($name), draw::programs::<$queue>(), trial::play::<$queue>);
        }
    )+};
}

// Two of four keys fit into the full queues: what is refused is handed back.
explored! {
    threads: Threads<Slackened, Growable>,
    threads_with_a_full_queue: Threads<Slackened, Fixed<2>>,
    threads_with_groups: Threads<Grouped, Growable>,
    tasks: Tasks<Slackened, Growable>,
    tasks_with_a_full_queue: Tasks<Slackened, Fixed<2>>,
    tasks_with_groups: Tasks<Grouped, Growable>,
    boards: Boards<Slackened, 16>,
    boards_with_a_full_queue: Boards<Slackened, 2>,
    boards_with_groups: Boards<Grouped, 16>,
}
