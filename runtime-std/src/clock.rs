//! Clocks that threads can wait on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use requeue_core::{Clock, Instant};

use crate::sync::{self, Condvar, Mutex, MutexGuard};

/// A clock, and how a thread waits for one of its instants.
///
/// The trait is sealed: [`SystemClock`] is for programs, [`ManualClock`] for their tests.
///
/// # Examples
///
/// Code that takes a queue on either clock:
///
/// ```
/// use std::time::Duration;
/// use requeue_std::core::{DefaultController, NoMetrics};
/// use requeue_std::{ManualClock, Queue, Timer, WorkQueue};
///
/// type Leases<C> = WorkQueue<u32, DefaultController, NoMetrics, C>;
///
/// fn renew_later<C: Timer>(queue: &Leases<C>, lease: u32) {
///     queue.add_after(lease, Duration::from_secs(60)).unwrap();
/// }
///
/// let clock = ManualClock::new();
/// let queue = WorkQueue::from_queue(Queue::builder().build(), clock.clone());
/// renew_later(&queue, 3);
/// clock.advance(Duration::from_secs(60));
/// assert_eq!(queue.len(), 1);
/// ```
pub trait Timer: Clock + sealed::Sealed {
    /// Waits to be notified, or until `until` has come; may return for no reason.
    #[doc(hidden)]
    fn wait<T>(&self, condvar: &Condvar, state: &mut MutexGuard<'_, T>, until: Option<Instant>);
}

/// The system's monotonic clock; its epoch is the moment it was made.
///
/// # Examples
///
/// ```
/// use requeue_core::Clock;
/// use requeue_std::SystemClock;
///
/// let clock = SystemClock::new();
/// let earlier = clock.now();
/// assert!(clock.now() >= earlier);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SystemClock {
    epoch: sync::Instant,
}

/// A wait is cut into pieces of this length, since no system promises to take any longer one.
const WAIT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

impl SystemClock {
    /// A clock whose epoch is now. Instants of two such clocks cannot be compared.
    pub fn new() -> Self {
        Self {
            epoch: sync::Instant::now(),
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        Instant::EPOCH + self.epoch.elapsed()
    }
}

impl Timer for SystemClock {
    fn wait<T>(&self, condvar: &Condvar, state: &mut MutexGuard<'_, T>, until: Option<Instant>) {
        match until {
            Some(until) => {
                let left = until.saturating_since(self.now()).min(WAIT_MAX);
                condvar.wait_for(state, left);
            }
            None => condvar.wait(state),
        }
    }
}

/// A clock that stands still until a test moves it. Clones show the same time.
///
/// A thread that waits for a deadline sleeps until [`WorkQueue::clock_moved`] tells it to look
/// again.
///
/// [`WorkQueue::clock_moved`]: crate::WorkQueue::clock_moved
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_std::{ManualClock, Queue, WorkQueue};
///
/// let clock = ManualClock::new();
/// let queue = WorkQueue::from_queue(Queue::builder().build(), clock.clone());
/// queue.add_after("probe", Duration::from_secs(3600)).unwrap();
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
    /// Until when each thread that waits would sleep at most. Locked behind the lock of the queue.
    waits: Mutex<Vec<Option<Instant>>>,
}

impl ManualClock {
    /// A clock that stands at its epoch.
    pub fn new() -> Self {
        Self::default()
    }

    /// Moves the clock forward, to [`Instant::NEVER`] at most. Threads that wait learn of it by
    /// [`WorkQueue::clock_moved`](crate::WorkQueue::clock_moved).
    pub fn advance(&self, by: Duration) {
        // In one step, so that of two threads that move it at once both do.
        let later = |nanos| Some((Instant::from_nanos(nanos) + by).as_nanos());
        let nanos = &self.shared.nanos;
        let _ = nanos.fetch_update(Ordering::SeqCst, Ordering::SeqCst, later);
    }

    /// Sets the clock; threads that wait learn of it as after [`advance`](Self::advance). `now`
    /// must not lie in the past, since a [`Clock`] does not go backwards.
    ///
    /// # Examples
    ///
    /// ```
    /// use requeue_std::ManualClock;
    /// use requeue_std::core::{Clock, Instant};
    ///
    /// let clock = ManualClock::new();
    /// clock.set(Instant::from_nanos(1_000_000));
    /// assert_eq!(clock.now(), Instant::from_nanos(1_000_000));
    /// ```
    pub fn set(&self, now: Instant) {
        self.shared.nanos.store(now.as_nanos(), Ordering::SeqCst);
    }

    /// How many threads wait on this clock, for whatever and until whenever. One that has been
    /// woken counts until it runs. O(1).
    ///
    /// A test that has started threads knows by this that all of them have gone to sleep.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::thread;
    /// use std::time::Duration;
    /// use requeue_std::{ManualClock, Queue, WorkQueue};
    ///
    /// let clock = ManualClock::new();
    /// let queue = WorkQueue::from_queue(Queue::builder().build(), clock.clone());
    /// queue.add_after("probe", Duration::from_secs(60)).unwrap();
    /// thread::scope(|scope| {
    ///     scope.spawn(|| assert_eq!(*queue.get().unwrap(), "probe"));
    ///     while clock.waiting() != 1 {
    ///         thread::yield_now();
    ///     }
    ///     // It sleeps until the key is due, and here is how to get there.
    ///     clock.set(clock.next_alarm().unwrap());
    ///     queue.clock_moved();
    /// });
    /// ```
    pub fn waiting(&self) -> usize {
        self.shared.waits.lock().len()
    }

    /// The earliest instant at which a thread that waits on this clock would wake up by itself;
    /// nothing if none would. O(threads that wait). [`waiting`](Self::waiting) has an example.
    pub fn next_alarm(&self) -> Option<Instant> {
        let waits = self.shared.waits.lock();
        let alarms = waits.iter().copied().flatten();
        alarms.filter(|until| !until.is_never()).min()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.shared.nanos.load(Ordering::SeqCst))
    }
}

impl Timer for ManualClock {
    fn wait<T>(&self, condvar: &Condvar, state: &mut MutexGuard<'_, T>, until: Option<Instant>) {
        self.shared.waits.lock().push(until);
        condvar.wait(state);
        let mut waits = self.shared.waits.lock();
        if let Some(index) = waits.iter().position(|other| *other == until) {
            waits.swap_remove(index);
        }
    }
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::SystemClock {}
    impl Sealed for super::ManualClock {}
}
