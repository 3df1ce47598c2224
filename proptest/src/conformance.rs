//! The conformance suite: every rule of a queue, stated once, as a test.
//!
//! [`conformance!`](crate::conformance!) tries them all, on whatever queue it is given. [`RULES`]
//! lists them.

mod timer;

use std::collections::BTreeMap;
use std::env;
use std::fmt;
use std::io::{Write, stderr};
use std::time::Duration;

use crate::caught::guarded;
use crate::histories::{self, Crowd, Draw, HANGS_AFTER, PATIENCE};
use crate::subject::{Configuration, NewSubject, Subject, boxed};
use crate::watched::{begins, restarts, watched};

use crate::stories::too_crowded;

pub use crate::stories::{RULES, Rule};
pub use timer::timer_contract;

/// Makes the whole suite, as tests, for one queue.
///
/// The queue is a type that is a [`Subject`](crate::subject::Subject). One that is core's
/// `Shared` with a lock, a clock and calls of its own is bound in a page: the crate's
/// documentation shows one, which is also its example `binding`.
///
/// - `suite::rules` tries every rule, lists those that fail, and shows how the shortest of them did.
///   In any case it writes a line for each reason why rules could not be tried. With
///   `REQUEUE_RULES=drain` it tries only rules that have this in their names.
/// - `suite::drawn_operations`, `suite::drawn_operations_on_many_keys` and `suite::drawn_calls`
///   draw histories, as many as proptest is configured to draw (`PROPTEST_CASES`). Those that have
///   failed are kept in `proptest-regressions/` beside the manifest.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Fixed;
/// use requeue_proptest::subject::Direct;
///
/// mod core_fixed {
///     use super::*;
///     requeue_proptest::conformance!(Direct<Plain, Fixed<8>>);
/// }
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! conformance {
    ($subject:ty) => {
        mod suite {
            #[allow(unused_imports, reason = "the subject may be named in full")]
            use super::*;
            use $crate::histories::{Crowd, Draw};

            const SUITE: &str = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/proptest-regressions/suite.txt"
            );
            const CALLS: &str = concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/proptest-regressions/histories.txt"
            );

            #[test]
            fn rules() {
                $crate::conformance::hold_all::<$subject>(module_path!());
            }

            #[test]
            fn drawn_operations() {
                $crate::conformance::drawn::<$subject>(Draw::Operations(Crowd::Few), SUITE);
            }

            #[test]
            fn drawn_operations_on_many_keys() {
                $crate::conformance::drawn::<$subject>(Draw::Operations(Crowd::Many), SUITE);
            }

            #[test]
            fn drawn_calls() {
                $crate::conformance::drawn::<$subject>(Draw::Calls, CALLS);
            }
        }
    };
}

/// A rule that was not tried on a queue: see [`rules_not_tried`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct NotTried {
    /// The rule.
    pub rule: &'static Rule,
    /// What the queue lacks.
    pub reason: String,
}

impl fmt::Display for NotTried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rule, reason } = self;
        write!(f, "{}::{}: {reason}", rule.group, rule.name)
    }
}

/// Tries the rule of this name on an `S`. Returns why it was skipped, if it was.
///
/// # Panics
///
/// If there is no such rule. If the rule does not hold, with what was done and the rule.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Growable;
/// use requeue_proptest::conformance::hold;
/// use requeue_proptest::subject::Direct;
///
/// let skipped =
///     hold::<Direct<Plain, Growable>>("order", "a_key_that_was_worked_on_goes_to_the_end");
/// assert!(skipped.is_none());
/// ```
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn hold<S: Subject + 'static>(group: &str, name: &str) -> Option<NotTried> {
    let mut rules = RULES.iter();
    let Some(rule) = rules.find(|rule| rule.group == group && rule.name == name) else {
        panic!("there is no rule {group}::{name}");
    };
    run(boxed::<S>, rule, PATIENCE).unwrap_or_else(|failure| panic!("{failure}"))
}

/// Plays the story of a rule, unless it is skipped. Returns the whole message if it fails.
fn run(
    new: NewSubject,
    rule: &'static Rule,
    patience: Duration,
) -> Result<Option<NotTried>, String> {
    if let Some(skipped) = skipped(new, rule) {
        return Ok(Some(skipped));
    }
    histories::play(rule, new, patience).map_err(|failure| {
        let (group, name) = (rule.group, rule.name);
        format!("{group}::{name}\n{failure}\nBroken: {rule}")
    })?;
    Ok(None)
}

/// What became of the rules on a queue.
#[derive(Default)]
struct Tried {
    not: Vec<NotTried>,
    /// And how the story of each has failed.
    broken: Vec<(&'static Rule, String)>,
}

/// How long threads are waited for in a story whose rule is probably broken.
const PATIENCE_FOR_A_LIST: Duration = Duration::from_secs(2);

/// How many rules a report lists at most.
const LISTED_MAX: usize = 8;

fn try_all(new: NewSubject, mut patience: Duration) -> Tried {
    let only = env::var("REQUEUE_RULES").unwrap_or_default();
    let mut tried = Tried::default();
    let is_chosen = |rule: &&Rule| format!("{}::{}", rule.group, rule.name).contains(&only);
    let chosen: Vec<&Rule> = RULES.iter().filter(is_chosen).collect();
    assert!(!chosen.is_empty(), "no rule has {only:?} in its name");
    for rule in chosen {
        restarts();
        begins(|| rule.to_string());
        match run(new, rule, patience) {
            Ok(not) => tried.not.extend(not),
            Err(failure) => {
                tried.broken.push((rule, failure));
                patience = PATIENCE_FOR_A_LIST;
            }
        }
    }
    tried
}

/// Tries every rule on an `S`, and writes to the standard error which could not be tried, a line
/// for each reason, past the test harness, which would keep it back.
///
/// # Panics
///
/// If a rule does not hold: with what was done for the shortest, and a list.
#[doc(hidden)]
#[expect(clippy::panic, reason = "this is how a test fails")]
pub fn hold_all<S: Subject + 'static>(module: &str) {
    let new: NewSubject = boxed::<S>;
    let Tried { not, broken } = watched(HANGS_AFTER, move || try_all(new, PATIENCE));
    let mut reasons: BTreeMap<String, Vec<&'static Rule>> = BTreeMap::new();
    for NotTried { rule, reason } in not {
        reasons.entry(reason).or_default().push(rule);
    }
    let of_rules = reasons.into_iter().map(|(why, rules)| (why, names(&rules)));
    let crowd = too_crowded(new(&Configuration::exponential()).capacity(), CROWD_MIN)
        .map(|why| (why, String::from("drawn_operations_on_many_keys")));
    for (why, names) in of_rules.chain(crowd) {
        // A report that cannot be written is no failure of the queue.
        let _ = writeln!(stderr(), "{module}, {why}: {names}");
    }
    let shortest = broken.iter().min_by_key(|(rule, _)| rule.steps.len());
    if let Some((_, failure)) = shortest {
        panic!("{failure}\n\n{}", list(&broken));
    }
}

/// Returns the rules whose stories fail on an `S`. A test of a drawn history that fails lists them.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Growable;
/// use requeue_proptest::conformance::rules_broken;
/// use requeue_proptest::subject::Direct;
///
/// assert!(rules_broken::<Direct<Plain, Growable>>().is_empty());
/// ```
pub fn rules_broken<S: Subject + 'static>() -> Vec<&'static Rule> {
    let broken = try_all(boxed::<S>, PATIENCE_FOR_A_LIST).broken;
    broken.into_iter().map(|(rule, _)| rule).collect()
}

/// What a report says of the rules, a line for each that is broken.
fn list_of_broken(new: NewSubject) -> String {
    let try_all = move || try_all(new, PATIENCE_FOR_A_LIST);
    match guarded(|| watched(HANGS_AFTER, try_all)) {
        Ok(tried) => list(&tried.broken),
        Err(_) => String::from("The rules were not tried: one of them does not come to an end."),
    }
}

fn list(broken: &[(&Rule, String)]) -> String {
    if broken.is_empty() {
        return String::from("No rule of the suite fails: only such histories show the fault.");
    }
    let line = |(rule, _): &(&Rule, String)| {
        let (group, name, text) = (rule.group, rule.name, rule.text);
        format!("\n  {group}::{name}: {text}")
    };
    let mut lines: String = broken.iter().take(LISTED_MAX).map(line).collect();
    if broken.len() > LISTED_MAX {
        lines += &format!("\n  and {} more", broken.len() - LISTED_MAX);
    }
    format!("Rules that fail:{lines}")
}

/// Why a rule does not apply to such a queue.
fn skipped(new: NewSubject, rule: &'static Rule) -> Option<NotTried> {
    let reason = histories::skipped(rule, new)?;
    Some(NotTried { rule, reason })
}

/// Returns the rules that do not apply to an `S`, and why. A test of your own that states the
/// list notices when a rule falls out.
///
/// # Examples
///
/// ```
/// use requeue_core::priority::Plain;
/// use requeue_core::storage::Growable;
/// use requeue_proptest::conformance::rules_not_tried;
/// use requeue_proptest::subject::Direct;
///
/// let not_tried = rules_not_tried::<Direct<Plain, Growable>>();
/// let of_levels = not_tried.iter().find(|it| it.rule.group == "priorities").unwrap();
/// assert_eq!(of_levels.reason, "the queue has too few priority levels");
/// ```
pub fn rules_not_tried<S: Subject + 'static>() -> Vec<NotTried> {
    let rules = RULES.iter();
    rules.filter_map(|rule| skipped(boxed::<S>, rule)).collect()
}

/// The names of rules, and of a whole group that of the group.
fn names(rules: &[&'static Rule]) -> String {
    let mut names: Vec<String> = Vec::new();
    for &Rule { group, name, .. } in rules.iter().copied() {
        let all = RULES.iter().filter(|rule| rule.group == group).count();
        let these = rules.iter().filter(|rule| rule.group == group).count();
        let name = if these < all { name } else { "*" };
        let name = format!("{group}::{name}");
        if names.last() != Some(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// How much room there has to be for a crowd.
const CROWD_MIN: usize = 20;

/// Draws [`histories`], if the queue has calls that wait, or room for half of a crowd. Otherwise says
/// so in the output of the test, which `--nocapture` shows.
///
/// # Panics
///
/// If one fails: with the shortest that is found, and the rules that fail.
#[expect(
    clippy::panic,
    clippy::print_stderr,
    reason = "this is how a test fails, and talks"
)]
pub fn drawn<S: Subject + 'static>(draw: Draw, regressions: &'static str) {
    let new: NewSubject = boxed::<S>;
    let skipped = match draw {
        Draw::Operations(Crowd::Few) => None,
        Draw::Operations(Crowd::Many) => {
            too_crowded(new(&Configuration::exponential()).capacity(), CROWD_MIN)
        }
        Draw::Calls => histories::without_calls(new),
    };
    if let Some(reason) = skipped {
        eprintln!("skipped: {reason}");
    } else if let Err(report) = histories::run(new, draw, regressions) {
        panic!("{report}\n\n{}", list_of_broken(new));
    }
}
