//! Keys that failed.

use core::marker::PhantomData;

use super::{Round, Scale, Workload, cpu_time, shuffle_slots};
use crate::keys::{Key, Random};
use crate::subject::Subject;

/// Far enough to come after the longest delay of the limiter.
const LATER_NANOS: u64 = 1_000_000_000_000_000;

/// Fail a new key, let its delay pass, get it, forget its failures and complete it; as many other
/// keys wait as the scale says.
#[derive(Debug)]
pub struct LimitedCycle<K, Q> {
    subject: Q,
    of: PhantomData<K>,
    random: Random,
    operations: usize,
    now: u64,
}

impl<K: Key, Q: Subject<K>> LimitedCycle<K, Q> {
    /// The part of a round that is measured, for those who count instructions.
    #[inline]
    pub fn cycles(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.now += self.subject.add_rate_limited(key, self.now);
            if let Some((key, run)) = self.subject.get(self.now) {
                self.subject.forget(&key);
                self.subject.done(&key, run, self.now);
            }
        }
    }
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for LimitedCycle<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        for _ in 0..scale.keys {
            let due = LATER_NANOS + random.next() % LATER_NANOS;
            subject.add_at(K::from_number(random.next()), due, 0);
        }
        Self {
            subject,
            of: PhantomData,
            random,
            operations: scale.operations,
            now: 0,
        }
    }

    fn round(&mut self) -> Round {
        let keys: Vec<K> = self.random.keys(self.operations);
        let time = cpu_time(|| self.cycles(keys));
        Round {
            time,
            operations: self.operations,
        }
    }

    fn into_subject(self) -> Q {
        self.subject
    }
}

/// Count one more failure of a key that waits already, any of as many as the scale says: finds the
/// key and asks the limiter, and finds that the key waits for an earlier time. At most 1e6 keys.
#[derive(Debug)]
pub struct When<K, Q> {
    subject: Q,
    random: Random,
    waiting: Vec<K>,
    operations: usize,
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for When<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        let waiting: Vec<K> = random.keys(scale.keys);
        // One after the other, so that no two deadlines are equal; none of them comes.
        for (now, key) in waiting.iter().enumerate() {
            subject.add_rate_limited(key.clone(), now as u64);
        }
        Self {
            subject,
            random,
            waiting,
            operations: scale.operations,
        }
    }

    fn round(&mut self) -> Round {
        let count = self.waiting.len() as u64;
        let keys: Vec<K> = (0..self.operations)
            .map(|_| self.waiting[self.random.below(count) as usize].clone())
            .collect();
        let time = cpu_time(|| {
            for key in keys {
                core::hint::black_box(self.subject.add_rate_limited(key, count - 1));
            }
        });
        Round {
            time,
            operations: self.operations,
        }
    }

    fn into_subject(self) -> Q {
        self.subject
    }
}
