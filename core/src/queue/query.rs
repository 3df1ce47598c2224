//! Looking at a queue.

use core::hash::Hash;

use crate::Instant;
use crate::limiter::RateLimiter;
use crate::lists::Lists;
use crate::metrics::{Metrics, Stamps};
use crate::outcome::{Effect, KeyState};
use crate::priority::Marks;
use crate::slots::{Located, Phase, Slots, Storage};

use super::{LOWEST, Queue};

impl<K: Eq + Hash, S: Storage, L: RateLimiter, M: Metrics> Queue<K, S, L, M> {
    /// How many keys are ready: client-go's `Len`. Keys in work and delayed keys do not count.
    /// O(1), and O(log n) for each deadline that has come.
    ///
    /// # Examples
    ///
    /// The four counts of a queue:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<8>, _> = Queue::new(default_item_based());
    /// let _ = queue.add_many(["node-7", "node-8", "node-9"], now, |_| {});
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60), now);
    /// let _work = queue.try_get(now);
    ///
    /// assert_eq!(queue.len(now).value, 2);
    /// assert_eq!((queue.active_len(), queue.delayed_len()), (1, 1));
    /// assert_eq!(queue.held_len(), 4);
    /// ```
    pub fn len(&mut self, now: Instant) -> Effect<usize> {
        self.release_due(now);
        let len = self.lists.ready_len();
        self.effect(len)
    }

    /// Whether no key is ready. Costs as [`len`](Self::len).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// assert!(!queue.is_empty(now).value);
    /// let _work = queue.try_get(now);
    /// assert!(queue.is_empty(now).value, "a key in work is not ready");
    /// ```
    pub fn is_empty(&mut self, now: Instant) -> Effect<bool> {
        let Effect { value, wake } = self.len(now);
        Effect {
            value: value == 0,
            wake,
        }
    }

    /// What the queue knows of a key; nothing if it does not hold the key. O(1), and O(log n) for
    /// each deadline that has come.
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let due = now + Duration::from_secs(60);
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_at("lease-3", due, now);
    ///
    /// let state = queue.state(&"lease-3", now).value.unwrap();
    /// assert_eq!((state.ready, state.due), (false, Some(due)));
    /// let state = queue.state(&"lease-3", due).value.unwrap();
    /// assert_eq!((state.ready, state.due), (true, None));
    /// ```
    pub fn state(&mut self, key: &K, now: Instant) -> Effect<Option<KeyState>> {
        self.release_due(now);
        let state = match self.slots.locate(key) {
            Located::Found(id) => self.slots.slot(id).map(|slot| KeyState {
                ready: slot.phase == Phase::Ready,
                active: matches!(slot.phase, Phase::Active | Phase::Dirty),
                dirty: slot.phase == Phase::Dirty,
                due: self.delays.due(id),
                requeues: self.limiter.requeues(&slot.note.memory),
                priority: match slot.phase {
                    Phase::Ready | Phase::Dirty => slot.note.marks.queued(),
                    Phase::Active => slot.note.marks.running(),
                    Phase::Idle if self.delays.has(id) => slot.note.marks.delayed(),
                    Phase::Idle => LOWEST,
                },
            }),
            Located::Absent(_) => None,
        };
        self.effect(state)
    }

    /// Whether a key is ready, in work or delayed: whether there is work to be done on it. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Completion, Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", now);
    /// assert!(queue.contains(&"node-7"));
    ///
    /// let work = queue.try_get(now).value.unwrap();
    /// assert!(queue.contains(&"node-7"), "it is in work");
    /// let _ = queue.complete(work.ticket, Completion::Succeeded, now);
    /// assert!(!queue.contains(&"node-7"));
    /// ```
    pub fn contains(&self, key: &K) -> bool {
        match self.slots.locate(key) {
            Located::Found(id) => !self.is_mere_memory(id),
            Located::Absent(_) => false,
        }
    }

    /// How many failures the limiter remembers of a key. O(1).
    ///
    /// # Examples
    ///
    /// A worker gives up a key that has failed too often:
    ///
    /// ```
    /// use requeue_core::{Completion, Fixed, Instant, Queue, default_item_based};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
    /// for _ in 0..3 {
    ///     let _ = queue.add_rate_limited("node-7", now);
    /// }
    /// let later = Instant::from_nanos(1_000_000);
    /// let work = queue.try_get(later).value.unwrap();
    /// if queue.num_requeues(&work.key) >= 3 {
    ///     let _ = queue.complete(work.ticket, Completion::Succeeded, later);
    /// }
    /// assert_eq!(queue.num_requeues(&"node-7"), 0);
    /// ```
    pub fn num_requeues(&self, key: &K) -> u32 {
        match self.slots.locate(key) {
            Located::Found(id) => self.requeues(id),
            Located::Absent(_) => 0,
        }
    }

    /// How many keys are in work, dirty ones among them; [`len`](Self::len) has an example. O(1).
    pub fn active_len(&self) -> usize {
        self.active
    }

    /// How many keys wait for a deadline, whatever else they do; [`len`](Self::len) has an example.
    /// O(1).
    ///
    /// Keys whose deadline has come count until an operation looks at the time.
    pub fn delayed_len(&self) -> usize {
        self.delays.len()
    }

    /// How many keys the queue holds: ready, in work, delayed, or remembered for their failures;
    /// [`len`](Self::len) has an example. O(1).
    pub fn held_len(&self) -> usize {
        self.slots.len()
    }

    /// How many keys fit; nothing if the storage grows. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, NoLimit, Queue};
    ///
    /// let queue: Queue<u16, Fixed<300, u16>, NoLimit> = Queue::new(NoLimit);
    /// assert_eq!(queue.capacity(), Some(300));
    /// ```
    pub const fn capacity(&self) -> Option<usize> {
        S::CAPACITY
    }

    /// The earliest deadline that is to come; nothing if there is none, or none but
    /// [`Instant::NEVER`], or once the queue is shut down. O(1).
    ///
    /// # Examples
    ///
    /// A bare loop may sleep until then:
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let now = Instant::EPOCH;
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add_after("lease-3", Duration::MAX, now);
    /// assert_eq!(queue.next_deadline(), None);
    /// let _ = queue.add_after("lease-4", Duration::from_secs(60), now);
    /// assert_eq!(queue.next_deadline(), Some(now + Duration::from_secs(60)));
    /// ```
    pub fn next_deadline(&self) -> Option<Instant> {
        if self.closed {
            return None;
        }
        self.delays.earliest()
    }

    /// Whether the next operation looks at `now`: something is delayed, or the metrics measure
    /// time. A runtime need not read its clock otherwise. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use core::time::Duration;
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let _ = queue.add("node-7", Instant::EPOCH);
    /// assert!(!queue.needs_time());
    /// let _ = queue.add_after("lease-3", Duration::from_secs(60), Instant::EPOCH);
    /// assert!(queue.needs_time());
    /// ```
    #[inline]
    pub fn needs_time(&self) -> bool {
        M::Stamps::NEED_TIME || (!self.closed && !self.delays.is_empty())
    }

    /// How many getters sleep: were told to wait, and have neither come back nor left. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Getter, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// let mut idle_worker = Getter::new();
    /// let _ = queue.get(Instant::EPOCH, &mut idle_worker);
    /// assert_eq!(queue.asleep(), 1);
    /// let _ = queue.leave(&mut idle_worker);
    /// assert_eq!(queue.asleep(), 0);
    /// ```
    pub fn asleep(&self) -> usize {
        self.sleepers.asleep() as usize
    }

    /// Whether the queue has been shut down; [`shut_down`](Self::shut_down) has an example. O(1).
    pub fn shutting_down(&self) -> bool {
        self.closed
    }

    /// When the queue was first shut down; [`Instant::NEVER`] if it was not. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, NoLimit, Queue};
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
    /// assert!(queue.closed_at().is_never());
    /// for nanos in [7, 9] {
    ///     let _ = queue.shut_down(Instant::from_nanos(nanos));
    /// }
    /// assert_eq!(queue.closed_at(), Instant::from_nanos(7));
    /// ```
    pub fn closed_at(&self) -> Instant {
        self.closed_at
    }

    /// The rate limiter. O(1).
    pub fn limiter(&self) -> &L {
        &self.limiter
    }

    /// The metrics. O(1).
    pub fn metrics(&self) -> &M {
        &self.metrics
    }

    /// The metrics, to read and reset them. O(1).
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_core::{Fixed, Instant, Metrics, NoLimit, Queue};
    ///
    /// #[derive(Default)]
    /// struct Adds(u32);
    ///
    /// impl Metrics for Adds {
    ///     type Stamps = ();
    ///
    ///     fn add(&mut self) {
    ///         self.0 += 1;
    ///     }
    /// }
    ///
    /// let mut queue: Queue<&str, Fixed<4>, NoLimit, Adds> =
    ///     Queue::with_metrics(NoLimit, Adds::default());
    /// let _ = queue.add("node-7", Instant::EPOCH);
    /// let adds_since_last_time = core::mem::take(&mut queue.metrics_mut().0);
    /// assert_eq!((adds_since_last_time, queue.metrics().0), (1, 0));
    /// ```
    pub fn metrics_mut(&mut self) -> &mut M {
        &mut self.metrics
    }
}
