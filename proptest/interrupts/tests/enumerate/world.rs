//! One history: what tasks do to a queue one after another, and an interrupt at one boundary.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::panicking;
use std::time::Duration;

use requeue_embassy::binding::{AsShared, KeepSuspensions, Lock};
use requeue_embassy::limiter::Exponential;
use requeue_embassy::priority::{Groups, Priorities, WithSuspension};
use requeue_embassy::storage::Fixed;
use requeue_embassy::{
    Action, Added, Finished, GroupLimits, Instant, KeyState, Leftover, ManualClock, Queue,
    Rejected, WaitError, WorkQueue,
};
use requeue_interrupts::{Interruptible, boundary, interrupt_with, is_critical};

type Clock = ManualClock<Interruptible>;
type Parts = ((), u8, &'static Clock);
/// Room for two keys, and for six calls that wait.
type Keys<P> = WorkQueue<Interruptible, u32, 2, P, Exponential, 6, Parts>;
type Guard<'q, P> = requeue_embassy::Guard<'q, Interruptible, u32, 2, P, Exponential, 6, Parts>;
type Machine<P> = Queue<u32, P, Exponential, Fixed<2>>;

const SECOND: Duration = Duration::from_secs(1);

/// A kind of queue.
pub(crate) trait Kind: Priorities<FixedPolicy: KeepSuspensions> + Sized + 'static {
    fn queue(limiter: Exponential) -> Machine<Self>;
}

impl Kind for WithSuspension {
    fn queue(limiter: Exponential) -> Machine<Self> {
        Queue::new(limiter)
    }
}

/// Keys 1 and 2 are a group, and so are 3 and 4. One key of each can be active.
impl Kind for Groups<u32, WithSuspension> {
    fn queue(limiter: Exponential) -> Machine<Self> {
        let mut queue = Queue::with_groups(limiter, (), |key: &u32| key.div_ceil(2));
        let one = GroupLimits::new().max_active(1);
        queue.at(Instant::EPOCH).limit_groups(one);
        queue
    }
}

/// What a task does, or an interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Add(u32),
    AddAfter(u32),
    Cancel(u32),
    Expedite(u32),
    Resume(u32),
    ShutDown,
    /// A second passes.
    Tick,
    /// Takes a key without waiting, and ends its run.
    Take,
    /// Ends the oldest run so.
    End(Action),
    /// A new task makes this call, which may wait.
    Call(Call),
    /// Ends the oldest run and waits for the next key.
    Next,
    /// The oldest call that waits is dropped.
    Drop,
}

/// A call that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Get,
    GetTimeout,
    AddWait(u32),
    CancelAndWait(u32),
    Flush(u32),
    Idle,
    Drain,
    /// A worker, which ends when the queue is shut down.
    Run,
}

/// What comes of an operation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Answer {
    Added(Result<Added, Rejected<u32>>),
    Known(Option<KeyState>),
    Yes(bool),
    Took(Option<(u32, Finished)>),
    Ended(u32, Finished),
    Got(Result<u32, WaitError>),
    Over(Result<(), WaitError>),
    /// It returns nothing, or is a call, which returns later.
    Nothing,
}

/// When the interrupt comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum When {
    /// At this boundary.
    Boundary(usize),
    /// Before this step: an operation, or a poll.
    Step(usize),
    /// The same, and the tasks that it wakes are polled after so many of those that were woken
    /// before, and before the others.
    Overtaking(usize, usize),
}

/// What was seen of a history.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// Of the operations, and of the interrupts.
    pub(crate) answers: Vec<Option<Answer>>,
    pub(crate) interrupts: Vec<Option<Answer>>,
    /// Of the calls that may wait.
    pub(crate) calls: Calls,
    /// What the queue knew of the keys when every task had to sleep.
    pub(crate) states: [Option<KeyState>; 4],
    /// What workers have worked on, in order.
    pub(crate) worked: Vec<u32>,
}

/// The calls that may wait, and what they have returned. Equal if they differ in their order: an
/// interrupt may wake a call before that which was to be woken first.
#[derive(Clone, Debug)]
pub(crate) struct Calls(Vec<(Call, Option<Answer>)>);

impl PartialEq for Calls {
    fn eq(&self, other: &Self) -> bool {
        let mut rest = other.0.clone();
        let is_there = |call| {
            let place = rest.iter().position(|other| other == call);
            place.map(|place| rest.swap_remove(place)).is_some()
        };
        self.0.iter().all(is_there) && rest.is_empty()
    }
}

/// What tasks and interrupts share.
struct World<P: Kind> {
    queue: Keys<P>,
    clock: &'static Clock,
    interrupts: Vec<(When, Operation)>,
    /// What came of the interrupts that have been.
    came: RefCell<Vec<Option<Answer>>>,
    /// How many steps have begun.
    steps: Cell<usize>,
    /// That number at each boundary that has been passed.
    boundaries: RefCell<Vec<usize>>,
    accounts: RefCell<[Account; 4]>,
    worked: RefCell<Vec<u32>>,
}

/// What a key was added for, and what a run of it has seen.
#[derive(Clone, Copy, Default)]
struct Account {
    changes: u32,
    accepted: u32,
    seen: u32,
    is_running: bool,
    /// It is not known which adds were before that.
    is_cancelled: bool,
}

impl<P: Kind> World<P> {
    fn new(interrupts: &[(When, Operation)]) -> Rc<Self> {
        thread_local! {
            /// One for all queues of a test, which come one after another.
            static CLOCK: &'static Clock = Box::leak(Box::new(Clock::new()));
        }
        let clock = CLOCK.with(|clock| *clock);
        clock.set(Instant::NEVER);
        clock.set(Instant::EPOCH);
        let limiter = Exponential::new(SECOND, 4 * SECOND);
        let world = Rc::new(Self {
            queue: Keys::from_queue(P::queue(limiter), clock),
            clock,
            interrupts: interrupts.to_vec(),
            came: RefCell::new(vec![None; interrupts.len()]),
            steps: Cell::new(0),
            boundaries: RefCell::default(),
            accounts: RefCell::default(),
            worked: RefCell::default(),
        });
        let own = Rc::downgrade(&world);
        interrupt_with(move || {
            if let Some(world) = own.upgrade() {
                world.at_boundary();
            }
        });
        world
    }

    fn at_boundary(&self) {
        let at = self.boundaries.borrow().len();
        self.boundaries.borrow_mut().push(self.steps.get());
        self.interrupt(When::Boundary(at));
    }

    /// Returns whether there was one.
    fn interrupt(&self, now: When) -> bool {
        let mut came = false;
        for (index, (when, operation)) in self.interrupts.iter().enumerate() {
            if *when == now {
                let answer = self.perform(*operation);
                self.came.borrow_mut()[index] = Some(answer);
                came = true;
            }
        }
        came
    }

    /// Does what interrupts and tasks can do.
    fn perform(&self, operation: Operation) -> Answer {
        let queue = &self.queue;
        match operation {
            Operation::Add(key) => self.add(key, || queue.add(key)),
            Operation::AddAfter(key) => self.add(key, || queue.add_after(key, SECOND)),
            Operation::Cancel(key) => {
                self.account(key, |account| account.is_cancelled = true);
                Answer::Known(queue.cancel(&key))
            }
            Operation::Expedite(key) => Answer::Yes(queue.expedite(&key)),
            Operation::Resume(key) => Answer::Yes(queue.resume(&key)),
            Operation::ShutDown => {
                queue.shut_down();
                Answer::Nothing
            }
            Operation::Tick => {
                self.clock.advance(SECOND);
                Answer::Nothing
            }
            Operation::Take => Answer::Took(queue.try_get().map(|guard| {
                let key = *guard;
                self.begin(key);
                (key, self.end(guard, Action::Success))
            })),
            Operation::End(_) | Operation::Call(_) | Operation::Next | Operation::Drop => {
                Answer::Nothing
            }
        }
    }

    fn add(&self, key: u32, add: impl FnOnce() -> Result<Added, Rejected<u32>>) -> Answer {
        let change = self.account(key, |account| {
            account.changes += 1;
            account.changes
        });
        let added = add();
        self.accept(key, change, &added);
        Answer::Added(added)
    }

    fn accept(&self, key: u32, change: u32, added: &Result<Added, Rejected<u32>>) {
        if added.is_ok() {
            self.account(key, |account| {
                account.accepted = account.accepted.max(change);
            });
        }
    }

    fn begin(&self, key: u32) {
        self.account(key, |account| {
            assert!(!account.is_running, "key {key} runs twice at once");
            account.is_running = true;
            account.seen = account.changes;
        });
    }

    fn end(&self, guard: Guard<'_, P>, action: Action) -> Finished {
        // Before the queue is told, because the key may run again before that returns.
        self.account(*guard, |account| account.is_running = false);
        guard.finish(action)
    }

    fn account<T>(&self, key: u32, work: impl FnOnce(&mut Account) -> T) -> T {
        work(&mut self.accounts.borrow_mut()[key as usize - 1])
    }

    /// Makes a call, and returns the key that it got.
    async fn call(&self, call: Call) -> (Answer, Option<Guard<'_, P>>) {
        let queue = &self.queue;
        let answer = match call {
            Call::Get => return self.got(queue.get().await),
            Call::GetTimeout => return self.got(queue.get_timeout(SECOND).await),
            Call::AddWait(key) => {
                let change = self.account(key, |account| {
                    account.changes += 1;
                    account.changes
                });
                let added = queue.add_wait(key).await;
                self.accept(key, change, &added);
                Answer::Added(added)
            }
            Call::CancelAndWait(key) => {
                self.account(key, |account| account.is_cancelled = true);
                let was = queue.cancel_and_wait(&key).await;
                was.map_or_else(|error| Answer::Over(Err(error)), Answer::Known)
            }
            Call::Flush(key) => Answer::Over(queue.flush(&key).await),
            Call::Idle => Answer::Over(queue.wait_idle().await),
            Call::Drain => Answer::Over(queue.drain().await),
            Call::Run => Answer::Over(
                queue
                    .run(async |key: &u32| {
                        self.begin(*key);
                        boundary();
                        self.worked.borrow_mut().push(*key);
                        self.account(*key, |account| account.is_running = false);
                    })
                    .await,
            ),
        };
        (answer, None)
    }

    fn got<'q>(&self, got: Result<Guard<'q, P>, WaitError>) -> (Answer, Option<Guard<'q, P>>) {
        match got {
            Ok(guard) => {
                self.begin(*guard);
                (Answer::Got(Ok(*guard)), Some(guard))
            }
            Err(error) => (Answer::Got(Err(error)), None),
        }
    }

    async fn next<'q>(&'q self, guard: Guard<'q, P>) -> (Answer, Option<Guard<'q, P>>) {
        self.account(*guard, |account| account.is_running = false);
        self.got(self.queue.next(guard, Action::Success).await)
    }
}

/// A task that has been woken gets the number of its wake, by which tasks are polled in order.
struct Woken(AtomicUsize);

const ASLEEP: usize = usize::MAX;

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        assert!(!is_critical(), "a task is woken within a critical section");
        boundary();
        let _ = self
            .0
            .compare_exchange(ASLEEP, next_wake(), Ordering::SeqCst, Ordering::SeqCst);
        boundary();
    }
}

/// Leaves a number between any two wakes, for [`When::Overtaking`].
fn next_wake() -> usize {
    NEXT_WAKE.get().unwrap_or_else(|| {
        WAKES.set(WAKES.get() + 2);
        WAKES.get()
    })
}

thread_local! {
    static WAKES: Cell<usize> = const { Cell::new(0) };
    /// The number of a wake that overtakes others.
    static NEXT_WAKE: Cell<Option<usize>> = const { Cell::new(None) };
}

type Answering<'q, P> = Pin<Box<dyn Future<Output = (Answer, Option<Guard<'q, P>>)> + 'q>>;

struct Task<'q, P: Kind> {
    /// What it waits for: [`Call::Get`] also after the run of another key.
    call: Call,
    future: Option<Answering<'q, P>>,
    woken: Arc<Woken>,
    answer: Option<Answer>,
}

struct Executor<'q, P: Kind> {
    world: &'q World<P>,
    tasks: Vec<Task<'q, P>>,
    runs: Vec<Guard<'q, P>>,
}

impl<'q, P: Kind> Executor<'q, P> {
    /// A step begins. Returns whether tasks that an interrupt has woken come before it.
    fn begin_step(&mut self) -> bool {
        let step = self.world.steps.get();
        self.world.interrupt(When::Step(step));
        let tasks = self.tasks.iter().filter(|task| task.future.is_some());
        let wakes = tasks.map(|task| task.woken.0.load(Ordering::SeqCst));
        let mut wakes: Vec<usize> = wakes.filter(|wake| *wake != ASLEEP).collect();
        wakes.sort_unstable();
        let mut overtaking = false;
        for (behind, wake) in [0].into_iter().chain(wakes).enumerate() {
            NEXT_WAKE.set(Some(wake + 1));
            overtaking |= self.world.interrupt(When::Overtaking(step, behind));
        }
        NEXT_WAKE.set(None);
        self.world.steps.set(step + 1);
        overtaking
    }

    /// Returns `None` if there is nothing that the operation could be done to.
    fn perform(&mut self, operation: Operation) -> Option<Answer> {
        let world = self.world;
        Some(match operation {
            Operation::End(action) => {
                let guard = self.oldest_run()?;
                Answer::Ended(*guard, world.end(guard, action))
            }
            Operation::Next => {
                let guard = self.oldest_run()?;
                self.spawn(Call::Get, Box::pin(world.next(guard)));
                Answer::Nothing
            }
            Operation::Call(call) => {
                self.spawn(call, Box::pin(world.call(call)));
                Answer::Nothing
            }
            Operation::Drop => {
                let mut waiting = self.tasks.iter_mut();
                waiting.find(|task| task.future.is_some())?.future = None;
                Answer::Nothing
            }
            other => world.perform(other),
        })
    }

    fn oldest_run(&mut self) -> Option<Guard<'q, P>> {
        (!self.runs.is_empty()).then(|| self.runs.remove(0))
    }

    fn spawn(&mut self, call: Call, future: Answering<'q, P>) {
        self.tasks.push(Task {
            call,
            future: Some(future),
            woken: Arc::new(Woken(AtomicUsize::new(next_wake()))),
            answer: None,
        });
    }

    /// Polls the tasks that are woken, in order, until none is.
    fn poll_woken(&mut self) {
        for polls in 0.. {
            assert!(polls < 1_000, "a task wakes itself for ever");
            if self.first_woken().is_none() {
                return;
            }
            self.begin_step();
            let Some(task) = self.first_woken() else {
                return;
            };
            task.woken.0.store(ASLEEP, Ordering::SeqCst);
            let waker = Waker::from(Arc::clone(&task.woken));
            let Some(future) = &mut task.future else {
                continue;
            };
            if let Poll::Ready((answer, guard)) =
                future.as_mut().poll(&mut Context::from_waker(&waker))
            {
                task.answer = Some(answer);
                task.future = None;
                self.runs.extend(guard);
            }
        }
    }

    fn first_woken(&mut self) -> Option<&mut Task<'q, P>> {
        let tasks = self.tasks.iter_mut();
        let waiting = tasks.filter(|task| task.future.is_some());
        let first = waiting.min_by_key(|task| task.woken.0.load(Ordering::SeqCst));
        first.filter(|task| task.woken.0.load(Ordering::SeqCst) != ASLEEP)
    }

    /// Once every task sleeps: a call that is made now has to wait if one like it waits.
    fn no_wake_is_lost(&mut self) {
        let waiting = self.tasks.iter().filter(|task| task.future.is_some());
        let mut waiting: Vec<Call> = waiting.map(|task| task.call).collect();
        waiting.dedup();
        for call in waiting {
            let call = match call {
                // Neither changes the queue if it has to wait.
                Call::GetTimeout | Call::Run => Call::Get,
                // It may wait for an earlier run than one that is made now.
                Call::Flush(_) | Call::CancelAndWait(_) => continue,
                // A key that the queue holds needs no room. The call that waits for it came before
                // that, and waits for room.
                Call::AddWait(key) if self.world.queue.contains(&key) => continue,
                other => other,
            };
            let mut fresh = Box::pin(self.world.call(call));
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready((answer, _)) = fresh.as_mut().poll(&mut context) {
                panic!("a wake is lost: {call:?} returns {answer:?} while another waits");
            }
            drop(fresh);
            self.poll_woken();
        }
        let shared = self.world.queue.as_shared();
        shared.lock().with(|state| state.queue().assert_valid());
    }

    /// Ends what is under way.
    fn settle(&mut self) {
        for _ in 0..ROUNDS {
            while let Some(guard) = self.runs.pop() {
                self.world.end(guard, Action::Success);
                self.poll_woken();
            }
            self.no_wake_is_lost();
            self.world.clock.advance(SECOND);
            self.poll_woken();
        }
        // Nothing waits for a deadline: so what no call gets by itself is ready.
        while let Some(guard) = self.world.queue.try_get() {
            self.world.begin(*guard);
            self.world.end(guard, Action::Success);
            self.poll_woken();
        }
    }

    fn close(&mut self) {
        self.world.queue.shut_down();
        self.poll_woken();
        while let Some(guard) = self.runs.pop() {
            self.world.end(guard, Action::Success);
            self.poll_woken();
        }
        for Leftover { key, .. } in self.world.queue.leftovers() {
            self.world.begin(key);
        }
        self.poll_woken();
        for task in &self.tasks {
            assert!(task.future.is_none(), "{:?} sleeps for ever", task.call);
        }
        for (key, account) in (1..).zip(&*self.world.accounts.borrow()) {
            let is_lost = account.seen < account.accepted && !account.is_cancelled;
            assert!(!is_lost, "key {key} is lost");
        }
    }
}

/// The most seconds that a key is delayed or suspended.
const ROUNDS: usize = 6;

/// Goes through a history with these interrupts. Returns what was seen, and the number of the step
/// in which each boundary lies, from one. `None` without interrupts if there is nothing to do an
/// operation to: no run to end, no call to drop.
///
/// # Panics
///
/// If something is lost, or runs twice at once.
pub(crate) fn go_through<P: Kind>(
    history: &[Operation],
    interrupts: &[(When, Operation)],
) -> Option<(Seen, Vec<usize>)> {
    let world = World::<P>::new(interrupts);
    let _shown = Shown(history, interrupts);
    let mut executor = Executor {
        world: &world,
        tasks: Vec::new(),
        runs: Vec::new(),
    };
    let mut answers = Vec::new();
    for operation in history {
        if executor.begin_step() {
            executor.poll_woken();
        }
        let answer = executor.perform(*operation);
        // An interrupt may have taken away what it was to be done to.
        if answer.is_none() && interrupts.is_empty() {
            return None;
        }
        answers.push(answer);
        executor.poll_woken();
    }
    executor.begin_step();
    executor.poll_woken();
    let boundaries = world.boundaries.borrow().clone();
    executor.no_wake_is_lost();
    let calls = executor.tasks.iter();
    let calls = calls.map(|task| (task.call, task.answer.clone()));
    let seen = Seen {
        answers,
        interrupts: world.came.borrow().clone(),
        calls: Calls(calls.collect()),
        states: [1, 2, 3, 4].map(|key| world.queue.state(&key)),
        worked: world.worked.borrow().clone(),
    };
    executor.settle();
    executor.close();
    Some((seen, boundaries))
}

/// A history that is shown if it fails.
struct Shown<'h>(&'h [Operation], &'h [(When, Operation)]);

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if panicking() {
            println!("{:?}, with {:?}", self.0, self.1);
        }
    }
}
