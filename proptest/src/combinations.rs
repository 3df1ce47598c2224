//! Configurations in which every option meets every other.
//!
//! What a queue can do is a list of [options], each with a few values. A covering array has every
//! pair of values of two options in one of some fifty [combinations](Combination), and with
//! [strength](covering) three every three of them. [`run_combined`](crate::histories::run_combined)
//! draws histories on each.

#[cfg(feature = "core")]
mod machine;

use std::fmt;
use std::time::Duration;

use requeue_core::priority::Aging;

use crate::limiter::{FloatBits, LimiterSpec};
use crate::subject::{Cap, Configuration, Key, Kind, Rate, Subject, boxed};

#[cfg(feature = "core")]
pub use machine::core;

/// How a queue is made, and what is done to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Combination {
    /// How the queue is made.
    pub configuration: Configuration,
    /// What is done to it in addition to adds, runs and their ends, looks and the end.
    pub uses: Uses,
    /// The value of each option, as its place in the list of [options].
    values: Vec<usize>,
    /// How many nanoseconds the unit of all times has.
    pub(crate) unit: u64,
}

/// What histories may do, or leave out: a fault shows best where little else happens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// Debounced adds.
    pub debounce: bool,
    /// Keys wait for an event.
    pub suspend: bool,
    /// Runs end with pauses that grow.
    pub poll: bool,
    /// Delays that may become longer. Deadlines are not in whole units then.
    pub slack: bool,
    /// Adds meet a deadline by other rules than the earliest.
    pub merge: bool,
    /// A key makes way for one of a higher level.
    pub displace: bool,
    /// Keys that another queue has left.
    pub restore: bool,
    /// The queue is paused.
    pub pause: bool,
    /// Work is cancelled, or hurried.
    pub cancel: bool,
    /// Limits, policies and times are changed while the queue is used.
    pub change: bool,
    /// Time stands, and jumps past several deadlines at once, so that there is a backlog of them.
    pub backlog: bool,
    /// The clock also goes back.
    pub rewind: bool,
}

impl Uses {
    /// All but a backlog, for which time would have to stand, and a clock that goes back.
    pub const ANY: Self = Self {
        debounce: true,
        suspend: true,
        poll: true,
        slack: true,
        merge: true,
        displace: true,
        restore: true,
        pause: true,
        cancel: true,
        change: true,
        backlog: false,
        rewind: false,
    };
}

/// Sets a value in a combination whose times are in whole units.
type Set = fn(&mut Combination, u64);

/// Something that a queue, or a history, can have in several ways. The first is the default.
pub struct Choice {
    /// What it is.
    pub name: &'static str,
    values: &'static [(&'static str, Set)],
}

impl Choice {
    /// How many values it has.
    pub fn values(&self) -> usize {
        self.values.len()
    }
}

impl fmt::Debug for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

macro_rules! choices {
    (|$it:ident, $unit:ident|
        $($name:literal: $default:literal, $($value:literal => $set:expr),+;)+) => {
        [$(Choice {
            name: $name,
            values: &[($default, |_, _| ()), $(($value, |$it, $unit| {
                let _ = $unit;
                $set;
            })),+],
        }),+]
    };
}

/// Every option. A backlog has keys that no operation has made ready yet.
static OPTIONS: [Choice; 24] = choices! { |it, unit|
    "storage":
        "grows",
        "fixed, for 64 keys" => it.configuration.storage = Some(64),
        "fixed, for 3 keys of two groups" => it.configuration.storage = Some(3),
        "grows, for 4 keys" => it.configuration.max_keys = 4;
    "levels":
        "one",
        "three" => it.configuration.levels = 3,
        "three, and keys age" => {
            it.configuration.levels = 3;
            it.configuration.age_limit = Some(Duration::from_nanos(2 * unit));
        };
    "groups": "none", "some" => groups(it);
    "a group's limit": "none", "one active key" => groups(it).max_active = Some(1);
    "a group's weight": "1", "2" => groups(it).weight = 2;
    "a group's rate":
        "none",
        "a run in four units" => groups(it).rate = per_unit(0.25, 1, unit);
    "cool-down":
        "none",
        "three units" => it.configuration.policy.cool_down_ns = 3 * unit;
    "failures":
        "let a key run",
        "hold it" => it.configuration.policy.hold_failures = true;
    "rate of runs":
        "any",
        "two, and one in two units" => {
            it.configuration.policy.run_rate = per_unit(0.5, 2, unit);
        };
    "limiter":
        "1, 2, 4, 8 units",
        "no delay" => it.configuration.limiter = exponential(0, 20 * unit),
        "fast, then slow" => {
            it.configuration.limiter = LimiterSpec::FastSlow {
                fast_ns: 2 * unit,
                slow_ns: 9 * unit,
                max_fast_attempts: 1,
            };
        },
        "2, 4, 8 units, and a bucket" => {
            let limiters = vec![exponential(2 * unit, 20 * unit), bucket(0.5e9 / unit as f64)];
            it.configuration.limiter = LimiterSpec::MaxOf { limiters };
        },
        "never" => it.configuration.limiter = bucket(0.0),
        "none" => it.configuration.limiter = LimiterSpec::MaxOf { limiters: Vec::new() };
    "failure records":
        "any number",
        "none" => it.configuration.failure_records_max = 0,
        "two" => it.configuration.failure_records_max = 2;
    "due keys an operation":
        "16",
        "1" => it.configuration.due_keys_max = 1,
        "2" => it.configuration.due_keys_max = 2;
    "debounce": "no", "yes" => it.uses.debounce = true;
    "suspend": "no", "yes" => it.uses.suspend = true;
    "poll": "no", "yes" => it.uses.poll = true;
    "slack": "no", "yes" => it.uses.slack = true;
    "merge": "no", "yes" => it.uses.merge = true;
    "displace": "no", "yes" => it.uses.displace = true;
    "restore": "no", "yes" => it.uses.restore = true;
    "pause": "no", "yes" => it.uses.pause = true;
    "cancel": "no", "yes" => it.uses.cancel = true;
    "change": "no", "yes" => it.uses.change = true;
    "backlog":
        "no",
        "yes" => {
            it.uses.backlog = true;
            it.configuration.due_keys_max = 1;
        };
    "metrics": "all figures", "none" => it.configuration.metrics = false;
};

/// Every option there is.
pub fn options() -> impl Iterator<Item = &'static Choice> + Clone {
    OPTIONS.iter()
}

fn groups(it: &mut Combination) -> &mut Cap {
    it.configuration.groups.get_or_insert_default()
}

fn per_unit(runs: f64, burst: u32, unit: u64) -> Option<Rate> {
    let per_second = FloatBits(runs * 1e9 / unit as f64);
    Some(Rate { per_second, burst })
}

fn exponential(base_ns: u64, max_ns: u64) -> LimiterSpec {
    LimiterSpec::Exponential { base_ns, max_ns }
}

fn bucket(rate: f64) -> LimiterSpec {
    LimiterSpec::TokenBucket {
        rate_bits: FloatBits(rate),
        burst: 1,
    }
}

/// A value of an option: the places of both.
type Value = (usize, usize);

const STORAGE: usize = 0;
const LEVELS: usize = 1;
const GROUPS: usize = 2;
const OF_GROUPS: [usize; 3] = [3, 4, 5];
const RECORDS: usize = 10;
const METRICS: usize = 23;

/// Whether two values of different options exclude each other: there are no limits of groups
/// without groups, and a fixed queue has no limit of records.
fn exclude(one: Value, other: Value) -> bool {
    let excludes = |one: Value, other: Value| match one {
        (GROUPS, 0) => OF_GROUPS.contains(&other.0) && other.1 > 0,
        (STORAGE, 1 | 2) => other.0 == RECORDS && other.1 > 0,
        _ => false,
    };
    excludes(one, other) || excludes(other, one)
}

/// Which values are left out, by the names of their options: those that a queue cannot have.
pub type Without = &'static [(&'static str, usize)];

/// The values of an option that may be beside these of others.
fn values_of(at: usize, others: &[Value], without: Without) -> Vec<Value> {
    let option = &OPTIONS[at];
    let is_left_out = |value: &Value| without.contains(&(option.name, value.1));
    let is_excluded = |value: &Value| others.iter().any(|other| exclude(*other, *value));
    let is_built = |value: &Value| is_built(&[others, &[*value]].concat());
    let values = (0..option.values()).map(|value| (at, value));
    values
        .filter(|value| !is_left_out(value) && !is_excluded(value) && is_built(value))
        .collect()
}

/// Whether a queue with these values is compiled. Metrics are a type, and each kind of queue is
/// compiled either with or without them. Every three of storage, levels, groups and metrics can meet.
fn is_built(values: &[Value]) -> bool {
    let allows = |kind: Value| {
        let allows = |value: &Value| value.0 != kind.0 && !exclude(*value, kind) || *value == kind;
        values.iter().all(allows)
    };
    (0..4 * 3 * 2).any(|kind| {
        let kind = [
            (STORAGE, kind % 4),
            (LEVELS, kind / 4 % 3),
            (GROUPS, kind / 12),
        ];
        let odd = usize::from(kind[0].1 == 1) + kind[1].1 + kind[2].1;
        kind.into_iter().all(allows) && allows((METRICS, odd % 2))
    })
}

/// Every choice of values of so many different options that may be together.
pub fn tuples(strength: usize, without: Without) -> Vec<Vec<Value>> {
    let mut tuples: Vec<Vec<Value>> = vec![Vec::new()];
    for _ in 0..strength {
        let longer = |tuple: Vec<Value>| {
            let next = tuple.last().map_or(0, |(option, _)| option + 1);
            let values = (next..OPTIONS.len()).flat_map(|at| values_of(at, &tuple, without));
            let longer = values.map(|value| [&tuple[..], &[value]].concat());
            longer.collect::<Vec<_>>()
        };
        tuples = tuples.into_iter().flat_map(longer).collect();
    }
    tuples
}

/// Combinations in which every choice of values of so many options is: pairs twice, with different
/// others. Times are in whole units of so many nanoseconds. The combinations are the same each time.
pub fn covering(strength: usize, without: Without, unit: u64) -> Vec<Combination> {
    let tuples = tuples(strength, without);
    let has = |row: &[Value], tuple: &[Value]| tuple.iter().all(|value| row.contains(value));
    let mut missing = tuples.clone();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    while let Some(first) = missing.first() {
        let mut row = first.clone();
        // Another option is the first to choose in each row.
        for step in 0..OPTIONS.len() {
            let at = (step + rows.len()) % OPTIONS.len();
            if row.iter().all(|(option, _)| *option != at) {
                row.push(best(&row, at, without, &missing, rows.len()));
            }
        }
        missing.retain(|tuple| !has(&row, tuple));
        rows.push(row);
        if missing.is_empty() && strength < 3 {
            let times = |tuple: &[Value]| rows.iter().filter(|row| has(row, tuple)).count();
            let once = tuples.iter().filter(|tuple| times(tuple) < 2);
            missing = once.cloned().collect();
        }
    }
    let combinations = rows.into_iter().map(|mut row| {
        row.sort_unstable();
        let values = row.into_iter().map(|(_, value)| value);
        Combination::new(values.collect(), unit)
    });
    combinations.collect()
}

/// The value of an option that completes most of what is missing, or comes nearest to it.
fn best(row: &[Value], at: usize, without: Without, missing: &[Vec<Value>], turn: usize) -> Value {
    let is_open = |(option, _): &Value| row.iter().all(|(chosen, _)| chosen != option);
    let gain = |value: &Value| {
        let of_value = missing.iter().filter(|tuple| tuple.contains(value));
        let points = of_value.map(|tuple| {
            let mut others = tuple.iter().filter(|other| *other != value);
            match others.clone().all(|other| row.contains(other)) {
                true => 100,
                false => others
                    .all(|other| row.contains(other) || is_open(other))
                    .into(),
            }
        });
        points.sum::<usize>()
    };
    // The last of equals wins, which is another in each row.
    let count = OPTIONS[at].values();
    let mut allowed = values_of(at, row, without);
    allowed.sort_by_key(|(_, value)| (value + count - turn % count) % count);
    allowed.into_iter().max_by_key(gain).unwrap_or((at, 0))
}

impl Combination {
    /// The values of all options, with times in units of so many nanoseconds.
    pub fn new(values: Vec<usize>, unit: u64) -> Self {
        let mut made = Self {
            configuration: Configuration::new(exponential(unit, unit.saturating_mul(8))),
            uses: Uses::default(),
            values: Vec::new(),
            unit,
        };
        for (option, value) in options().zip(&values) {
            if let Some((_, set)) = option.values.get(*value) {
                set(&mut made, unit);
            }
        }
        made.values = values;
        made
    }

    /// Whether it has these values.
    pub fn has(&self, tuple: &[Value]) -> bool {
        tuple
            .iter()
            .all(|(option, value)| self.values.get(*option) == Some(value))
    }
}

/// Queues of one runtime, of each kind of priorities.
pub trait Family {
    /// Keys of one level.
    type One: Kind<Naming<Key> = ()> + 'static;
    /// Keys of three levels.
    type Three: Kind<Naming<Key> = ()> + 'static;
    /// Keys of groups.
    type Grouped<P: Kind<Naming<Key> = ()> + 'static>: Kind + 'static;
    /// The queue of every second kind, so that its metrics can differ from those of the others.
    type Even<P: Kind + 'static>: Subject + 'static;
    /// The queue of the other kinds.
    type Odd<P: Kind + 'static>: Subject + 'static;
}

/// Makes a queue of the kind that the configuration describes.
pub fn kind_of<F: Family>(configuration: &Configuration) -> Box<dyn Subject> {
    let (groups, ages) = (
        configuration.groups.is_some(),
        configuration.age_limit.is_some(),
    );
    let make = match (groups, configuration.levels > 1, ages) {
        (false, false, _) => boxed::<F::Even<F::One>>,
        (false, true, false) => boxed::<F::Odd<F::Three>>,
        (false, true, true) => boxed::<F::Even<Aging<F::Three>>>,
        (true, false, _) => boxed::<F::Odd<F::Grouped<F::One>>>,
        (true, true, false) => boxed::<F::Even<F::Grouped<F::Three>>>,
        (true, true, true) => boxed::<F::Odd<F::Grouped<Aging<F::Three>>>>,
    };
    make(configuration)
}

/// The options that are not at their first value.
impl fmt::Display for Combination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set = options().zip(&self.values).filter(|(_, value)| **value > 0);
        let set = set.filter_map(|(option, value)| {
            let (value, _) = option.values.get(*value)?;
            Some(format!("{}: {value}", option.name))
        });
        f.write_str(&set.collect::<Vec<_>>().join("; "))
    }
}
