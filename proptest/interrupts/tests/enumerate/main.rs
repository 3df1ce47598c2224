//! Interrupts at every boundary of every short history of `requeue-embassy`'s queue.
//!
//! In a history tasks do a few things one after another, and an interrupt comes at one boundary.
//! Each history is gone through once for each of its boundaries and for each thing that an interrupt
//! may do. Nothing is drawn: a test that fails fails in every run.
#![allow(clippy::panic, reason = "a test that panics has failed")]

mod world;

use std::collections::HashMap;
use std::time::Duration;

use requeue_embassy::Action;
use requeue_embassy::priority::{Groups, WithSuspension};
use world::{Call, Kind, Operation, Seen, When, go_through};

const TASKS: [Operation; 21] = [
    Operation::Add(1),
    Operation::Add(2),
    Operation::AddAfter(1),
    Operation::Cancel(1),
    Operation::Resume(1),
    Operation::ShutDown,
    Operation::Tick,
    Operation::End(Action::Success),
    Operation::End(Action::Retry),
    Operation::End(Action::Suspend(Duration::from_secs(2))),
    Operation::Call(Call::Get),
    Operation::Call(Call::GetTimeout),
    Operation::Call(Call::AddWait(3)),
    Operation::Call(Call::AddWait(4)),
    Operation::Call(Call::CancelAndWait(1)),
    Operation::Call(Call::Flush(1)),
    Operation::Call(Call::Idle),
    Operation::Call(Call::Drain),
    Operation::Call(Call::Run),
    Operation::Next,
    Operation::Drop,
];

const INTERRUPTS: [Operation; 9] = [
    Operation::Add(1),
    Operation::Add(2),
    Operation::AddAfter(1),
    Operation::Cancel(1),
    Operation::Expedite(1),
    Operation::Resume(1),
    Operation::ShutDown,
    Operation::Tick,
    Operation::Take,
];

/// What three operations do not lead to: a full queue with two calls that wait for room, a dirty key,
/// and two calls that wait for a deadline.
const OPENINGS: [&[Operation]; 3] = [
    &[
        Operation::Add(1),
        Operation::Add(2),
        Operation::Call(Call::Get),
        Operation::Call(Call::Get),
        Operation::Call(Call::AddWait(3)),
        Operation::Call(Call::AddWait(4)),
    ],
    &[
        Operation::Add(1),
        Operation::Call(Call::Get),
        Operation::Add(1),
    ],
    &[
        Operation::AddAfter(1),
        Operation::Call(Call::Get),
        Operation::Call(Call::Get),
    ],
];

/// More calls do not wait at once.
const CALLS_MAX: usize = 6;

/// An interrupt within a step does what it would have done before the step, or after it. All calls
/// return the same, and the queue is left in the same state.
#[test]
fn an_interrupt_within_a_step_is_one_before_it_or_after_it() {
    one_interrupt_anywhere::<WithSuspension>(3);
}

/// The same where a key may be ready and may not run, because its group is at its limit.
#[test]
fn an_interrupt_loses_no_key_and_no_wake_of_a_group() {
    one_interrupt_anywhere::<Groups<u32, WithSuspension>>(2);
}

fn one_interrupt_anywhere<P: Kind>(operations: usize) {
    let mut tried = 0;
    let mut visit = |history: &[Operation], boundaries: &[usize], opened: usize| {
        for interrupt in INTERRUPTS {
            let mut between: HashMap<When, Option<Seen>> = HashMap::new();
            for (boundary, step) in boundaries.iter().copied().enumerate().skip(opened) {
                let at_boundary = (When::Boundary(boundary), interrupt);
                let within = go_through::<P>(history, &[at_boundary]).map(|(seen, _)| seen);
                let overtaking = (0..CALLS_MAX).map(|behind| When::Overtaking(step, behind));
                let steps = [When::Step(step - 1), When::Step(step)].into_iter();
                let mut places = steps.chain(overtaking);
                let is_explained = places.any(|when| {
                    let seen =
                        || go_through::<P>(history, &[(when, interrupt)]).map(|(seen, _)| seen);
                    *between.entry(when).or_insert_with(seen) == within
                });
                assert!(
                    is_explained,
                    "{history:?} with {interrupt:?} at boundary {boundary}, in step {step}:\n\
                     {within:?}\nand elsewhere {between:?}"
                );
                tried += 1;
            }
        }
    };
    each_history::<P>(&[], operations, &mut visit);
    for opening in OPENINGS {
        each_history::<P>(opening, 2, &mut visit);
    }
    println!("{tried} interrupts");
}

/// Nothing is lost if an interrupt comes after another, or interrupts it.
#[test]
fn two_interrupts_lose_nothing() {
    type P = WithSuspension;
    const EACH: [Operation; 5] = [
        Operation::Add(1),
        Operation::Cancel(1),
        Operation::ShutDown,
        Operation::Tick,
        Operation::Take,
    ];
    let mut tried = 0;
    each_history::<P>(&[], 2, &mut |history, boundaries, _| {
        for first in EACH {
            for at in 0..boundaries.len() {
                let at_first = (When::Boundary(at), first);
                let with_first = go_through::<P>(history, &[at_first]);
                let all = with_first.map_or(0, |(_, boundaries)| boundaries.len());
                for second in EACH {
                    for then in at + 1..all {
                        let _ =
                            go_through::<P>(history, &[at_first, (When::Boundary(then), second)]);
                        tried += 1;
                    }
                }
            }
        }
    });
    println!("{tried} pairs of interrupts");
}

/// Calls `visit` with an opening and every history of up to `operations` operations after it, with
/// the step of each boundary, and with how many boundaries lie in the opening.
fn each_history<P: Kind>(
    opening: &[Operation],
    operations: usize,
    visit: &mut impl FnMut(&[Operation], &[usize], usize),
) {
    let opened = go_through::<P>(opening, &[]).map_or(0, |(_, boundaries)| boundaries.len());
    let mut histories = vec![opening.to_vec()];
    for _ in 0..operations {
        let mut longer = Vec::new();
        for history in histories {
            for operation in TASKS {
                let history = [history.as_slice(), &[operation]].concat();
                if let Some((_, boundaries)) = go_through::<P>(&history, &[]) {
                    visit(&history, &boundaries, opened);
                    longer.push(history);
                }
            }
        }
        histories = longer;
    }
}
