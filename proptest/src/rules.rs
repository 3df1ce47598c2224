//! The rules of a queue: the list of them, and what the comments of their cases say.

use std::fmt;

use crate::operation::{Answer, Operation};
use crate::subject::Subject;

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
    /// What else its case needs.
    pub(crate) need: Option<Need>,
    /// The rule itself.
    pub text: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// What not every queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Need {
    Capacity,
    Growth,
    Limit,
    Levels,
    Groups,
    Aging,
    Policy,
    Slack,
    Panics,
    Lock,
}

/// How many priority levels there have to be for a case that is about them.
const LEVELS_MIN: u8 = 3;

impl Rule {
    /// Why its case cannot be tried on such a queue; `None` if it can.
    pub(crate) fn skipped(&self, subject: &mut dyn Subject) -> Option<String> {
        let capacity = subject.capacity();
        let lacks = |what: &str| Some(String::from(what));
        match self.need {
            Some(Need::Capacity) if capacity.is_none() => lacks("the queue has no capacity"),
            Some(Need::Growth) if capacity.is_some() && !subject.abilities().limits_keys => {
                lacks("the queue has a capacity, and no limit to its records")
            }
            Some(Need::Limit) if !subject.abilities().limits_keys => {
                lacks("how many keys fit into the queue cannot be changed")
            }
            Some(Need::Levels) if subject.abilities().levels < LEVELS_MIN => {
                lacks("the queue has too few priority levels")
            }
            Some(Need::Aging) if !subject.abilities().ages => {
                lacks("the keys of the queue do not age")
            }
            Some(Need::Policy) if !subject.abilities().governs => {
                lacks("the queue can have no policy")
            }
            Some(Need::Slack) if !subject.abilities().slackens => {
                lacks("the delays of the queue are exact")
            }
            Some(Need::Groups) if !subject.abilities().groups => lacks("the queue has no groups"),
            Some(Need::Panics) if subject.apply(&Operation::PanicAtWork) != Answer::Is(true) => {
                lacks("the binding does not override panic_at_work")
            }
            Some(Need::Lock) if subject.apply(&Operation::PanicUnderLock) != Answer::Is(true) => {
                lacks("the queue has no lock")
            }
            _ => too_crowded(capacity, self.keys),
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.group, self.text, self.source)
    }
}

/// Why a case cannot be tried for which there has to be so much room.
pub(crate) fn too_crowded(capacity: Option<usize>, keys: usize) -> Option<String> {
    let room = capacity.filter(|capacity| *capacity < keys)?;
    Some(format!(
        "there is room for {room} keys, which is too little"
    ))
}

/// All rules, in the order in which they are tried.
pub static RULES: &[Rule] = include!(concat!(env!("OUT_DIR"), "/rules.rs"));
