//! How many runs all keys together may begin.

use core::time::Duration;

use crate::{Bucket, Instant, RateLimiter};

/// Limits how many runs begin per second: a token of a [`Bucket`] is taken for each key that is
/// handed out. The delays are those of another limiter.
///
/// A [`Bucket`] by itself is charged for each failure, and so limits retries, each of which gets a
/// deadline of its own. This one is charged when a run begins: an add that coalesces costs nothing,
/// a key keeps its place, and a key of a higher [level](crate::Levels) does not wait behind others.
/// It protects what the runs use, such as a server that allows so many calls.
///
/// If no token is left, keys stay ready, and getters wait. One of those that sleep is the timer.
/// That is so after shutdown too: a drain takes its time at this rate, and leftovers need no token.
/// A key that is handed out has used its token, whatever becomes of its run.
///
/// | parameters | runs |
/// |---|---|
/// | rate [`Bucket::UNLIMITED_RATE`] or above | no limit |
/// | rate 0, negative or not a number | the burst, and then none: a drain does not end by itself |
/// | burst 0 | none at all |
///
/// A token that is due between two nanoseconds is there at the first of them. The rest is owed, so
/// that the rate is exact over time.
///
/// # Cost
///
/// That of the inner limiter. For each key that is handed out what a [`Bucket`] costs, and one
/// comparison for each look. 48 bytes, and none per key. The queue reads the clock in every
/// operation.
///
/// # Examples
///
/// A server allows ten calls per second:
///
/// ```
/// use core::time::Duration;
/// use requeue_core::{Fixed, Instant, NoLimit, Queue, WithRunRate};
///
/// let limiter = WithRunRate::new(NoLimit, 10.0, 2);
/// let mut queue: Queue<u16, Fixed<8>, _> = Queue::new(limiter);
/// let now = Instant::EPOCH;
/// let _ = queue.at(now).add_many([1, 2, 3, 4, 3, 3], |_| {});
///
/// let later = now + Duration::from_millis(100);
/// assert_eq!(queue.at(now).try_get().unwrap().key, 1);
/// assert_eq!(queue.at(now).try_get().unwrap().key, 2);
/// assert!(queue.at(now).try_get().is_none());
/// assert_eq!(queue.next_deadline(), Some(later));
/// assert_eq!(queue.at(later).try_get().unwrap().key, 3);
/// assert!(queue.at(later).try_get().is_none());
/// ```
#[derive(Clone, Debug)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct WithRunRate<L> {
    inner: L,
    bucket: Bucket,
    /// When the next token is there.
    next: Instant,
}

impl<L> WithRunRate<L> {
    /// Creates a limiter with the delays of `inner`, which lets `per_second` runs begin per second,
    /// after a burst of at most `burst`.
    pub const fn new(inner: L, per_second: f64, burst: u32) -> Self {
        let bucket = Bucket::new(per_second, burst);
        let next = if bucket.is_closed() {
            Instant::NEVER
        } else {
            Instant::EPOCH
        };
        Self {
            inner,
            bucket,
            next,
        }
    }
}

delegate_debounce!(WithRunRate<L>, record => record);

impl<L: RateLimiter> RateLimiter for WithRunRate<L> {
    type Record = L::Record;

    fn when(&mut self, record: &mut L::Record, now: Instant) -> Duration {
        self.inner.when(record, now)
    }

    fn requeues(&self, record: &L::Record) -> u32 {
        self.inner.requeues(record)
    }

    const PACES: bool = true;

    #[inline]
    fn next_start(&self) -> Instant {
        self.next.max(self.inner.next_start())
    }

    fn started(&mut self, now: Instant) {
        self.inner.started(now);
        let _ = self.bucket.when(&mut (), now);
        self.next = self.bucket.next_token();
    }

    delegate_record!(L, self, self.inner);

    fn needs_time(&self) -> bool {
        self.bucket.is_limited() || self.inner.needs_time()
    }
}
