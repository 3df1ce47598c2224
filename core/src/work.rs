//! A key that is handed out, and the right to complete its run.

use core::fmt::Debug;
use core::time::Duration;

use crate::id::SlotId;
use crate::metrics::{Metrics, Stamps, Waited};
use crate::priority::{Level, Priorities};
use crate::slots::Storage;

/// A key handed out to be worked on.
///
/// # Examples
///
/// ```
/// use requeue_core::{Completion, Fixed, Instant, Queue, default_item_based};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, _> = Queue::new(default_item_based());
/// let _ = queue.add("node-7", now);
///
/// let work = queue.try_get(now).value.unwrap();
/// let completion = match work.key {
///     "node-7" if work.requeues < 5 => Completion::Retry,
///     _ => Completion::Succeeded,
/// };
/// queue.complete(work.ticket, completion, now).value.unwrap();
/// assert_eq!(queue.num_requeues(&"node-7"), 1);
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a key that is handed out has to be completed"]
#[non_exhaustive]
pub struct Work<K, F> {
    /// The key: a clone of the one the queue keeps.
    pub key: K,
    /// Completes the key without another lookup.
    pub ticket: Ticket,
    /// How many failures the limiter remembers of the key.
    pub requeues: u32,
    pub(crate) facts: F,
}

impl<K, F: Facts> Work<K, F> {
    /// How long the key was ready, or dirty, before it was handed out; zero where the metrics keep
    /// no [`Times`](crate::Times), whose example asks for it.
    pub fn waited(&self) -> Duration {
        self.facts.waited()
    }

    /// The priority level of the key, which is also the one at which it comes back if it is
    /// retried; 0 in a queue without [`Levels`](crate::Levels), which has an example.
    pub fn priority(&self) -> u8 {
        self.facts.priority()
    }
}

/// Work as a queue of these parts hands it out.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Levels, Timed, WorkOf};
///
/// fn log<S: requeue_core::Storage>(work: &WorkOf<&str, S, Timed>) -> String {
///     format!("{} at level {} after {:?}", work.key, work.priority(), work.waited())
/// }
///
/// let _ = log::<Fixed<16, u8, Levels<2>>>;
/// ```
pub type WorkOf<K, S, M> = Work<K, FactsOf<S, M>>;

/// What a queue of these parts tells of a key that it hands out.
pub type FactsOf<S, M> = Told<
    <<M as Metrics>::Stamps as Stamps>::Waited,
    <<S as Storage>::Priorities as Priorities>::Level,
>;

/// What is told of a key that is handed out, beside the key: nothing, and no room is taken for it,
/// where the queue keeps nothing. The trait is sealed; [`Work`] and
/// [`Guard`](crate::Guard) have its methods as their own.
pub trait Facts: Debug + Send + Sync + sealed::Sealed + 'static {
    #[doc(hidden)]
    fn waited(&self) -> Duration;
    #[doc(hidden)]
    fn priority(&self) -> u8;
}

/// The two facts there are, each `()` where it is not kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
pub struct Told<W, P> {
    pub(crate) waited: W,
    pub(crate) level: P,
}

impl<W: Waited, P: Level> Facts for Told<W, P> {
    #[inline]
    fn waited(&self) -> Duration {
        self.waited.get()
    }

    #[inline]
    fn priority(&self) -> u8 {
        self.level.get()
    }
}

/// The right to complete one run of one key.
///
/// It cannot be cloned: a key is completed once. A ticket whose run was completed otherwise (by
/// [`done_key`](crate::Queue::done_key)) is stale and changes nothing. Tickets are meaningless to
/// any other queue.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Instant, NoLimit, NotActive, Queue};
///
/// let now = Instant::EPOCH;
/// let mut queue: Queue<&str, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let _ = queue.add("node-7", now);
/// let first = queue.try_get(now).value.unwrap();
/// queue.done_key(&"node-7", now).value.unwrap();
///
/// // The key is in work again, but in another run: the old ticket cannot end it.
/// let _ = queue.add("node-7", now);
/// let second = queue.try_get(now).value.unwrap();
/// assert_eq!(queue.done(first.ticket, now).value, Err(NotActive));
/// assert_eq!(queue.done(second.ticket, now).value, Ok(()));
/// ```
#[derive(Debug, PartialEq, Eq)]
#[cfg_attr(feature = "defmt", derive(defmt::Format))]
#[must_use = "a key whose ticket is dropped stays in work for ever"]
pub struct Ticket {
    pub(crate) id: SlotId,
    pub(crate) run: u32,
}

mod sealed {
    pub trait Sealed {}
    impl<W, P> Sealed for super::Told<W, P> {}
}
