//! Taking keys, and ending their runs, one by one or in batches. Never adds a key, except for the
//! retry of an ended run.

use crate::action::Action;
use crate::delay::DelayChange;
use crate::outcome::{AddedMany, Finished};
use crate::sleepers::Getter;

use super::*;

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Takes the first ready key, or returns until when to wait. O(log n).
    ///
    /// If the result is [`Next::Wait`], the caller sleeps until it is woken, and no longer than
    /// `until`. Then it calls this again with the same [`Getter`], or calls
    /// [`leave`](Self::leave).
    ///
    /// If more deadlines have passed than [one operation applies](crate::Queue::limit_due_keys), and
    /// those that it has applied were of active keys, `until` has passed too: the caller looks again
    /// at once.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    /// use requeue::binding::{Getter, Next, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let mut getter = Getter::new();
    /// assert_eq!(queue.at(now).poll_get(&mut getter), Next::Wait { until: None });
    ///
    /// // The runtime puts the worker to sleep, and wakes it when the queue says so.
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).close(), Wake::ONE);
    /// let Next::Work(work) = queue.at(now).poll_get(&mut getter) else {
    ///     panic!("it was woken for work");
    /// };
    /// assert_eq!(work.key, "node-7");
    /// ```
    #[doc(alias = "Get")]
    pub fn poll_get(&mut self, getter: &mut Getter) -> Next<Work<K>> {
        let queue = &mut *self.queue;
        let work = queue.take(self.now);
        queue.arrive(getter);
        match work {
            Some(work) => Next::Work(work),
            None => queue.wait(getter),
        }
    }

    /// Returns whether a key may run now, and if none may, when to look again: what a loop asks
    /// before it sleeps. Takes no key. Costs as [`poll_get`](Self::poll_get).
    ///
    /// - [`Next::Work`]: [`try_get`](Self::try_get) returns a key now.
    /// - [`Next::Wait`]: no key may run before `until`, unless something changes. `None` if no
    ///   deadline is pending. A key may be ready and have to wait: for a token, for another run of
    ///   its group, or until the queue is unpaused.
    /// - [`Next::Closed`]: the queue is shut down, and no key is ready nor, in a
    ///   [drain](Self::begin_drain), dirty.
    ///
    /// # Examples
    ///
    /// A bare loop sleeps until an interrupt, and no longer than `until`:
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithPolicy;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Instant, Policy, Queue};
    /// use requeue::binding::Next;
    ///
    /// // At most two runs a second.
    /// let mut queue: Queue<u16, WithPolicy, _, Fixed<4>> =
    ///     Queue::new(NoLimit).with_policy(Policy::new().run_rate(2.0, 1));
    /// let mut now = Instant::EPOCH;
    /// let _ = queue.at(now).add_many([17, 18, 19], |_| {});
    ///
    /// let (mut runs, mut sleeps) = (0, 0);
    /// loop {
    ///     if let Some(work) = queue.at(now).try_get() {
    ///         runs += 1;
    ///         queue.at(now).finish(work.ticket, Action::Success);
    ///     }
    ///     match queue.at(now).next_look() {
    ///         Next::Work(()) => {}
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
    pub fn next_look(&mut self) -> Next<()> {
        let queue = &mut *self.queue;
        let is_ready = queue.first_ready(self.now).is_some();
        let may_start = !queue.gate.is_shut() || queue.may_start(self.now);
        if is_ready && may_start {
            return Next::Work(());
        }
        if queue.is_over() {
            return Next::Closed;
        }
        Next::Wait {
            until: queue.next_look_at(),
        }
    }

    /// Takes the first ready key, if there is one. Costs as [`poll_get`](Self::poll_get).
    ///
    /// Also returns `None` if more deadlines have passed than
    /// [one operation applies](crate::Queue::limit_due_keys), and those that it has applied were of
    /// active keys. The next call continues. [`next_look`](Self::next_look) tells the two apart:
    /// then its `until` has passed.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many([17, 18], |_| {});
    /// let mut read = Vec::new();
    /// while let Some(work) = queue.at(now).try_get() {
    ///     read.push(work.key);
    ///     queue.at(now).release(work.ticket);
    /// }
    /// assert_eq!(read, [17, 18]);
    /// ```
    #[doc(alias = "Get")]
    #[inline]
    pub fn try_get(&mut self) -> Option<Work<K>> {
        self.queue.take(self.now)
    }

    /// Takes up to `max` ready keys, as [`try_get`](Self::try_get) does. Returns how many it took.
    pub(crate) fn try_get_many(&mut self, max: usize, mut sink: impl FnMut(Work<K>)) -> usize {
        let mut taken = 0;
        while taken < max {
            match self.try_get() {
                Some(work) => sink(work),
                None => break,
            }
            taken += 1;
        }
        taken
    }

    /// Takes up to `max` ready keys in order, each as [`poll_get`](Self::poll_get) does. O(1) per
    /// key.
    ///
    /// Passes the keys to `sink`, and returns how many there were, at least one. A `max` of zero
    /// counts as one. If a key's `Clone` or `sink` panics, the keys that `sink` has received stay
    /// active, and the caller has their tickets.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    /// use requeue::binding::{Getter, Next};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(1..=5, |_| {});
    ///
    /// let mut getter = Getter::new();
    /// let mut batch = Vec::new();
    /// let next = queue.at(now).poll_get_many(3, &mut getter, |work| batch.push(work));
    /// assert_eq!(next, Next::Work(3));
    /// assert!(batch.iter().map(|work| work.key).eq([1, 2, 3]));
    /// ```
    pub fn poll_get_many(
        &mut self,
        max: usize,
        getter: &mut Getter,
        sink: impl FnMut(Work<K>),
    ) -> Next<usize> {
        let taken = self.try_get_many(max.max(1), sink);
        self.queue.arrive(getter);
        if taken > 0 {
            Next::Work(taken)
        } else {
            self.queue.wait(getter)
        }
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Ends a run, and keeps the key's failures: [`finish`](Self::finish) with [`Action::Release`].
    /// O(1), no lookup.
    ///
    /// A key that was added during its run is ready again, at the end of the queue.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Finished, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// let _ = queue.at(now).add_rate_limited("node-7");
    /// let later = Instant::from_nanos(1_000_000);
    /// let work = queue.at(later).try_get().unwrap();
    /// assert_eq!(queue.at(later).release(work.ticket), Finished::Idle);
    /// assert_eq!(queue.failures(&"node-7"), 1, "its failure stays on record");
    /// ```
    #[doc(alias = "Done")]
    pub fn release(&mut self, ticket: Ticket) -> Finished {
        self.finish(ticket, Action::Release)
    }

    /// Ends the run of a key, as client-go's `Done`: the key's failures stay as they are. O(1), one
    /// lookup.
    ///
    /// Returns [`Finished::Stale`] if the key is not active: nothing changes. client-go's `Done`
    /// does not tell.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Finished, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("node-7");
    /// let _work = queue.at(now).try_get();
    /// assert_eq!(queue.at(now).release_key(&"node-7"), Finished::Idle);
    /// assert_eq!(queue.at(now).release_key(&"node-7"), Finished::Stale);
    /// ```
    #[doc(alias = "Done")]
    pub fn release_key<B>(&mut self, key: &B) -> Finished
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Some(id) = self.queue.slots.locate(key).found() else {
            return Finished::Stale;
        };
        let run = self.queue.slots.slot(id).map_or(0, |slot| slot.run);
        self.release(Ticket { id, run })
    }

    /// Ends a run with an action. O(log n) if the key runs again after a delay, else O(1); no
    /// lookup.
    ///
    /// While the queue shuts down, a key whose action asks for another run is kept for
    /// [`take_delayed`](Self::take_delayed) instead. A key that was added during its run is ready
    /// again in any case. Before shutdown it also has the deadline of its action; after shutdown
    /// the one run stands for both.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false, if
    /// [the action](Action::needs_time) needs it.
    ///
    /// Returns [`Finished::Stale`] if the run had ended before.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Finished, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add("lease-3");
    /// let work = queue.at(now).try_get().unwrap();
    ///
    /// // The lease is renewed, and has to be renewed again before it expires.
    /// let minute = Duration::from_secs(60);
    /// let finished = queue.at(now).finish(work.ticket, Action::RequeueAfter(minute));
    /// assert_eq!(finished, Finished::Delayed(minute));
    /// ```
    #[doc(alias = "Done")]
    #[inline(always)]
    pub fn finish(&mut self, ticket: Ticket, action: Action) -> Finished {
        self.queue.finish(ticket, action, self.now)
    }

    /// Ends a call that has to wait: it was cancelled or timed out. O(1).
    ///
    /// If its getter owned the timer or was woken, another sleeping getter is woken in its place,
    /// and so is another call that waits for room. Does nothing for a getter that does not sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    /// use requeue::binding::{Getter, Wake};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let (mut impatient, mut patient) = (Getter::new(), Getter::new());
    /// let _ = queue.at(now).poll_get(&mut impatient);
    /// let _ = queue.at(now).poll_get(&mut patient);
    ///
    /// // The wake goes to the getter that gives up: the other one is woken in its place.
    /// let _ = queue.at(now).add("node-7");
    /// assert_eq!(queue.at(now).close(), Wake::ONE);
    /// queue.at(now).leave(&mut impatient);
    /// assert_eq!(queue.at(now).close(), Wake::ONE);
    /// ```
    pub fn leave(&mut self, getter: &mut Getter) {
        self.queue.pass_room_on(getter);
        self.queue.arrive(getter);
    }

    /// Reports to the metrics how long the active keys have been running, and how long the first
    /// ready key has been ready. client-go does this every 500 ms, for the active keys. O(1),
    /// however many keys there are: metrics with [`Times`](crate::metrics::Times) keep the sum of
    /// the starts, and know the oldest run. O(levels) in a queue with priorities.
    ///
    /// Reports nothing after shutdown.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::metrics::{Metrics, Times};
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
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
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>, Longest> =
    ///     Queue::with_metrics(NoLimit, Longest::default());
    /// let _ = queue.at(now).add("node-7");
    /// let _stuck = queue.at(now).try_get();
    /// queue.at(now + Duration::from_secs(90)).report_running();
    /// assert_eq!(queue.metrics().0, Duration::from_secs(90));
    /// ```
    pub fn report_running(&mut self) {
        let Self { queue, now, .. } = self;
        if queue.closed {
            return;
        }
        let _ = queue.make_due_ready(SlotId::NONE, *now);
        let (sum, longest) = queue.running_times(*now);
        let oldest = queue.oldest_ready(*now);
        queue.metrics.unfinished_work(sum);
        queue.metrics.longest_running(longest);
        queue.metrics.oldest_ready(oldest);
    }

    /// Returns whether the queue keeps up: no ready key has waited for longer than `ready_max`, no
    /// run has lasted longer than `run_max`, and no deadline passed longer than `ready_max` ago
    /// without making its key ready. Feed a watchdog only then. O(1), and O(levels) in a queue with
    /// priorities.
    ///
    /// With levels or groups, the next key of each level counts, as in
    /// [`oldest_ready`](crate::metrics::Metrics::oldest_ready). A key that waits for a token, for
    /// its group or for the end of a pause is ready too. Deadlines do not count after shutdown.
    ///
    /// Returns false if the metrics keep no [`Times`](crate::metrics::Times).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::metrics::Times;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let (ready_max, run_max) = (Duration::from_secs(1), Duration::from_secs(10));
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>, Times> =
    ///     Queue::with_metrics(NoLimit, Times);
    /// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
    /// let _ = queue.at(at(0)).add("node-7");
    /// assert!(queue.at(at(1)).is_within(ready_max, run_max));
    /// assert!(!queue.at(at(2)).is_within(ready_max, run_max), "nothing takes the key");
    ///
    /// let _hangs = queue.at(at(2)).try_get();
    /// assert!(queue.at(at(12)).is_within(ready_max, run_max));
    /// assert!(!queue.at(at(13)).is_within(ready_max, run_max));
    /// ```
    pub fn is_within(&mut self, ready_max: Duration, run_max: Duration) -> bool {
        let Self { queue, now, .. } = self;
        let _ = queue.make_due_ready(SlotId::NONE, *now);
        if !queue.metrics.needs_time() {
            return false;
        }
        let (_, longest) = queue.running_times(*now);
        let overdue = queue.delays.earliest().filter(|_| !queue.closed);
        let late = overdue.map_or(Duration::ZERO, |due| now.saturating_since(due));
        longest <= run_max && late <= ready_max && queue.oldest_ready(*now) <= ready_max
    }

    /// Adds keys in order, each as [`add`](Self::add) does. O(1) per key.
    ///
    /// Passes every key that is not taken to `rejected`, and continues with the others.
    ///
    /// # Examples
    ///
    /// There is not room for every sensor:
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let mut refused = Vec::new();
    /// let many = queue
    ///     .at(Instant::EPOCH).add_many(1..=6, |rejected| refused.push(rejected.into_key()));
    /// assert_eq!((many.ready, many.rejected), (4, 2));
    /// assert_eq!(refused, [5, 6]);
    /// ```
    pub fn add_many(
        &mut self,
        keys: impl IntoIterator<Item = K>,
        mut rejected: impl FnMut(Rejected<K>),
    ) -> AddedMany {
        let mut many = AddedMany::default();
        for key in keys {
            many.count(self.add(key).map_err(&mut rejected).ok());
        }
        many
    }

    /// Ends runs in order, each as [`finish`](Self::finish) does, and at its cost. Returns how many
    /// of them had ended before.
    ///
    /// Reads `now` as [`finish`](Self::finish) does.
    ///
    /// If a key's `Drop` panics, its own run is over. The tickets after it are lost with the
    /// iterator, and their keys stay active unless [`release_key`](Self::release_key) ends their
    /// runs.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Action, Instant, Queue};
    /// use requeue::binding::Getter;
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many([17, 18], |_| {});
    /// let mut tickets = Vec::new();
    /// let _ = queue.at(now).poll_get_many(2, &mut Getter::new(), |work| {
    ///     tickets.push(work.ticket);
    /// });
    ///
    /// queue.at(now).finish_many(tickets, Action::Success);
    /// assert_eq!(queue.stats().active, 0);
    /// ```
    pub fn finish_many(
        &mut self,
        tickets: impl IntoIterator<Item = Ticket>,
        action: Action,
    ) -> usize {
        let ends = tickets
            .into_iter()
            .map(|ticket| self.finish(ticket, action));
        ends.filter(|end| *end == Finished::Stale).count()
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    pub(super) fn wait<T>(&mut self, getter: &mut Getter) -> Next<T> {
        if self.is_over() {
            return Next::Closed;
        }
        let earliest = self.next_look_at();
        self.watched.add(Watched::ASLEEP);
        Next::Wait {
            until: self.sleepers.sleep(getter, earliest),
        }
    }

    /// When a getter that has found no key looks again by itself: at the next deadline, and at once
    /// while a queue that shuts down has a backlog.
    fn next_look_at(&self) -> Option<Instant> {
        if self.closed && self.delays.is_due(Instant::NEVER) {
            return Some(Instant::EPOCH);
        }
        self.next_deadline()
    }

    /// Records that a getter looks.
    #[inline]
    pub(super) fn arrive(&mut self, getter: &mut Getter) {
        if self.sleepers.arrive(getter) {
            self.watched.set_asleep(self.sleepers.asleep() > 0);
        }
    }

    /// How long the first ready key has been ready. Zero without times.
    fn oldest_ready(&self, now: Instant) -> Duration {
        let levels = 0..P::LEVELS;
        let firsts = levels.filter_map(|level| self.lists.first_ready_at(level));
        let waited = firsts.filter_map(|id| {
            let timestamps = &self.slots.slot(id)?.meta.timestamps;
            Some(self.metrics.waited(timestamps, id.index(), now))
        });
        waited.max().unwrap_or(Duration::ZERO)
    }

    /// The total and the longest duration of all active runs. Zero without times.
    fn running_times(&self, now: Instant) -> (Duration, Duration) {
        let Some(running) = self.metrics.running(&self.running) else {
            return (Duration::ZERO, Duration::ZERO);
        };
        let lasted = |id| Some(now.saturating_since(self.started(id)?));
        let longest = running.oldest().and_then(lasted);
        (running.sum(now), longest.unwrap_or(Duration::ZERO))
    }

    /// When the run of an active slot began.
    pub(super) fn started(&self, id: SlotId) -> Option<Instant> {
        let slot = self.slots.slot(id)?;
        Some(self.metrics.started(&slot.meta.timestamps, id.index()))
    }

    #[inline(always)]
    fn finish(&mut self, ticket: Ticket, action: Action, now: Instant) -> Finished {
        let ends = Ends {
            forgets: action.forgets(),
            succeeds: action.succeeds(),
        };
        let mut holds = self.holds();
        let id = ticket.id;
        let (mut delay, mut was_dirty, mut pauses) = (None, false, 0);
        if holds || action.needs_time() {
            if !self.is_run_by(&ticket) {
                return Finished::Stale;
            }
            let _ = self.make_due_ready(id, now);
            if holds && action.forgets() {
                // Must happen before the next run is scheduled.
                self.end_hold(id);
            }
            if P::LEVELS > 1
                && let (_, Some(level)) = action.into_parts()
            {
                self.set_running(id, level);
            }
            if S::Policy::<P>::SUSPENDS && action.polls().is_some() {
                pauses = self.begin_polling(id);
            }
            delay = self.apply(id, &action, now);
            // This may be the first action that suspends or polls.
            holds = self.holds();
            was_dirty = holds && self.is_queued(id);
        } else if self.has_deadlines() && self.is_run_by(&ticket) {
            let _ = self.make_some_ready(id, now);
        }
        let again = if holds {
            let Some(again) = self.end_held_run(ticket, ends, now) else {
                return Finished::Stale;
            };
            if let (Some(_), Some(delay), false) = (action.polls(), delay, was_dirty) {
                let window = self.window_after(delay, action.slack(), now);
                self.begin_pause(id, pauses, window.due);
            }
            if was_dirty || delay.is_some() {
                // A dirty key was added during the run, so it runs as soon as it is not held.
                let asked = delay.filter(|_| !was_dirty).unwrap_or_default();
                delay = Some(asked.max(self.hold_left(id, now)));
            }
            let suspended = self.suspension_left(id, now);
            if let Some(left) = suspended
                && !again
                && !self.closed
            {
                return Finished::Suspended(left);
            }
            delay = suspended.or(delay);
            again
        } else {
            match self.end_run::<false>(ticket, ends, now) {
                Some(again) => again,
                None => return Finished::Stale,
            }
        };
        // One choice after the other takes fewer instructions on a Cortex-M3.
        match delay.filter(|_| !again) {
            Some(delay) if self.closed => Finished::Leftover(delay),
            Some(delay) => Finished::Delayed(delay),
            None => Finished::at_once(again),
        }
    }

    fn is_run_by(&self, ticket: &Ticket) -> bool {
        let slot = self.slots.slot(ticket.id);
        slot.is_some_and(|slot| slot.is_run_by(ticket))
    }

    /// Schedules the next run of a key, if its action asks for one. Returns how long the key waits.
    // By reference, because a board pays for each copy.
    fn apply(&mut self, id: SlotId, action: &Action, now: Instant) -> Option<Duration> {
        let mut delay = match action.time() {
            Some(time) => time,
            None if action.is_retry() => self.charge_slot(id, now),
            None => return None,
        };
        if S::Policy::<P>::SUSPENDS
            && let Some(times) = action.polls()
        {
            delay = pause(delay, times, self.pauses(id));
        }
        let mut window = self.window_after(delay, action.slack(), now);
        if S::Policy::<P>::SUSPENDS && action.suspends() {
            if self.plan_suspension(id, window) {
                return Some(delay);
            }
            delay = Duration::ZERO;
            window = Window::<P, S>::exact(now);
        }
        let level = self.levels(id).running;
        if self.closed {
            self.keep_for_later(id, window.due, level);
        } else {
            let _ = self.schedule(id, window, now, level);
            if action.is_retry() {
                self.delays.note_backoff(id, window.due);
            }
        }
        Some(delay)
    }

    /// Sets the level at which a key runs again after its present run.
    fn set_running(&mut self, id: SlotId, level: u8) {
        if let Some(slot) = self.slots.slot_mut(id) {
            let level = level.min(P::LEVELS - 1);
            slot.meta.levels.set(|levels| levels.running = level);
        }
    }

    /// Keeps a key that would run again after shutdown among the delayed keys, which
    /// [`take_delayed`](Self::take_delayed) returns. A dirty key runs again anyway.
    fn keep_for_later(&mut self, id: SlotId, due: Instant, level: u8) {
        let clean = self
            .slots
            .slot(id)
            .is_some_and(|slot| slot.phase.is_active() && !slot.phase.is_queued());
        if clean {
            // What is set after shutdown is beyond it, wherever the clock goes.
            let due = due.max(self.delays.stopped_at());
            if self.delays.schedule(id, Window::<P, S>::exact(due)) == DelayChange::New {
                self.set_delayed(id, level);
            } else {
                let _ = self.raise_delayed(id, level);
            }
            self.metrics.delayed(self.delays.len());
        }
    }
}

/// The pause after so many others. Each pause is twice the previous one.
fn pause(first: Duration, times: u32, before: u8) -> Duration {
    let doubled = 1u32.checked_shl(before.into()).unwrap_or(u32::MAX);
    first.saturating_mul(doubled.min(times.max(1)))
}
