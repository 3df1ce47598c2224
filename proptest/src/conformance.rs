//! The conformance suite: every rule of a queue, stated once, as a test.
//!
//! [`conformance!`](crate::conformance!) makes a test of each, on whatever queue it is given. The
//! modules below hold the cases one by one, as functions, in groups; [`RULES`] lists them.

mod generate;
#[macro_use]
mod table;
mod told;

use std::cell::RefCell;
use std::fmt;

use crate::cases;
use crate::caught::guarded;
use crate::subject::{Setup, Subject, Waits};
use crate::suite::Crowd;
use crate::{histories, suite};
use told::Told;

/// A rule that a queue keeps.
///
/// # Examples
///
/// ```
/// use requeue_proptest::conformance::RULES;
///
/// let fifo = RULES.iter().find(|rule| rule.group == "fifo").unwrap();
/// assert_eq!(
///     fifo.to_string(),
///     "fifo: Keys are handed out in the order in which they became ready. \
///      (client-go queue.go, Add and Get)"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What it is about.
    pub group: &'static str,
    /// The name of its case.
    pub name: &'static str,
    /// How many keys its case needs room for.
    pub keys: usize,
    /// The rule itself.
    pub text: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

impl Rule {
    /// A rule that there is: a test looks up all that are asked for.
    pub(crate) fn named(group: &str, name: &str) -> &'static Self {
        let rule = RULES.iter().find(|it| it.group == group && it.name == name);
        debug_assert!(rule.is_some(), "no rule {group}::{name}");
        rule.unwrap_or(&RULES[0])
    }

    /// Whether its case can be tried on `S`; or why it cannot.
    fn applies_to<S: Subject>(&self) -> Result<(), String> {
        let capacity = S::new(&Setup::exponential()).capacity();
        match capacity {
            Some(capacity) if capacity < self.keys => Err(format!(
                "it needs room for {} keys, and there is room for {capacity}",
                self.keys
            )),
            _ => Ok(()),
        }
    }

    /// Runs the case, unless it does not apply, and names the rule if it fails.
    #[expect(clippy::panic, reason = "this is how a test fails")]
    fn hold<S: Subject>(&self, case: impl FnOnce()) {
        if let Err(reason) = self.applies_to::<S>() {
            return not_tried(&reason);
        }
        told::begin();
        if let Err(failure) = guarded(case) {
            let (story, group, name) = (told::story(), self.group, self.name);
            panic!("{group}::{name}\n{story}{failure}\nBroken: {self}");
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.group, self.text, self.source)
    }
}

/// Tells whoever runs the tests with `--nocapture` that a case, or a part of it, says nothing of
/// this queue.
#[expect(clippy::print_stderr, reason = "this is how a test talks")]
pub(crate) fn not_tried(reason: &str) {
    let thread = std::thread::current();
    eprintln!("not tried: {}: {reason}", thread.name().unwrap_or("a case"));
    REASONS.with_borrow_mut(|reasons| reasons.push(String::from(reason)));
}

thread_local! {
    /// Why cases were not tried on this thread.
    static REASONS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// A rule that is not about a queue, and so was not tried on it: see [`rules_not_tried`] and
/// [`rules_not_tried_of_calls`].
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
        write!(
            f,
            "{}::{}: {}",
            self.rule.group, self.rule.name, self.reason
        )
    }
}

impl Rule {
    /// Runs a case, and answers why it was not tried, if it was not.
    fn reason(&'static self, case: impl FnOnce()) -> Option<NotTried> {
        REASONS.take();
        case();
        let reason = REASONS.take().into_iter().next()?;
        Some(NotTried { rule: self, reason })
    }
}

macro_rules! publish {
    ({}
        steps { $($group:ident {
            $($name:ident: $keys:literal, $rule:literal, $source:literal;)+
        })+ }
        waits { $($call_group:ident {
            $($call_name:ident: $call_keys:literal, $call_rule:literal, $call_source:literal;)+
        })+ }
    ) => {
        /// All rules, in the order in which they are tried.
        pub const RULES: &[Rule] = &[
            $($(Rule {
                group: stringify!($group),
                name: stringify!($name),
                keys: $keys,
                text: $rule,
                source: $source,
            },)+)+
            $($(Rule {
                group: stringify!($call_group),
                name: stringify!($call_name),
                keys: $call_keys,
                text: $call_rule,
                source: $call_source,
            },)+)+
        ];

        /// Runs every case, those of calls that wait excepted, and answers which of them say
        /// nothing of an `S`, and why. A test of your own that states the list notices when a rule
        /// falls out.
        ///
        /// # Panics
        ///
        /// If a case fails.
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue_core::Growable;
        /// use requeue_proptest::conformance::rules_not_tried;
        /// use requeue_proptest::subject::Direct;
        ///
        /// let not_tried = rules_not_tried::<Direct<Growable>>();
        /// let of_capacity = not_tried.iter().find(|it| it.rule.group == "capacity").unwrap();
        /// assert_eq!(of_capacity.reason, "the queue has no capacity");
        /// ```
        pub fn rules_not_tried<S: Subject>() -> Vec<NotTried> {
            let reasons = [$($({
                let rule = Rule::named(stringify!($group), stringify!($name));
                rule.reason($group::$name::<S>)
            },)+)+];
            reasons.into_iter().flatten().collect()
        }

        /// As [`rules_not_tried`], of the cases of calls that wait.
        ///
        /// # Panics
        ///
        /// If a case fails.
        ///
        /// # Examples
        ///
        /// ```
        /// use requeue_proptest::conformance::rules_not_tried_of_calls;
        /// use requeue_proptest::subject::{OnWorkQueue, Threads};
        ///
        /// let not_tried = rules_not_tried_of_calls::<OnWorkQueue<Threads>>();
        /// assert!(not_tried.iter().any(|it| it.reason == "its calls cannot be cancelled"));
        /// ```
        pub fn rules_not_tried_of_calls<S: Waits>() -> Vec<NotTried> {
            let reasons = [$($({
                let rule = Rule::named(stringify!($call_group), stringify!($call_name));
                rule.reason($call_group::$call_name::<S>)
            },)+)+];
            reasons.into_iter().flatten().collect()
        }

        $(
            #[doc = concat!("Cases of the group `", stringify!($group), "`.")]
            pub mod $group {
                use super::{Rule, Subject, Told, cases};
                $(
                    #[doc = $rule]
                    #[doc = concat!("\n\nSource: ", $source, ".")]
                    pub fn $name<S: Subject>() {
                        Rule::named(stringify!($group), stringify!($name))
                            .hold::<S>(cases::$group::$name::<Told<S>>);
                    }
                )+
            }
        )+
        $(
            #[doc = concat!("Cases of the group `", stringify!($call_group), "`.")]
            pub mod $call_group {
                use super::{Rule, Waits, cases};
                $(
                    #[doc = $call_rule]
                    #[doc = concat!("\n\nSource: ", $call_source, ".")]
                    pub fn $call_name<S: Waits>() {
                        Rule::named(stringify!($call_group), stringify!($call_name))
                            .hold::<S>(|| cases::$call_group::$call_name().play::<S>());
                    }
                )+
            }
        )+
    };
}

for_each_case!([publish] {});

/// Drawn sequences of operations, and drawn histories of calls.
pub mod drawn {
    use super::{Crowd, Setup, Subject, Waits, histories, not_tried, suite};

    /// How much room there has to be for a crowd.
    const CROWD_MIN: usize = 20;

    /// Any sequence of operations over six keys: see [`suite`].
    pub fn operations_on_a_few_keys<S: Subject>(regressions: &'static str) {
        suite::run::<S>(Crowd::Few, regressions);
    }

    /// Any sequence of operations over forty keys, if there is room for half of them: see
    /// [`suite`].
    pub fn operations_on_many_keys<S: Subject>(regressions: &'static str) {
        let capacity = S::new(&Setup::exponential()).capacity();
        if capacity.is_none_or(|capacity| capacity >= CROWD_MIN) {
            suite::run::<S>(Crowd::Many, regressions);
        } else {
            not_tried(&format!("it needs room for {CROWD_MIN} keys"));
        }
    }

    /// Any history of calls that wait: see [`histories`].
    pub fn histories_of_calls<S: Waits + 'static>(regressions: &'static str) {
        histories::run::<S>(regressions);
    }
}
