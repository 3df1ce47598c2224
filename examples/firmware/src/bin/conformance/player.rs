//! Does to a queue what was recorded, and compares.

use core::fmt::Debug;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::core::{Clock, Completion, Lock, NotActive, Ticket};
use requeue_embassy::{Drained, Guard, ManualClock, Queue, Rejected, TooManyWaiters, WorkQueue};
use requeue_firmware::println;

use crate::figures::Figures;
use crate::limiter::{self, Limiter};
use crate::recording::{Bytes, Operation, Step};

/// client-go sets the gauges of work under way this often, from the creation of the queue on.
const TICK: Duration = Duration::from_millis(500);
const KEYS_MAX: usize = 8;

type Keys<'c> =
    WorkQueue<CriticalSectionRawMutex, u8, KEYS_MAX, Limiter, 3, Figures, u8, &'c ManualClock>;
type Taken<'q, 'c> =
    Guard<'q, CriticalSectionRawMutex, u8, KEYS_MAX, Limiter, 3, Figures, u8, &'c ManualClock>;

/// What came of all recordings so far.
#[derive(Default)]
pub struct Outcome {
    pub steps: u32,
    pub mismatches: u32,
    /// client-go's drain looks at keys in work alone, and returns early.
    pub differences: u32,
    /// Keys that a sleeping call got.
    pub waited: u32,
}

/// Replays the next recording.
pub fn replay(bytes: &mut Bytes<'_>, total: &mut Outcome) {
    let id = bytes.number();
    let keys = bytes.byte();
    let limiter = limiter::read(bytes);
    let clock = ManualClock::new();
    let queue: Keys<'_> =
        WorkQueue::from_queue(Queue::with_metrics(limiter, Figures::default()), &clock);
    let mut player = Player {
        queue: &queue,
        clock: &clock,
        tickets: [const { None }; KEYS_MAX + 1],
        turn: 0,
        id,
        total,
    };
    let mut drain = pin!(queue.shut_down_with_drain());
    let mut is_draining = false;
    let mut drained = None;
    let steps = bytes.number();
    let mut taken = 0;
    while taken < steps {
        taken += 1;
        let step = Step::read(bytes);
        if let Operation::Advance {
            is_waited: true, ..
        } = step.operation
        {
            let mut get = pin!(queue.get());
            player.expect("a call that waits", poll(get.as_mut()).is_ready(), false);
            player.play(step.operation);
            player.look(step);
            taken += 1;
            let next = Step::read(bytes);
            player.take_waited(get, next);
            player.look(next);
        } else {
            player.play(step.operation);
            is_draining |= matches!(step.operation, Operation::ShutDownWithDrain);
            if is_draining
                && drained.is_none()
                && let Poll::Ready(ended) = poll(drain.as_mut())
            {
                drained = Some(ended);
            }
            player.look(step);
            player.compare_drain(step.is_drained, drained);
        }
    }
    player.finish(bytes, keys);
}

struct Player<'p, 'c> {
    queue: &'p Keys<'c>,
    clock: &'c ManualClock,
    tickets: [Option<Ticket>; KEYS_MAX + 1],
    /// What is done in several ways is done in turns.
    turn: u32,
    id: u64,
    total: &'p mut Outcome,
}

impl<'p, 'c> Player<'p, 'c> {
    /// Compares what can be seen after an operation.
    fn look(&mut self, step: Step) {
        self.total.steps += 1;
        self.expect("len", self.queue.len(), step.len);
        self.queue.lock().with(|state| state.assert_valid());
    }

    fn play(&mut self, operation: Operation) {
        let queue = self.queue;
        let is_closed = queue.shutting_down();
        let taken = |result: Result<_, Rejected<u8>>| result.map(drop);
        let expected = |key| {
            if is_closed {
                Err(Rejected::Closed(key))
            } else {
                Ok(())
            }
        };
        match operation {
            Operation::Add(key) => self.expect("add", taken(queue.add(key)), expected(key)),
            Operation::AddAfter(key, delay) => {
                let added = taken(queue.add_after(key, delay));
                self.expect("add_after", added, expected(key));
            }
            Operation::AddRateLimited(key, delay) => {
                let limited = queue.add_rate_limited(key).map(|limited| limited.delay);
                self.expect("add_rate_limited", limited, expected(key).map(|()| delay));
            }
            Operation::GetNothing | Operation::GetClosed => {
                self.expect(
                    "shutting down",
                    is_closed,
                    matches!(operation, Operation::GetClosed),
                );
                let key = self.take();
                self.expect("get", key, None);
            }
            Operation::Get(key) => {
                let got = self.take();
                self.expect("get", got, Some(key));
            }
            Operation::Done(key) => {
                let done = self.done(key);
                self.expect("done", done, Ok(()));
            }
            Operation::DoneIdle(key) => self.expect("done", queue.done(&key), Err(NotActive)),
            Operation::Forget(key) => {
                queue.forget(&key);
            }
            Operation::NumRequeues(key, count) => {
                self.expect("num_requeues", queue.num_requeues(&key), count);
            }
            Operation::Len => {}
            Operation::ShuttingDown(answer) => self.expect("shutting_down", is_closed, answer),
            Operation::ShutDown => queue.shut_down(),
            // The future that waits for it is polled after this.
            Operation::ShutDownWithDrain => {}
            Operation::Advance {
                by,
                unfinished,
                longest,
                ..
            } => {
                self.advance(by);
                let gauges = queue.lock().with(|state| {
                    let figures = state.metrics();
                    (figures.unfinished, figures.longest)
                });
                self.expect("the gauges", gauges, (unfinished, longest));
            }
        }
    }

    /// Takes a key in one of the two ways that do not wait.
    fn take(&mut self) -> Option<u8> {
        self.turn += 1;
        let guard = if self.turn.is_multiple_of(2) {
            self.queue.try_get()
        } else {
            match poll(pin!(self.queue.get())) {
                Poll::Ready(got) => got.ok(),
                Poll::Pending => None,
            }
        };
        guard.map(|guard| self.keep(guard))
    }

    /// Polls a call that slept while its key became due.
    fn take_waited<E>(
        &mut self,
        get: Pin<&mut impl Future<Output = Result<Taken<'p, 'c>, E>>>,
        step: Step,
    ) {
        let got = match poll(get) {
            Poll::Ready(got) => got.ok().map(|guard| self.keep(guard)),
            Poll::Pending => None,
        };
        let expected = match step.operation {
            Operation::Get(key) => Some(key),
            _ => None,
        };
        self.total.waited += 1;
        self.expect("get, waiting", got, expected);
    }

    fn keep(&mut self, guard: Taken<'p, 'c>) -> u8 {
        let key = *guard;
        self.tickets[usize::from(key)] = guard.into_ticket();
        key
    }

    /// Completes a run by its ticket or by its name.
    fn done(&mut self, key: u8) -> Result<(), NotActive> {
        self.turn += 1;
        match self.tickets[usize::from(key)].take() {
            Some(ticket) if !self.turn.is_multiple_of(3) => {
                let finished = self.queue.complete(ticket, Completion::Done);
                finished.map(drop)
            }
            _ => self.queue.done(&key),
        }
    }

    /// Lets time pass, and reports at every tick on the way.
    fn advance(&mut self, by: Duration) {
        let end = self.clock.now() + by;
        while !self.queue.shutting_down() {
            let tick = TICK.as_nanos() as u64;
            let next = tick - self.clock.now().as_nanos() % tick;
            if end.saturating_since(self.clock.now()) < Duration::from_nanos(next) {
                break;
            }
            self.clock.advance(Duration::from_nanos(next));
            self.queue.report_running();
        }
        self.clock.set(end);
        self.queue.clock_moved();
    }

    /// client-go's drain looks at keys in work alone: it may return where this one waits.
    fn compare_drain(&mut self, recorded: bool, drained: Option<Result<Drained, TooManyWaiters>>) {
        match drained {
            Some(ended) => {
                self.expect("a place for the drain", ended.is_ok(), true);
                self.expect("the drain", true, recorded);
            }
            None if recorded => {
                let active = self.queue.lock().with(|state| state.active_len());
                self.expect("keys left to drain", self.queue.len() + active > 0, true);
                self.total.differences += 1;
            }
            None => {}
        }
    }

    fn finish(&mut self, bytes: &mut Bytes<'_>, keys: u8) {
        self.expect("the time", self.clock.now().as_nanos(), bytes.number());
        let figures = self.queue.lock().with(|state| state.metrics().clone());
        self.expect("the figures", figures, Figures::read(bytes));
        for key in 1..=keys {
            // Zero stands for what is not compared, else it is one more than recorded.
            if let Some(recorded) = bytes.small().checked_sub(1) {
                self.expect("failures", self.queue.num_requeues(&key), recorded);
            }
        }
    }

    fn expect<T: PartialEq + Debug>(&mut self, what: &str, got: T, recorded: T) {
        if got == recorded {
            return;
        }
        self.total.mismatches += 1;
        // The first few say what is wrong.
        if self.total.mismatches <= 10 {
            let at = self.clock.now();
            println!(
                "recording {} at {at}: {what}: {got:?}, recorded {recorded:?}",
                self.id
            );
        }
    }
}

fn poll<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}
