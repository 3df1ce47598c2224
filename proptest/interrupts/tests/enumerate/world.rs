//! One history: what tasks do to a queue one after another, and interrupts at some boundaries.

use std::cell::Cell;
use std::rc::Rc;
use std::thread::panicking;

use async_executor::LocalExecutor;
use embassy_futures::block_on;
use requeue_embassy::binding::Next;
use requeue_embassy::{Action, RunContext, RunLimits};
use requeue_interrupts::{boundary, interrupt_with};
use requeue_proptest::histories::{Operation, Run};
use requeue_proptest::subject::{Answer, Call, Configuration, GroupOrder, Key, Kind};
use requeue_schedules::{Boards, History, SECOND, Shares, Trial, Worker};

/// A worker of the runtime's own, which ends when the queue is shut down.
pub(crate) const WORKER: Operation = Operation::Start(Call::Next(Action::Success));

/// The keys of all operations.
const KEYS: [Key; 4] = [1, 4, 2, 5];

/// Operations of an interrupt, and the number of the boundary at which it comes.
pub(crate) type Interrupt = (usize, &'static [Operation]);

/// Goes through a history with interrupts. Returns what was recorded, and how many boundaries were
/// passed until every task slept. Returns `None` without interrupts if there is nothing to do an
/// operation to: no run to end, no call to drop.
///
/// # Panics
///
/// If a task is woken within a critical section, is woken for ever, or sleeps for ever.
pub(crate) fn go_through<Q: Board>(
    setup: &Configuration,
    operations: &[Operation],
    interrupts: &[Interrupt],
) -> Option<(History, usize)> {
    let world = Rc::new(World::<Q> {
        trial: Trial::new(setup),
        operations: operations.to_vec(),
        interrupts: interrupts.to_vec(),
        boundaries: Cell::new(0),
    });
    let main = world.trial.worker(world.trial.begin_thread());
    let perform = |operation: &Operation| block_on(main.step(operation));
    if let Some(cap) = setup.groups {
        perform(&Operation::Order(GroupOrder::LimitAll(cap)));
    }
    let interrupted = Rc::downgrade(&world);
    interrupt_with(move || {
        if let Some(world) = interrupted.upgrade() {
            world.at_boundary();
        }
    });
    let executor = LocalExecutor::new();
    for operation in operations {
        let is_possible = match operation {
            Operation::Cancel(_) => !executor.is_empty(),
            operation => main.runs.resolved(operation).is_some(),
        };
        // An interrupt may have taken away what it was to be done to.
        if !is_possible && interrupts.is_empty() {
            return None;
        }
        match operation {
            Operation::Start(_) | Operation::Next(..) => {
                let mut worker = world.trial.worker(world.trial.begin_thread());
                worker.runs = Rc::clone(&main.runs);
                let task = executor.spawn(async move {
                    match operation {
                        &WORKER => Q::work(&worker).await,
                        call => _ = worker.step(call).await,
                    }
                });
                task.detach();
            }
            operation => _ = perform(operation),
        }
        run(&executor);
    }
    let boundaries = world.boundaries.get();
    let settle = || {
        run(&executor);
        main.note_quiet();
    };
    settle();
    for key in KEYS {
        perform(&Operation::State(key));
    }
    for seconds in [1, 1, 4] {
        while perform(&Operation::Complete(Run::Pick(0), Action::Success)).is_some() {
            settle();
        }
        perform(&Operation::Advance(seconds * SECOND));
        settle();
    }
    block_on(main.conclude(&KEYS, settle, || executor.is_empty()));
    assert!(executor.is_empty(), "a call sleeps for ever");
    world.trial.assert_at_rest();
    Some((world.trial.history.take(), boundaries))
}

/// What tasks and interrupts share.
struct World<Q> {
    trial: Trial<Q>,
    operations: Vec<Operation>,
    interrupts: Vec<Interrupt>,
    /// How many boundaries have been passed.
    boundaries: Cell<usize>,
}

impl<Q: Shares> World<Q> {
    fn at_boundary(&self) {
        let now = self.boundaries.replace(self.boundaries.get() + 1);
        for (_, operations) in self.interrupts.iter().filter(|(at, _)| *at == now) {
            let interrupt = self.trial.worker(self.trial.begin_thread());
            for operation in *operations {
                block_on(interrupt.step(operation));
            }
        }
    }
}

/// Shows a history that fails.
impl<Q> Drop for World<Q> {
    fn drop(&mut self) {
        if panicking() {
            println!("{:?}, with {:?}", self.operations, self.interrupts);
        }
    }
}

/// A queue whose runtime runs a worker.
pub(crate) trait Board: Shares {
    /// Runs one until the queue is shut down, and records its calls.
    async fn work(worker: &Worker<'_, Self>);
}

impl<P: Kind + 'static> Board for Boards<P, 2>
where
    Self: Shares,
{
    async fn work(worker: &Worker<'_, Self>) {
        worker.begin(&Operation::Start(Call::Get));
        let reconcile = async |key: &Key, context: RunContext| {
            let begun = worker.runs.begun(*key, context);
            worker.end(Some(&Answer::Next(Next::Work(begun))));
            boundary();
            // It may be dropped in between.
            worker.begin(&Operation::Complete(begun.ticket.into(), Action::Success));
            worker.begin(&Operation::Start(Call::Get));
        };
        let queue = &worker.trial.queue;
        let run = queue.run_with(RunLimits::new(), reconcile, |_, _, _| {}, |_, _| {});
        let ended = worker.caller.wait(run).await;
        worker.end(ended.map(|_| Answer::Next(Next::Closed)).as_ref());
    }
}

/// Polls tasks until none is woken.
fn run(executor: &LocalExecutor) {
    let polls = (0..=POLLS_MAX).take_while(|_| executor.try_tick()).count();
    assert!(polls <= POLLS_MAX, "tasks wake each other for ever");
}

const POLLS_MAX: usize = 1_000;
