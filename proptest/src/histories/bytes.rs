//! Histories made of bytes, whoever draws them.

use std::ops::Range;
use std::slice;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use requeue_core::{Action, AddOptions, Instant, Merge};

use crate::combinations::Uses;
use crate::limiter::{FloatBits, LimiterSpec};
use crate::operation::{DRAWN, Drawn, Operation, Run, left_over};
use crate::subject::{Cap, Configuration, GroupOrder, Key, Left, PolicySpec, Rate};

/// Which operations come, and how often: the column of [`Drawn::weights`].
#[derive(Clone, Copy)]
enum Column {
    Operations,
    LastOperations,
    Calls,
    LastCalls,
    AtOnce,
}

/// Bytes that are made operations. Once they are used up, each is zero.
pub(crate) struct Bytes<'b> {
    rest: slice::Iter<'b, u8>,
    uses: &'b Uses,
    keys: Key,
    /// Most is about the first key.
    favours_first: bool,
    /// Times are whole units.
    unit: Duration,
    /// Times and rates may be such as no clock of a runtime shows.
    is_wild: bool,
}

impl<'b> Bytes<'b> {
    /// Six keys, and any times.
    pub(crate) fn new(bytes: &'b [u8], uses: &'b Uses) -> Self {
        Self {
            rest: bytes.iter(),
            uses,
            keys: 6,
            favours_first: false,
            unit: Duration::from_nanos(1),
            is_wild: true,
        }
    }

    /// One of these, each as often as it says.
    fn step(&mut self, kinds: &[(u32, &Drawn)]) -> Operation {
        let weights: u32 = kinds.iter().map(|(weight, _)| weight).sum();
        let mut place = (u32::from(self.pair()) * weights) >> u16::BITS;
        for (weight, kind) in kinds {
            match place.checked_sub(*weight) {
                Some(rest) => place = rest,
                None => return (kind.draw)(self),
            }
        }
        Operation::Settle
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.rest.next().copied().unwrap_or_default()
    }

    fn pair(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// One of so many numbers, from zero.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        ((u16::from(self.byte()) * u16::from(count)) >> u8::BITS) as u8
    }

    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.below(values.len() as u8))]
    }

    pub(crate) fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(4) < 3).then(|| some(self))
    }

    /// Up to four of something.
    pub(crate) fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(5);
        (0..count).map(|_| one(self)).collect()
    }

    /// How many keys there are.
    pub(crate) fn keys(&self) -> Key {
        self.keys
    }

    pub(crate) fn key(&mut self) -> Key {
        match self.favours_first && self.below(4) < 3 {
            true => 1,
            false => 1 + Key::from(self.below(self.keys as u8)),
        }
    }

    pub(crate) fn run(&mut self) -> Run {
        Run::Pick(self.byte())
    }

    fn units(&self, count: u16) -> Duration {
        self.unit.saturating_mul(count.into())
    }

    /// From one unit to five.
    pub(crate) fn short(&mut self) -> Duration {
        let units = 1 + u16::from(self.below(5));
        self.units(units)
    }

    /// Mostly so short that deadlines meet.
    pub(crate) fn delay(&mut self) -> Duration {
        match self.byte() {
            0..32 => Duration::ZERO,
            32..192 => self.short(),
            192..240 if self.is_wild => {
                let far = 6 + self.pair() % 995;
                self.units(far)
            }
            192..240 => {
                let far = 6 + u16::from(self.below(58));
                self.units(far)
            }
            _ if self.is_wild => match self.below(4) {
                0 => Duration::MAX,
                1 => Duration::from_nanos(u64::MAX),
                2 => Duration::from_nanos(u64::MAX - 1),
                _ => Duration::from_nanos(1 << self.below(64)),
            },
            _ => Duration::MAX,
        }
    }

    /// How far the clock moves; with a backlog, past several deadlines.
    pub(crate) fn passing(&mut self) -> Duration {
        if !self.uses.backlog {
            return match self.is_wild {
                true => self.delay(),
                // No clock of a runtime comes near its end.
                false => {
                    let few = self.below(8);
                    self.units(few.into())
                }
            };
        }
        let units = match self.below(8) {
            7 => 5 + self.pair() % 1000,
            _ => 5 + u16::from(self.below(40)),
        };
        self.units(units)
    }

    pub(crate) fn instant(&mut self) -> Instant {
        match self.below(9) {
            8 => self.one_of(&[Instant::from_nanos(u64::MAX - 1), Instant::NEVER]),
            _ => Instant::from_nanos(u64::from(self.pair() % 1000)),
        }
    }

    /// Levels that most queues under test have, and one that none has.
    pub(crate) fn options(&mut self) -> AddOptions {
        AddOptions {
            priority: self.one_of(&[
                None,
                Some(0),
                Some(1),
                Some(2),
                None,
                Some(1),
                Some(2),
                Some(3),
            ]),
            after: self.option(Self::delay),
            merge: match self.uses.merge {
                true => self.one_of(&MERGES),
                false => Merge::Earliest,
            },
            rate_limited: self.below(2) == 1,
            slack: self.slack(),
        }
    }

    /// A ready or delayed key with a few failures.
    pub(crate) fn left(&mut self) -> Left {
        left_over(
            self.key(),
            self.delay(),
            self.below(4).into(),
            self.below(3),
        )
    }

    pub(crate) fn action(&mut self) -> Action {
        let action = match self.below(10) {
            0..2 => Action::Release,
            2 => Action::Success,
            3 => Action::Retry,
            4 => Action::GiveUp,
            5 => Action::RequeueAfter(self.delay()),
            6 if self.uses.suspend => Action::Suspend(self.delay()),
            7..9 if self.uses.poll => Action::poll(self.delay(), self.delay()),
            _ => Action::Snooze(self.delay()),
        };
        let action = match self.below(8) {
            6.. => action.with_priority(self.below(4)),
            _ => action,
        };
        match self.slack() {
            0 => action,
            percent => action.with_slack(percent),
        }
    }

    /// In percent. Half of all delays are exact.
    fn slack(&mut self) -> u8 {
        match self.uses.slack && self.below(2) == 1 {
            true => self.one_of(&[1, 20, 50, 100, 255]),
            false => 0,
        }
    }

    pub(crate) fn order(&mut self) -> GroupOrder {
        let (what, group) = (self.below(8), self.below(3));
        match what {
            0..2 => GroupOrder::LimitAll(self.cap()),
            2..5 => GroupOrder::Limit(group, self.option(Self::cap)),
            5 => GroupOrder::Pause(group),
            _ => GroupOrder::Unpause(group),
        }
    }

    /// Limits that let something pass, more often than not.
    fn cap(&mut self) -> Cap {
        let rates = [
            None,
            None,
            Some((0.5, 1)),
            Some((1.0, 2)),
            Some((0.0, 1)),
            Some((1.0, 0)),
        ];
        Cap {
            max_active: self.one_of(&[None, None, Some(0), Some(1), Some(1), Some(2)]),
            weight: self.one_of(&[1, 1, 2, 0]),
            rate: self.one_of(&rates).map(|rate| self.per_unit(rate)),
        }
    }

    /// A rate whose tokens come after whole units.
    fn per_unit(&self, (count, burst): (f64, u32)) -> Rate {
        let per_second = FloatBits(count * 1e9 / self.unit.as_nanos() as f64);
        Rate { per_second, burst }
    }

    /// Cool-downs of up to three units, or none.
    pub(crate) fn policy(&mut self) -> PolicySpec {
        let cool_down = self.below(4);
        let rates: &[_] = match self.is_wild {
            true => &[None, None, Some((0.4, 2)), Some((0.1, 1))],
            false => &[None, None, None, Some((0.5, 2))],
        };
        PolicySpec {
            cool_down_ns: (Instant::EPOCH + self.units(cool_down.into())).as_nanos(),
            hold_failures: self.below(2) == 1,
            run_rate: self.one_of(rates).map(|rate| self.per_unit(rate)),
        }
    }

    /// Room for some of the keys, or for all.
    pub(crate) fn room(&mut self) -> usize {
        self.one_of(&[0, 1, 2, 3, 5, 6, 20, usize::MAX])
    }
}

/// Every rule by which an add meets a deadline.
pub const MERGES: [Merge; 5] = [
    Merge::Earliest,
    Merge::Once,
    Merge::Latest,
    Merge::Replace,
    Merge::Keep,
];

/// The operations of a column that histories do, each with how often it comes. Adds come so many
/// times as often.
fn kinds(column: Column, uses: &Uses, adds: u32) -> Vec<(u32, &'static Drawn)> {
    let kinds = DRAWN.iter().filter(|kind| (kind.is_used)(uses));
    let weighed = kinds.map(|kind| {
        let is_add = || (kind.draw)(&mut Bytes::new(&[], uses)).adds();
        let times = if adds > 1 && is_add() { adds } else { 1 };
        (u32::from(kind.weights[column as usize]) * times, kind)
    });
    weighed.filter(|(weight, _)| *weight > 0).collect()
}

/// The bytes of a step.
fn steps(most: usize) -> impl Strategy<Value = Vec<[u8; STEP]>> {
    vec(any::<[u8; STEP]>(), 0..most)
}

/// As many bytes as any operation needs.
const STEP: usize = 10;

/// How many keys there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crowd {
    /// So few that they meet in every state, and that small queues are full.
    Few,
    /// So many that the heap of deadlines has three levels.
    Many,
}

/// Draws histories of a busy queue, which may be shut down towards the end.
pub(super) fn operations(
    crowd: Crowd,
    unit: Duration,
    uses: Uses,
) -> BoxedStrategy<Vec<Operation>> {
    // A crowd forms where keys come faster than they go.
    let (keys, length, adds) = match crowd {
        Crowd::Few if uses.backlog => (6, 60, 3),
        Crowd::Few => (6, 60, 1),
        Crowd::Many => (40, 150, 6),
    };
    let drawn = (steps(length), steps(40));
    drawn
        .prop_map(move |(busy, late)| {
            let step = |bytes: &[u8], column, adds| {
                let bytes = Bytes::new(bytes, &uses);
                Bytes {
                    keys,
                    unit,
                    ..bytes
                }
                .step(&kinds(column, &uses, adds))
            };
            let busy = busy
                .iter()
                .map(|bytes| step(bytes, Column::Operations, adds));
            let late = late.iter().map(|bytes| match bytes {
                [0..128, bytes @ ..] => step(bytes, Column::Operations, 1),
                [_, bytes @ ..] => step(bytes, Column::LastOperations, 1),
            });
            busy.chain(late).collect()
        })
        .boxed()
}

/// What the bytes of a fuzzer say is done, until they are used up.
pub fn operations_of(bytes: &[u8], keys: Key, uses: Uses) -> Vec<Operation> {
    let mut bytes = Bytes {
        keys,
        ..Bytes::new(bytes, &uses)
    };
    let columns = [Column::Operations, Column::LastOperations];
    let [busy, last] = columns.map(|column| kinds(column, &uses, 1));
    let mut operations = Vec::new();
    while !bytes.rest.as_slice().is_empty() && operations.len() < OPERATIONS_MAX {
        let kinds = if bytes.below(8) == 7 { &last } else { &busy };
        operations.push(bytes.step(kinds));
    }
    operations
}

/// A sequence that fails need not be long, and one that is takes long.
const OPERATIONS_MAX: usize = 200;

/// Draws histories of a queue with a few keys for which several calls wait, and which may be shut
/// down towards the end. Time is in whole milliseconds.
///
/// Each history is made of some kinds of steps, and not of others: a wake that is lost shows best
/// where little else happens.
pub fn calls() -> impl Strategy<Value = Vec<Operation>> {
    calls_in(MILLISECOND, Uses::ANY)
}

/// The same with time in whole units.
pub(super) fn calls_in(unit: Duration, uses: Uses) -> BoxedStrategy<Vec<Operation>> {
    // The clock of a runtime may know no times but whole units.
    let uses = Uses {
        slack: false,
        ..uses
    };
    let drawn = (any::<u64>(), steps(40), steps(10));
    drawn
        .prop_map(move |(chosen, busy, late)| {
            let chosen = |index: usize| index < ALWAYS || chosen & (1 << (index % 64)) != 0;
            let kinds_of_all = kinds(Column::Calls, &uses, 1).into_iter().enumerate();
            let some = kinds_of_all.filter(|(index, _)| chosen(*index));
            let some: Vec<_> = some.map(|(_, kind)| kind).collect();
            let last = kinds(Column::LastCalls, &uses, 1);
            let step = |bytes: &[u8], kinds: &[(u32, &Drawn)]| {
                let bytes = Bytes::new(bytes, &uses);
                let is_wild = false;
                Bytes {
                    keys: 4,
                    unit,
                    is_wild,
                    ..bytes
                }
                .step(kinds)
            };
            let busy = busy.iter().map(|bytes| step(bytes, &some));
            let late = late.iter().map(|bytes| match bytes {
                [0..128, bytes @ ..] => step(bytes, &some),
                [_, bytes @ ..] => step(bytes, &last),
            });
            busy.chain(late).collect()
        })
        .boxed()
}

/// The first kinds of steps, which are in every history of calls.
const ALWAYS: usize = 2;

/// Draws what a thread does to a queue that others use at the same time, with time in whole units;
/// mostly about the first key, or about any.
pub fn at_once(
    length: Range<usize>,
    keys: Key,
    favours_first: bool,
    unit: Duration,
) -> BoxedStrategy<Vec<Operation>> {
    let step = any::<[u8; STEP]>();
    let step = step.prop_map(move |bytes| {
        let (uses, is_wild) = (Uses::ANY, false);
        let bytes = Bytes::new(&bytes, &uses);
        let mut bytes = Bytes {
            keys,
            favours_first,
            unit,
            is_wild,
            ..bytes
        };
        bytes.step(&kinds(Column::AtOnce, &uses, 1))
    });
    vec(step, length).boxed()
}

/// Queues and calls, with time in whole units, of which failed keys wait one, two, and so on. It is
/// one that no timer rounds, or the shortest that the queue's timers can tell apart.
pub(super) fn queues_and_calls(grain: Duration) -> BoxedStrategy<(Configuration, Vec<Operation>)> {
    let unit = any::<bool>().prop_map(move |is_fine| if is_fine { grain } else { MILLISECOND });
    let drawn = (unit, 0..4u8);
    drawn
        .prop_flat_map(|(unit, kind)| (Just(setup_of(kind, unit)), calls_in(unit, Uses::ANY)))
        .boxed()
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

/// Queues of all kinds.
pub(super) fn setups() -> impl Strategy<Value = Configuration> {
    let records = select(vec![usize::MAX, 0, 1, 2]);
    let releases = select(vec![1, 2, 16]);
    (select(delays_and_policies()), records, releases).prop_map(
        |((limiter, policy), failure_records_max, due_keys_max)| Configuration {
            policy,
            failure_records_max,
            due_keys_max,
            ..Configuration::new(limiter)
        },
    )
}

/// Limiters that remember failures and that do not, that delay and that do not, and one that
/// delays for ever; some of them with a policy.
fn delays_and_policies() -> Vec<(LimiterSpec, PolicySpec)> {
    let exponential = |base_ns| LimiterSpec::Exponential {
        base_ns,
        max_ns: 20,
    };
    let bucket = |rate: f64, burst| LimiterSpec::TokenBucket {
        rate_bits: FloatBits(rate),
        burst,
    };
    let max_of = |limiters| LimiterSpec::MaxOf { limiters };
    let holds = |cool_down_ns, hold_failures| PolicySpec {
        cool_down_ns,
        hold_failures,
        run_rate: None,
    };
    let paces = |rate, burst| {
        let per_second = FloatBits(rate);
        Some(Rate { per_second, burst })
    };
    let fast_slow = LimiterSpec::FastSlow {
        fast_ns: 2,
        slow_ns: 9,
        max_fast_attempts: 1,
    };
    let none = PolicySpec::default;
    vec![
        (exponential(1), none()),
        (exponential(0), none()),
        (fast_slow, none()),
        (max_of(vec![exponential(2), bucket(5e8, 1)]), none()),
        (max_of(vec![]), none()),
        (bucket(0.0, 1), none()),
        (exponential(1), holds(0, true)),
        (exponential(0), holds(3, false)),
        (bucket(5e8, 1), holds(2, true)),
        (max_of(vec![exponential(2), exponential(1)]), holds(1, true)),
        (
            exponential(1),
            PolicySpec {
                run_rate: paces(4e8, 2),
                ..none()
            },
        ),
        (
            exponential(1),
            PolicySpec {
                run_rate: paces(1e8, 1),
                ..holds(1, true)
            },
        ),
    ]
}
