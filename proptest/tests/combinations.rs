//! Every pair of options meets in the histories that are drawn here, and in the soak every three.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::marker::PhantomData;

use requeue_core::metrics::Metrics;
use requeue_core::priority::{Groups, Levels, Plain, WithSlack, WithSuspension};
use requeue_core::storage::Growable;
use requeue_proptest::combinations::{
    Combination, Family, Without, core, covering, kind_of, tuples,
};
use requeue_proptest::histories::{Crowd, Draw, run_combined};
use requeue_proptest::subject::{
    Configuration, Embassy, Key, Kind, NewSubject, OnWorkQueue, Subject, Tasks,
};
use requeue_proptest::{Figures, rounds};

const REGRESSIONS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../proptest-regressions/combinations.txt"
);

/// How many histories are drawn of a combination.
const CASES: u32 = 100;

/// How many options meet: two, or three in the soak.
fn strength() -> usize {
    if rounds(1) > 1 { 3 } else { 2 }
}

fn cases() -> u32 {
    let cases = std::env::var("PROPTEST_CASES").ok();
    cases.and_then(|cases| cases.parse().ok()).unwrap_or(CASES)
}

/// Tries a part of the combinations.
#[expect(clippy::panic, reason = "this is how a test fails")]
fn tried(new: NewSubject, draw: Draw, combinations: &[Combination], [part, parts]: [usize; 2]) {
    for combination in combinations.iter().skip(part).step_by(parts) {
        if let Err(report) = run_combined(new, combination, (draw, cases()), REGRESSIONS) {
            panic!("{report}");
        }
    }
}

fn on_core(part: usize) {
    let combinations = covering(strength(), &[], 1);
    let draw = Draw::Operations(Crowd::Few);
    tried(core, draw, &combinations, [part, 4]);
}

#[test]
fn core_1() {
    on_core(0);
}

#[test]
fn core_2() {
    on_core(1);
}

#[test]
fn core_3() {
    on_core(2);
}

#[test]
fn core_4() {
    on_core(3);
}

const MILLISECOND: u64 = 1_000_000;

struct OnTokio;

impl Family for OnTokio {
    type One = Plain;
    type Three = Levels<3>;
    type Grouped<P: Kind<Naming<Key> = ()> + 'static> = Groups<u8, P>;
    type Even<P: Kind + 'static> = OnWorkQueue<Tasks<P, Growable>>;
    type Odd<P: Kind + 'static> = Self::Even<P>;
}

/// Its queue is one that grows; a call may look several times, and makes all due keys ready. Its
/// clock shows whole milliseconds, and the delay that stands for never is none.
const NOT_ON_TOKIO: Without = &[
    ("limiter", 4),
    ("storage", 1),
    ("storage", 2),
    ("due keys an operation", 1),
    ("due keys an operation", 2),
    ("slack", 1), // Its deadlines are in no whole units.
];

#[test]
fn calls_on_tokio() {
    let combinations = covering(strength(), NOT_ON_TOKIO, MILLISECOND);
    tried(kind_of::<OnTokio>, Draw::Calls, &combinations, [0, 1]);
}

struct OnEmbassy<const N: usize, const GROUPS: usize, Even, Odd>(PhantomData<(Even, Odd)>);

impl<const N: usize, const GROUPS: usize, Even, Odd> Family for OnEmbassy<N, GROUPS, Even, Odd>
where
    Even: Metrics + Default + 'static,
    Odd: Metrics + Default + 'static,
{
    type One = WithSlack<WithSuspension>;
    type Three = WithSlack<WithSuspension<Levels<3>>>;
    type Grouped<P: Kind<Naming<Key> = ()> + 'static> = Groups<u8, P, GROUPS>;
    type Even<P: Kind + 'static> = OnWorkQueue<Embassy<N, P, Even>>;
    type Odd<P: Kind + 'static> = OnWorkQueue<Embassy<N, P, Odd>>;
}

const NOT_ON_EMBASSY: Without = &[
    ("storage", 0),
    ("storage", 3),
    ("due keys an operation", 1),
    ("due keys an operation", 2),
    ("slack", 1), // Its deadlines are in no whole units.
];

fn embassy(configuration: &Configuration) -> Box<dyn Subject> {
    match configuration.storage {
        Some(3) => kind_of::<OnEmbassy<3, 2, Figures, ()>>(configuration),
        _ => kind_of::<OnEmbassy<64, 3, (), Figures>>(configuration),
    }
}

#[test]
fn calls_on_embassy() {
    let combinations = covering(strength(), NOT_ON_EMBASSY, 1);
    tried(embassy, Draw::Calls, &combinations, [0, 1]);
}

/// What `docs/verification.md` says.
const PAIRS: [(Without, usize, usize); 3] = [
    (&[], 1540, 52),
    (NOT_ON_TOKIO, 1237, 34),
    (NOT_ON_EMBASSY, 1279, 50),
];

#[test]
fn every_pair_of_options_meets_twice() {
    for (without, pairs, combinations) in PAIRS {
        let rows = covering(2, without, 1);
        let all = tuples(2, without);
        for pair in &all {
            let times = rows.iter().filter(|row| row.has(pair)).count();
            assert!(times >= 2, "{pair:?} in {times}");
        }
        assert_eq!((all.len(), rows.len()), (pairs, combinations));
    }
}

/// Also one that is added.
#[test]
fn every_field_differs() {
    let mut seen: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for Combination {
        configuration: it,
        uses,
        ..
    } in covering(2, &[], 1)
    {
        let cap = it.groups.unwrap_or_default();
        let structs: [&dyn Debug; 4] = [&it, &it.policy, &cap, &uses];
        for text in structs.map(|it| format!("{it:#?}")) {
            // Its own fields, and not what is in them.
            let fields = text.lines().filter_map(|line| line.strip_prefix("    "));
            let fields = fields.filter(|line| !line.starts_with(' '));
            for (name, value) in fields.filter_map(|field| field.split_once(": ")) {
                seen.entry(name.into()).or_default().insert(value.into());
            }
        }
    }
    assert!(seen.len() > 20, "{seen:?}");
    seen.retain(|_, values| values.len() < 2);
    // What the policy holds differs. Only a fuzzer's clock goes back.
    assert_eq!(seen.keys().collect::<Vec<_>>(), ["policy", "rewind"]);
}
