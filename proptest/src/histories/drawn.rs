//! Histories, drawn as bytes: each step is a kind and its details.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use requeue_core::{AddOptions, Completion};

use super::Step;
use crate::subject::{Call, Key};
use crate::suite::Op;

/// A queue with a few keys for which several wait, and which may be shut down towards the end. Time
/// is in whole milliseconds, which is what Tokio's timers can tell apart.
///
/// Each history is made of some kinds of steps, and not of others: a wake that is lost shows best
/// where little else happens.
pub fn histories() -> impl Strategy<Value = Vec<Step>> {
    let step = any::<[u8; 3]>;
    let drawn = (any::<u32>(), vec(step(), 0..40), vec(step(), 0..10));
    drawn.prop_map(|(kinds, busy, late)| {
        let busy = busy.into_iter().map(|step| pick(&BUSY, kinds, step));
        let late = late.into_iter().map(|step| match step {
            [0..128, ..] => pick(&BUSY, kinds, step),
            _ => pick(&CLOSING, u32::MAX, step),
        });
        busy.chain(late).collect()
    })
}

/// How often a kind of step comes, and how it is made of two bytes.
type Kind = (u8, fn(u8, u8) -> Step);

/// The first [`ALWAYS`] are in every history.
const BUSY: [Kind; 19] = [
    (8, |_, _| Step::Settle),
    (6, |_, _| Step::Start(Call::Get)),
    (6, |a, _| Step::Do(Op::Add(key(a)))),
    (8, |a, b| Step::Do(Op::AddAfter(key(a), delay(b)))),
    (4, |a, _| Step::Cancel(a)),
    (6, |_, _| Step::Do(Op::AdvanceToDeadline)),
    (4, |a, _| Step::Do(Op::Advance(millis(a % 8)))),
    (4, |_, b| Step::Start(Call::GetTimeout(delay(b)))),
    (6, |a, b| Step::Do(Op::Complete(a, completion(b)))),
    (3, |_, b| Step::Start(Call::Next(completion(b)))),
    (2, |_, b| Step::NextUnrun(completion(b))),
    (2, |a, _| Step::Nudge(a)),
    (3, |a, _| Step::Do(Op::AddRateLimited(key(a)))),
    (2, |a, b| Step::Do(Op::AddMany(vec![key(a), key(b)]))),
    (3, |a, b| Step::Do(Op::AddWith(key(a), options(a, b)))),
    (2, |_, _| Step::Do(Op::TryGet)),
    (1, |a, _| Step::Do(Op::Done(a))),
    (2, |a, _| Step::Do(Op::DoneKey(key(a)))),
    (2, |_, _| Step::Do(Op::PanicAtWork)),
];
const ALWAYS: usize = 2;

const CLOSING: [Kind; 5] = [
    (3, |_, _| Step::Start(Call::Drain)),
    (2, |_, b| Step::Start(Call::DrainTimeout(delay(b)))),
    (1, |_, _| Step::Do(Op::ShutDown)),
    (1, |_, _| Step::Do(Op::TakeReady)),
    (1, |_, _| Step::Do(Op::TakeDelayed)),
];

/// A step of one of the kinds whose bits are set.
fn pick(kinds: &[Kind], chosen: u32, [what, a, b]: [u8; 3]) -> Step {
    let is_chosen = |index: usize| index < ALWAYS || chosen & (1 << index) != 0;
    let chosen = || {
        let kinds = kinds.iter().enumerate();
        kinds
            .filter(|(index, _)| is_chosen(*index))
            .map(|(_, kind)| kind)
    };
    let weights: u8 = chosen().map(|(weight, _)| weight).sum();
    let mut place = what % weights.max(1);
    for (weight, step) in chosen() {
        match place.checked_sub(*weight) {
            Some(rest) => place = rest,
            None => return step(a, b),
        }
    }
    Step::Settle
}

fn key(byte: u8) -> Key {
    Key::from(byte % 4) + 1
}

fn millis(millis: u8) -> Duration {
    Duration::from_millis(millis.into())
}

/// Mostly so short that deadlines meet.
fn delay(byte: u8) -> Duration {
    match byte {
        0..16 => millis(byte),
        16..224 => millis(byte % 6),
        224..240 => millis(byte % 64),
        _ => Duration::MAX,
    }
}

/// Levels that a queue may have, and one that none has.
fn options(byte: u8, after: u8) -> AddOptions {
    AddOptions {
        after: (after & 1 == 0).then(|| delay(after)),
        priority: (byte & 4 == 0).then_some(byte / 64),
        expedite: byte & 8 == 0,
        ..AddOptions::default()
    }
}

fn completion(byte: u8) -> Completion {
    match byte % 8 {
        0..3 => Completion::Done,
        3..5 => Completion::Succeeded,
        5 => Completion::Retry,
        6 => Completion::RetryAfter(delay(byte)),
        _ => Completion::SucceededAgainAfter(delay(byte)),
    }
}
