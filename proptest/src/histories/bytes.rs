//! Histories made of bytes, whoever draws them.

use std::ops::Range;
use std::slice;
use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use requeue_core::{Action, AddOptions, Instant, Merge};

use crate::combinations::{Combination, Uses, options};
use crate::limiter::FloatBits;
use crate::operation::{Arguments, Operation, ROWS, Row, Run, left_over};
use crate::subject::{Cap, Configuration, Key, Left, PolicySpec, Rate};

/// Which operations come, and how often: the column of [`Row::weights`].
#[derive(Clone, Copy)]
enum Column {
    Operations,
    LastOperations,
    Calls,
    LastCalls,
    AtOnce,
}

/// What a history is about.
#[derive(Clone, Copy)]
struct Scene {
    uses: Uses,
    keys: Key,
    /// Most is about the first key.
    favours_first: bool,
    /// Times are whole units.
    unit: Duration,
    /// Times and rates may be such as no clock of a runtime shows.
    is_wild: bool,
}

impl Scene {
    /// Six keys, and any times.
    const fn new(uses: Uses) -> Self {
        Self {
            uses,
            keys: 6,
            favours_first: false,
            unit: Duration::from_nanos(1),
            is_wild: true,
        }
    }

    /// The operations of a column, each with how often it comes. Adds come so many times as often.
    fn rows(&self, column: Column, adds: u32) -> Rows {
        let rows = ROWS.iter().filter(|row| (row.is_used)(&self.uses));
        let weighed = rows.map(|row| {
            let is_add = row.words.starts_with("add");
            let times = if is_add { adds } else { 1 };
            (u32::from(row.weights[column as usize]) * times, row)
        });
        weighed.filter(|(weight, _)| *weight > 0).collect()
    }

    fn step(self, bytes: &[u8], rows: &Rows) -> Operation {
        let rest = bytes.iter();
        Bytes { rest, scene: self }.step(rows)
    }

    /// A history that may end among other operations.
    fn history(self, (busy, late): (Vec<Step>, Vec<Step>), rows: [&Rows; 3]) -> Vec<Operation> {
        let busy = busy.iter().map(|bytes| self.step(bytes, rows[0]));
        let late = late.iter().map(|[first, bytes @ ..]| {
            let is_last = *first >= 128;
            self.step(bytes, if is_last { rows[2] } else { rows[1] })
        });
        busy.chain(late).collect()
    }
}

type Rows = Vec<(u32, &'static Row)>;

/// Bytes that are made operations. Once they are used up, each is zero.
pub(crate) struct Bytes<'b> {
    rest: slice::Iter<'b, u8>,
    scene: Scene,
}

impl<'b> Bytes<'b> {
    /// For operations on six keys, at any times.
    pub(crate) fn new(bytes: &'b [u8], uses: Uses) -> Self {
        Self {
            rest: bytes.iter(),
            scene: Scene::new(uses),
        }
    }

    /// One of these, each as often as it says.
    fn step(&mut self, rows: &Rows) -> Operation {
        let weights: u32 = rows.iter().map(|(weight, _)| weight).sum();
        let mut place = (u32::from(self.pair()) * weights) >> u16::BITS;
        for (weight, row) in rows {
            match place.checked_sub(*weight) {
                Some(rest) => place = rest,
                None => return (row.make)(self),
            }
        }
        Operation::Settle
    }

    fn byte(&mut self) -> u8 {
        self.rest.next().copied().unwrap_or_default()
    }

    fn pair(&mut self) -> u16 {
        u16::from_be_bytes([self.byte(), self.byte()])
    }

    /// One of so many numbers, from zero.
    fn below(&mut self, count: u8) -> u8 {
        ((u16::from(self.byte()) * u16::from(count)) >> u8::BITS) as u8
    }

    fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::from(self.below(values.len() as u8))]
    }

    fn option<T>(&mut self, some: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(4) < 3).then(|| some(self))
    }

    /// Up to four of something.
    fn several<T>(&mut self, mut one: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let count = self.below(5);
        (0..count).map(|_| one(self)).collect()
    }

    fn units(&self, count: impl Into<u32>) -> Duration {
        self.scene.unit.saturating_mul(count.into())
    }

    /// In percent. Half of all delays are exact.
    fn slack(&mut self) -> u8 {
        match self.scene.uses.slack && self.below(2) == 1 {
            true => self.one_of(&[1, 20, 50, 100, 255]),
            false => 0,
        }
    }

    /// A rate whose tokens come after whole units.
    fn per_unit(&self, (count, burst): (f64, u32)) -> Rate {
        let per_second = FloatBits(count * 1e9 / self.scene.unit.as_nanos() as f64);
        Rate { per_second, burst }
    }
}

impl Arguments for Bytes<'_> {
    fn key(&mut self) -> Key {
        match self.scene.favours_first && self.below(4) < 3 {
            true => 1,
            false => 1 + Key::from(self.below(self.scene.keys as u8)),
        }
    }

    fn keys(&mut self) -> Vec<Key> {
        self.several(Self::key)
    }

    fn other_key(&mut self) -> Key {
        self.key() + self.scene.keys
    }

    fn run(&mut self) -> Run {
        Run::Pick(self.byte())
    }

    fn runs(&mut self) -> Vec<Run> {
        self.several(Self::run)
    }

    fn waiting(&mut self) -> u8 {
        self.byte()
    }

    fn action(&mut self) -> Action {
        let action = match self.below(10) {
            0..2 => Action::Release,
            2 => Action::Success,
            3 => Action::Retry,
            4 => Action::GiveUp,
            5 => Action::RequeueAfter(self.delay()),
            6 if self.scene.uses.suspend => Action::Suspend(self.delay()),
            7..9 if self.scene.uses.poll => Action::poll(self.delay(), self.delay()),
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

    /// Levels that most queues under test have, and one that none has.
    fn options(&mut self) -> AddOptions {
        let (none, low, high) = (None, Some(1), Some(2));
        AddOptions {
            priority: self.one_of(&[none, Some(0), low, high, none, low, high, Some(3)]),
            after: self.option(Self::delay),
            merge: match self.scene.uses.merge {
                true => self.one_of(&MERGES),
                false => Merge::Earliest,
            },
            rate_limited: self.below(2) == 1,
            slack: self.slack(),
        }
    }

    /// A ready or delayed key with a few failures.
    fn left(&mut self) -> Left {
        let (key, left) = (self.key(), self.delay());
        left_over(key, left, self.below(4).into(), self.below(3))
    }

    /// Mostly so short that deadlines meet.
    fn delay(&mut self) -> Duration {
        match self.byte() {
            0..32 => Duration::ZERO,
            32..192 => self.short(),
            192..240 => {
                let far = match self.scene.is_wild {
                    true => 6 + self.pair() % 995,
                    false => 6 + u16::from(self.below(58)),
                };
                self.units(far)
            }
            _ if self.scene.is_wild => match self.below(4) {
                0 => Duration::MAX,
                1 => Duration::from_nanos(u64::MAX),
                2 => Duration::from_nanos(u64::MAX - 1),
                _ => Duration::from_nanos(1 << self.below(64)),
            },
            _ => Duration::MAX,
        }
    }

    /// From one unit to five.
    fn short(&mut self) -> Duration {
        let units = 1 + self.below(5);
        self.units(units)
    }

    /// With a backlog, past several deadlines. No clock of a runtime comes near its end.
    fn passing(&mut self) -> Duration {
        let units = match (self.scene.uses.backlog, self.scene.is_wild) {
            (false, true) => return self.delay(),
            (false, false) => self.below(8).into(),
            (true, _) => match self.below(8) {
                7 => 5 + self.pair() % 1000,
                _ => 5 + u16::from(self.below(40)),
            },
        };
        self.units(units)
    }

    fn instant(&mut self) -> Instant {
        match self.below(9) {
            8 => self.one_of(&[Instant::from_nanos(u64::MAX - 1), Instant::NEVER]),
            _ => Instant::from_nanos(u64::from(self.pair() % 1000)),
        }
    }

    fn age(&mut self) -> Option<Duration> {
        self.option(Self::delay)
    }

    /// Limits that let something pass, more often than not.
    fn cap(&mut self) -> Cap {
        let rates = [(0.5, 1), (1.0, 2), (0.0, 1), (1.0, 0)].map(Some);
        let rates = [&[None, None], &rates[..]].concat();
        Cap {
            max_active: self.one_of(&[None, None, Some(0), Some(1), Some(1), Some(2)]),
            weight: self.one_of(&[1, 1, 2, 0]),
            rate: self.one_of(&rates).map(|rate| self.per_unit(rate)),
        }
    }

    fn own_cap(&mut self) -> Option<Cap> {
        self.option(Self::cap)
    }

    /// Cool-downs of up to three units, or none.
    fn policy(&mut self) -> PolicySpec {
        let cool_down = self.below(4);
        let rates: &[_] = match self.scene.is_wild {
            true => &[None, None, Some((0.4, 2)), Some((0.1, 1))],
            false => &[None, None, None, Some((0.5, 2))],
        };
        PolicySpec {
            cool_down_ns: (Instant::EPOCH + self.units(cool_down)).as_nanos(),
            hold_failures: self.below(2) == 1,
            run_rate: self.one_of(rates).map(|rate| self.per_unit(rate)),
        }
    }

    fn number(&mut self, drawn: &[usize]) -> usize {
        self.one_of(drawn)
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

/// As many bytes as any operation needs.
type Step = [u8; 10];

/// The bytes of a busy queue, and those towards its end.
fn steps(busy: usize, late: usize) -> impl Strategy<Value = (Vec<Step>, Vec<Step>)> {
    let steps = |most| vec(any::<Step>(), 0..most);
    (steps(busy), steps(late))
}

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
    let scene = Scene {
        keys,
        unit,
        ..Scene::new(uses)
    };
    let [busy, rows] = [adds, 1].map(|adds| scene.rows(Column::Operations, adds));
    let last = scene.rows(Column::LastOperations, 1);
    let history = move |steps| scene.history(steps, [&busy, &rows, &last]);
    steps(length, 40).prop_map(history).boxed()
}

/// What the bytes of a fuzzer say is done, until they are used up.
pub fn operations_of(bytes: &[u8], keys: Key, uses: Uses) -> Vec<Operation> {
    let mut bytes = Bytes::new(bytes, uses);
    bytes.scene.keys = keys;
    let columns = [Column::Operations, Column::LastOperations];
    let [busy, last] = columns.map(|column| bytes.scene.rows(column, 1));
    let mut operations = Vec::new();
    while !bytes.rest.as_slice().is_empty() && operations.len() < OPERATIONS_MAX {
        let rows = if bytes.below(8) == 7 { &last } else { &busy };
        operations.push(bytes.step(rows));
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
    let slack = false;
    let scene = Scene {
        keys: 4,
        unit,
        is_wild: false,
        ..Scene::new(Uses { slack, ..uses })
    };
    let [all, last] = [Column::Calls, Column::LastCalls].map(|column| scene.rows(column, 1));
    let history = move |(chosen, steps): (u64, _)| {
        let chosen = |index: usize| index < ALWAYS || chosen & (1 << (index % 64)) != 0;
        let some = (0..).zip(&all).filter(|(index, _)| chosen(*index));
        let some: Rows = some.map(|(_, row)| *row).collect();
        scene.history(steps, [&some, &some, &last])
    };
    (any::<u64>(), steps(40, 10)).prop_map(history).boxed()
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
    let scene = Scene {
        keys,
        favours_first,
        unit,
        is_wild: false,
        ..Scene::new(Uses::ANY)
    };
    let rows = scene.rows(Column::AtOnce, 1);
    let step = any::<Step>().prop_map(move |bytes| scene.step(&bytes, &rows));
    vec(step, length).boxed()
}

/// Queues and calls, with time in whole units. It is one that no timer rounds, or the shortest that
/// the queue's timers can tell apart.
pub(super) fn queues_and_calls(grain: Duration) -> BoxedStrategy<(Configuration, Vec<Operation>)> {
    let unit = any::<bool>().prop_map(move |is_fine| if is_fine { grain } else { MILLISECOND });
    let drawn = unit.prop_flat_map(|unit| (setups(unit, POLICY), calls_in(unit, Uses::ANY)));
    drawn.boxed()
}

/// Queues and operations that never wait.
pub(super) fn queues_and_operations(
    crowd: Crowd,
) -> BoxedStrategy<(Configuration, Vec<Operation>)> {
    let unit = Duration::from_nanos(1);
    let others = "limiter, failure records, due keys an operation";
    let setups = setups(unit, &format!("{POLICY}, {others}"));
    (setups, operations(crowd, unit, Uses::ANY)).boxed()
}

/// A queue whose failed keys wait 1 ms, 2 ms, 4 ms and 8 ms.
pub(super) fn setup() -> Configuration {
    Combination::new(Vec::new(), MILLISECOND.as_nanos() as u64).configuration
}

const MILLISECOND: Duration = Duration::from_millis(1);

/// The options that a policy has.
const POLICY: &str = "cool-down, failures, rate of runs";

/// Queues with any values of these options, of which half are left as they are: a fault shows best
/// where little else happens.
fn setups(unit: Duration, of: &str) -> impl Strategy<Value = Configuration> + use<> {
    let is_drawn = |name| of.split(", ").any(|drawn| drawn == name);
    let values = options().map(|option| match is_drawn(option.name) {
        true => 0..2 * option.values(),
        false => 0..1,
    });
    let unit = (Instant::EPOCH + unit).as_nanos();
    values.collect::<Vec<_>>().prop_map(move |mut values| {
        for (option, value) in options().zip(&mut values) {
            *value = if *value < option.values() { *value } else { 0 };
        }
        Combination::new(values, unit).configuration
    })
}
