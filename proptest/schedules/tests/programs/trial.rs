//! One run of a program.

use std::cell::Cell;
use std::rc::Rc;

use requeue_proptest::histories::{Operation, Run};
use requeue_proptest::subject::{GroupOrder, Key};
use requeue_schedules::{SECOND, Shares, Trial, begin, explain, quiet};
use requeue_std::Action;
use shuttle::future::block_on;
use shuttle::sync::RwLock;

use crate::draw::{KEYS, Program};

/// Runs a program on a new queue, and judges what it has seen.
///
/// # Panics
///
/// If it cannot be explained, or a call sleeps for ever.
pub(crate) fn play<Q: Shares>(program: &Program) {
    let Program {
        setup,
        is_exact,
        threads,
    } = program;
    let trial = Rc::new(Trial::<Q>::new(setup));
    let ended = Rc::new(Cell::new(0));
    // Threads that have done their steps keep their runs until it is open.
    let gate = Rc::new(RwLock::new(()));
    let closed = gate.write().unwrap();
    let begun = threads.iter().cloned().map(|steps| {
        let (trial, ended, gate) = (Rc::clone(&trial), Rc::clone(&ended), Rc::clone(&gate));
        let thread = trial.begin_thread();
        async move {
            let worker = trial.worker(thread);
            for step in steps {
                worker.step(&step).await;
            }
            drop(gate.read());
            let complete = Operation::Complete(Run::Pick(0), Action::Release);
            while worker.step(&complete).await.is_some() {}
            ended.set(ended.get() + 1);
        }
    });
    let begun: Vec<_> = begun.collect();
    let conductor = trial.worker(trial.begin_thread());
    let settle = || {
        quiet();
        if *is_exact {
            conductor.note_quiet();
        }
    };
    block_on(async {
        if let Some(cap) = setup.groups {
            let order = Operation::Order(GroupOrder::LimitAll(cap));
            conductor.step(&order).await;
        }
        begin(begun);
        settle();
        // Whenever nothing moves any more, something happens that may wake those who sleep.
        for _ in 0..2 {
            conductor.step(&Operation::Advance(SECOND)).await;
            settle();
        }
        drop(closed);
        settle();
        conductor.step(&Operation::Advance(4 * SECOND)).await;
        settle();
        let keys: Vec<Key> = (1..=KEYS + 2).collect();
        for key in &keys {
            conductor.step(&Operation::State(*key)).await;
        }
        let have_ended = || ended.get() == threads.len();
        conductor.conclude(&keys, settle, have_ended).await;
    });
    explain(setup, &trial.history.borrow()).unwrap_or_else(|report| panic!("{report}"));
    trial.assert_at_rest();
    assert_eq!(ended.get(), threads.len(), "a call sleeps for ever");
}
