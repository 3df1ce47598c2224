//! Adds that change nothing.

use super::{Round, Scale, Workload, cpu_time, shuffle_slots};
use crate::keys::{Key, Random};
use crate::subject::Subject;

/// Add a key that is ready already, any of as many as the scale says.
#[derive(Debug)]
pub struct Dedup<K, Q> {
    subject: Q,
    random: Random,
    ready: Vec<K>,
    operations: usize,
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for Dedup<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        let ready: Vec<K> = random.keys(scale.keys);
        for key in &ready {
            subject.add(key.clone(), 0);
        }
        Self {
            subject,
            random,
            ready,
            operations: scale.operations,
        }
    }

    fn round(&mut self) -> Round {
        let count = self.ready.len() as u64;
        let keys: Vec<K> = (0..self.operations)
            .map(|_| self.ready[self.random.below(count) as usize].clone())
            .collect();
        let time = cpu_time(|| {
            for key in keys {
                self.subject.add(key, 0);
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
