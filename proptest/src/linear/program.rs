//! Programs for several threads, drawn, run and judged.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};
use requeue_core::Completion;

use super::chart::draw_marked;
use super::concurrent::{Concurrent, Site, World};
use super::queue::{Answer, Op, QueueSpec};
use super::{Failure, History, Work, check};
use crate::caught::guarded;
use crate::rounds;
use crate::subject::{Key, Setup};
use crate::trace::limiter::LimiterSpec;

/// What several threads do to one queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Program {
    /// The steps of each thread. The first thread never waits; it shuts the queue down in the end.
    pub threads: Vec<Vec<Step>>,
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (thread, steps) in self.threads.iter().enumerate() {
            writeln!(f, "thread {thread} runs {steps:?}")?;
        }
        Ok(())
    }
}

/// A step of a thread. A `u8` picks one of the runs that the thread has; where there is none
/// nothing happens.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A call that needs no run and makes none.
    Plain(Op),
    /// Asks for a key.
    TryGet,
    /// Waits for a key, for no time.
    GetNow,
    /// Waits for a key.
    Get,
    /// Waits for so many keys at most.
    GetMany(u8),
    /// Completes a run.
    Complete(u8, Completion),
    /// Completes every run together.
    CompleteAll(Completion),
    /// Completes a run and waits for the next key.
    Next(u8, Completion),
    /// Shuts down and looks whether the drain is over.
    Drain,
    /// Lets others run, or spins so many times.
    Pause(u8),
}

/// The keys of the programs.
const KEYS: Key = 3;
/// What the search remembers at most. The histories that are drawn here need some hundred states.
const STATES_MAX: usize = 100_000;
/// How often a program is run.
const ROUNDS: u32 = 96;
/// How often a smaller program is run before it is believed to pass.
const ROUNDS_TO_SHRINK: u32 = 100;
/// So long a program may take before somebody waits for nothing.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs drawn programs on `Q`, and checks every history against the reference model. Runs as many
/// programs as proptest is configured to draw, each several times, and
/// [as many times more](crate::rounds) as `REQUEUE_SOAK` says.
///
/// # Panics
///
/// If a history cannot be explained, if a thread panics or waits for nothing, or if the queue's own
/// invariants do not hold: with the smallest program that has failed, since the same program need
/// not fail again, and the history of that.
pub fn run<Q: Concurrent>() {
    let config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: 150,
        ..ProptestConfig::default()
    };
    let setup = Setup::new(LimiterSpec::Exponential {
        base_ns: nanos(Q::TICK),
        max_ns: nanos(Q::TICK).saturating_mul(1000),
    });
    let failed: RefCell<Option<String>> = RefCell::new(None);
    let tally = Tally::default();
    let began = Instant::now();
    let outcome = TestRunner::new(config).run(&programs(Q::TICK), |program| {
        if began.elapsed() > PATIENCE && failed.borrow().is_some() {
            // A program that hangs is not worth as much time again for each that is smaller.
            return Ok(());
        }
        let is_first = failed.borrow().is_none();
        let times = rounds(if is_first { ROUNDS } else { ROUNDS_TO_SHRINK });
        run_program::<Q>(&program, &setup, times, &tally).map_err(|story| {
            *failed.borrow_mut() = Some(story);
            TestCaseError::fail("see below")
        })
    });
    let failed = failed.into_inner().unwrap_or_default();
    #[expect(clippy::panic, reason = "this is how a test fails")]
    match outcome {
        Ok(()) => println!("explained: {tally}"),
        Err(TestError::Fail(_, program)) => {
            panic!("{program}{failed}\nafter {tally}, those to shrink included");
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a program on as many new queues as there are rounds. Answers what is wrong.
fn run_program<Q: Concurrent>(
    program: &Program,
    setup: &Setup,
    rounds: u32,
    tally: &Tally,
) -> Result<(), String> {
    let site = Arc::new(Site::<Q>::new(program.clone(), setup, rounds));
    let (finished, ends) = channel();
    for thread in 0..program.threads.len() {
        Q::employ(Work {
            site: Arc::clone(&site),
            thread,
            finished: finished.clone(),
        });
    }
    drop(finished);
    let disturbed = Arc::clone(&site);
    let disturber = thread::spawn(move || disturbed.disturb());
    let until = Instant::now() + PATIENCE;
    for _ in 0..program.threads.len() {
        let left = until.saturating_duration_since(Instant::now());
        if let Err(error) = ends.recv_timeout(left) {
            site.abandon();
            return Err(not_finished(&site, error));
        }
    }
    // It ends with the others, and has nothing to tell.
    let _ = disturber.join();
    site.worlds.iter().try_for_each(|world| {
        tally.count(&world.recorder.history());
        judge(world, setup)
    })
}

/// How much has been checked.
#[derive(Default)]
struct Tally {
    histories: Cell<usize>,
    calls: Cell<usize>,
    overlaps: Cell<usize>,
}

impl Tally {
    fn count(&self, history: &History<Op, Answer>) {
        let add = |count: &Cell<usize>, more| count.set(count.get() + more);
        add(&self.histories, 1);
        add(&self.calls, history.len());
        add(&self.overlaps, history.overlaps());
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [histories, calls, overlaps] =
            [&self.histories, &self.calls, &self.overlaps].map(Cell::get);
        write!(
            f,
            "{histories} histories of {calls} calls, of which {overlaps} overlap"
        )
    }
}

/// Tells of threads that panicked, or that wait for nothing.
fn not_finished<Q: Concurrent>(site: &Site<Q>, error: RecvTimeoutError) -> String {
    let why = match error {
        RecvTimeoutError::Timeout => "a call has not come back",
        RecvTimeoutError::Disconnected => "a thread has panicked",
    };
    let histories = site.worlds.iter().map(|world| world.recorder.history());
    let open = histories.filter(|history| {
        let mut calls = history.calls();
        calls.any(|(_, call)| call.answered.is_none())
    });
    let charts = open.map(|history| draw_marked(&history, &HashSet::new()));
    format!("{why}\n{}", charts.collect::<String>())
}

/// Looks at everything once all threads have ended, and checks the history.
fn judge<Q: Concurrent>(world: &World<Q>, setup: &Setup) -> Result<(), String> {
    let panicked = |panic| format!("the queue panicked: {panic}");
    guarded(|| world.queue.assert_valid()).map_err(panicked)?;
    guarded(|| world.look_afterwards()).map_err(panicked)?;
    let empty = QueueSpec::new(setup, world.queue.capacity());
    let history = world.recorder.history();
    match check(&empty, &history, STATES_MAX) {
        Ok(_) => Ok(()),
        Err(failure @ Failure::Undecided(_)) => {
            let chart = draw_marked(&history, &HashSet::new());
            Err(format!("{failure}\n{chart}"))
        }
        Err(failure) => Err(failure.to_string()),
    }
}

/// Programs whose delays are multiples of `tick`.
fn programs(tick: Duration) -> impl Strategy<Value = Program> {
    let thread = vec(step(tick), 1..8);
    vec(thread, 2..=4).prop_map(|threads| Program { threads })
}

/// Boxed, since the name of its type would fill pages of a backtrace.
fn step(tick: Duration) -> BoxedStrategy<Step> {
    let plain = prop_oneof![
        12 => adding(tick),
        4 => looking(),
        1 => closing(),
        2 => (1..=3u32).prop_map(move |ticks| Op::Advance(tick * ticks)),
        1 => key().prop_map(Op::DoneKey),
    ];
    let how = || completion(tick);
    prop_oneof![
        10 => plain.prop_map(Step::Plain),
        4 => Just(Step::TryGet),
        2 => Just(Step::GetNow),
        3 => Just(Step::Get),
        1 => (1..=3u8).prop_map(Step::GetMany),
        5 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Complete(pick, how)),
        1 => how().prop_map(Step::CompleteAll),
        2 => (any::<u8>(), how()).prop_map(|(pick, how)| Step::Next(pick, how)),
        3 => any::<u8>().prop_map(Step::Pause),
        1 => Just(Step::Drain),
    ]
    .boxed()
}

fn key() -> impl Strategy<Value = Key> {
    1..=KEYS
}

fn adding(tick: Duration) -> impl Strategy<Value = Op> {
    prop_oneof![
        6 => key().prop_map(Op::Add),
        3 => (key(), delay(tick)).prop_map(|(key, delay)| Op::AddAfter(key, delay)),
        2 => key().prop_map(Op::AddRateLimited),
        1 => vec(key(), 0..4).prop_map(Op::AddMany),
        1 => key().prop_map(Op::Forget),
    ]
}

fn looking() -> impl Strategy<Value = Op> {
    prop_oneof![
        2 => Just(Op::Len),
        2 => key().prop_map(Op::State),
        1 => key().prop_map(Op::NumRequeues),
        1 => Just(Op::ShuttingDown),
    ]
}

fn closing() -> impl Strategy<Value = Op> {
    prop_oneof![
        1 => Just(Op::ShutDown),
        1 => Just(Op::TakeDelayed),
        1 => Just(Op::TakeReady),
    ]
}

fn delay(tick: Duration) -> impl Strategy<Value = Duration> {
    prop_oneof![
        1 => Just(Duration::ZERO),
        6 => (1..=4u32).prop_map(move |ticks| tick * ticks),
        1 => Just(Duration::MAX),
    ]
}

fn completion(tick: Duration) -> impl Strategy<Value = Completion> {
    prop_oneof![
        2 => Just(Completion::Done),
        2 => Just(Completion::Succeeded),
        1 => delay(tick).prop_map(Completion::SucceededAgainAfter),
        2 => Just(Completion::Retry),
        1 => delay(tick).prop_map(Completion::RetryAfter),
    ]
}

impl<Q: Concurrent> World<Q> {
    /// Writes down how the queue was left, and takes out what is in it.
    fn look_afterwards(&self) {
        let thread = self.recorder.history().threads().len() - 1;
        let look = |op: Op| -> Answer {
            let call = self.recorder.call(thread, op.clone());
            let answer = self.perform_now(&op);
            self.recorder.answer(call, answer.clone());
            answer
        };
        look(Op::Len);
        for key in 1..=KEYS {
            look(Op::State(key));
        }
        for take in [Op::TakeReady, Op::TakeDelayed] {
            // Once more than there can be.
            for _ in 0..=KEYS {
                if look(take.clone()) == Answer::Left(None) {
                    break;
                }
            }
        }
    }
}
