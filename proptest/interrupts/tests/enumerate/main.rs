//! Interrupts at every boundary of every short history of `requeue-embassy`'s queue.
//!
//! In a history tasks do a few things one after another, and an interrupt comes at one boundary.
//! Each history is gone through once for each of its boundaries and for each thing that an interrupt
//! may do. Some order of all calls has to explain what they answer, why those sleep that do, and
//! what is left in the end. Nothing is drawn: a test that fails fails in every run.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test that panics has failed"
)]

mod world;

use std::ops::Range;
use std::slice;
use std::time::Duration;

use requeue_embassy::Action;
use requeue_embassy::priority::{Groups, WithSuspension};
use requeue_proptest::histories::Operation::{self, *};
use requeue_proptest::histories::{Run, Sleeper};
use requeue_proptest::subject::{Call, Cap, Configuration, LimiterSpec};
use requeue_schedules::{Boards, History, SECOND, explain};
use world::{Board, WORKER, go_through};

/// Queues with room for two keys.
type Plain = Boards<WithSuspension, 2>;
type Grouped = Boards<Groups<u8, WithSuspension>, 2>;

const RUN: Run = Run::Pick(0);

static TASKS: [Operation; 21] = [
    Add(1),
    Add(4),
    AddAfter(1, SECOND),
    CancelKey(1),
    Resume(1),
    ShutDown,
    Advance(SECOND),
    Complete(RUN, Action::Success),
    Complete(RUN, Action::Retry),
    Complete(RUN, Action::Suspend(Duration::from_secs(2))),
    Next(RUN, Action::Success, Sleeper::New),
    Start(Call::Get),
    Start(Call::GetTimeout(SECOND)),
    Start(Call::AddWait(2)),
    Start(Call::AddWait(5)),
    Start(Call::CancelAndWait(1)),
    Start(Call::Flush(1)),
    Start(Call::WaitIdle),
    Start(Call::Drain),
    WORKER,
    Cancel(0),
];

static INTERRUPTS: [&[Operation]; 9] = [
    &[Add(1)],
    &[Add(4)],
    &[AddAfter(1, SECOND)],
    &[CancelKey(1)],
    &[Expedite(1)],
    &[Resume(1)],
    &[ShutDown],
    &[Advance(SECOND)],
    &[TryGet, Complete(RUN, Action::Success)],
];

/// What three operations do not lead to: a full queue with two calls that wait for room, a dirty key,
/// and two calls that wait for a deadline.
static OPENINGS: [&[Operation]; 3] = [
    &[
        Add(1),
        Add(4),
        Start(Call::Get),
        Start(Call::Get),
        Start(Call::AddWait(2)),
        Start(Call::AddWait(5)),
    ],
    &[Add(1), Start(Call::Get), Add(1)],
    &[AddAfter(1, SECOND), Start(Call::Get), Start(Call::Get)],
];

/// An interrupt within a step loses no key and no wake, and all calls answer as if it had come
/// between two of them.
#[test]
fn an_interrupt_within_a_step_is_one_before_it_or_after_it() {
    one_interrupt_anywhere::<Plain>(&setup(None), 3);
}

/// The same where a key may be ready and may not run, because its group is at its limit.
#[test]
fn an_interrupt_loses_no_key_and_no_wake_of_a_group() {
    let one = Cap {
        max_active: Some(1),
        ..Cap::default()
    };
    one_interrupt_anywhere::<Grouped>(&setup(Some(one)), 2);
}

/// The same if an interrupt comes after another, or interrupts it.
#[test]
fn two_interrupts_lose_nothing() {
    let setup = setup(None);
    let some = [0, 3, 6, 7, 8].map(|index| INTERRUPTS[index]);
    each_history::<Plain>(&setup, &[], 2, &mut |history, boundaries| {
        for first in some {
            for at in boundaries.clone() {
                let first = (at, first);
                let with_first = go_through::<Plain>(&setup, history, &[first]);
                let all = with_first.map_or(0, |(_, boundaries)| boundaries);
                for second in some {
                    judge(&setup, at + 1..all, |then| {
                        go_through::<Plain>(&setup, history, &[first, (then, second)])
                    });
                }
            }
        }
    });
}

fn one_interrupt_anywhere<Q: Board>(setup: &Configuration, operations: usize) {
    let mut visit = |operations: &[Operation], boundaries: Range<usize>| {
        for interrupt in INTERRUPTS {
            judge(setup, boundaries.clone(), |boundary| {
                go_through::<Q>(setup, operations, &[(boundary, interrupt)])
            });
        }
    };
    each_history::<Q>(setup, &[], operations, &mut visit);
    for opening in OPENINGS {
        each_history::<Q>(setup, opening, 2, &mut visit);
    }
}

/// Judges what comes of an interrupt at each of these boundaries. Much of it is the same.
fn judge(
    setup: &Configuration,
    boundaries: Range<usize>,
    interrupted: impl Fn(usize) -> Option<(History, usize)>,
) {
    let mut judged = Vec::new();
    for (history, _) in boundaries.filter_map(interrupted) {
        if !judged.contains(&history) {
            explain(setup, &history).unwrap_or_else(|report| panic!("{report}"));
            judged.push(history);
        }
    }
}

/// A queue whose failed keys are retried after a second, two and four.
fn setup(groups: Option<Cap>) -> Configuration {
    let base_ns = SECOND.as_nanos() as u64;
    let max_ns = 4 * base_ns;
    Configuration {
        storage: Some(2),
        groups,
        ..Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
    }
}

/// Calls `visit` for an opening, followed by every history of up to `operations` operations. Also
/// passes the boundaries after the opening.
fn each_history<Q: Board>(
    setup: &Configuration,
    opening: &[Operation],
    operations: usize,
    visit: &mut impl FnMut(&[Operation], Range<usize>),
) {
    let boundaries = |history: &[Operation]| Some(go_through::<Q>(setup, history, &[])?.1);
    let opened = boundaries(opening).unwrap_or(0);
    let mut histories = vec![opening.to_vec()];
    for _ in 0..operations {
        let mut longer = Vec::new();
        for history in histories {
            for operation in &TASKS {
                let history = [&history, slice::from_ref(operation)].concat();
                if let Some(boundaries) = boundaries(&history) {
                    visit(&history, opened..boundaries);
                    longer.push(history);
                }
            }
        }
        histories = longer;
    }
}
