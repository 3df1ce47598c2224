//! Recordings of keys whose deadlines tie. client-go leaves their order open; requeue does not.

use std::time::Duration;

use serde::Deserialize;

use super::differences::TIES_IN_ORDER;
use super::limiter::LimiterSpec;
use super::player::Player;
use super::report::{Progress, Stop};
use crate::subject::{Key, Setup, Subject};
use crate::{Model, Rules};

/// One recording.
#[derive(Clone, Debug, Deserialize)]
pub struct Trace {
    /// Its name.
    pub id: String,
    /// Its keys are `1..=keys`.
    pub keys: Key,
    /// What was done, and what came of it.
    pub ops: Vec<Op>,
}

/// An operation, its result, and how many keys were ready then.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub enum Op {
    /// `AddAfter`.
    AddAfter {
        /// The key.
        k: Key,
        /// The delay in nanoseconds.
        d: i64,
        /// Ready keys.
        len: usize,
    },
    /// Time passes.
    Advance {
        /// How much, in nanoseconds.
        d: u64,
        /// What time it is then.
        t: Option<u64>,
        /// Ready keys.
        len: usize,
    },
    /// `Get` and `Done` until nothing is ready.
    DrainAll {
        /// The keys by deadline. Within one deadline any order is right.
        groups: Vec<Vec<Key>>,
        /// The order that was recorded.
        go_order: Vec<Key>,
        /// Ready keys.
        len: usize,
    },
}

/// Replays one recording on a new `S`.
pub(super) fn replay<S: Subject>(trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
    progress.begin(&trace.id, &"no limiter");
    progress.guard(|progress| run::<S>(trace, progress))
}

fn run<S: Subject>(trace: &Trace, progress: &mut Progress) -> Result<(), Stop> {
    let limiters = Vec::new();
    let setup = Setup::new(LimiterSpec::MaxOf { limiters });
    let mut subject = Player::new(S::new(&setup));
    let mut model = Player::new(Model::new(Rules::Requeue, &setup, None));
    for op in &trace.ops {
        if op.keys().any(|key| !(1..=trace.keys).contains(&key)) {
            return Err(Stop::Bad(format!("{op:?}: no such key")));
        }
        let (ours, predicted) = (play(&mut subject, op), play(&mut model, op));
        let is_right = ours == predicted && op.allows(&ours);
        progress.step(op, is_right, &ours)?;
        if let Op::DrainAll { go_order, .. } = op
            && *go_order != ours.taken
        {
            progress.differs(TIES_IN_ORDER);
        }
        subject.subject.assert_valid();
    }
    Ok(())
}

/// What came of an operation.
#[derive(Debug, PartialEq)]
struct Seen {
    taken: Vec<Key>,
    t: u64,
    len: usize,
}

fn play<S: Subject>(player: &mut Player<S>, op: &Op) -> Seen {
    let mut taken = Vec::new();
    match *op {
        Op::AddAfter { k, d, .. } => {
            let delay = Duration::from_nanos(u64::try_from(d).unwrap_or(0));
            // The queue is neither full nor shut down.
            let _ = player.subject.add_after(k, delay);
        }
        Op::Advance { d, .. } => player.advance(Duration::from_nanos(d)),
        Op::DrainAll { .. } => {
            while let Some(handed) = player.subject.try_get() {
                taken.push(handed.key);
                if player.subject.done(handed.ticket).is_err() {
                    break;
                }
            }
        }
    }
    Seen {
        taken,
        t: player.subject.now().as_nanos(),
        len: player.subject.len(),
    }
}

impl Op {
    fn keys(&self) -> impl Iterator<Item = Key> {
        let (key, groups): (_, &[Vec<Key>]) = match self {
            Self::AddAfter { k, .. } => (Some(*k), &[]),
            Self::Advance { .. } => (None, &[]),
            Self::DrainAll { groups, .. } => (None, groups),
        };
        key.into_iter().chain(groups.iter().flatten().copied())
    }

    /// Whether the recording allows what was seen.
    fn allows(&self, seen: &Seen) -> bool {
        match self {
            Self::AddAfter { len, .. } => seen.len == *len,
            Self::Advance { t, len, .. } => seen.len == *len && t.is_none_or(|t| seen.t == t),
            Self::DrainAll { groups, len, .. } => {
                seen.len == *len && in_groups(&seen.taken, groups)
            }
        }
    }
}

/// Whether `taken` holds the keys of each group, one group after the other.
fn in_groups(mut taken: &[Key], groups: &[Vec<Key>]) -> bool {
    for group in groups {
        let Some((mut now, later)) = taken
            .split_at_checked(group.len())
            .map(|(now, later)| (now.to_vec(), later))
        else {
            return false;
        };
        let mut group = group.clone();
        now.sort_unstable();
        group.sort_unstable();
        if now != group {
            return false;
        }
        taken = later;
    }
    taken.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_come_one_after_the_other_in_any_order_within() {
        let groups = [vec![1], vec![2, 4], vec![3]];
        assert!(in_groups(&[1, 4, 2, 3], &groups));
        assert!(!in_groups(&[4, 1, 2, 3], &groups));
        assert!(!in_groups(&[1, 4, 2], &groups));
        assert!(!in_groups(&[1, 4, 2, 3, 5], &groups));
        assert!(!in_groups(&[1, 4, 4, 3], &groups));
    }
}
