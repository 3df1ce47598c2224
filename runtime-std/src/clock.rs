//! The clocks of a queue, the system's and one that a test moves. Owns how a thread waits for one
//! of their instants; never decides which instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;
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
/// use requeue::std::{ManualClock, WorkQueue};
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
    /// use requeue::std::QueueClock;
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

    /// Converts one of std's instants. One before the clock's epoch becomes the epoch.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{Added, WorkQueue};
    /// use std::time::{Duration, Instant};
    ///
    /// let queue = WorkQueue::new();
    /// let lease_ends = Instant::now() + Duration::from_secs(15);
    ///
    /// let due = queue.clock().at(lease_ends);
    /// assert_eq!(queue.add_at("lease-3", due), Ok(Added::Delayed));
    /// assert_eq!(queue.clock().to_std(due), Some(lease_ends));
    /// ```
    #[cfg(not(shuttle))] // Its time is not std's.
    pub fn at(&self, instant: std::time::Instant) -> Instant {
        match &self.manual {
            None => Instant::EPOCH + instant.saturating_duration_since(self.epoch),
            Some(clock) => {
                let now = std::time::Instant::now();
                let ahead = instant.saturating_duration_since(now);
                clock.now() - now.saturating_duration_since(instant) + ahead
            }
        }
    }

    /// Converts an instant of this clock to one of std's. `None` for [`Instant::NEVER`], and for
    /// an instant that std cannot represent.
    ///
    /// With a [`ManualClock`], `at` and `to_std` count from the present of both clocks.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::{Instant, QueueClock};
    ///
    /// let clock = QueueClock::new();
    /// assert!(clock.to_std(clock.now()).unwrap() <= std::time::Instant::now());
    /// assert_eq!(clock.to_std(Instant::NEVER), None);
    /// ```
    #[cfg(not(shuttle))] // Its time is not std's.
    pub fn to_std(&self, instant: Instant) -> Option<std::time::Instant> {
        if instant.is_never() {
            return None;
        }
        match &self.manual {
            None => self.epoch.checked_add(instant - Instant::EPOCH),
            Some(clock) => {
                let now = clock.now();
                let then = std::time::Instant::now().checked_add(instant - now)?;
                then.checked_sub(now - instant)
            }
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
/// Moving it wakes the threads whose deadlines have passed, in every call that waits: `get`, `run`,
/// [`backoff_until`](crate::backoff_until) and the rest.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue::std::{ManualClock, WorkQueue};
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
    /// Changes only while the list is locked, so that no thread begins to wait in between.
    nanos: AtomicU64,
    /// The threads that wait.
    waits: Mutex<Vec<Sleeper>>,
}

#[derive(Debug)]
struct Sleeper {
    /// The deadline of the wait, if it has one.
    until: Option<Instant>,
    waker: Waker,
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

    /// Moves the clock forward, to [`Instant::NEVER`] at most, and wakes the threads whose
    /// deadlines have passed. O(n) in the threads that wait.
    pub fn advance(&self, by: Duration) {
        self.change(|now| now + by);
    }

    /// Sets the clock, and wakes as [`advance`](Self::advance) does. `now` must not lie in the
    /// past, because a [`Clock`] does not go backwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue::std::ManualClock;
    /// use requeue::std::Instant;
    ///
    /// let clock = ManualClock::new();
    /// clock.set(Instant::from_nanos(1_000_000));
    /// assert_eq!(clock.now(), Instant::from_nanos(1_000_000));
    /// ```
    pub fn set(&self, now: Instant) {
        self.change(|_| now);
    }

    /// Returns how many threads wait on this clock, with a deadline or without: workers without a
    /// key, and the thread that called `run`. A thread that was woken counts until it runs. O(1).
    ///
    /// With this a test waits until the threads that it started are asleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use requeue::std::{ManualClock, WorkQueue};
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
    /// });
    /// ```
    pub fn waiting(&self) -> usize {
        self.shared.waits.lock().len()
    }

    /// Returns the earliest deadline of the threads that wait on this clock; `None` if there is
    /// none. O(n) in the threads that wait. [`waiting`](Self::waiting) has an example.
    pub fn next_alarm(&self) -> Option<Instant> {
        let waits = self.shared.waits.lock();
        let alarms = waits.iter().filter_map(|wait| wait.until);
        alarms.filter(|until| !until.is_never()).min()
    }

    fn change(&self, change: impl FnOnce(Instant) -> Instant) {
        let waits = self.shared.waits.lock();
        let now = change(self.now());
        self.shared.nanos.store(now.as_nanos(), Ordering::SeqCst);
        let due = waits.iter().filter(|wait| wait.is_over(now));
        let due: Vec<_> = due.map(|wait| wait.waker.clone()).collect();
        drop(waits);
        due.into_iter().for_each(Waker::wake);
    }

    fn park(&self, parker: &Parker, until: Option<Instant>) {
        let waker = parker.waker().clone();
        let wait = Sleeper { until, waker };
        let mut waits = self.shared.waits.lock();
        // The clock may have moved since the caller read it.
        if wait.is_over(self.now()) {
            return;
        }
        waits.push(wait);
        drop(waits);
        parker.park(None);
        let mut waits = self.shared.waits.lock();
        let own = |wait: &Sleeper| wait.waker.will_wake(parker.waker());
        if let Some(own) = waits.iter().position(own) {
            waits.swap_remove(own);
        }
    }
}

impl Sleeper {
    fn is_over(&self, now: Instant) -> bool {
        let until = self.until.filter(|until| !until.is_never());
        until.is_some_and(|until| until <= now)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.now()
    }
}
