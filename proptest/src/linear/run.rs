//! Running drawn programs, and judging what the threads have seen.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{TestError, TestRunner};

use super::chart::draw_marked;
use super::concurrent::{Concurrent, Site, World};
use super::program::{KEYS, Program, programs};
use super::queue::{Answer, Op, QueueSpec};
use super::{Failure, History, Work, check};
use crate::caught::guarded;
use crate::limiter::LimiterSpec;
use crate::rounds;
use crate::subject::Setup;

/// What the search remembers at most. The histories that are drawn here need some hundred states.
const STATES_MAX: usize = 100_000;
/// How often a program is run.
const ROUNDS: u32 = 16;
/// How often a smaller program is run before it is believed to pass.
const ROUNDS_TO_SHRINK: u32 = 100;
/// How many smaller programs are tried.
const SHRINK_MAX: u32 = 150;
/// For how long. A program that hangs is not worth as much time again for each that is smaller.
const SHRINK_PATIENCE: Duration = Duration::from_secs(10);
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
    let has_failed = Cell::new(false);
    first_failure(Q::TICK, 1, |program, tally| {
        let times = if has_failed.get() {
            ROUNDS_TO_SHRINK
        } else {
            ROUNDS
        };
        let outcome = run_program::<Q>(program, rounds(times), tally);
        has_failed.set(has_failed.get() || outcome.is_err());
        outcome
    });
}

/// Draws programs until one fails, and fails the test with the smallest one that does. Draws
/// `many` times as many as proptest is configured to draw.
#[expect(clippy::panic, reason = "this is how a test fails")]
pub(super) fn first_failure(
    tick: Duration,
    many: u32,
    outcome: impl Fn(&Program, &Tally) -> Result<(), String>,
) {
    let mut config = ProptestConfig {
        failure_persistence: None,
        max_shrink_iters: SHRINK_MAX,
        ..ProptestConfig::default()
    };
    config.cases = config.cases.saturating_mul(many);
    let failed: RefCell<Option<(Instant, String)>> = RefCell::new(None);
    let tally = Tally::default();
    let result = TestRunner::new(config).run(&programs(tick), |program| {
        let since = failed.borrow().as_ref().map(|(since, _)| *since);
        if since.is_some_and(|since| since.elapsed() > SHRINK_PATIENCE) {
            return Ok(());
        }
        outcome(&program, &tally).map_err(|story| {
            let since = since.unwrap_or_else(Instant::now);
            *failed.borrow_mut() = Some((since, story));
            TestCaseError::fail("see below")
        })
    });
    let story = failed.into_inner().map(|(_, story)| story);
    match result {
        Ok(()) => println!("explained: {tally}"),
        Err(TestError::Fail(_, program)) => {
            let story = story.unwrap_or_default();
            panic!("{program}{story}\nafter {tally}, those to shrink included");
        }
        Err(TestError::Abort(reason)) => panic!("{reason}"),
    }
}

/// One run of a program, for those who decide themselves when each of its threads goes on.
///
/// # Examples
///
/// ```
/// use std::pin::pin;
/// use std::task::{Context, Waker};
/// use std::thread;
/// use requeue_core::Completion;
/// use requeue_proptest::linear::{Op, Program, SharedThreads, Step, Trial};
///
/// let adds = vec![Step::Plain(Op::Add(1)), Step::Plain(Op::Len)];
/// let works = vec![Step::Get, Step::Complete(0, Completion::Done)];
/// let trial = Trial::<SharedThreads>::new(&Program { threads: vec![adds, works] });
/// thread::scope(|scope| {
///     for thread in 0..2 {
///         let work = trial.work(thread);
///         // Threads that wait do so by themselves: one poll does it all.
///         scope.spawn(|| pin!(work.run()).poll(&mut Context::from_waker(Waker::noop())));
///     }
/// });
/// assert_eq!(trial.judge(), Ok(()));
/// ```
pub struct Trial<Q: Concurrent>(Arc<Site<Q>>);

impl<Q: Concurrent> Trial<Q> {
    /// On a new queue.
    pub fn new(program: &Program) -> Self {
        Self(Arc::new(Site::new(program.clone(), &setup::<Q>(), 1)))
    }

    /// What one of the threads has to do. Every one has to be let do it.
    pub fn work(&self, thread: usize) -> Work<Q> {
        Work {
            site: Arc::clone(&self.0),
            thread,
            // Nobody listens: whoever lets threads go on knows when they have ended.
            finished: channel().0,
        }
    }

    pub(super) fn count(&self, tally: &Tally) {
        let histories = self.0.worlds.iter().map(|world| world.recorder.history());
        histories.for_each(|history| tally.count(&history));
    }

    /// Once all threads have ended: checks what they have seen, and how they have left the queue.
    ///
    /// # Errors
    ///
    /// What is wrong, with the history: no order explains it, the queue's own invariants do not
    /// hold, or a thread has panicked.
    pub fn judge(&self) -> Result<(), String> {
        self.0.worlds.iter().try_for_each(|world| {
            if is_open(&world.recorder.history()) {
                return Err(not_finished(&self.0, RecvTimeoutError::Disconnected));
            }
            judge(world, &setup::<Q>())
        })
    }
}

impl<Q: Concurrent> fmt::Debug for Trial<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trial").field(&self.0.program).finish()
    }
}

fn setup<Q: Concurrent>() -> Setup {
    Setup::new(LimiterSpec::Exponential {
        base_ns: nanos(Q::TICK),
        max_ns: nanos(Q::TICK).saturating_mul(1000),
    })
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Runs a program on as many new queues as there are rounds. Answers what is wrong.
fn run_program<Q: Concurrent>(program: &Program, rounds: u32, tally: &Tally) -> Result<(), String> {
    let setup = setup::<Q>();
    let site = Arc::new(Site::<Q>::new(program.clone(), &setup, rounds));
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
        judge(world, &setup)
    })
}

/// How much has been checked.
#[derive(Default)]
pub(super) struct Tally {
    histories: Cell<usize>,
    calls: Cell<usize>,
    overlaps: Cell<usize>,
}

impl Tally {
    pub(super) fn count(&self, history: &History<Op, Answer>) {
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
    let open = histories.filter(is_open);
    let charts = open.map(|history| draw_marked(&history, &HashSet::new()));
    format!("{why}\n{}", charts.collect::<String>())
}

/// Whether a call has not been answered.
fn is_open(history: &History<Op, Answer>) -> bool {
    history.calls().any(|(_, call)| call.answered.is_none())
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
