//! Adding keys: now, later, with the limiter's delay, with rules for a pending deadline, in place
//! of other keys, or as another queue left them. Owns the result of an add; never hands out a key
//! or ends a run.

use crate::delay::DelayChange;
use crate::levels::Naming;
use crate::options::{AddOptions, Merge};
use crate::outcome::{Leftover, Scheduled};
use crate::time::nanos;

use super::*;

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// Marks a key as having work to do. O(1).
    ///
    /// A ready key stays where it is. An active key will run again after its present run.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] after shutdown; [`Rejected::Full`] if the key is new and there is no
    /// room. Both return the key and change nothing. A key that the queue already has is always
    /// taken, and if there is no room, the oldest failure record is discarded to make some.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Ready));
    /// let work = queue.at(now).try_get().unwrap();
    ///
    /// // The node changes during its run: it will run again, but never twice at the same time.
    /// assert_eq!(queue.at(now).add("node-7"), Ok(Added::Dirty));
    /// assert!(queue.at(now).try_get().is_none());
    /// queue.at(now).release(work.ticket);
    /// assert!(queue.at(now).try_get().is_some());
    /// ```
    #[doc(alias = "Add")]
    #[inline]
    pub fn add(&mut self, key: K) -> Result<Added, Rejected<K>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        queue.add_key(key, *now, spare)
    }

    /// Adds a key after a delay. O(log n).
    ///
    /// As in client-go the delay is an add that happens later: it changes nothing for a key that is
    /// ready or active until it is over, and an [`add`](Self::add) meanwhile does not end it. The
    /// earlier of two deadlines wins. A delay of zero is an add, and leaves a pending
    /// delay as it is. [`Duration::MAX`] means never, and sets no timer: the queue keeps the key,
    /// and returns it after shutdown.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let minute = Duration::from_secs(60);
    /// let mut queue: Queue<&str, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
    /// assert_eq!(queue.at(now).add_after("lease-3", minute), Ok(Added::Delayed));
    /// assert_eq!(queue.at(now).add_after("lease-3", minute * 2), Ok(Added::Coalesced));
    /// assert_eq!(queue.at(now).add_after("lease-3", minute / 2), Ok(Added::Sooner));
    ///
    /// assert!(queue.at(now).try_get().is_none());
    /// assert!(queue.at(now + minute / 2).try_get().is_some());
    /// ```
    #[doc(alias = "AddAfter")]
    pub fn add_after(&mut self, key: K, delay: Duration) -> Result<Added, Rejected<K>> {
        self.add_at(key, self.now + delay)
    }

    /// As [`add_after`](Self::add_after), but the delay may be up to `slack` longer, so that one wake
    /// serves several keys. O(log n).
    ///
    /// The key gets a *window*: it opens after `delay`, and its end, `slack` later, is the key's
    /// deadline. Until it opens, [`next_deadline`](crate::Queue::next_deadline) and
    /// [`state`](Self::state) have the end, as timers do. The key becomes ready before its deadline
    /// if something else wakes the processor while the window is open. Operations make keys ready in
    /// the order of their deadlines, and stop at the first key whose window is closed. An operation
    /// on the key itself makes it ready if its window is open. The guide says more in *Slack*.
    ///
    /// If two windows of a key merge under [`Merge::Earliest`], the result opens when the earlier
    /// one opens, and ends when the earlier one ends. [`Added::Sooner`] and [`Added::Coalesced`]
    /// compare the ends. A `delay` of zero is an add, with any slack. The end is at most one
    /// nanosecond before [`Instant::NEVER`], and a delay that never ends has no slack.
    ///
    /// A [`Fixed`](crate::storage::Fixed) queue needs [`WithSlack`](crate::priority::WithSlack)
    /// for this.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithSlack;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let at = |seconds| Instant::EPOCH + Duration::from_secs(seconds);
    /// let (minute, slack) = (Duration::from_secs(60), Duration::from_secs(30));
    /// let mut queue: Queue<u16, WithSlack, NoLimit, Fixed<8>> = Queue::new(NoLimit);
    /// for (sensor, second) in [(17, 0), (18, 10), (19, 20)] {
    ///     let _ = queue.at(at(second)).add_within(sensor, minute, slack);
    /// }
    /// // Sensor 17 may wait until now. The windows of the others are open: one wake for all.
    /// assert_eq!(queue.next_deadline(), Some(at(90)));
    /// assert_eq!(queue.at(at(90)).len(), 3);
    /// ```
    #[doc(alias("hrtimer_start_range_ns", "timer_slack"))]
    pub fn add_within(
        &mut self,
        key: K,
        delay: Duration,
        slack: Duration,
    ) -> Result<Added, Rejected<K>>
    where
        S: Slackens<P>,
    {
        let slack = if delay.is_zero() { 0 } else { nanos(slack) };
        self.add_window(key, Window::<P, S>::from(self.now + delay, slack))
    }

    /// Adds a key at a point in time, or now if that has passed. O(log n).
    ///
    /// Otherwise as [`add_after`](Self::add_after).
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let mut queue: Queue<u16, Plain, NoLimit, Fixed<8>> = Queue::new(NoLimit);
    /// // Sensor 17 is to be read on the full hour.
    /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
    /// assert_eq!(queue.at(Instant::EPOCH).add_at(17, full_hour), Ok(Added::Delayed));
    ///
    /// // Sensor 18 is added for the same time, but later: it comes after sensor 17.
    /// let later = full_hour + Duration::from_secs(1);
    /// assert_eq!(queue.at(later).add_at(18, full_hour), Ok(Added::Ready));
    /// assert_eq!(queue.at(later).try_get().unwrap().key, 17);
    /// ```
    pub fn add_at(&mut self, key: K, due: Instant) -> Result<Added, Rejected<K>> {
        self.add_window(key, Window::<P, S>::exact(due))
    }

    #[inline]
    fn add_window(&mut self, key: K, window: Window<P, S>) -> Result<Added, Rejected<K>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        let id = queue.slot_for(key, *now, spare).map_err(Rejected::Full)?;
        Ok(queue.schedule(id, window, *now, LOWEST))
    }

    /// Counts a failure of a key, and adds the key when its limiter says so. O(log n) plus the
    /// limiter's cost.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add). The limiter is not charged then.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// let mut fail = |key| queue.at(now).add_rate_limited(key).unwrap().delay;
    /// assert_eq!(fail("node-7"), Duration::from_millis(1));
    /// assert_eq!(fail("node-7"), Duration::from_millis(2));
    /// assert_eq!(fail("node-8"), Duration::from_millis(1), "each key has its own count");
    /// assert_eq!(queue.failures(&"node-7"), 2);
    /// ```
    #[doc(alias = "AddRateLimited")]
    pub fn add_rate_limited(&mut self, key: K) -> Result<Scheduled, Rejected<K>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        let (id, delay) = queue.charge(key, *now, spare).map_err(Rejected::Full)?;
        let due = *now + delay;
        if queue.waits_already(id, due, *now) {
            queue.metrics.retry();
            queue.metrics.coalesced();
            let added = Added::Coalesced;
            return Ok(Scheduled { delay, added });
        }
        let level = queue.retry_level(id);
        let added = queue.schedule(id, Window::<P, S>::exact(due), *now, level);
        queue.note_backoff(id, due);
        let added = queue.hold_back(id, added, *now);
        Ok(Scheduled { delay, added })
    }

    /// Adds a key as the options say. O(log n), plus the limiter's cost if it is asked.
    ///
    /// [`AddOptions`] lists the options, and [`Levels`](crate::priority::Levels) says what a
    /// priority means.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false, if
    /// [the options](AddOptions::needs_time) need it.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add), and [`Rejected::UnknownPriority`] if the queue has no such level. No
    /// failure is counted then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Levels;
    /// use requeue::storage::Fixed;
    /// use requeue::{AddOptions, Added, Instant, Queue, Rejected};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Levels<3>, NoLimit, Fixed<8>> = Queue::new(NoLimit);
    /// let at = |level| AddOptions { priority: Some(level), ..AddOptions::new() };
    ///
    /// let _ = queue.at(now).add("node-7");
    /// let _ = queue.at(now).add_with("node-8", at(1));
    /// let raised = queue.at(now).add_with("node-7", at(2)).unwrap();
    /// assert_eq!(raised.added, Added::Raised);
    /// let refused = queue.at(now).add_with("node-9", at(3));
    /// assert_eq!(refused, Err(Rejected::UnknownPriority("node-9")));
    ///
    /// let first = queue.at(now).try_get().unwrap();
    /// assert_eq!((first.key, first.priority), ("node-7", 2));
    /// # queue.at(now).release(first.ticket);
    /// ```
    pub fn add_with(&mut self, key: K, options: AddOptions) -> Result<Scheduled, Rejected<K>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        let levels = P::LEVELS;
        if options.priority.is_some_and(|level| level >= levels) {
            return Err(Rejected::UnknownPriority(key));
        }
        let added = queue.add_with_options(key, options, *now, spare);
        added.map_err(Rejected::Full)
    }

    /// Forgets the failures of a key in any state. A pending delay stays. O(1). Once a key was
    /// suspended or polled, first makes due keys ready, in O(log n).
    ///
    /// Returns how many failures were forgotten: zero for a key that the queue does not have. What
    /// the limiter keeps for all keys together, such as the tokens of a
    /// [`TokenBucket`](crate::limiter::TokenBucket), is not restored.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// let _ = queue.at(now).add_rate_limited("node-7");
    /// assert_eq!(queue.at(now).forget(&"node-7"), 1);
    /// assert_eq!(queue.failures(&"node-7"), 0);
    /// assert!(queue.contains(&"node-7"), "it runs all the same");
    /// ```
    #[doc(alias = "Forget")]
    pub fn forget<B>(&mut self, key: &B) -> u32
    where
        K: Borrow<B>,
        B: Eq + Hash + ?Sized,
    {
        let Self { queue, now, .. } = self;
        // After its suspension a key may still be held. This ends the hold.
        let located = if queue.suspends() {
            queue.locate(key, *now)
        } else {
            queue.slots.locate(key)
        };
        let Some(id) = located.found() else {
            return 0;
        };
        let failures = queue.failures_of(id);
        if queue.is_record_only(id) {
            queue.drop_record(id);
        } else {
            queue.forget(id);
        }
        failures
    }

    /// Adds a key once no such add of it has come for as long as `quiet`, or `max` after the first
    /// of them, if that is sooner. A [`Fixed`](crate::storage::Fixed) queue needs
    /// [`WithPolicy`](crate::priority::WithPolicy) for this. O(log n).
    ///
    /// The first add of a series sets a deadline, and each further one moves it. The series is over
    /// when the deadline comes, is taken back, or is moved by a [hold](crate::Policy).
    ///
    /// Otherwise as [`add_after`](Self::add_after): the deadline is an add that happens later,
    /// also for an active key. Only the deadline of a series is made later. If another call has
    /// asked for an earlier one, that one stays. If it has asked for a later one, a series replaces
    /// it, and may move beyond it. A key that is ready or dirty runs after this add in any case, and
    /// stays as it is. With a `quiet` of zero the key is added now. With a `quiet` and a `max` of
    /// [`Duration::MAX`] the key waits for ever.
    ///
    /// A debounced add asks for the lowest priority level, and a deadline keeps the highest level
    /// that an add has given it. To give a series a higher one, call [`add_with`](Self::add_with)
    /// after this, with [`Merge::Keep`] and the level: it raises the deadline, and leaves it where
    /// it is.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::WithPolicy;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let mut queue: Queue<&str, WithPolicy, _, Fixed<4>> = Queue::new(NoLimit);
    /// let at = |millis| Instant::EPOCH + Duration::from_millis(millis);
    /// let (quiet, max) = (Duration::from_millis(100), Duration::from_millis(250));
    ///
    /// let mut changed = |millis| queue.at(at(millis)).add_debounced("etc/hosts", quiet, max);
    /// assert_eq!(changed(0), Ok(Added::Delayed));
    /// assert_eq!(changed(90), Ok(Added::Later));
    /// assert_eq!(changed(180), Ok(Added::Later));
    /// // The file changes on and on: 250 ms after the first time are the most.
    /// assert_eq!(changed(240), Ok(Added::Coalesced));
    /// assert_eq!(queue.next_deadline(), Some(at(250)));
    /// ```
    pub fn add_debounced(
        &mut self,
        key: K,
        quiet: Duration,
        max: Duration,
    ) -> Result<Added, Rejected<K>>
    where
        S: Governs<P>,
    {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(key));
        }
        let id = queue.slot_for(key, *now, spare).map_err(Rejected::Full)?;
        Ok(queue.debounce(id, quiet, max, *now))
    }

    /// Adds a key that another queue returned, with its remaining delay, its priority level and its
    /// failures. O(log n), plus the limiter's cost.
    ///
    /// Restoring what [`take_ready`](Self::take_ready) and [`take_delayed`](Self::take_delayed)
    /// returned, in that order, makes a queue in which the keys have their order, and in which the
    /// next failure of each is delayed as it would have been. Nothing is charged to the limiter.
    /// With levels the order can change: a ready key that also had a delay is left over once, at
    /// the higher of the two levels.
    ///
    /// If the queue already has the key, the earlier deadline, the higher priority level and the
    /// larger number of failures count.
    ///
    /// Reads `now` even if [`needs_time`](crate::Queue::needs_time) is false, unless
    /// [`left`](Leftover::left) is zero.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with), with the whole leftover: nothing has changed. A leftover
    /// from a queue with more levels can be restored after its `priority` is lowered.
    ///
    /// # Examples
    ///
    /// A service is replaced by its next version, and a key that has failed three times is not
    /// retried immediately:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue::limiter::default_item_based;
    /// use requeue::priority::Plain;
    /// use requeue::storage::Fixed;
    /// use requeue::{Added, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut old: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// for _ in 0..3 {
    ///     let _ = old.at(now).add_rate_limited("node-7");
    /// }
    /// old.at(now).shut_down();
    /// let leftover = old.at(now).take_delayed().unwrap();
    ///
    /// let mut new: Queue<&str, Plain, _, Fixed<4>> = Queue::new(default_item_based());
    /// assert_eq!(new.at(now).restore(leftover), Ok(Added::Delayed));
    /// assert_eq!(new.next_deadline(), Some(now + Duration::from_millis(1)));
    /// let scheduled = new.at(now).add_rate_limited("node-7").unwrap();
    /// assert_eq!(scheduled.delay, Duration::from_millis(8), "the delay of the fourth failure");
    /// ```
    pub fn restore(&mut self, leftover: Leftover<K>) -> Result<Added, Rejected<Leftover<K>>> {
        let Self { queue, now, spare } = self;
        if queue.closed {
            return Err(Rejected::Closed(leftover));
        }
        if leftover.priority >= P::LEVELS {
            return Err(Rejected::UnknownPriority(leftover));
        }
        let Leftover {
            key,
            left,
            failures,
            priority,
        } = leftover;
        let raise = |limiter: &mut L, record: &mut _| {
            if limiter.failures(record) < failures {
                limiter.set_failures(record, failures);
            }
        };
        match queue.slot_with(key, *now, spare, raise) {
            Ok(id) if left.is_zero() => Ok(queue.mark(id, *now, priority)),
            Ok(id) => {
                let window = Window::<P, S>::exact(*now + left);
                Ok(queue.schedule(id, window, *now, priority))
            }
            Err(key) => Err(Rejected::Full(Leftover {
                key,
                left,
                failures,
                priority,
            })),
        }
    }
}

impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    fn add_with_options(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
        spare: &mut Option<K>,
    ) -> Result<Scheduled, K> {
        let (id, limit) = if options.rate_limited {
            let (id, limit) = self.charge(key, now, spare)?;
            (id, Some(limit))
        } else {
            (self.slot_for(key, now, spare)?, None)
        };
        let delay = match (options.after, limit) {
            (Some(after), Some(limit)) => Some(after.min(limit)),
            (after, limit) => after.or(limit),
        };
        let level = match options.priority {
            Some(level) => level,
            None if options.rate_limited => self.retry_level(id),
            None => LOWEST,
        };
        let window = delay.map(|delay| self.window_after(delay, options.slack, now));
        let asked = match window {
            Some(window) if options.rate_limited => Some(self.window_of_failure(id, window)),
            window => window,
        };
        let mut added = self.merge(id, options.merge, asked, now, level);
        if options.rate_limited {
            if let Some(window) = window.filter(|_| delay == limit) {
                self.note_backoff(id, window.due);
            }
            added = self.hold_back(id, added, now);
        }
        let delay = delay.unwrap_or(Duration::ZERO);
        Ok(Scheduled { delay, added })
    }

    /// client-go's `AddAfter` for a key with a slot, at a priority level.
    pub(super) fn schedule(
        &mut self,
        id: SlotId,
        window: Window<P, S>,
        now: Instant,
        level: u8,
    ) -> Added {
        self.metrics.retry();
        let window = self.window_of_add(id, window, now);
        if !window.opens().is_after(now) {
            return self.mark(id, now, level);
        }
        self.delay_until(id, window, level)
    }

    /// Whether a deadline in the future changes nothing, because its key waits for an earlier one.
    /// A fast path for a key that fails again: `false` proves nothing.
    // On a board it would cost more flash than the instructions are worth.
    #[inline(always)]
    fn waits_already(&self, id: SlotId, due: Instant, now: Instant) -> bool {
        S::CAPACITY.is_none()
            && P::LEVELS == 1
            && !self.gate.is_shut()
            && due.is_after(now)
            && self.delays.due(id).is_some_and(|pending| pending < due)
    }

    /// Sets the deadline of a key, or keeps an earlier one.
    pub(super) fn delay_until(&mut self, id: SlotId, window: Window<P, S>, level: u8) -> Added {
        self.note_deadline(id, window.due);
        if self.is_suspended(id) {
            return self.delay_suspended(id, window.due, level);
        }
        match self.delays.schedule(id, window) {
            DelayChange::New => {
                // A ready slot is in the ready list, which may share the links.
                if self.lists.records_len() > 0 && self.is_idle_slot(id) {
                    self.lists.discard_record(id);
                }
                self.set_delayed(id, level);
                self.metrics.delayed(self.delays.len());
                Added::Delayed
            }
            DelayChange::Sooner => {
                self.end_pause(id);
                let _ = self.raise_delayed(id, level);
                Added::Sooner
            }
            DelayChange::Kept => {
                self.metrics.coalesced();
                self.raise_delayed(id, level)
            }
        }
    }

    /// Moves a key that is ready or dirty to a level, if that is higher than its own.
    #[inline]
    pub(super) fn raise(&mut self, id: SlotId, level: u8, at: Instant) -> Added {
        if P::LEVELS == 1 || level <= self.levels(id).queued {
            return Added::Coalesced;
        }
        if let Some(slot) = self.slots.slot_mut(id) {
            let before = slot.meta.levels.get().queued;
            slot.meta.levels.set(|levels| levels.queued = level);
            if slot.phase == Phase::Ready {
                self.lists.remove_ready(id, before);
                self.lists.push_ready(id, level, at);
            } else {
                self.lists.note_clean(before);
                self.lists.note_dirty(level);
            }
            self.report_depth(before);
            self.report_depth(level);
        }
        Added::Raised
    }

    /// Raises the level of a key's deadline, if the new one is higher.
    pub(super) fn raise_delayed(&mut self, id: SlotId, level: u8) -> Added {
        if level <= self.levels(id).delayed {
            return Added::Coalesced;
        }
        self.set_delayed(id, level);
        Added::Raised
    }

    pub(super) fn set_delayed(&mut self, id: SlotId, level: u8) {
        if P::LEVELS > 1
            && let Some(slot) = self.slots.slot_mut(id)
        {
            slot.meta.levels.set(|levels| levels.delayed = level);
        }
    }

    /// The level at which a failed key runs again: the level of its run.
    pub(super) fn retry_level(&self, id: SlotId) -> u8 {
        if P::LEVELS > 1 && self.is_active(id) {
            self.levels(id).running
        } else {
            LOWEST
        }
    }

    /// Adds a key now or at `due`. The key has a slot, and its own deadline has not passed.
    pub(super) fn merge(
        &mut self,
        id: SlotId,
        rule: Merge,
        window: Option<Window<P, S>>,
        now: Instant,
        level: u8,
    ) -> Added {
        let at_once = Window::<P, S>::exact(Instant::EPOCH);
        let asked = self.window_of_add(id, window.unwrap_or(at_once), now);
        let later = Some(asked).filter(|asked| asked.opens().is_after(now));
        let pending = match rule {
            Merge::Earliest => None,
            // A key is queued once, at the earlier of the two times. If it is ready, that is now.
            Merge::Once => {
                return match later.filter(|_| !self.runs_anyway(id)) {
                    Some(later) => self.delay_for(id, window, later, level),
                    None => self.add_instead(id, window, now, level),
                };
            }
            Merge::Latest | Merge::Replace | Merge::Keep => self.deadline(id),
        };
        let Some(pending) = pending else {
            return match window {
                Some(window) => self.schedule(id, window, now, level),
                None => self.mark(id, now, level),
            };
        };
        let asked = later.unwrap_or(Window::<P, S>::exact(now));
        let due = asked.due;
        let stays = match rule {
            Merge::Replace => due == pending,
            Merge::Latest => due <= pending,
            _ => true,
        };
        if !stays && later.is_none() {
            return self.add_instead(id, window, now, level);
        }
        if window.is_some() {
            self.metrics.retry();
        }
        let raised = self.raise_delayed(id, level);
        let merged = self.merged(id, rule, asked);
        if stays {
            if rule != Merge::Keep {
                self.open_at(id, merged.opens());
                if due == pending {
                    self.note_deadline(id, due);
                }
            }
            self.metrics.coalesced();
            return raised;
        }
        self.end_pause(id);
        self.move_deadline(id, merged);
        if due < pending {
            Added::Sooner
        } else {
            Added::Later
        }
    }

    /// Delays a key until `later`, which is `window` or the end of a hold.
    fn delay_for(
        &mut self,
        id: SlotId,
        window: Option<Window<P, S>>,
        later: Window<P, S>,
        level: u8,
    ) -> Added {
        if window.is_some() {
            self.metrics.retry();
        }
        self.delay_until(id, later, level)
    }

    /// Adds a key now, at the level of the deadline for which it waited.
    fn add_instead(
        &mut self,
        id: SlotId,
        window: Option<Window<P, S>>,
        now: Instant,
        level: u8,
    ) -> Added {
        if window.is_some() {
            self.metrics.retry();
        }
        let mut level = level;
        if self.take_deadline(id).is_some() {
            level = level.max(self.levels(id).delayed);
            self.metrics.delayed(self.delays.len());
        }
        self.mark(id, now, level)
    }
}

/// Series of debounced adds.
impl<K: Eq + Hash, P: Priorities, L: RateLimiter, S: Storage, M: Metrics> Queue<K, P, L, S, M> {
    fn debounce(&mut self, id: SlotId, quiet: Duration, max: Duration, now: Instant) -> Added {
        if self.runs_anyway(id) {
            self.metrics.retry();
            self.metrics.coalesced();
            return Added::Coalesced;
        }
        self.gate.set(Gate::DEBOUNCES, true);
        let first = self.kept_mut(id).map_or(Instant::NEVER, |kept| kept.series);
        let pending = self.deadline(id).filter(|_| !first.is_never());
        let first = if pending.is_some() { first } else { now };
        let window = Window::<P, S>::exact((now + quiet).min(first + max));
        let window = self.window_of_add(id, window, now);
        let Some(before) = pending else {
            return self.begin_series(id, window, now);
        };
        let due = window.due;
        self.metrics.retry();
        if !due.is_after(now) {
            let level = self.levels(id).delayed;
            let _ = self.take_deadline(id);
            self.metrics.delayed(self.delays.len());
            return self.mark(id, now, level);
        }
        if due == before {
            self.metrics.coalesced();
            return Added::Coalesced;
        }
        self.set_deadline(id, window);
        if due < before {
            Added::Sooner
        } else {
            Added::Later
        }
    }

    fn begin_series(&mut self, id: SlotId, window: Window<P, S>, now: Instant) -> Added {
        let added = self.schedule(id, window, now, LOWEST);
        // A series may only move its own deadline.
        let is_own = window.due.is_after(now) && matches!(added, Added::Delayed | Added::Sooner);
        self.set_series(id, if is_own { now } else { Instant::NEVER });
        added
    }
}

/// The result for the key, and the key that was evicted for it.
type Displacing<K> = Result<(Scheduled, Option<Leftover<K>>), Rejected<K>>;

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Session<'_, K, P, L, S, M>
{
    /// As [`add_with`](Self::add_with), but if there is no room, evicts the newest ready key of the
    /// lowest level, and returns it. O(log n).
    ///
    /// For callers that cannot wait for room, in queues with [`Levels`](crate::priority::Levels).
    /// Only a key of a lower level than [`AddOptions::priority`] is evicted. Active keys, and keys
    /// that are only delayed, stay. A failure record is dropped first, as by every add. An evicted
    /// key has no deadline in this queue any more. You can [restore](Self::restore) it elsewhere or
    /// later.
    ///
    /// With [`Groups`](crate::priority::Groups), a key of the group whose turn is last is evicted.
    /// The keys of groups that may not start a run stay.
    ///
    /// # Errors
    ///
    /// As [`add_with`](Self::add_with). [`Rejected::Full`] if no key can be evicted. Nothing
    /// has changed then.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::limiter::NoLimit;
    /// use requeue::priority::Levels;
    /// use requeue::storage::Fixed;
    /// use requeue::{AddOptions, Instant, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Levels<2>, NoLimit, Fixed<2>> = Queue::new(NoLimit);
    /// let _ = queue.at(now).add_many(["report", "log"], |_| {});
    ///
    /// let alarm = AddOptions { priority: Some(1), ..AddOptions::new() };
    /// let (_, displaced) = queue.at(now).add_displacing("alarm", alarm).unwrap();
    /// assert_eq!(displaced.unwrap().key, "log");
    /// assert_eq!(queue.at(now).try_get().unwrap().key, "alarm");
    /// ```
    pub fn add_displacing(&mut self, key: K, options: AddOptions) -> Displacing<K> {
        let key = match self.add_with(key, options) {
            Err(Rejected::Full(key)) => key,
            other => return other.map(|scheduled| (scheduled, None)),
        };
        let level = options.priority.unwrap_or(LOWEST);
        let Some(displaced) = self.queue.displace_for(&key, level, self.now) else {
            return Err(Rejected::Full(key));
        };
        let scheduled = self.add_with(key, options)?;
        Ok((scheduled, Some(displaced)))
    }
}

impl<K: Eq + Hash + Clone, P: Priorities, L: RateLimiter, S: Storage, M: Metrics>
    Queue<K, P, L, S, M>
{
    /// Evicts the newest ready key of the lowest level for a new key of a higher level. Evicts none
    /// if the new key would still find no room: its group has no place, or the queue has more keys
    /// than fit.
    fn displace_for(&mut self, key: &K, level: u8, now: Instant) -> Option<Leftover<K>> {
        if self.slots.is_over_full() {
            return None;
        }
        let id = self.lists.newest_below(level)?;
        // Last, because another group may lose its place for this one.
        let _ = self.lists.seat(&self.naming.group_of(key), now)?;
        self.take_out_ready(id)
    }
}
