//! Histories, drawn as bytes: each step is a kind and its details.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use requeue_core::{Action, AddOptions, Instant};

use super::{MERGES, Operation};
use crate::limiter::{FloatBits, LimiterSpec};
use crate::operation::{Run, left_over};
use crate::subject::{Call, Cap, Configuration, GroupOrder, Key, Left, PolicySpec, Rate};

/// Draws histories of a queue with a few keys for which several calls wait, and which may be shut
/// down towards the end. Time is in whole milliseconds.
///
/// Each history is made of some kinds of steps, and not of others: a wake that is lost shows best
/// where little else happens.
pub fn calls() -> impl Strategy<Value = Vec<Operation>> {
    histories_in(MILLISECOND)
}

/// The same with time in whole units, of which failed keys wait one, two, and so on. It is one that
/// no timer rounds, or the shortest that the queue's timers can tell apart.
pub(super) fn calls_of(grain: Duration) -> BoxedStrategy<(Configuration, Vec<Operation>)> {
    let unit = any::<bool>().prop_map(move |is_fine| if is_fine { grain } else { MILLISECOND });
    let drawn = (unit, 0..4u8);
    drawn
        .prop_flat_map(|(unit, kind)| (Just(setup_of(kind, unit)), histories_in(unit)))
        .boxed()
}

pub(super) fn histories_in(unit: Duration) -> impl Strategy<Value = Vec<Operation>> {
    let step = any::<[u8; 3]>;
    let drawn = (any::<u64>(), vec(step(), 0..40), vec(step(), 0..10));
    drawn.prop_map(move |(kinds, busy, late)| {
        let pick = |table, kinds, step| pick(table, kinds, step, unit);
        let busy = busy.into_iter().map(|step| pick(&BUSY, kinds, step));
        let late = late.into_iter().map(|step| match step {
            [0..128, ..] => pick(&BUSY, kinds, step),
            _ => pick(&CLOSING, u64::MAX, step),
        });
        busy.chain(late).collect()
    })
}

/// A queue whose failed keys wait 1 ms, 2 ms, 4 ms and 8 ms.
pub(super) fn setup() -> Configuration {
    setup_in(MILLISECOND)
}

/// The same, and queues that hold keys, or hand them out at a rate.
fn setup_of(kind: u8, unit: Duration) -> Configuration {
    let mut setup = setup_in(unit);
    match kind {
        0 => {
            setup.policy.cool_down_ns = (Instant::EPOCH + unit).as_nanos();
            setup.policy.hold_failures = true;
        }
        1 => {
            setup.policy.run_rate = Some(Rate {
                per_second: FloatBits(0.5 / unit.as_secs_f64()),
                burst: 2,
            });
        }
        _ => {}
    }
    setup
}

/// A queue whose failed keys wait one unit, two, four and eight.
fn setup_in(unit: Duration) -> Configuration {
    let base_ns = (Instant::EPOCH + unit).as_nanos();
    let max_ns = base_ns.saturating_mul(8);
    Configuration::new(LimiterSpec::Exponential { base_ns, max_ns })
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// How often a kind of step comes, and how it is made of two bytes and the unit of time.
type Kind = (u8, fn(u8, u8, Duration) -> Operation);

/// The first [`ALWAYS`] are in every history. A failure shrinks towards the first: new kinds go
/// last, or histories that fail become longer.
const BUSY: [Kind; 44] = [
    (8, |_, _, _| Operation::Settle),
    (6, |_, _, _| Operation::Start(Call::Get)),
    (6, |a, _, _| Operation::Add(key(a))),
    (8, |a, b, u| Operation::AddAfter(key(a), delay(b, u))),
    (4, |a, _, _| Operation::Cancel(a)),
    (6, |_, _, _| Operation::AdvanceToDeadline),
    (4, |a, _, u| Operation::Advance(units(a % 8, u))),
    (4, |_, b, u| Operation::Start(Call::GetTimeout(delay(b, u)))),
    (6, |a, b, u| Operation::Complete(Run::Pick(a), action(b, u))),
    (3, |_, b, u| Operation::Start(Call::Next(action(b, u)))),
    (2, |_, b, u| Operation::NextUnrun(action(b, u))),
    (2, |a, _, _| Operation::Nudge(a)),
    (3, |a, _, _| Operation::AddRateLimited(key(a))),
    (2, |a, b, _| Operation::AddMany(vec![key(a), key(b)])),
    (3, |a, b, u| Operation::AddWith(key(a), options(a, b, u))),
    (2, |_, _, _| Operation::TryGet),
    (1, |a, _, _| Operation::Done(Run::Pick(a))),
    (2, |a, _, _| Operation::DoneKey(key(a))),
    (2, |a, _, _| Operation::CancelKey(key(a))),
    (1, |a, _, _| Operation::CancelDelay(key(a))),
    (2, |a, _, _| Operation::Expedite(key(a))),
    (1, |_, _, _| Operation::ExpediteAll),
    (1, |a, _, _| Operation::RetainBelow(key(a))),
    (2, |_, _, _| Operation::PanicAtWork),
    (2, |a, b, u| {
        Operation::AddDebounced(key(a), delay(b, u), units(a % 16, u))
    }),
    (2, |_, _, _| Operation::Pause),
    (3, |_, _, _| Operation::Unpause),
    (2, |_, _, _| Operation::Start(Call::WaitIdle)),
    (2, |_, _, _| Operation::Start(Call::WaitSettled)),
    (3, |a, _, _| Operation::Start(Call::Flush(key(a)))),
    (2, |a, _, _| Operation::Start(Call::CancelAndWait(key(a)))),
    // Keys that are added by no other step.
    (6, |a, _, _| Operation::Start(Call::AddWait(key(a) + 4))),
    (1, |_, _, _| Operation::Snapshot),
    (2, |a, b, u| Operation::Restore(left(a, b, u))),
    (2, |a, b, u| {
        Operation::Order(GroupOrder::LimitAll(cap(a, b, u)))
    }),
    (2, |a, b, u| {
        Operation::Order(GroupOrder::Limit(a % 3, Some(cap(b, a, u))))
    }),
    (2, |a, b, _| Operation::Order(pause(a, b % 3))),
    (2, |a, b, u| {
        Operation::AgeAfter((a % 4 > 0).then_some(delay(b, u)))
    }),
    (2, |a, _, _| Operation::LimitKeys(room(a))),
    (2, |a, _, _| Operation::Why(key(a))),
    (3, |a, b, u| Operation::Suspend(key(a), delay(b, u))),
    (3, |a, _, _| Operation::Resume(key(a))),
    (2, |a, b, u| {
        Operation::AddDisplacing(key(a), options(a, b, u))
    }),
    (2, |a, _, u| Operation::SetPolicy(policy(a, u))),
];
const ALWAYS: usize = 2;

const CLOSING: [Kind; 6] = [
    (3, |_, _, _| Operation::Start(Call::Drain)),
    (2, |_, b, u| {
        Operation::Start(Call::DrainTimeout(delay(b, u)))
    }),
    (1, |_, _, _| Operation::ShutDown),
    (1, |a, _, _| Operation::CancelKey(key(a))),
    (1, |_, _, _| Operation::TakeReady),
    (1, |_, _, _| Operation::TakeDelayed),
];

/// No more than two keys, or one in each unit of time, after two at once: whole units, which the
/// clocks of all runtimes show.
fn cap(a: u8, b: u8, unit: Duration) -> Cap {
    let per_second = FloatBits(1.0 / unit.as_secs_f64());
    Cap {
        max_active: (a % 3 < 2).then_some(usize::from(a / 3 % 3)),
        weight: u16::from(b % 3),
        rate: (b.is_multiple_of(4)).then_some(Rate {
            per_second,
            burst: 2,
        }),
    }
}

/// Room for some of the keys, or for all.
fn room(a: u8) -> usize {
    match a % 8 {
        7 => usize::MAX,
        keys => usize::from(keys),
    }
}

/// Cool-downs of up to three units, or none.
fn policy(a: u8, unit: Duration) -> PolicySpec {
    let unit_ns = (Instant::EPOCH + unit).as_nanos();
    PolicySpec {
        cool_down_ns: u64::from(a % 4).saturating_mul(unit_ns),
        hold_failures: a & 4 == 0,
        run_rate: (a & 24 == 0).then(|| Rate {
            per_second: FloatBits(0.5 / unit.as_secs_f64()),
            burst: 2,
        }),
    }
}

fn pause(a: u8, group: u8) -> GroupOrder {
    if a.is_multiple_of(2) {
        GroupOrder::Pause(group)
    } else {
        GroupOrder::Unpause(group)
    }
}

/// A step of one of the kinds whose bits are set.
fn pick(kinds: &[Kind], chosen: u64, [what, a, b]: [u8; 3], unit: Duration) -> Operation {
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
            None => return step(a, b, unit),
        }
    }
    Operation::Settle
}

fn key(byte: u8) -> Key {
    Key::from(byte % 4) + 1
}

fn units(count: u8, unit: Duration) -> Duration {
    unit.saturating_mul(count.into())
}

/// Mostly so short that deadlines meet.
fn delay(byte: u8, unit: Duration) -> Duration {
    match byte {
        0..16 => units(byte, unit),
        16..224 => units(byte % 6, unit),
        224..240 => units(byte % 64, unit),
        _ => Duration::MAX,
    }
}

/// Levels that a queue may have, and one that none has.
fn options(byte: u8, after: u8, unit: Duration) -> AddOptions {
    AddOptions {
        after: (after & 1 == 0).then(|| delay(after, unit)),
        priority: (byte & 4 == 0).then_some(byte / 64),
        merge: MERGES[usize::from(byte / 8) % MERGES.len()],
        ..AddOptions::default()
    }
}

/// A ready or delayed key with a few failures.
fn left(byte: u8, after: u8, unit: Duration) -> Left {
    let failures = u32::from(byte / 4 % 4);
    left_over(key(byte), delay(after, unit), failures, byte / 128)
}

fn action(byte: u8, unit: Duration) -> Action {
    match byte % 8 {
        0..3 => Action::Release,
        3 => Action::Success,
        4 => Action::GiveUp,
        5 => Action::Retry,
        6 if byte & 8 == 0 => Action::Suspend(delay(byte, unit)),
        6 => Action::Snooze(delay(byte, unit)),
        _ => Action::RequeueAfter(delay(byte, unit)),
    }
}
