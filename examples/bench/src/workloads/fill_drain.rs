//! A wave: everything is added, then everything is worked on.

use core::marker::PhantomData;
use core::time::Duration;

use super::{Round, Scale, Workload, cpu_time, shuffle_slots};
use crate::keys::{Key, Random};
use crate::subject::Subject;

/// Add as many new keys as the scale says to an empty queue, then get and complete each.
#[derive(Debug)]
pub struct FillDrain<K, Q> {
    subject: Q,
    of: PhantomData<K>,
    random: Random,
    scale: Scale,
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for FillDrain<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys, &mut random);
        Self {
            subject,
            of: PhantomData,
            random,
            scale,
        }
    }

    fn round(&mut self) -> Round {
        let waves = self.scale.operations.div_ceil(self.scale.keys);
        let mut time = Duration::ZERO;
        for _ in 0..waves {
            let keys: Vec<K> = self.random.keys(self.scale.keys);
            time += cpu_time(|| {
                for key in keys {
                    self.subject.add(key, 0);
                }
                while let Some((key, run)) = self.subject.get(0) {
                    self.subject.done(&key, run, 0);
                }
            });
            // A wave that is completed in order leaves the slots in order.
            shuffle_slots::<K, Q>(&mut self.subject, self.scale.keys, &mut self.random);
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
