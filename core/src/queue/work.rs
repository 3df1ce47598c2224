//! What workers do: taking keys and completing their runs.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::delay::Scheduled;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::metrics::{Metrics, Stamps};
use crate::outcome::{Completion, Effect, Finished, Next, NotActive, Step};
use crate::priority::Marks;
use crate::slots::{Located, Phase, Slots, Storage};
use crate::waiting::Getter;
use crate::work::{Ticket, WorkOf};

use super::{Queue, quiet};

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Hands out the first ready key, or says how long to wait. O(1), and O(log n) for each
    /// deadline that has come.
    ///
    /// A getter that is told to wait sleeps until it is woken, no longer than `until`, and calls
    /// `get` again with the same [`Getter`]; or it calls [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Getter, Instant, Next, NoLimit, Queue, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let mut getter = Getter::new();
    /// assert_eq!(queue.get(now, &mut getter).value, Next::Wait { until: None });
    ///
    /// // The runtime puts the worker to sleep, and wakes it when the queue says so.
    /// assert_eq!(queue.add("node-7", now).wake, Wake::One);
    /// let Next::Work(work) = queue.get(now, &mut getter).value else {
    ///     panic!("it was woken for work");
    /// };
    /// assert_eq!(work.key, "node-7");
    /// ```
    pub fn get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<WorkOf<K, S, M>>> {
        self.release_due(now);
        let work = self.take(now);
        self.sleepers.arrive(getter);
        let next = match work {
            Some(work) => Next::Work(work),
            None => self.wait(getter),
        };
        self.effect(next)
    }

    /// Hands out the first ready key, if there is one. Costs as [`get`](Self::get).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many([17, 18], now, |_| {});
    /// let mut read = Vec::new();
    /// while let Some(work) = queue.try_get(now).value {
    ///     read.push(work.key);
    ///     let _ = queue.done(work.ticket, now);
    /// }
    /// assert_eq!(read, [17, 18]);
    /// ```
    pub fn try_get(&mut self, now: Instant) -> Effect<Option<WorkOf<K, S, M>>> {
        self.release_due(now);
        let work = self.take(now);
        self.effect_in_use(work)
    }

    /// Completes a run and hands out the next ready key, in one step: what a worker's loop does.
    /// Costs as [`complete`](Self::complete) and [`get`](Self::get) together, and reads `now` as
    /// [`complete`](Self::complete) does.
    ///
    /// A stale ticket does not keep a worker from its next key: [`Step::finished`] tells it.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Completion, Fixed, Getter, Instant, Next, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many([17, 18], now, |_| {});
    /// let _ = queue.shut_down(now);
    ///
    /// let mut getter = Getter::new();
    /// let mut read = Vec::new();
    /// let mut next = queue.get(now, &mut getter).value;
    /// while let Next::Work(work) = next {
    ///     read.push(work.key);
    ///     next = queue.next(work.ticket, Completion::Succeeded, now, &mut getter).value.next;
    /// }
    /// assert_eq!(read, [17, 18]);
    /// ```
    pub fn next(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
        getter: &mut Getter,
    ) -> Effect<Step<WorkOf<K, S, M>>> {
        let finished = self.complete_quietly(ticket, completion, now);
        let Effect { value: next, wake } = self.get(now, getter);
        Effect {
            value: Step { finished, next },
            wake,
        }
    }

    pub(super) fn wait<T>(&mut self, getter: &mut Getter) -> Next<T> {
        if self.closed {
            return Next::Closed;
        }
        let earliest = self.delays.earliest();
        Next::Wait {
            until: self.sleepers.sleep(getter, earliest),
        }
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Completes a run: the key may be worked on again. O(1), no lookup.
    ///
    /// A key that was added meanwhile is ready again, at the end of the queue. The failures stay
    /// remembered; [`complete`](Self::complete) says more in the same step.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// let _ = queue.add_rate_limited("node-7", now);
    /// let later = Instant::from_nanos(1_000_000);
    /// let work = queue.try_get(later).value.unwrap();
    /// assert_eq!(queue.done(work.ticket, later).value, Ok(()));
    /// assert_eq!(queue.num_requeues(&"node-7"), 1, "only `forget` forgets");
    /// ```
    pub fn done(&mut self, ticket: Ticket, now: Instant) -> Effect<Result<(), NotActive>> {
        self.end(ticket, false, now).map(|ended| ended.map(|_| ()))
    }

    /// Completes the run of a key by name, as client-go's `Done`. O(1), one lookup.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not in work: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, NotActive, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// let _work = queue.try_get(now);
    /// assert_eq!(queue.done_key(&"node-7", now).value, Ok(()));
    /// assert_eq!(queue.done_key(&"node-7", now).value, Err(NotActive));
    /// ```
    pub fn done_key(&mut self, key: &K, now: Instant) -> Effect<Result<(), NotActive>> {
        match self.slots.locate(key) {
            Located::Found(id) if self.is_active(id) => {
                let run = self.slots.slot(id).map_or(0, |slot| slot.run);
                self.done(Ticket { id, run }, now)
            }
            _ => quiet(Err(NotActive)),
        }
    }

    /// Completes a run and says what is to become of the key, in one step. O(log n), no lookup.
    ///
    /// While the queue shuts down a key that is to come back is not worked on again: it is kept for
    /// [`take_delayed`](Self::take_delayed), which hands it back. One that was added meanwhile is
    /// ready in any case, and comes back by that.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says if
    /// [the completion](Completion::needs_time) does.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was completed otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Completion, Finished, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("lease-3", now);
    /// let work = queue.try_get(now).value.unwrap();
    ///
    /// // The lease is renewed, and is to be looked at again before it ends.
    /// let minute = Duration::from_secs(60);
    /// let finished = queue.complete(work.ticket, Completion::SucceededAgainAfter(minute), now);
    /// assert_eq!(finished.value, Ok(Finished::Delayed(minute)));
    /// ```
    pub fn complete(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>> {
        let finished = self.complete_quietly(ticket, completion, now);
        self.effect(finished)
    }

    /// A getter that was told to wait goes away without work: its call was cancelled or timed out.
    /// O(1).
    ///
    /// If it watched a deadline or had been woken, somebody else who sleeps is woken in its place.
    /// Nothing happens if it was not told to wait, or has come back since.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Getter, Instant, NoLimit, Queue, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let (mut impatient, mut patient) = (Getter::new(), Getter::new());
    /// let _ = queue.get(now, &mut impatient);
    /// let _ = queue.get(now, &mut patient);
    ///
    /// // The wake goes to the one that has just given up: the other is woken in its place.
    /// assert_eq!(queue.add("node-7", now).wake, Wake::One);
    /// assert_eq!(queue.leave(&mut impatient).wake, Wake::One);
    /// ```
    pub fn leave(&mut self, getter: &mut Getter) -> Effect<()> {
        self.sleepers.arrive(getter);
        self.effect(())
    }

    /// Reports to the metrics how long the keys in work have been so: client-go does that every
    /// 500 ms. O(slots).
    ///
    /// Nothing is reported once the queue shuts down.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, Metrics, NoLimit, Queue, Times};
    ///
    /// #[derive(Default)]
    /// struct Longest(Duration);
    ///
    /// impl Metrics for Longest {
    ///     type Stamps = Times;
    ///
    ///     fn longest_running(&mut self, longest: Duration) {
    ///         self.0 = longest;
    ///     }
    /// }
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit, Longest> =
    ///     Queue::with_metrics(NoLimit, Longest::default());
    /// let _ = queue.add("node-7", now);
    /// let _stuck = queue.try_get(now);
    /// let _ = queue.report_running(now + Duration::from_secs(90));
    /// assert_eq!(queue.metrics().0, Duration::from_secs(90));
    /// ```
    pub fn report_running(&mut self, now: Instant) -> Effect<()> {
        if !self.closed {
            self.release_due(now);
            let (mut sum, mut longest) = (Duration::ZERO, Duration::ZERO);
            for index in 0..self.slots.bound() {
                let id = SlotId::from_index(index);
                if let Some(slot) = self.slots.slot(id).filter(|_| self.is_active(id)) {
                    let age = now.saturating_since(slot.note.stamps.started());
                    sum = sum.saturating_add(age);
                    longest = longest.max(age);
                }
            }
            self.metrics.unfinished_work(sum);
            self.metrics.longest_running(longest);
        }
        self.effect(())
    }

    pub(super) fn complete_quietly(
        &mut self,
        ticket: Ticket,
        completion: Completion,
        now: Instant,
    ) -> Result<Finished, NotActive> {
        self.release_due(now);
        let slot = self.slots.slot(ticket.id);
        if !slot.is_some_and(|slot| slot.is_run_by(&ticket)) {
            return Err(NotActive);
        }
        let delay = self.apply(ticket.id, completion, now);
        let again = self.finish(ticket, completion.forgets(), now)?;
        Ok(match delay {
            Some(delay) if !again && self.closed => Finished::Leftover(delay),
            Some(delay) if !again => Finished::Delayed(delay),
            _ => Finished::at_once(again),
        })
    }

    /// [`complete`](Self::complete) for a key that is not to come back, with the answer as small as
    /// it can be: whether it is ready again.
    pub(crate) fn end(
        &mut self,
        ticket: Ticket,
        forgets: bool,
        now: Instant,
    ) -> Effect<Result<bool, NotActive>> {
        self.release_due(now);
        let again = self.finish(ticket, forgets, now);
        self.effect(again)
    }

    /// Lets a key come back, if its completion asks for that. Answers how long the key has to wait.
    fn apply(&mut self, id: SlotId, completion: Completion, now: Instant) -> Option<Duration> {
        let delay = match completion {
            Completion::Done | Completion::Succeeded => return None,
            Completion::SucceededAgainAfter(delay) | Completion::RetryAfter(delay) => delay,
            Completion::Retry => self.charge_slot(id, now),
        };
        let level = self.marks(id).running();
        if self.closed {
            self.keep_for_later(id, now + delay, level);
        } else {
            let _ = self.come_back(id, now + delay, now, level);
        }
        Some(delay)
    }

    /// While the queue shuts down: keeps a key that wants to come back among the delayed ones,
    /// which are handed back. A dirty key will run once more and need not be kept.
    fn keep_for_later(&mut self, id: SlotId, due: Instant, level: u8) {
        let clean = self
            .slots
            .slot(id)
            .is_some_and(|slot| slot.phase == Phase::Active);
        if clean {
            if self.delays.schedule(id, due) == Scheduled::New {
                self.set_delayed(id, level);
            } else {
                let _ = self.raise_delayed(id, level);
            }
            self.metrics.delayed(self.delays.len());
        }
    }
}
