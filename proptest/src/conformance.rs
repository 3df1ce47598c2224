//! The conformance suite: every rule of a queue, stated once, as a test.
//!
//! [`conformance!`](crate::conformance!) makes a test of each, on whatever queue it is given.
//! [`RULES`] lists them.

mod generate;
mod timer;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{Write, stderr};
use std::time::Duration;

use crate::cases::{self, CASES, Case};
use crate::caught::guarded;
use crate::histories::{self, Crowd, Draw, HANGS_AFTER, PATIENCE};
use crate::subject::{Configuration, NewSubject, Subject, boxed};
use crate::watched::{begins, restarts, watched};

use crate::rules::too_crowded;

pub use crate::rules::{RULES, Rule};
pub use timer::timer_contract;

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
///     hold::<Direct<Plain, Growable>>("fifo", "a_key_that_was_worked_on_goes_to_the_end");
/// assert!(skipped.is_none());
/// ```
pub fn hold<S: Subject + 'static>(group: &str, name: &str) -> Option<NotTried> {
    hold_on(boxed::<S>, group, name)
}

#[expect(clippy::panic, reason = "this is how a test fails")]
fn hold_on(new: NewSubject, group: &str, name: &str) -> Option<NotTried> {
    let mut rules = RULES.iter().zip(CASES);
    let found = rules.find(|(rule, _)| rule.group == group && rule.name == name);
    let Some((rule, case)) = found else {
        panic!("there is no rule {group}::{name}");
    };
    let outcome = run(new, rule, case, PATIENCE);
    let not_tried = outcome.unwrap_or_else(|failure| panic!("{failure}"));
    if let Some(not_tried) = &not_tried {
        eprintln_skipped(&not_tried.to_string());
    }
    not_tried
}

/// Tries the case of a rule, unless it is skipped. Returns the whole message if it fails.
fn run(
    new: NewSubject,
    rule: &'static Rule,
    case: &Case,
    patience: Duration,
) -> Result<Option<NotTried>, String> {
    if let Some(skipped) = skipped(new, rule, case) {
        return Ok(Some(skipped));
    }
    cases::begin();
    guarded(|| case.run(new, patience)).map_err(|failure| {
        let (group, name, timeline) = (rule.group, rule.name, cases::timeline());
        format!("{group}::{name}\n{timeline}{failure}\nBroken: {rule}")
    })?;
    Ok(None)
}

/// Returns the rules whose cases fail on an `S`. A test of a drawn history that fails lists them.
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
    broken_on(boxed::<S>)
}

/// How long threads are waited for in a case whose rule is probably broken.
const PATIENCE_FOR_A_LIST: Duration = Duration::from_secs(2);

/// How many rules a report lists at most.
const LISTED_MAX: usize = 8;

fn broken_on(new: NewSubject) -> Vec<&'static Rule> {
    let rules = RULES.iter().zip(CASES);
    let broken = rules.filter(|(rule, case)| {
        restarts();
        begins(|| rule.to_string());
        run(new, rule, case, PATIENCE_FOR_A_LIST).is_err()
    });
    broken.map(|(rule, _)| rule).collect()
}

/// What a report says of the rules, a line for each that is broken.
fn list_of_broken(new: NewSubject) -> String {
    let tried = guarded(|| watched(HANGS_AFTER, move || broken_on(new)));
    match tried.as_deref() {
        Ok([]) => String::from("Every rule of the suite holds."),
        Ok(broken) => {
            let line = |rule: &&Rule| format!("\n  {}::{}: {}", rule.group, rule.name, rule.text);
            let mut lines: String = broken.iter().take(LISTED_MAX).map(line).collect();
            if broken.len() > LISTED_MAX {
                lines += &format!("\n  and {} more", broken.len() - LISTED_MAX);
            }
            format!("Rules that fail:{lines}")
        }
        Err(_) => String::from("The rules were not tried: one of them does not come to an end."),
    }
}

/// Why a rule does not apply to such a queue.
fn skipped(new: NewSubject, rule: &'static Rule, case: &Case) -> Option<NotTried> {
    let lacks = || rule.skipped(&mut *new(&Configuration::exponential()));
    let reason = case.skipped(new).or_else(lacks)?;
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
/// let of_capacity = not_tried.iter().find(|it| it.rule.group == "capacity").unwrap();
/// assert_eq!(of_capacity.reason, "the queue has no capacity");
/// ```
pub fn rules_not_tried<S: Subject + 'static>() -> Vec<NotTried> {
    skipped_on(boxed::<S>)
}

fn skipped_on(new: NewSubject) -> Vec<NotTried> {
    let rules = RULES.iter().zip(CASES);
    rules
        .filter_map(|(rule, case)| skipped(new, rule, case))
        .collect()
}

/// Writes what is skipped of an `S` to the standard error, a line for each reason, past the test
/// harness, which would keep it back.
#[doc(hidden)]
pub fn report_skipped<S: Subject + 'static>(module: &str) {
    let new: NewSubject = boxed::<S>;
    let mut reasons: BTreeMap<String, Vec<&'static Rule>> = BTreeMap::new();
    for NotTried { rule, reason } in skipped_on(new) {
        reasons.entry(reason).or_default().push(rule);
    }
    let of_rules = reasons.into_iter().map(|(why, rules)| (why, names(&rules)));
    let crowd = too_crowded(new(&Configuration::exponential()).capacity(), CROWD_MIN)
        .map(|why| (why, String::from(ON_MANY_KEYS)));
    for (why, names) in of_rules.chain(crowd) {
        // A report that cannot be written is no failure of the queue.
        let _ = writeln!(stderr(), "{module}, {why}: {names}");
    }
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
const ON_MANY_KEYS: &str = "drawn_operations::on_many_keys";

/// Drawn histories, of operations that never wait and of calls.
pub mod drawn {
    use super::{
        CROWD_MIN, Configuration, Crowd, Draw, NewSubject, Subject, boxed, eprintln_skipped,
        histories, list_of_broken, too_crowded,
    };

    /// Draws histories of operations over six keys: see [`histories`].
    pub fn operations_on_a_few_keys<S: Subject + 'static>(regressions: &'static str) {
        check(boxed::<S>, Draw::Operations(Crowd::Few), regressions);
    }

    /// Draws histories of operations over forty keys, if there is room for half of them: see
    /// [`histories`].
    pub fn operations_on_many_keys<S: Subject + 'static>(regressions: &'static str) {
        match too_crowded(S::new(&Configuration::exponential()).capacity(), CROWD_MIN) {
            None => check(boxed::<S>, Draw::Operations(Crowd::Many), regressions),
            Some(reason) => eprintln_skipped(&reason),
        }
    }

    /// Draws histories of calls that wait: see [`histories`].
    pub fn histories_of_calls<S: Subject + 'static>(regressions: &'static str) {
        check(boxed::<S>, Draw::Calls, regressions);
    }

    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn check(new: NewSubject, draw: Draw, regressions: &'static str) {
        if let Err(report) = histories::run_on(new, draw, regressions) {
            panic!("{report}\n\n{}", list_of_broken(new));
        }
    }
}

/// Says so in the output of the test, which `--nocapture` shows.
#[expect(clippy::print_stderr, reason = "this is how a test talks")]
fn eprintln_skipped(what: &str) {
    eprintln!("skipped: {what}");
}
