//! The cycle of a queue under load.

use super::{Round, Scale, Workload, cpu_time, shuffle_slots};
use crate::keys::{Key, Random};
use crate::subject::Subject;

/// How many keys are active at a time; each is completed after a random number of others.
const ACTIVE: usize = 64;

/// Add a new key, get one, complete some other one; as many keys wait as the scale says.
#[derive(Debug)]
pub struct Steady<K, Q: Subject<K>> {
    subject: Q,
    random: Random,
    active: Vec<(K, Q::Run)>,
    operations: usize,
}

impl<K: Key, Q: Subject<K>> Steady<K, Q> {
    /// The part of a round that is measured, for those who count instructions.
    #[inline]
    pub fn cycles(&mut self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.subject.add(key, 0);
            let Some(mut work) = self.subject.get(0) else {
                return;
            };
            let place = self.random.below(ACTIVE as u64) as usize;
            core::mem::swap(&mut self.active[place], &mut work);
            let (key, run) = work;
            self.subject.done(&key, run, 0);
        }
    }

    /// New keys for `count` cycles.
    pub fn keys(&mut self, count: usize) -> Vec<K> {
        self.random.keys(count)
    }
}

impl<K: Key, Q: Subject<K>> Workload<K, Q> for Steady<K, Q> {
    fn set_up(mut subject: Q, scale: Scale, seed: u64) -> Self {
        let mut random = Random::new(seed);
        shuffle_slots(&mut subject, scale.keys + ACTIVE, &mut random);
        for _ in 0..scale.keys {
            subject.add(K::from_number(random.next()), 0);
        }
        let mut start = || {
            subject.add(K::from_number(random.next()), 0);
            subject.get(0)
        };
        let active = (0..ACTIVE).filter_map(|_| start()).collect();
        Self {
            subject,
            random,
            active,
            operations: scale.operations,
        }
    }

    fn round(&mut self) -> Round {
        let keys = self.keys(self.operations);
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
