//! Configurations in which every option meets every other.
//!
//! What a queue can do is a list of [options], each with a few values. A covering array has every
//! pair of values of two options in one of some forty [combinations](Combination), and with
//! [strength](covering) three every three of them. [`run_combined`](crate::histories::run_combined)
//! draws histories on each.

use std::fmt;
use std::marker::PhantomData;
use std::time::Duration;

use requeue_core::priority::{Aging, Groups, Levels, Plain, WithSlack, WithSuspension};
use requeue_core::storage::{Fixed, Growable};

use crate::limiter::{FloatBits, LimiterSpec};
use crate::subject::{Cap, Configuration, Direct, Key, Kind, Note, Rate, Subject, boxed};

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
}

impl Uses {
    /// All but a backlog, for which time would have to stand.
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

const NOTHING: Set = |_, _| {};

fn groups(it: &mut Combination) -> &mut Cap {
    it.configuration.groups.get_or_insert_default()
}

fn per_unit(runs: f64, burst: u32, unit: u64) -> Option<Rate> {
    let per_second = FloatBits(runs * 1e9 / unit as f64);
    Some(Rate { per_second, burst })
}

macro_rules! uses {
    ($($name:ident),+) => {
        [$(Choice {
            name: stringify!($name),
            values: &[("no", NOTHING), ("yes", |it, _| it.uses.$name = true)],
        }),+]
    };
}

const CONFIGURED: [Choice; 12] = [
    Choice {
        name: "storage",
        values: &[
            ("grows", NOTHING),
            ("fixed, for 64 keys", |it, _| {
                it.configuration.storage = Some(64)
            }),
            ("fixed, for 3 keys", |it, _| {
                it.configuration.storage = Some(3)
            }),
            ("grows, for 4 keys", |it, _| it.configuration.max_keys = 4),
        ],
    },
    Choice {
        name: "levels",
        values: &[
            ("one", NOTHING),
            ("three", |it, _| it.configuration.levels = 3),
            ("three, and keys age", |it, unit| {
                it.configuration.levels = 3;
                it.configuration.age_limit = Some(Duration::from_nanos(2 * unit));
            }),
        ],
    },
    Choice {
        name: "groups",
        values: &[
            ("none", NOTHING),
            ("some", |it, _| {
                groups(it);
            }),
        ],
    },
    Choice {
        name: "a group's limit",
        values: &[
            ("none", NOTHING),
            ("one active key", |it, _| groups(it).max_active = Some(1)),
        ],
    },
    Choice {
        name: "a group's weight",
        values: &[("1", NOTHING), ("2", |it, _| groups(it).weight = 2)],
    },
    Choice {
        name: "a group's rate",
        values: &[
            ("none", NOTHING),
            ("a run in four units", |it, unit| {
                groups(it).rate = per_unit(0.25, 1, unit);
            }),
        ],
    },
    Choice {
        name: "cool-down",
        values: &[
            ("none", NOTHING),
            ("three units", |it, unit| {
                it.configuration.policy.cool_down_ns = 3 * unit;
            }),
        ],
    },
    Choice {
        name: "failures",
        values: &[
            ("let a key run", NOTHING),
            ("hold it", |it, _| {
                it.configuration.policy.hold_failures = true
            }),
        ],
    },
    Choice {
        name: "rate of runs",
        values: &[
            ("any", NOTHING),
            ("two, and one in two units", |it, unit| {
                it.configuration.policy.run_rate = per_unit(0.5, 2, unit);
            }),
        ],
    },
    Choice {
        name: "limiter",
        values: &[
            ("1, 2, 4, 8 units", NOTHING),
            ("no delay", |it, unit| {
                let (base_ns, max_ns) = (0, 20 * unit);
                it.configuration.limiter = LimiterSpec::Exponential { base_ns, max_ns };
            }),
            ("fast, then slow", |it, unit| {
                it.configuration.limiter = LimiterSpec::FastSlow {
                    fast_ns: 2 * unit,
                    slow_ns: 9 * unit,
                    max_fast_attempts: 1,
                };
            }),
            ("2, 4, 8 units, and a bucket", |it, unit| {
                let (base_ns, max_ns) = (2 * unit, 20 * unit);
                let rate_bits = FloatBits(0.5e9 / unit as f64);
                let burst = 1;
                it.configuration.limiter = LimiterSpec::MaxOf {
                    limiters: vec![
                        LimiterSpec::Exponential { base_ns, max_ns },
                        LimiterSpec::TokenBucket { rate_bits, burst },
                    ],
                };
            }),
            ("never", |it, _| {
                let (rate_bits, burst) = (FloatBits(0.0), 1);
                it.configuration.limiter = LimiterSpec::TokenBucket { rate_bits, burst };
            }),
        ],
    },
    Choice {
        name: "failure records",
        values: &[
            ("any number", NOTHING),
            ("none", |it, _| it.configuration.failure_records_max = 0),
            ("two", |it, _| it.configuration.failure_records_max = 2),
        ],
    },
    Choice {
        name: "due keys an operation",
        values: &[
            ("16", NOTHING),
            ("1", |it, _| it.configuration.due_keys_max = 1),
            ("2", |it, _| it.configuration.due_keys_max = 2),
        ],
    },
];

const USED: [Choice; 10] = uses!(
    debounce, suspend, poll, slack, merge, displace, restore, pause, cancel, change
);

/// A backlog is of keys that no operation has made ready yet.
const BACKLOG: Choice = Choice {
    name: "backlog",
    values: &[
        ("no", NOTHING),
        ("yes", |it, _| {
            it.uses.backlog = true;
            it.configuration.due_keys_max = 1;
        }),
    ],
};

/// Every option there is.
pub fn options() -> impl Iterator<Item = &'static Choice> + Clone {
    CONFIGURED.iter().chain(&USED).chain([&BACKLOG])
}

/// A value of an option: the places of both.
type Value = (usize, usize);

const STORAGE: usize = 0;
const GROUPS: usize = 2;
const OF_GROUPS: [usize; 3] = [3, 4, 5];
const RECORDS: usize = 10;

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

/// Every choice of values of so many different options that may be together.
pub fn tuples(strength: usize, without: Without) -> Vec<Vec<Value>> {
    let is_left_out = |(option, value): &Value| {
        let mut named = options().skip(*option).take(1);
        named.any(|option| without.contains(&(option.name, *value)))
    };
    let mut tuples: Vec<Vec<Value>> = vec![Vec::new()];
    for _ in 0..strength {
        tuples = tuples
            .iter()
            .flat_map(|tuple| {
                let next = tuple.last().map_or(0, |(option, _)| option + 1);
                let left = options().enumerate().skip(next);
                let values =
                    left.flat_map(|(at, option)| (0..option.values()).map(move |v| (at, v)));
                let may_be = |value: &Value| !tuple.iter().any(|other| exclude(*other, *value));
                let values = values.filter(|value| may_be(value) && !is_left_out(value));
                values
                    .map(|value| [&tuple[..], &[value]].concat())
                    .collect::<Vec<_>>()
            })
            .collect();
    }
    tuples
}

/// Combinations in which every choice of values of so many options is: pairs twice, with different
/// others. Times are in whole units of so many nanoseconds. The combinations are the same each time.
pub fn covering(strength: usize, without: Without, unit: u64) -> Vec<Combination> {
    let tuples = tuples(strength, without);
    let mut missing = tuples.clone();
    let mut rows: Vec<Vec<usize>> = Vec::new();
    let count = options().count();
    while let Some(first) = missing.first() {
        let mut row: Vec<Option<usize>> = vec![None; count];
        for (option, value) in first {
            row[*option] = Some(*value);
        }
        // Another option is the first to choose in each row.
        for step in 0..count {
            let at = (step + rows.len()) % count;
            if row[at].is_none() {
                row[at] = Some(best(&row, at, without, &missing, rows.len()));
            }
        }
        let row: Vec<usize> = row.into_iter().map(Option::unwrap_or_default).collect();
        missing.retain(|tuple| !tuple.iter().all(|(option, value)| row[*option] == *value));
        rows.push(row);
        if missing.is_empty() && strength < 3 {
            let has = |row: &&Vec<usize>, tuple: &Vec<Value>| {
                tuple.iter().all(|(option, value)| row[*option] == *value)
            };
            missing = tuples
                .iter()
                .filter(|tuple| rows.iter().filter(|row| has(row, tuple)).count() < 2)
                .cloned()
                .collect();
        }
    }
    rows.into_iter()
        .map(|row| Combination::new(row, unit))
        .collect()
}

/// The value of an option that completes most of what is missing, or comes nearest to it.
fn best(
    row: &[Option<usize>],
    at: usize,
    without: Without,
    missing: &[Vec<Value>],
    turn: usize,
) -> usize {
    let option = options().nth(at);
    let values = option.map_or(1, Choice::values);
    let may_be = |value: usize| {
        if option.is_some_and(|option| without.contains(&(option.name, value))) {
            return false;
        }
        let chosen = row.iter().enumerate();
        let mut chosen = chosen.filter_map(|(other, chosen)| Some((other, (*chosen)?)));
        !chosen.any(|chosen| exclude(chosen, (at, value)))
    };
    let gain = |value: usize| {
        let of_value = missing.iter().filter(|tuple| tuple.contains(&(at, value)));
        let points = of_value.map(|tuple| {
            let mut others = tuple.iter().filter(|(option, _)| *option != at);
            let open = others.clone().filter(|(option, _)| row[*option].is_none());
            let open = open.count();
            match others.all(|(option, value)| row[*option].is_none_or(|it| it == *value)) {
                true if open == 0 => 100,
                agrees => usize::from(agrees),
            }
        });
        points.sum::<usize>()
    };
    let turned = (0..values).map(|value| (value + turn) % values);
    let allowed = turned.filter(|value| may_be(*value));
    // The last of equals wins, which is another in each row.
    allowed.max_by_key(|value| gain(*value)).unwrap_or(0)
}

impl Combination {
    /// The values of all options, with times in units of so many nanoseconds.
    pub fn new(values: Vec<usize>, unit: u64) -> Self {
        let (base_ns, max_ns) = (unit, 8 * unit);
        let mut made = Self {
            configuration: Configuration::new(LimiterSpec::Exponential { base_ns, max_ns }),
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
    type One: Kind + 'static;
    /// Keys of three levels.
    type Three: Kind<Naming<Key> = ()> + 'static;
    /// The queue.
    type Of<P: Kind + 'static>: Subject + 'static;
}

/// Makes a queue of the kind that the configuration describes.
pub fn kind_of<F: Family>(configuration: &Configuration) -> Box<dyn Subject> {
    let (groups, ages) = (
        configuration.groups.is_some(),
        configuration.age_limit.is_some(),
    );
    let make = match (groups, configuration.levels > 1, ages) {
        (false, false, _) => boxed::<F::Of<F::One>>,
        (false, true, false) => boxed::<F::Of<F::Three>>,
        (false, true, true) => boxed::<F::Of<Aging<F::Three>>>,
        (true, false, _) => boxed::<F::Of<Groups<u8, F::One, 4>>>,
        (true, true, false) => boxed::<F::Of<Groups<u8, F::Three, 4>>>,
        (true, true, true) => boxed::<F::Of<Groups<u8, Aging<F::Three>, 4>>>,
    };
    make(configuration)
}

/// The state machine on storage that grows.
struct Growing<M>(PhantomData<M>);

impl<M: Note + 'static> Family for Growing<M> {
    type One = Plain;
    type Three = Levels<3>;
    type Of<P: Kind + 'static> = Direct<P, Growable, M>;
}

/// The state machine on storage of a fixed size.
struct OfSize<const N: usize, M>(PhantomData<M>);

impl<const N: usize, M: Note + 'static> Family for OfSize<N, M> {
    type One = WithSlack<WithSuspension>;
    type Three = WithSlack<WithSuspension<Levels<3>>>;
    type Of<P: Kind + 'static> = Direct<P, Fixed<N>, M>;
}

/// Makes the state machine that a configuration describes.
pub fn core<M: Note + 'static>(configuration: &Configuration) -> Box<dyn Subject> {
    match configuration.storage {
        None => kind_of::<Growing<M>>(configuration),
        Some(..=3) => kind_of::<OfSize<3, M>>(configuration),
        Some(_) => kind_of::<OfSize<64, M>>(configuration),
    }
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
