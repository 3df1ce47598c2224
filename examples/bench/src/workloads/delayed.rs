//! Keys that wait for a deadline.

use core::marker::PhantomData;
use core::time::Duration;

use super::{Round, Scale, Workload, cpu_time, shuffle_slots};
use crate::keys::{Key, Random};
use crate::subject::Subject;

/// The deadlines of a wave lie within so many nanoseconds: a thousand seconds.
pub const SPAN_NANOS: u64 = 1_000_000_000_000;

/// Add as many new keys as the scale says, each at a random time; let all expire; take them all.
#[derive(Debug)]
pub struct Delayed<K, Q> {
    subject: Q,
    of: PhantomData<K>,
    random: Random,
    scale: Scale,
    now: u64,
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for Delayed<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        Self {
            subject,
            of: PhantomData,
            random,
            scale,
            now: 0,
        }
    }

    fn round(&mut self) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        let mut time = Duration::ZERO;
        for _ in 0..waves {
            let entries: Vec<(K, u64)> = entries(&mut self.random, self.scale.keys, self.now);
            let (start, end) = (self.now, self.now + SPAN_NANOS);
            time += cpu_time(|| {
                for (key, due) in entries {
                    self.subject.add_at(key, due, start);
                }
                take_all(&mut self.subject, end);
            });
            self.now = end;
        }
        Round {
            time,
            operations: waves * self.scale.keys,
        }
    }

    fn into_subject(self) -> Q {
        self.subject
    }
}

/// Add a key that waits to a random earlier time; as many wait as the scale says.
#[derive(Debug)]
pub struct Sooner<K, Q> {
    subject: Q,
    of: PhantomData<K>,
    random: Random,
    scale: Scale,
    now: u64,
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for Sooner<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        Self {
            subject,
            of: PhantomData,
            random,
            scale,
            now: 0,
        }
    }

    fn round(&mut self) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        let mut time = Duration::ZERO;
        for _ in 0..waves {
            let mut entries: Vec<(K, u64)> = entries(&mut self.random, self.scale.keys, self.now);
            let (start, end) = (self.now, self.now + SPAN_NANOS);
            for (key, due) in &entries {
                self.subject.add_at(key.clone(), *due, start);
            }
            self.random.shuffle(&mut entries);
            // Keys are made again in the order of their use, as those of an informer would be.
            let earlier: Vec<(K, u64)> = entries
                .iter()
                .map(|(key, due)| {
                    let due = start + 1 + self.random.next() % (due - start);
                    (key.clone(), due)
                })
                .collect();
            time += cpu_time(|| {
                for (key, due) in earlier {
                    self.subject.add_at(key, due, start);
                }
            });
            take_all(&mut self.subject, end);
            self.now = end;
        }
        Round {
            time,
            operations: waves * self.scale.keys,
        }
    }

    fn into_subject(self) -> Q {
        self.subject
    }
}

/// New keys, each with a deadline after `now`.
pub fn entries<K: Key>(random: &mut Random, count: usize, now: u64) -> Vec<(K, u64)> {
    let mut entry = || {
        let due = now + 1 + random.next() % SPAN_NANOS;
        (K::from_number(random.next()), due)
    };
    (0..count).map(|_| entry()).collect()
}

fn take_all<K: Key, Q: Subject<K>>(subject: &mut Q, now: u64) {
    while let Some((key, run)) = subject.get(now) {
        subject.done(&key, run, now);
    }
}
