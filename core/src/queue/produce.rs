//! What producers do: adding keys, at once or later, and forgetting their failures.

use core::hash::Hash;
use core::time::Duration;

use crate::Instant;
use crate::delay::Scheduled;
use crate::id::SlotId;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::Metrics;
use crate::options::AddOptions;
use crate::outcome::{Added, Effect, Limited, Rejected};
use crate::priority::{Marks, Priorities};
use crate::slots::{Located, Phase, Slots, Storage};

use super::{LOWEST, Note, Queue, quiet};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// Marks a key as having work to do. O(1).
    ///
    /// A key that is ready stays where it is; a key in work will be worked on once more.
    ///
    /// # Errors
    ///
    /// [`Rejected::Closed`] after shutdown; [`Rejected::Full`] if the key is new and there is no
    /// room. Either hands the key back and changes nothing. A key that the queue holds is never
    /// refused for room, and a key that lives for its failures alone makes room for one that has
    /// work.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// assert_eq!(queue.add("node-7", now).value, Ok(Added::Ready));
    /// let work = queue.try_get(now).value.unwrap();
    ///
    /// // The node changes while it is worked on: it is worked on once more, and not twice at once.
    /// assert_eq!(queue.add("node-7", now).value, Ok(Added::Dirty));
    /// assert!(queue.try_get(now).value.is_none());
    /// let _ = queue.done(work.ticket, now);
    /// assert!(queue.try_get(now).value.is_some());
    /// ```
    pub fn add(&mut self, key: K, now: Instant) -> Effect<Result<Added, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let added = self.add_quietly(key, now);
        self.effect_in_use(added)
    }

    /// Adds a key after a delay. O(log n).
    ///
    /// As in client-go the delay is an add that happens later: it changes nothing for a key that is
    /// ready or in work until it is over, and an [`add`](Self::add) meanwhile does not end it. Of
    /// two delays the one that ends first counts. A delay of zero is an add, and leaves a pending
    /// delay as it is. [`Duration::MAX`] is never, and arms no timer: the key stays known, and is
    /// handed back at shutdown.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let minute = Duration::from_secs(60);
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// assert_eq!(queue.add_after("lease-3", minute, now).value, Ok(Added::Delayed));
    /// assert_eq!(queue.add_after("lease-3", minute * 2, now).value, Ok(Added::Coalesced));
    /// assert_eq!(queue.add_after("lease-3", minute / 2, now).value, Ok(Added::Sooner));
    ///
    /// assert!(queue.try_get(now).value.is_none());
    /// assert!(queue.try_get(now + minute / 2).value.is_some());
    /// ```
    pub fn add_after(
        &mut self,
        key: K,
        delay: Duration,
        now: Instant,
    ) -> Effect<Result<Added, Rejected<K>>> {
        self.add_at(key, now + delay, now)
    }

    /// Adds a key at a point in time, at once if that has come. O(log n).
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
    /// use requeue_core::{Added, Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<u16, Fixed<8>, NoLimit> = Queue::new(NoLimit);
    /// // Sensor 17 is read on the full hour, however late it is asked for.
    /// let full_hour = Instant::EPOCH + Duration::from_secs(3600);
    /// assert_eq!(queue.add_at(17, full_hour, Instant::EPOCH).value, Ok(Added::Delayed));
    ///
    /// // Sensor 18 is asked for afterwards and stands behind it.
    /// let later = full_hour + Duration::from_secs(1);
    /// assert_eq!(queue.add_at(18, full_hour, later).value, Ok(Added::Ready));
    /// assert_eq!(queue.try_get(later).value.unwrap().key, 17);
    /// ```
    pub fn add_at(
        &mut self,
        key: K,
        due: Instant,
        now: Instant,
    ) -> Effect<Result<Added, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let added = match self.slot_for(key) {
            Ok(id) => Ok(self.come_back(id, due, now, LOWEST)),
            Err(key) => Err(Rejected::Full(key)),
        };
        self.effect(added)
    }

    /// Counts a failure of a key and adds it once its limiter says so. O(log n) and the limiter's
    /// cost.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); the limiter is then not charged.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// let mut fail = |key| queue.add_rate_limited(key, now).value.unwrap().delay;
    /// assert_eq!(fail("node-7"), Duration::from_millis(1));
    /// assert_eq!(fail("node-7"), Duration::from_millis(2));
    /// assert_eq!(fail("node-8"), Duration::from_millis(1), "each key has its own count");
    /// assert_eq!(queue.num_requeues(&"node-7"), 2);
    /// ```
    pub fn add_rate_limited(
        &mut self,
        key: K,
        now: Instant,
    ) -> Effect<Result<Limited, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        self.release_due(now);
        let limited = match self.charge(key, now) {
            Ok((id, delay)) => {
                let level = self.retry_level(id);
                let added = self.come_back(id, now + delay, now, level);
                Ok(Limited { delay, added })
            }
            Err(key) => Err(Rejected::Full(key)),
        };
        self.effect(limited)
    }

    /// Adds a key in any of the ways there are, with a priority. O(log n).
    ///
    /// Answers as [`add_rate_limited`](Self::add_rate_limited) does, whether or not the limiter is
    /// asked. [`AddOptions`] says what can be asked for, and [`Levels`](crate::Levels) what a
    /// priority means.
    ///
    /// Reads `now` whatever [`needs_time`](Self::needs_time) says if
    /// [the options](AddOptions::needs_time) do.
    ///
    /// # Errors
    ///
    /// As [`add`](Self::add); and [`Rejected::UnknownPriority`] if the queue has no such level. The
    /// failure is then not counted either.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{AddOptions, Added, Fixed, Instant, Levels, NoLimit, Queue, Rejected};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<8, u8, Levels<3>>, NoLimit> = Queue::new(NoLimit);
    /// let at = |level| AddOptions { priority: Some(level), ..AddOptions::new() };
    ///
    /// let _ = queue.add("node-7", now);
    /// let _ = queue.add_with("node-8", at(1), now);
    /// let raised = queue.add_with("node-7", at(2), now).value.unwrap();
    /// assert_eq!(raised.added, Added::Raised);
    /// let refused = queue.add_with("node-9", at(3), now).value;
    /// assert_eq!(refused, Err(Rejected::UnknownPriority("node-9")));
    ///
    /// let first = queue.try_get(now).value.unwrap();
    /// assert_eq!((first.key, first.priority()), ("node-7", 2));
    /// # queue.done(first.ticket, now).value.unwrap();
    /// ```
    pub fn add_with(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Effect<Result<Limited, Rejected<K>>> {
        if self.closed {
            return quiet(Err(Rejected::Closed(key)));
        }
        let levels = S::Priorities::LEVELS;
        if options.priority.is_some_and(|level| level >= levels) {
            return quiet(Err(Rejected::UnknownPriority(key)));
        }
        self.release_due(now);
        let limited = self.add_with_quietly(key, options, now);
        self.effect(limited.map_err(Rejected::Full))
    }

    /// Forgets the failures of a key, whatever state it is in; a pending delay stays. O(1).
    ///
    /// Answers how many failures were forgotten: zero for a key that the queue does not know. What
    /// the limiter knows of all keys together, such as the tokens of a [`Bucket`](crate::Bucket),
    /// is not given back.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// let _ = queue.add_rate_limited("node-7", now);
    /// assert_eq!(queue.forget(&"node-7"), 1);
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// assert!(queue.contains(&"node-7"), "it is worked on all the same");
    /// ```
    pub fn forget(&mut self, key: &K) -> u32 {
        let Located::Found(id) = self.slots.locate(key) else {
            return 0;
        };
        let requeues = self.requeues(id);
        if self.is_mere_memory(id) {
            self.drop_memory(id);
        } else if let Some(slot) = self.slots.slot_mut(id) {
            slot.note.memory = L::Memory::default();
        }
        requeues
    }

    fn add_with_quietly(
        &mut self,
        key: K,
        options: AddOptions,
        now: Instant,
    ) -> Result<Limited, K> {
        let (id, delay) = if options.rate_limited {
            let (id, limit) = self.charge(key, now)?;
            (
                id,
                Some(options.after.map_or(limit, |after| after.min(limit))),
            )
        } else {
            (self.slot_for(key)?, options.after)
        };
        let level = match options.priority {
            Some(level) => level,
            None if options.rate_limited => self.retry_level(id),
            None => LOWEST,
        };
        let added = if options.expedite {
            self.come_once(id, delay, now, level)
        } else if let Some(delay) = delay {
            self.come_back(id, now + delay, now, level)
        } else {
            self.mark(id, now, level)
        };
        let delay = delay.unwrap_or(Duration::ZERO);
        Ok(Limited { delay, added })
    }

    /// Adds a key that has its slot at the sooner of the times that are asked for, and at no other.
    fn come_once(
        &mut self,
        id: SlotId,
        delay: Option<Duration>,
        now: Instant,
        mut level: u8,
    ) -> Added {
        let due = delay.map(|delay| now + delay);
        if let Some(later) = due.filter(|due| *due > now || due.is_never())
            && !self.is_queued(id)
        {
            return self.come_back(id, later, now, level);
        }
        if due.is_some() {
            self.metrics.retry();
        }
        if self.delays.remove(id).is_some() {
            level = level.max(self.marks(id).delayed());
            self.metrics.delayed(self.delays.len());
        }
        self.mark(id, now, level)
    }

    /// client-go's `AddAfter`, for a key that has its slot, at a priority level.
    pub(super) fn come_back(&mut self, id: SlotId, due: Instant, now: Instant, level: u8) -> Added {
        self.metrics.retry();
        if due <= now && !due.is_never() {
            return self.mark(id, now, level);
        }
        match self.delays.schedule(id, due) {
            Scheduled::New => {
                // A slot that is ready stands in the other list, which may share its links.
                if self.is_idle(id) {
                    self.lists.unremember(id);
                }
                self.set_delayed(id, level);
                self.metrics.delayed(self.delays.len());
                Added::Delayed
            }
            Scheduled::Sooner => {
                let _ = self.raise_delayed(id, level);
                Added::Sooner
            }
            Scheduled::Kept => {
                self.metrics.coalesced();
                self.raise_delayed(id, level)
            }
        }
    }

    /// Moves a key that is ready or dirty to a level, if that is higher than its own.
    #[inline]
    pub(super) fn raise(&mut self, id: SlotId, level: u8) -> Added {
        if S::Priorities::LEVELS == 1 || level <= self.marks(id).queued() {
            return Added::Coalesced;
        }
        if let Some(slot) = self.slots.slot_mut(id) {
            let before = slot.note.marks.queued();
            slot.note.marks.set_queued(level);
            if slot.phase == Phase::Ready {
                self.lists.remove_ready(id, before);
                self.lists.push_ready(id, level);
            } else {
                self.lists.note_clean(before);
                self.lists.note_dirty(level);
            }
            self.report_depth(before);
            self.report_depth(level);
        }
        Added::Raised
    }

    /// Gives the deadline of a key a higher level, if it is one.
    pub(super) fn raise_delayed(&mut self, id: SlotId, level: u8) -> Added {
        if level <= self.marks(id).delayed() {
            return Added::Coalesced;
        }
        self.set_delayed(id, level);
        Added::Raised
    }

    pub(super) fn set_delayed(&mut self, id: SlotId, level: u8) {
        if S::Priorities::LEVELS > 1
            && let Some(slot) = self.slots.slot_mut(id)
        {
            slot.note.marks.set_delayed(level);
        }
    }

    /// The level at which a key that has failed comes back: that of its run.
    pub(super) fn retry_level(&self, id: SlotId) -> u8 {
        if S::Priorities::LEVELS > 1 && self.is_active(id) {
            self.marks(id).running()
        } else {
            LOWEST
        }
    }

    /// Finds the slot of a key, or claims one. Hands the key back if there is no room.
    fn slot_for(&mut self, key: K) -> Result<SlotId, K> {
        match self.slots.locate(&key) {
            Located::Found(id) => Ok(id),
            Located::Absent(hash) => match self.make_room() {
                Some(id) => {
                    let note = Note::<S, L, M>::default();
                    self.slots.claim(id, hash, key, note, Phase::Idle);
                    Ok(id)
                }
                None => Err(key),
            },
        }
    }

    /// Charges the limiter for a key and answers its delay. A key without a slot gets one last, so
    /// that a limiter that panics leaves no slot behind.
    fn charge(&mut self, key: K, now: Instant) -> Result<(SlotId, Duration), K> {
        match self.slots.locate(&key) {
            Located::Found(id) => Ok((id, self.charge_slot(id, now))),
            Located::Absent(hash) => {
                let Some(id) = self.make_room() else {
                    return Err(key);
                };
                let mut note = Note::<S, L, M>::default();
                let delay = self.limiter.when(&mut note.memory, now);
                self.slots.claim(id, hash, key, note, Phase::Idle);
                Ok((id, delay))
            }
        }
    }

    pub(super) fn charge_slot(&mut self, id: SlotId, now: Instant) -> Duration {
        match self.slots.slot_mut(id) {
            Some(slot) => self.limiter.when(&mut slot.note.memory, now),
            None => Duration::ZERO,
        }
    }

    /// A slot for one more key, at the cost of the oldest memory of failures if need be.
    #[inline]
    pub(super) fn make_room(&mut self) -> Option<SlotId> {
        self.slots.vacancy().or_else(|| self.drop_oldest_memory())
    }
}
