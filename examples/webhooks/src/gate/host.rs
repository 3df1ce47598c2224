//! A receiver's host: how many workers may call it, by how it has answered.
//!
//! - One that took its last delivery gets a quarter of the workers, but never more than are free:
//!   so the more hosts are slow, the less each holds, and some workers are always left.
//! - One whose last delivery failed gets no more than that, and all of these together, with those
//!   below, half of the workers. The other half is left to hosts that take what they get.
//! - One that has not answered, in time or ever, gets one worker at a time. After each call that is
//!   not answered in time it rests, each time twice as long.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use requeue::{Instant, RateLimiter};

use crate::key::Key;

/// A host gets no more than this part of the workers.
const SHARE: usize = 4;

/// All hosts that do not take what they get, no more than this part.
const DOUBTFUL_SHARE: usize = 2;

#[derive(Debug, Default)]
pub(super) struct Host {
    pub(super) subscriptions: usize,
    pub(super) in_flight: usize,
    standing: Standing,
    /// Calls in a row that were not answered in time.
    timeouts: u32,
    rests_until: Instant,
    /// Keys that wait for room, in this order; each once.
    parked: VecDeque<Key>,
    is_parked: HashSet<Key>,
    /// Keys that were parked, and are on their way back.
    pub(super) called: HashSet<Key>,
}

/// How a host answered a delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// It took it.
    Taken,
    /// It refused it, or could not be reached.
    Refused,
    /// It did not answer in time.
    None,
    /// It was not asked after all.
    Unasked,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Standing {
    /// It takes what it gets.
    Good,
    /// It refuses what it gets.
    Failing,
    /// It does not answer, or was never asked.
    #[default]
    Silent,
}

/// How many more workers may call a host.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Room {
    For(usize),
    /// One, when it has rested.
    After(Duration),
}

impl Host {
    pub(super) fn is_good(&self) -> bool {
        self.standing == Standing::Good
    }

    /// O(1).
    pub(super) fn room(
        &self,
        workers: usize,
        in_flight: usize,
        doubtful: usize,
        now: Instant,
    ) -> Room {
        let free = workers.saturating_sub(in_flight);
        let share = (workers / SHARE).max(1).min(free);
        let room = share.saturating_sub(self.in_flight);
        let doubtful_max = (workers / DOUBTFUL_SHARE).max(1);
        let room_of_doubtful = room.min(doubtful_max.saturating_sub(doubtful));
        match self.standing {
            Standing::Good => Room::For(room),
            Standing::Failing => Room::For(room_of_doubtful),
            Standing::Silent if self.in_flight > 0 => Room::For(0),
            Standing::Silent if self.rests_until > now => {
                Room::After(self.rests_until.saturating_since(now))
            }
            Standing::Silent => Room::For(room_of_doubtful.min(1)),
        }
    }

    pub(super) fn hear(
        &mut self,
        answer: Answer,
        rest: &mut impl RateLimiter<Record = u32>,
        now: Instant,
    ) {
        self.standing = match answer {
            Answer::Taken => Standing::Good,
            Answer::Refused => Standing::Failing,
            Answer::None => Standing::Silent,
            Answer::Unasked => return,
        };
        if answer != Answer::None {
            self.timeouts = 0;
            self.rests_until = Instant::EPOCH;
        } else if self.rests_until <= now {
            // Calls that began together end together, and count as one.
            self.rests_until = now + rest.when(&mut self.timeouts, now);
        }
    }

    /// Parks a key; returns whether it is the only one.
    pub(super) fn park(&mut self, key: &Key) -> bool {
        let is_new = self.is_parked.insert(key.clone());
        if is_new {
            self.parked.push_back(key.clone());
        }
        is_new && self.parked.len() == 1
    }

    /// Takes as many parked keys as there is room for, less those that are on their way.
    pub(super) fn call(&mut self, room: usize) -> impl Iterator<Item = Key> {
        let count = room
            .saturating_sub(self.called.len())
            .min(self.parked.len());
        for key in self.parked.range(..count) {
            self.is_parked.remove(key);
            self.called.insert(key.clone());
        }
        self.parked.drain(..count)
    }

    /// Forgets a subscription's keys. O(parked keys).
    pub(super) fn forget(&mut self, subscription: &str) {
        let is_other = |key: &Key| *key.subscription != *subscription;
        self.parked.retain(is_other);
        self.is_parked.retain(is_other);
        self.called.retain(is_other);
    }

    pub(super) fn parked_len(&self) -> usize {
        self.parked.len()
    }

    /// Whether nothing is known of it that matters.
    pub(super) fn is_unused(&self) -> bool {
        self.subscriptions == 0 && self.in_flight == 0
    }
}
