//! The rules of a queue, in one table. Documentation, tests and messages are made from it.

#[macro_use]
mod table;

use std::fmt;

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
    /// A rule of the table: a test looks up all that are asked for.
    pub(crate) fn named(group: &str, name: &str) -> &'static Self {
        let rule = RULES.iter().find(|it| it.group == group && it.name == name);
        debug_assert!(rule.is_some(), "no rule {group}::{name}");
        rule.unwrap_or(&RULES[0])
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.group, self.text, self.source)
    }
}

macro_rules! table {
    ({}
        $($kind:ident { $($group:ident {
            $($name:ident: $keys:literal, $rule:literal, $source:literal;)+
        })+ })+
    ) => {
        /// All rules, in the order in which they are tried.
        pub const RULES: &[Rule] = &[
            $($($(Rule {
                group: stringify!($group),
                name: stringify!($name),
                keys: $keys,
                text: $rule,
                source: $source,
            },)+)+)+
        ];
    };
}

for_each_case!([table] {});
