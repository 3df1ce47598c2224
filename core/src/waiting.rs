//! Who sleeps, who watches the clock, and who has to be woken: the same decision for every runtime.
//!
//! A sleeping getter is the queue's only timer. These rules are the whole protocol:
//!
//! - **One keeper.** Of all that sleep, at most one is told a time to wake up by itself: the
//!   earliest deadline. When it comes back, for whatever reason, the post is free again.
//! - **One wake in flight.** A wake is sent only if somebody sleeps and no other wake is under way.
//!   Whoever comes back clears it.
//! - **The duty.** While somebody sleeps, a key that is ready or a deadline that nobody watches
//!   makes a wake due. It is checked at the end of every operation, so that a getter which leaves
//!   with work, or is cancelled, passes the baton by that alone.
//!
//! A deadline that moves forward needs nothing special: it is one that nobody watches, since the
//! keeper watches a later one. Whoever is woken by it becomes keeper; the old keeper finds its post
//! taken when its own time comes, and sleeps on.

use crate::Instant;
use crate::outcome::Wake;

/// One call of `get`, from its first look at the queue to its last.
///
/// A runtime makes one per call, hands it to [`Queue::get`](crate::Queue::get) each time it looks,
/// and to [`Queue::leave`](crate::Queue::leave) if it goes away after having been told to wait: one
/// that is merely dropped counts as asleep for ever, and a wake meant for it is lost.
///
/// # Examples
///
/// ```
/// use requeue_core::{Fixed, Getter, Instant, Next, NoLimit, Queue};
///
/// let mut queue: Queue<u8, Fixed<4>, NoLimit> = Queue::new(NoLimit);
/// let mut getter = Getter::new();
/// let first = queue.get(Instant::EPOCH, &mut getter);
/// assert!(matches!(first.value, Next::Wait { until: None }));
/// // It was told to wait and gives up: the queue has to know.
/// let _ = queue.leave(&mut getter);
/// ```
#[derive(Debug, Default)]
#[must_use = "a getter is handed to `get`"]
pub struct Getter {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Awake,
    Asleep,
    /// Asleep until a deadline, under this term of office.
    Keeper(u32),
}

impl Getter {
    /// A getter that has not looked yet. O(1).
    pub const fn new() -> Self {
        Self {
            state: State::Awake,
        }
    }
}

/// The sleepers of a queue.
///
/// **W1** While somebody sleeps and there is a duty, a wake is in flight.
/// **W2** There is a keeper only while somebody sleeps.
#[derive(Debug)]
pub(crate) struct Sleepers {
    asleep: u32,
    wake_in_flight: bool,
    keeper: Option<Keeper>,
    /// Counts keepers, so that one that was replaced does not vacate the post of the next.
    terms: u32,
}

#[derive(Clone, Copy, Debug)]
struct Keeper {
    term: u32,
    watches: Instant,
}

impl Sleepers {
    pub(crate) const fn new() -> Self {
        Self {
            asleep: 0,
            wake_in_flight: false,
            keeper: None,
            terms: 0,
        }
    }

    /// A getter is here: whatever made it come, it does not sleep any more.
    pub(crate) fn arrive(&mut self, getter: &mut Getter) {
        match core::mem::take(&mut getter.state) {
            State::Awake => return,
            State::Asleep => {}
            State::Keeper(term) => {
                if self.keeper.is_some_and(|keeper| keeper.term == term) {
                    self.keeper = None;
                }
            }
        }
        self.asleep = self.asleep.saturating_sub(1);
        self.wake_in_flight = false;
    }

    /// A getter goes to sleep. Answers when it has to come back by itself.
    pub(crate) fn sleep(
        &mut self,
        getter: &mut Getter,
        earliest: Option<Instant>,
    ) -> Option<Instant> {
        self.asleep += 1;
        let until = earliest.filter(|due| !self.watches(*due));
        getter.state = match until {
            Some(watches) => {
                self.terms = self.terms.wrapping_add(1);
                let term = self.terms;
                self.keeper = Some(Keeper { term, watches });
                State::Keeper(term)
            }
            None => State::Asleep,
        };
        until
    }

    /// Whom the end of an operation has to wake. Records the wake as sent.
    #[inline]
    pub(crate) fn duty(&mut self, ready: bool, earliest: Option<Instant>) -> Wake {
        if self.asleep == 0 || self.wake_in_flight || !self.due(ready, earliest) {
            return Wake::None;
        }
        self.wake_in_flight = true;
        Wake::One
    }

    /// Everybody is woken at once.
    pub(crate) fn all_woken(&mut self) {
        self.wake_in_flight = self.asleep > 0;
    }

    pub(crate) fn asleep(&self) -> u32 {
        self.asleep
    }

    fn due(&self, ready: bool, earliest: Option<Instant>) -> bool {
        ready || earliest.is_some_and(|due| !self.watches(due))
    }

    fn watches(&self, due: Instant) -> bool {
        self.keeper.is_some_and(|keeper| keeper.watches <= due)
    }

    /// W1 and W2.
    pub(crate) fn is_valid(&self, ready: bool, earliest: Option<Instant>) -> bool {
        let duty = self.asleep > 0 && self.due(ready, earliest);
        (!duty || self.wake_in_flight) && (self.keeper.is_none() || self.asleep > 0)
    }
}
