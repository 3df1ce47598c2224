//! The clocks of a queue, and how a thread waits for one of their instants.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use requeue_core::Instant;
use requeue_core::binding::Clock;

use crate::sync::{self, Mutex, Parker};

/// The clock of a queue: the system's monotonic one, or one that a test moves.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::{ManualClock, WorkQueue};
///
/// // The type does not name the clock.
/// struct Leases {
///     queue: WorkQueue<u32>,
/// }
///
/// let clock = ManualClock::new();
/// let leases = Leases { queue: WorkQueue::builder().clock(clock.clone()).build() };
/// let _ = leases.queue.add_after(3, Duration::from_secs(60));
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(leases.queue.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct QueueClock {
    epoch: sync::Instant,
    /// What is read instead of the system's clock.
    manual: Option<ManualClock>,
}

/// Longer waits are split, because no system promises to sleep for any length of time.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl QueueClock {
    /// Creates a clock that follows the system's, and whose epoch is now. Instants of two such
    /// clocks cannot be compared; those of a clone can.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::QueueClock;
    ///
    /// let clock = QueueClock::new();
    /// let earlier = clock.now();
    /// assert!(clock.now() >= earlier);
    /// ```
    pub fn new() -> Self {
        Self {
            epoch: sync::Instant::now(),
            manual: None,
        }
    }

    /// Returns the time: that which has passed since the clock was made, or that of a clock that a
    /// test moves.
    #[inline]
    pub fn now(&self) -> Instant {
        match &self.manual {
            None => Instant::EPOCH + self.epoch.elapsed(),
            Some(clock) => clock.now(),
        }
    }

    /// Sleeps until the parker is woken, or until `until`; may return spuriously.
    pub(crate) fn park(&self, parker: &Parker, until: Option<Instant>) {
        if let Some(clock) = &self.manual {
            return clock.park(parker, until);
        }
        let until = until.filter(|due| !due.is_never());
        let left = until.map(|due| due.saturating_since(self.now()).min(WAIT_MAX));
        parker.park(left);
    }
}

impl Clock for QueueClock {
    #[inline]
    fn now(&self) -> Instant {
        self.now()
    }
}

impl Default for QueueClock {
    fn default() -> Self {
        Self::new()
    }
}

impl From<ManualClock> for QueueClock {
    fn from(clock: ManualClock) -> Self {
        Self {
            manual: Some(clock),
            ..Self::new()
        }
    }
}

/// A clock that stands still until a test moves it. Clones show the same time.
///
/// A thread that waits for a deadline sleeps until [`WorkQueue::clock_moved`] wakes it.
///
/// [`WorkQueue::clock_moved`]: crate::WorkQueue::clock_moved
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::{ManualClock, WorkQueue};
///
/// let clock = ManualClock::new();
/// let queue = WorkQueue::builder().clock(clock.clone()).build();
/// let _ = queue.add_after("probe", Duration::from_secs(3600));
/// assert!(queue.try_get().is_none());
///
/// clock.advance(Duration::from_secs(3600));
/// assert_eq!(*queue.try_get().unwrap(), "probe");
/// ```
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    shared: Arc<Manual>,
}

#[derive(Debug, Default)]
struct Manual {
    nanos: AtomicU64,
    /// The deadline of each thread that waits, if it has one.
    waits: Mutex<Vec<Option<Instant>>>,
}

impl ManualClock {
    /// Creates a clock that shows its epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the time that the clock shows.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.shared.nanos.load(Ordering::SeqCst))
    }

    /// Moves the clock forward, to [`Instant::NEVER`] at most. Waiting threads see it after
    /// [`WorkQueue::clock_moved`](crate::WorkQueue::clock_moved).
    pub fn advance(&self, by: Duration) {
        // One atomic step, so that concurrent calls add up.
        let later = |nanos| Some((Instant::from_nanos(nanos) + by).as_nanos());
        let nanos = &self.shared.nanos;
        let _ = nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Sets the clock. Waiting threads see it as after [`advance`](Self::advance). `now` must not
    /// lie in the past, because a [`Clock`] does not go backwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::ManualClock;
    /// use requeue_std::core::Instant;
    ///
    /// let clock = ManualClock::new();
    /// clock.set(Instant::from_nanos(1_000_000));
    /// assert_eq!(clock.now(), Instant::from_nanos(1_000_000));
    /// ```
    pub fn set(&self, now: Instant) {
        self.shared.nanos.store(now.as_nanos(), Ordering::SeqCst);
    }

    /// Returns how many threads wait on this clock, with a deadline or without. A thread that was
    /// woken counts until it runs. O(1).
    ///
    /// With this a test waits until the threads that it started are asleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use requeue_std::{ManualClock, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::builder().clock(clock.clone()).build();
    /// let _ = queue.add_after("probe", Duration::from_secs(60));
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(*queue.get().unwrap(), "probe"));
    ///     while clock.waiting() != 1 {
    ///         thread::yield_now();
    ///     }
    ///     // The thread sleeps until the key is due: move the clock there.
    ///     clock.set(clock.next_alarm().unwrap());
    ///     queue.clock_moved();
    /// });
    /// ```
    pub fn waiting(&self) -> usize {
        self.shared.waits.lock().len()
    }

    /// Returns the earliest deadline of the threads that wait on this clock; `None` if there is
    /// none. O(n) in the threads that wait. [`waiting`](Self::waiting) has an example.
    pub fn next_alarm(&self) -> Option<Instant> {
        let waits = self.shared.waits.lock();
        let alarms = waits.iter().copied().flatten();
        alarms.filter(|until| !until.is_never()).min()
    }
}

impl ManualClock {
    fn park(&self, parker: &Parker, until: Option<Instant>) {
        self.shared.waits.lock().push(until);
        parker.park(None);
        let mut waits = self.shared.waits.lock();
        if let Some(index) = waits.iter().position(|other| *other == until) {
            waits.swap_remove(index);
        }
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.now()
    }
}
