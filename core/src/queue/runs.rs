//! What workers do: taking keys and ending their runs.

use core::borrow::Borrow;
use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::action::Action;
use crate::delay::DelayChange;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::outcome::{Effect, Finished, Next, NotActive, Step};
use crate::priority::{KeyLevels, Priorities};
use crate::sleepers::Getter;
use crate::storage::{Located, Slots, Storage};
use crate::work::{Ticket, Work};

use super::{Queue, quiet};

impl<K: Eq + Hash + Clone, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Takes the first ready key, or returns until when to wait. O(log n), and O(log n) for each
    /// active key whose own deadline has passed.
    ///
    /// If the result is [`Next::Wait`], the caller sleeps until it is woken, and no longer than
    /// `until`. Then it calls this again with the same [`Getter`], or calls
    /// [`leave`](Self::leave).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::{Getter, Next, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let mut getter = Getter::new();
    /// assert_eq!(queue.poll_get(now, &mut getter).value, Next::Wait { until: None });
    ///
    /// // The runtime puts the worker to sleep, and wakes it when the queue says so.
    /// assert_eq!(queue.add("node-7", now).wake, Wake::ONE);
    /// let Next::Work(work) = queue.poll_get(now, &mut getter).value else {
    ///     panic!("it was woken for work");
    /// };
    /// assert_eq!(work.key, "node-7");
    /// ```
    ///
    /// A bare loop sleeps until an interrupt, and no longer than `until`. It needs no wakes,
    /// because it looks again after every interrupt:
    ///
    /// ```
    /// use requeue_core::{Action, Fixed, Instant, NoLimit, Queue, WithRunRate};
    /// use requeue_core::binding::{Getter, Next};
    ///
    /// // At most two runs a second.
    /// let limiter = WithRunRate::new(NoLimit, 2.0, 1);
    /// let mut queue: Queue<u16, Fixed<4>, _> = Queue::new(limiter);
    /// let mut now = Instant::EPOCH;
    /// let _ = queue.add_many([17, 18, 19], now, |_| {});
    ///
    /// let (mut runs, mut sleeps) = (0, 0);
    /// let mut getter = Getter::new();
    /// loop {
    ///     match queue.poll_get(now, &mut getter).value {
    ///         Next::Work(work) => {
    ///             runs += 1;
    ///             let _ = queue.finish(work.ticket, Action::Success, now);
    ///         }
    ///         // Here a board sets its alarm, and sleeps.
    ///         Next::Wait { until: Some(until) } => {
    ///             sleeps += 1;
    ///             now = until;
    ///         }
    ///         Next::Wait { until: None } | Next::Closed => break,
    ///     }
    /// }
    /// assert_eq!((runs, sleeps), (3, 2), "keys were ready, and waited for a token");
    /// ```
    #[doc(alias = "Get")]
    pub fn poll_get(&mut self, now: Instant, getter: &mut Getter) -> Effect<Next<Work<K>>> {
        let work = self.take(now);
        self.sleepers.arrive(getter);
        let next = match work {
            Some(work) => Next::Work(work),
            None => self.wait(getter),
        };
        self.effect(next)
    }

    /// Takes the first ready key, if there is one. Costs as [`poll_get`](Self::poll_get).
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
    ///     let _ = queue.release(work.ticket, now);
    /// }
    /// assert_eq!(read, [17, 18]);
    /// ```
    #[doc(alias = "Get")]
    pub fn try_get(&mut self, now: Instant) -> Effect<Option<Work<K>>> {
        let work = self.take(now);
        self.effect_in_use(work)
    }

    /// Ends a run and takes the next ready key, in one operation, as a worker's loop does. Costs as
    /// [`finish`](Self::finish) and [`poll_get`](Self::poll_get) together, and reads `now` as
    /// [`finish`](Self::finish) does.
    ///
    /// A stale ticket does not keep a worker from its next key: [`Step::finished`] reports it.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Action, Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::{Getter, Next};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_many([17, 18], now, |_| {});
    /// let _ = queue.shut_down(now);
    ///
    /// let mut getter = Getter::new();
    /// let mut read = Vec::new();
    /// let mut next = queue.poll_get(now, &mut getter).value;
    /// while let Next::Work(work) = next {
    ///     read.push(work.key);
    ///     next = queue.poll_next(work.ticket, Action::Success, now, &mut getter).value.next;
    /// }
    /// assert_eq!(read, [17, 18]);
    /// ```
    pub fn poll_next(
        &mut self,
        ticket: Ticket,
        action: Action,
        now: Instant,
        getter: &mut Getter,
    ) -> Effect<Step<Work<K>>> {
        let finished = self.finish_quietly(ticket, action, now);
        let Effect { value: next, wake } = self.poll_get(now, getter);
        Effect {
            value: Step { finished, next },
            wake,
        }
    }

    pub(super) fn wait<T>(&mut self, getter: &mut Getter) -> Next<T> {
        if self.is_over() {
            return Next::Closed;
        }
        let earliest = self.next_deadline();
        Next::Wait {
            until: self.sleepers.sleep(getter, earliest),
        }
    }
}

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Ends a run, and keeps the key's failures: [`finish`](Self::finish) with [`Action::Release`].
    /// O(1), no lookup.
    ///
    /// A key that was added during its run is ready again, at the end of the queue.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was ended otherwise: nothing changes.
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
    /// assert_eq!(queue.release(work.ticket, later).value, Ok(()));
    /// assert_eq!(queue.num_requeues(&"node-7"), 1, "its failure stays on record");
    /// ```
    #[doc(alias = "Done")]
    pub fn release(&mut self, ticket: Ticket, now: Instant) -> Effect<Result<(), NotActive>> {
        self.end(ticket, false, now).map(|ended| ended.map(|_| ()))
    }

    /// Ends the run of a key, as client-go's `Done`: the key's failures stay as they are. O(1), one
    /// lookup.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the key is not active: nothing changes.
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
    /// assert_eq!(queue.release_key(&"node-7", now).value, Ok(()));
    /// assert_eq!(queue.release_key(&"node-7", now).value, Err(NotActive));
    /// ```
    #[doc(alias = "Done")]
    pub fn release_key<B>(&mut self, key: &B, now: Instant) -> Effect<Result<(), NotActive>>
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        match self.slots.locate(key) {
            Located::Found(id) if self.is_active(id) => {
                let run = self.slots.slot(id).map_or(0, |slot| slot.run);
                self.release(Ticket { id, run }, now)
            }
            _ => quiet(Err(NotActive)),
        }
    }

    /// Ends a run with an action. O(log n) if the key runs again after a delay, else O(1); no
    /// lookup.
    ///
    /// While the queue shuts down, a key whose action asks for another run is kept for
    /// [`take_delayed`](Self::take_delayed) instead. A key that was added during its run is ready
    /// again in any case.
    ///
    /// Reads `now` even if [`needs_time`](Self::needs_time) is false, if
    /// [the action](Action::needs_time) needs it.
    ///
    /// # Errors
    ///
    /// [`NotActive`] if the run was ended otherwise: nothing changes.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Action, Finished, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("lease-3", now);
    /// let work = queue.try_get(now).value.unwrap();
    ///
    /// // The lease is renewed, and has to be renewed again before it expires.
    /// let minute = Duration::from_secs(60);
    /// let finished = queue.finish(work.ticket, Action::RequeueAfter(minute), now);
    /// assert_eq!(finished.value, Ok(Finished::Delayed(minute)));
    /// ```
    #[doc(alias = "Done")]
    pub fn finish(
        &mut self,
        ticket: Ticket,
        action: Action,
        now: Instant,
    ) -> Effect<Result<Finished, NotActive>> {
        let finished = self.finish_quietly(ticket, action, now);
        self.effect(finished)
    }

    /// Ends a call that has to wait: it was cancelled or timed out. O(1).
    ///
    /// If its getter owned the timer or was woken, another sleeping getter is woken in its place,
    /// and so is another call that waits for room. Does nothing for a getter that does not sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    /// use requeue_core::binding::{Getter, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let (mut impatient, mut patient) = (Getter::new(), Getter::new());
    /// let _ = queue.poll_get(now, &mut impatient);
    /// let _ = queue.poll_get(now, &mut patient);
    ///
    /// // The wake goes to the getter that gives up: the other one is woken in its place.
    /// assert_eq!(queue.add("node-7", now).wake, Wake::ONE);
    /// assert_eq!(queue.leave(&mut impatient).wake, Wake::ONE);
    /// ```
    pub fn leave(&mut self, getter: &mut Getter) -> Effect<()> {
        self.pass_room_on(getter);
        self.sleepers.arrive(getter);
        self.effect(())
    }

    /// Reports to the metrics how long the active keys have been running, and how long the first
    /// ready key has been ready. client-go does this every 500 ms, for the active keys. O(1),
    /// however many keys there are: metrics with [`Times`](crate::Times) keep the sum of the
    /// starts, and know the oldest run. O(levels) in a queue with priorities.
    ///
    /// Reports nothing after shutdown.
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
    ///     type Timestamps = Times;
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
            let _ = self.release_due(SlotId::NONE, now);
            let (sum, longest) = self.ages(now);
            self.metrics.unfinished_work(sum);
            self.metrics.longest_running(longest);
            self.metrics.oldest_ready(self.oldest_ready(now));
        }
        self.effect(())
    }

    /// How long the first ready key has been ready. Zero without times.
    fn oldest_ready(&self, now: Instant) -> Duration {
        let levels = 0..S::Priorities::LEVELS;
        let firsts = levels.filter_map(|level| self.lists.first_ready_at(level));
        let waited = firsts.filter_map(|id| {
            let timestamps = &self.slots.slot(id)?.meta.timestamps;
            Some(self.metrics.waited(timestamps, id.index(), now))
        });
        waited.max().unwrap_or(Duration::ZERO)
    }

    /// How long all runs together have lasted, and the longest of them. Zero without times.
    fn ages(&self, now: Instant) -> (Duration, Duration) {
        let Some(running) = self.metrics.running(&self.running) else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let age = |id| Some(now.saturating_since(self.started(id)?));
        let longest = running.oldest().and_then(age);
        (running.age_sum(now), longest.unwrap_or(Duration::ZERO))
    }

    /// When the run of an active slot began.
    pub(super) fn started(&self, id: SlotId) -> Option<Instant> {
        let slot = self.slots.slot(id)?;
        Some(self.metrics.started(&slot.meta.timestamps, id.index()))
    }

    pub(crate) fn finish_quietly(
        &mut self,
        ticket: Ticket,
        action: Action,
        now: Instant,
    ) -> Result<Finished, NotActive> {
        if !self.is_run_by(&ticket) {
            return Err(NotActive);
        }
        let _ = self.release_due(ticket.id, now);
        let id = ticket.id;
        if L::HOLDS
            && action.forgets()
            && let Some(slot) = self.slots.slot_mut(id)
        {
            // Before the next run is scheduled, because a hold is forgotten too.
            self.limiter.forget(&mut slot.meta.record);
        }
        let mut delay = self.apply(id, action, now);
        let was_dirty = L::HOLDS && self.is_queued(id);
        let again = self.end_run(ticket, action.forgets(), now)?;
        if L::HOLDS && (was_dirty || delay.is_some()) {
            let held = self.hold_left(id, now);
            // A dirty key was added now, so it runs as soon as it is not held.
            let asked = delay.filter(|_| !was_dirty).unwrap_or_default();
            delay = Some(asked.max(held));
        }
        Ok(match delay {
            Some(delay) if !again && self.closed => Finished::Leftover(delay),
            Some(delay) if !again => Finished::Delayed(delay),
            _ => Finished::at_once(again),
        })
    }

    /// [`finish`](Self::finish) for an action without another run. Returns only whether the key is
    /// ready again, to keep the result small.
    pub(crate) fn end(
        &mut self,
        ticket: Ticket,
        forgets: bool,
        now: Instant,
    ) -> Effect<Result<bool, NotActive>> {
        if self.has_deadlines() && self.is_run_by(&ticket) {
            let _ = self.release_some(ticket.id, now);
        }
        let again = self.end_run(ticket, forgets, now);
        self.effect(again)
    }

    fn is_run_by(&self, ticket: &Ticket) -> bool {
        let slot = self.slots.slot(ticket.id);
        slot.is_some_and(|slot| slot.is_run_by(ticket))
    }

    /// Schedules the next run of a key, if its action asks for one. Returns how long the key waits.
    fn apply(&mut self, id: SlotId, action: Action, now: Instant) -> Option<Duration> {
        let delay = match action {
            Action::Release | Action::Success => return None,
            Action::RequeueAfter(delay) | Action::RetryAfter(delay) => delay,
            Action::Retry => self.charge_slot(id, now),
        };
        let level = self.levels(id).running();
        if self.closed {
            self.keep_for_later(id, now + delay, level);
        } else {
            let _ = self.schedule(id, now + delay, now, level);
        }
        Some(delay)
    }

    /// While the queue shuts down: keeps a key that would run again among the delayed ones, which
    /// [`take_delayed`](Self::take_delayed) returns. A dirty key will run again and need not be
    /// kept.
    fn keep_for_later(&mut self, id: SlotId, due: Instant, level: u8) {
        let clean = self
            .slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_active() && !slot.phase.is_queued());
        if clean {
            // What is set after shutdown is beyond it, wherever the clock goes.
            let due = due.max(self.delays.stopped_at());
            if self.delays.schedule(id, due) == DelayChange::New {
                self.set_delayed(id, level);
            } else {
                let _ = self.raise_delayed(id, level);
            }
            self.metrics.delayed(self.delays.len());
        }
    }
}
