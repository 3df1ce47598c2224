//! What a queue reports to its metrics, written down.

use std::any::Any;
use std::collections::BTreeMap;
#[cfg(any(feature = "std", feature = "tokio"))]
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use requeue_core::metrics::{Metrics, Times};

/// client-go's seven figures and those of successes, with every observation of the histograms in
/// order.
///
/// # Examples
///
/// ```
/// use requeue_core::limiter::NoLimit;
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_core::{Instant, Queue};
/// use requeue_proptest::Figures;
///
/// let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>, Figures> =
///     Queue::with_metrics(NoLimit, Figures::default());
/// let _ = queue.at(Instant::EPOCH).add(1);
/// assert_eq!((queue.metrics().adds, queue.metrics().depth), (1, 1));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    /// How many keys are ready or dirty. Signed, since client-go's can go wrong.
    pub depth: i64,
    /// How many keys have become ready or dirty.
    pub adds: u64,
    /// How many times a key was asked to come back later.
    pub retries: u64,
    /// How long each key that was handed out had waited.
    pub latencies: Vec<Duration>,
    /// How long each run lasted.
    pub work_durations: Vec<Duration>,
    /// How long each success took, from the first add of its key.
    pub times_to_success: Vec<Duration>,
    /// Which attempt each of them was, from 1.
    pub attempts_at_success: Vec<u32>,
    /// How long all active keys had been so, when that was last reported.
    pub unfinished: Duration,
    /// How long the longest run had lasted, when that was last reported.
    pub longest: Duration,
    /// How many times the last two were reported.
    pub reports: u64,
    /// How many keys of each priority level are ready or dirty, where that is any. Empty for a
    /// queue without levels.
    pub depths: BTreeMap<u8, usize>,
}

impl Figures {
    /// What was reported to these metrics, if they write it down.
    pub(crate) fn of(metrics: &dyn Any) -> Option<Self> {
        metrics.downcast_ref().cloned()
    }
}

/// [`Figures`] that a queue writes and a test reads, for the runtimes whose metrics are values.
#[cfg(any(feature = "std", feature = "tokio"))]
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedFigures(Arc<Mutex<Figures>>);

#[cfg(any(feature = "std", feature = "tokio"))]
impl SharedFigures {
    /// What was reported so far.
    pub(crate) fn get(&self) -> Figures {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Figures> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

macro_rules! reports {
    (|$it:ident| $($report:ident($($argument:ident: $type:ty),*) => $change:expr;)+) => {
        impl Metrics for Figures {
            type Timestamps = Times;

            $(fn $report(&mut self $(, $argument: $type)*) {
                let $it = self;
                $change;
            })+
        }

        #[cfg(any(feature = "std", feature = "tokio"))]
        impl Metrics for SharedFigures {
            type Timestamps = Times;

            $(fn $report(&mut self $(, $argument: $type)*) {
                self.lock().$report($($argument),*);
            })+
        }
    };
}

reports! { |it|
    depth(keys: usize) => it.depth = i64::try_from(keys).unwrap_or(i64::MAX);
    depth_at(priority: u8, keys: usize) => match keys {
        0 => it.depths.remove(&priority),
        _ => it.depths.insert(priority, keys),
    };
    added() => it.adds += 1;
    queue_latency(latency: Duration) => it.latencies.push(latency);
    work_duration(duration: Duration) => it.work_durations.push(duration);
    time_to_success(time: Duration) => it.times_to_success.push(time);
    attempts_at_success(attempts: u32) => it.attempts_at_success.push(attempts);
    unfinished_work(sum: Duration) => {
        it.unfinished = sum;
        it.reports += 1;
    };
    longest_running(longest: Duration) => it.longest = longest;
    retry() => it.retries += 1;
}
