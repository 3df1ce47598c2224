//! Which getters sleep, which of them owns the timer, and when a wake is needed: one decision for
//! every runtime. Owns these counts; knows no waker and no key.
//!
//! There is no background task: a sleeping getter is also the timer. These rules are the whole
//! protocol:
//!
//! - **One timer owner.** At most one sleeping getter wakes up by itself, at the earliest deadline.
//!   Once it looks again, for any reason, it no longer owns the timer.
//! - **One wake in flight.** A wake is sent only if a getter sleeps and no other wake is in flight.
//!   The next getter that looks again clears it.
//! - **Wake needed.** While a getter sleeps, a ready key needs a wake, and so does a deadline that
//!   no timer owner watches. A session checks this when it is closed, so a getter that leaves with
//!   work, or is cancelled, passes the wake on without further rules.
//!
//! An earlier deadline needs no rule of its own. The present timer owner watches a later time, so
//! nobody watches the new deadline, and a getter is woken for it. That getter then owns the timer.
//! The old owner notices this at its own time, and sleeps again.

use crate::Instant;

/// One call that waits, such as `get`, from its first look at the queue to its last.
///
/// A runtime makes one per call. It passes the getter to
/// [`Session::poll_get`](crate::Session::poll_get) each time it looks, and to
/// [`Session::leave`](crate::Session::leave) if the call ends while it has to wait.
/// [`Wait`](crate::binding::Wait) does all of that. A getter that is dropped while it has to wait
/// counts as asleep forever, and a wake that is sent to it is lost.
///
/// # Examples
///
/// ```
/// use requeue::limiter::NoLimit;
/// use requeue::priority::Plain;
/// use requeue::storage::Fixed;
/// use requeue::{Instant, Queue};
/// use requeue::binding::{Getter, Next};
///
/// let mut queue: Queue<u8, Plain, NoLimit, Fixed<4>> = Queue::new(NoLimit);
/// let mut getter = Getter::new();
/// let first = queue.at(Instant::EPOCH).poll_get(&mut getter);
/// assert!(matches!(first, Next::Wait { until: None }));
/// // It gives up, which the queue has to know.
/// queue.at(Instant::EPOCH).leave(&mut getter);
/// ```
#[derive(Debug, Default)]
#[must_use = "a getter does nothing until it is passed to `poll_get`"]
pub struct Getter {
    state: State,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Awake,
    Asleep,
    /// Asleep until a deadline, as the timer owner of this generation.
    TimerOwner(u32),
    /// Waits for room: not tracked here.
    WantsRoom,
}

impl Getter {
    /// Creates a getter that has not looked yet. O(1).
    pub const fn new() -> Self {
        Self {
            state: State::Awake,
        }
    }

    /// Whether it does not sleep, so that it may be dropped.
    pub(crate) fn is_awake(&self) -> bool {
        self.state == State::Awake
    }

    /// Records that the call now waits for room.
    pub(crate) fn want_room(&mut self) {
        self.state = State::WantsRoom;
    }

    /// Records that the call no longer waits for room. Returns whether it did.
    pub(crate) fn had_wanted_room(&mut self) -> bool {
        let did = self.state == State::WantsRoom;
        if did {
            self.state = State::Awake;
        }
        did
    }
}

/// The sleepers of a queue.
///
/// **W1** While a getter sleeps and a wake is needed, a wake is in flight.
/// **W2** There is a timer owner only while a getter sleeps.
#[derive(Debug)]
pub(crate) struct Sleepers {
    asleep: u32,
    wake_in_flight: bool,
    /// Whether a call that waits for room was woken and has not looked yet. Only used in queues
    /// with groups, where the room may be for another key.
    room_wake_in_flight: bool,
    timer_owner: Option<TimerOwner>,
    /// Counts timer owners, so that a replaced one does not end the ownership of the next.
    generations: u32,
}

#[derive(Clone, Copy, Debug)]
struct TimerOwner {
    generation: u32,
    watches: Instant,
}

impl Sleepers {
    pub(crate) const fn new() -> Self {
        Self {
            asleep: 0,
            wake_in_flight: false,
            room_wake_in_flight: false,
            timer_owner: None,
            generations: 0,
        }
    }

    /// Records that a getter looks at the queue, and no longer sleeps. Returns whether it slept.
    #[inline]
    pub(crate) fn arrive(&mut self, getter: &mut Getter) -> bool {
        match core::mem::take(&mut getter.state) {
            State::Awake | State::WantsRoom => return false,
            State::Asleep => {}
            State::TimerOwner(generation) => {
                if self
                    .timer_owner
                    .is_some_and(|timer_owner| timer_owner.generation == generation)
                {
                    self.timer_owner = None;
                }
            }
        }
        self.asleep = self.asleep.saturating_sub(1);
        self.wake_in_flight = false;
        true
    }

    /// Records that a getter goes to sleep. Returns when it has to look again by itself.
    pub(crate) fn sleep(
        &mut self,
        getter: &mut Getter,
        earliest: Option<Instant>,
    ) -> Option<Instant> {
        self.asleep += 1;
        let until = earliest.filter(|due| !self.watches(*due));
        getter.state = match until {
            Some(watches) => {
                self.generations = self.generations.wrapping_add(1);
                let generation = self.generations;
                self.timer_owner = Some(TimerOwner {
                    generation,
                    watches,
                });
                State::TimerOwner(generation)
            }
            None => State::Asleep,
        };
        until
    }

    /// Whether a getter sleeps, and no wake is in flight.
    #[inline]
    pub(crate) fn may_be_woken(&self) -> bool {
        self.asleep > 0 && !self.wake_in_flight
    }

    /// Records that a getter is woken.
    #[inline]
    pub(crate) fn note_wake(&mut self) {
        self.wake_in_flight = true;
    }

    /// Whether no timer owner watches the earliest deadline.
    #[inline]
    pub(crate) fn needs_timer(&self, earliest: Option<Instant>) -> bool {
        earliest.is_some_and(|due| !self.watches(due))
    }

    /// Records that every sleeping getter is woken.
    pub(crate) fn all_woken(&mut self) {
        self.wake_in_flight = self.asleep > 0;
    }

    /// Records that a call was woken for room.
    pub(crate) fn note_room_wake(&mut self) {
        self.room_wake_in_flight = true;
    }

    /// Returns and clears whether a call was woken for room and has not looked yet.
    pub(crate) fn took_room_wake(&mut self) -> bool {
        core::mem::take(&mut self.room_wake_in_flight)
    }

    pub(crate) fn asleep(&self) -> u32 {
        self.asleep
    }

    fn watches(&self, due: Instant) -> bool {
        self.timer_owner
            .is_some_and(|timer_owner| timer_owner.watches <= due)
    }

    /// W1 and W2.
    pub(crate) fn is_valid(&self, ready: bool, earliest: Option<Instant>) -> bool {
        let needed = self.asleep > 0 && (ready || self.needs_timer(earliest));
        (!needed || self.wake_in_flight) && (self.timer_owner.is_none() || self.asleep > 0)
    }
}
