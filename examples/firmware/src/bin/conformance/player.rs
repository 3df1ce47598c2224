//! Replays a recording on a queue, and compares.

use core::fmt::Debug;
use core::future::Future;
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_embassy::Finished;
use requeue_embassy::binding::{AsShared, Lock, Ticket};
use requeue_embassy::priority::Plain;
use requeue_embassy::{Action, Guard, ManualClock, Queue, Rejected, WorkQueue};

use crate::drains::Drains;
use crate::figures::Figures;
use crate::judge::Judge;
use crate::limiter::{self, Limiter};
use crate::poll;
use crate::recording::{Bytes, Operation, Step};

/// client-go sets the gauges of running work this often, from the creation of the queue on.
const TICK: Duration = Duration::from_millis(500);
/// As many as a recording has, at most.
pub const KEYS_MAX: usize = 16;

pub type Parts<'c> = (Figures, u8, &'c ManualClock);
pub type Keys<'c> = WorkQueue<CriticalSectionRawMutex, u8, KEYS_MAX, Plain, Limiter, 3, Parts<'c>>;
type Taken<'q, 'c> = Guard<'q, CriticalSectionRawMutex, u8, KEYS_MAX, Plain, Limiter, 3, Parts<'c>>;

/// Flags: what is compared of a recording, apart from its steps.
const DRAIN: u8 = 1;
const END: u8 = 2;

/// Replays the next recording.
pub fn replay(bytes: &mut Bytes<'_>, judge: &mut Judge) {
    let keys = bytes.byte();
    let limiter = limiter::read(bytes);
    let compared = bytes.byte();
    let clock = ManualClock::new();
    let queue: Keys<'_> =
        WorkQueue::from_queue(Queue::with_metrics(limiter, Figures::default()), &clock);
    let mut player = Player {
        queue: &queue,
        clock: &clock,
        tickets: [const { None }; KEYS_MAX + 1],
        turn: 0,
        judge,
    };
    let calls = [pin!(queue.drain()), pin!(queue.drain())];
    let mut drains = Drains::new(calls);
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
            match step.operation {
                Operation::ShutDownWithDrain => drains.begin(),
                Operation::ShutDown => drains.interrupt(),
                _ => {}
            }
            player.play(step.operation);
            drains.look(player.judge, clock.now(), player.left());
            player.look(step);
            if compared & DRAIN != 0 {
                drains.compare(player.judge, clock.now(), step.is_drained);
            }
        }
    }
    if compared & END != 0 {
        player.finish(bytes, keys);
    }
}

struct Player<'p, 'c> {
    queue: &'p Keys<'c>,
    clock: &'c ManualClock,
    tickets: [Option<Ticket>; KEYS_MAX + 1],
    /// Operations that can be done in several ways take turns.
    turn: u32,
    judge: &'p mut Judge,
}

impl<'p, 'c> Player<'p, 'c> {
    /// Counts the keys that are ready or active.
    fn left(&self) -> usize {
        self.queue.len() + self.queue.stats().active
    }

    /// Compares what can be observed after an operation.
    fn look(&mut self, step: Step) {
        self.judge.steps += 1;
        self.expect("len", self.queue.len(), step.len);
        self.queue
            .as_shared()
            .lock()
            .with(|state| state.queue().assert_valid());
    }

    fn play(&mut self, operation: Operation) {
        let queue = self.queue;
        let is_closed = queue.is_shutting_down();
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
                self.expect("done", done, true);
            }
            Operation::DoneIdle(key) => {
                self.expect("done", queue.release_key(&key), Finished::Stale)
            }
            Operation::Forget(key) => {
                queue.forget(&key);
            }
            Operation::NumRequeues(key, count) => {
                self.expect("num_requeues", queue.failures(&key), count);
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
                let gauges = queue.as_shared().lock().with(|state| {
                    let figures = state.queue().metrics();
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
        self.judge.waited += 1;
        self.expect("get, waiting", got, expected);
    }

    fn keep(&mut self, guard: Taken<'p, 'c>) -> u8 {
        let key = *guard;
        self.tickets[usize::from(key)] = guard.into_ticket();
        key
    }

    /// Ends a run by its ticket or by its key. Returns whether it had not ended before.
    fn done(&mut self, key: u8) -> bool {
        self.turn += 1;
        match self.tickets[usize::from(key)].take() {
            Some(ticket) if !self.turn.is_multiple_of(3) => {
                self.queue.as_shared().finish(ticket, Action::Release) != Finished::Stale
            }
            _ => self.queue.release_key(&key) != Finished::Stale,
        }
    }

    /// Advances the clock, and reports at every tick on the way.
    fn advance(&mut self, by: Duration) {
        let end = self.clock.now() + by;
        while !self.queue.is_shutting_down() {
            let tick = TICK.as_nanos() as u64;
            let next = tick - self.clock.now().as_nanos() % tick;
            if end.saturating_since(self.clock.now()) < Duration::from_nanos(next) {
                break;
            }
            self.clock.advance(Duration::from_nanos(next));
            self.queue.report_running();
        }
        self.clock.set(end);
    }

    fn finish(&mut self, bytes: &mut Bytes<'_>, keys: u8) {
        self.expect("the time", self.clock.now().as_nanos(), bytes.number());
        let figures = self.queue.as_shared().look(|queue| queue.metrics().clone());
        self.expect("the figures", figures, Figures::read(bytes));
        for key in 1..=keys {
            // Zero stands for what is not compared, else it is one more than recorded.
            if let Some(recorded) = bytes.small().checked_sub(1) {
                self.expect("failures", self.queue.failures(&key), recorded);
            }
        }
    }

    fn expect<T: PartialEq + Debug>(&mut self, what: &str, got: T, recorded: T) {
        self.judge.expect(self.clock.now(), what, got, recorded);
    }
}
