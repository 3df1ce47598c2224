//! Replays a recording on a queue, and compares.
//!
//! A queue is a [`Subject`]: that of Embassy, and on a board with room for both that of a bare loop.

use core::fmt::Debug;
use core::future::Future;
use core::ops::Deref;
use core::pin::{Pin, pin};
use core::task::Poll;
use core::time::Duration;

use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use requeue_core::Guard;
use requeue_embassy::binding::{AsShared, Host, Shared, Ticket};
use requeue_embassy::priority::Plain;
use requeue_embassy::{Action, Finished, ManualClock, Queue, Rejected, WaitError};

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

/// The queue of Embassy, with its room for calls that wait.
pub type Keys<'c> = requeue_embassy::WorkQueue<
    CriticalSectionRawMutex,
    u8,
    KEYS_MAX,
    Plain,
    Limiter,
    3,
    (Figures, u8, &'c ManualClock),
>;

/// A queue that recordings are replayed on.
pub trait Subject<'c>: AsShared<Host: Host<Key = u8, Metrics = Figures>> {
    /// Makes an empty queue on a clock.
    fn new(limiter: Limiter, clock: &'c ManualClock) -> Self;

    /// Waits for a key, in the runtime's own way.
    fn get(&self) -> impl Future<Output = Result<(u8, Option<Ticket>), WaitError>>;

    /// Shuts down, and waits for the drain.
    fn drain(&self) -> impl Future<Output = Result<(), WaitError>>;
}

impl<'c> Subject<'c> for Keys<'c> {
    fn new(limiter: Limiter, clock: &'c ManualClock) -> Self {
        Self::from_queue(Queue::with_metrics(limiter, Figures::default()), clock)
    }

    async fn get(&self) -> Result<(u8, Option<Ticket>), WaitError> {
        Ok(handed(Keys::get(self).await?))
    }

    fn drain(&self) -> impl Future<Output = Result<(), WaitError>> {
        Keys::drain(self)
    }
}

/// The queue of a bare loop.
#[cfg(feature = "virt")]
pub mod bare {
    use core::future::poll_fn;
    use core::task::Poll;

    use requeue_bare::binding::{Clock, Drained};
    use requeue_bare::{Board, Instant, Next};

    use super::*;

    /// A board whose clock stands still: no call sleeps, because the player looks instead.
    pub struct Stopped<'c>(&'c ManualClock);

    pub type Keys<'c> =
        requeue_bare::WorkQueue<Stopped<'c>, u8, KEYS_MAX, Plain, Limiter, 0, Figures>;

    impl Clock for Stopped<'_> {
        fn now(&self) -> Instant {
            self.0.now()
        }
    }

    impl Board for Stopped<'_> {
        fn arm(&self, _: Option<Instant>) {}

        fn idle(&self) {}
    }

    impl<'c> Subject<'c> for Keys<'c> {
        fn new(limiter: Limiter, clock: &'c ManualClock) -> Self {
            let queue = Queue::with_metrics(limiter, Figures::default());
            Self::from_queue(queue, Stopped(clock))
        }

        async fn get(&self) -> Result<(u8, Option<Ticket>), WaitError> {
            poll_fn(|_| match self.look() {
                Next::Work(guard) => Poll::Ready(Ok(handed(guard))),
                Next::Wait { .. } => Poll::Pending,
                Next::Closed => Poll::Ready(Err(WaitError::Closed)),
            })
            .await
        }

        async fn drain(&self) -> Result<(), WaitError> {
            let shared = self.as_shared();
            let drain = shared.begin_drain();
            poll_fn(|_| match shared.drain_status(&drain) {
                Drained::Pending => Poll::Pending,
                drained => Poll::Ready(drained.into_result()),
            })
            .await
        }
    }
}

/// Takes a guard apart.
fn handed<H, R>(guard: Guard<H, R>) -> (u8, Option<Ticket>)
where
    H: Host<Key = u8>,
    R: Deref<Target = Shared<H>>,
{
    (*guard, guard.into_ticket())
}

/// Flags: what is compared of a recording, apart from its steps.
const DRAIN: u8 = 1;
const END: u8 = 2;

/// Replays the next recording.
pub fn replay<'c, Q: Subject<'c>>(
    clock: &'c ManualClock,
    bytes: &mut Bytes<'_>,
    judge: &mut Judge,
) {
    let keys = bytes.byte();
    let limiter = limiter::read(bytes);
    let compared = bytes.byte();
    let queue = Q::new(limiter, clock);
    let mut player = Player {
        queue: queue.as_shared(),
        clock,
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
            let is_ready = poll(get.as_mut()).is_ready();
            player.expect("a call that waits", is_ready, false);
            player.play(step.operation, &queue);
            player.look(step);
            taken += 1;
            let next = Step::read(bytes);
            player.take_waited(get.as_mut(), next);
            player.look(next);
        } else {
            match step.operation {
                Operation::ShutDownWithDrain => drains.begin(),
                Operation::ShutDown => drains.interrupt(),
                _ => {}
            }
            player.play(step.operation, &queue);
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

struct Player<'p, H: Host> {
    queue: &'p Shared<H>,
    clock: &'p ManualClock,
    tickets: [Option<Ticket>; KEYS_MAX + 1],
    /// Operations that can be done in several ways take turns.
    turn: u32,
    judge: &'p mut Judge,
}

impl<H: Host<Key = u8, Metrics = Figures>> Player<'_, H> {
    /// Counts the keys that are ready or active.
    fn left(&self) -> usize {
        self.queue.len() + self.queue.stats().active
    }

    /// Compares what can be observed after an operation.
    fn look(&mut self, step: Step) {
        self.judge.steps += 1;
        self.expect("len", self.queue.len(), step.len);
        self.queue.look(|queue| queue.assert_valid());
    }

    fn play<'c>(&mut self, operation: Operation, calls: &impl Subject<'c>) {
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
                let key = self.take(calls);
                self.expect("get", key, None);
            }
            Operation::Get(key) => {
                let got = self.take(calls);
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
                let gauges = queue.look(|queue| {
                    let figures = queue.metrics();
                    (figures.unfinished, figures.longest)
                });
                self.expect("the gauges", gauges, (unfinished, longest));
            }
        }
    }

    /// Takes a key in one of the two ways that do not wait.
    fn take<'c>(&mut self, calls: &impl Subject<'c>) -> Option<u8> {
        self.turn += 1;
        let taken = if self.turn.is_multiple_of(2) {
            self.queue.try_get().map(handed)
        } else {
            match poll(pin!(calls.get())) {
                Poll::Ready(got) => got.ok(),
                Poll::Pending => None,
            }
        };
        taken.map(|taken| self.keep(taken))
    }

    /// Polls a call that slept while its key became due.
    fn take_waited(
        &mut self,
        get: Pin<&mut impl Future<Output = Result<(u8, Option<Ticket>), WaitError>>>,
        step: Step,
    ) {
        let got = match poll(get) {
            Poll::Ready(got) => got.ok().map(|taken| self.keep(taken)),
            Poll::Pending => None,
        };
        let expected = match step.operation {
            Operation::Get(key) => Some(key),
            _ => None,
        };
        self.judge.waited += 1;
        self.expect("get, waiting", got, expected);
    }

    fn keep(&mut self, (key, ticket): (u8, Option<Ticket>)) -> u8 {
        self.tickets[usize::from(key)] = ticket;
        key
    }

    /// Ends a run by its ticket or by its key. Returns whether it had not ended before.
    fn done(&mut self, key: u8) -> bool {
        self.turn += 1;
        match self.tickets[usize::from(key)].take() {
            Some(ticket) if !self.turn.is_multiple_of(3) => {
                self.queue.finish(ticket, Action::Release) != Finished::Stale
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
        let figures = self.queue.look(|queue| queue.metrics().clone());
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
