//! The stories of the suite: each is one rule, and what tries it as steps with their answers.
//!
//! A file of `stories/` has the stories of one theme. A story has its name, its rule, where that
//! comes from, and what it needs of a queue. Then follow its steps: the name of an operation with
//! its arguments, and after an arrow its answer, as in
//!
//! ```text
//! many_adds_make_one_run
//!   A key that is ready and is added again is handed out once.
//!   Source: client-go queue.go, Add: the dirty set
//!   add 1        -> Ready
//!   add 1        -> Coalesced
//!   run 1        -> Idle
//!   get          -> waits
//! ```
//!
//! The README explains the language. [`lines`] makes plain steps of the lines, and [`grammar`] reads
//! them.

mod grammar;
mod lines;

use std::fmt;
use std::sync::LazyLock;

use crate::operation::{Answer, Operation};
use crate::subject::Subject;

pub(crate) use grammar::{BACKOFF, Step, step};
pub(crate) use lines::Line;

/// A rule that a queue keeps.
///
/// # Examples
///
/// ```
/// use requeue_proptest::conformance::RULES;
///
/// let mut rules = RULES.iter();
/// let fifo = rules.find(|it| it.name == "keys_come_out_in_the_order_in_which_they_became_ready");
/// assert_eq!(
///     fifo.unwrap().to_string(),
///     "order: Keys are handed out in the order in which they became ready. \
///      (client-go queue.go, Add and Get)"
/// );
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// What it is about.
    pub group: &'static str,
    /// The name of its story.
    pub name: &'static str,
    /// How many keys its story needs room for.
    pub keys: usize,
    /// What its story needs, as it is written.
    needs: &'static str,
    /// The rule itself.
    pub text: &'static str,
    /// Where it comes from.
    pub source: &'static str,
    /// The steps of its story, as they are written.
    pub(crate) steps: &'static str,
    /// The line of the first of them.
    pub(crate) line: usize,
}

/// How many priority levels there have to be for a story that is about them.
const LEVELS_MIN: u8 = 3;

/// How many groups the keys of the stories belong to.
const GROUPS_MIN: usize = 3;

impl Rule {
    /// Reads a story that begins at this line of its file.
    pub(crate) fn read(
        group: &'static str,
        story: &'static str,
        line: usize,
    ) -> Result<Self, String> {
        let mut rest = story;
        let mut line = line;
        let mut next = |begin: &str| {
            let (first, others) = rest.split_once('\n')?;
            let first = first.strip_prefix(begin)?;
            (rest, line) = (others, line + 1);
            Some(first)
        };
        let name = next("").unwrap_or_default();
        let text = next("  ").filter(|text| text.ends_with('.'));
        let (Some(text), Some(source)) = (text, next("  Source: ")) else {
            return Err(format!("{name} says no rule, or no source"));
        };
        let needs = next("  Needs: ").unwrap_or_default();
        let keys = needs.split_once(" keys").map(|(keys, _)| keys.parse());
        let keys = keys.and_then(Result::ok).unwrap_or(1);
        let steps = rest;
        Ok(Self {
            group,
            name,
            keys,
            needs,
            text,
            source,
            steps,
            line,
        })
    }

    /// Why its story cannot be played on such a queue; `None` if it can.
    pub(crate) fn skipped(&self, subject: &mut dyn Subject) -> Option<String> {
        // First, because a need may leave the queue with a lock that is poisoned.
        let crowded = too_crowded(subject.capacity(), self.keys);
        let few_groups = match subject.abilities().groups {
            groups @ 1..GROUPS_MIN => Some(format!(
                "there is room for {groups} groups, which is too little"
            )),
            _ => None,
        };
        let needs = self.needs.split(", ");
        let mut needs = needs.filter(|need| !need.is_empty() && !need.ends_with(" keys"));
        let lacks = needs.find_map(|need| self.lacks(need, subject));
        lacks.map(String::from).or(crowded).or(few_groups)
    }

    /// What is said of a queue without that which a story needs; `None` if the queue has it.
    fn lacks(&self, need: &str, queue: &mut dyn Subject) -> Option<&'static str> {
        let can = queue.abilities();
        let grows = queue.capacity().is_none() || can.limits_keys;
        let mut does = |operation| queue.apply(&operation) == Answer::Is(true);
        let (lacks, has_it) = match need {
            "Growth" => (
                "the queue has a capacity, and no limit to its records",
                grows,
            ),
            "Limit" => (
                "how many keys fit into the queue cannot be changed",
                can.limits_keys,
            ),
            "Levels" => (
                "the queue has too few priority levels",
                can.levels >= LEVELS_MIN,
            ),
            "Groups" => ("the queue has no groups", can.groups > 0),
            "Aging" => ("the keys of the queue do not age", can.ages),
            "Policy" => ("the queue can have no policy", can.governs),
            "Slack" => ("the delays of the queue are exact", can.slackens),
            "Suspension" => ("the queue suspends no keys", can.suspends),
            "Polling" => ("its calls run by themselves", !can.runs_by_itself),
            "Panics" => (
                "the queue has no workers that panic",
                does(Operation::PanicAtWork),
            ),
            "Lock" => ("the queue has no lock", does(Operation::PanicUnderLock)),
            other => unreadable(self.group, self.line, &format!("nothing is called {other}")),
        };
        (!has_it).then_some(lacks)
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.group, self.text, self.source)
    }
}

/// Why a story cannot be played for which there has to be so much room.
pub(crate) fn too_crowded(capacity: Option<usize>, keys: usize) -> Option<String> {
    let room = capacity.filter(|capacity| *capacity < keys)?;
    Some(format!(
        "there is room for {room} keys, which is too little"
    ))
}

/// All rules, in the order in which they are tried.
pub static RULES: LazyLock<Vec<Rule>> = LazyLock::new(|| {
    let themes = [
        ("client_go", include_str!("stories/client_go.txt")),
        ("differences", include_str!("stories/differences.txt")),
        ("order", include_str!("stories/order.txt")),
        ("merges", include_str!("stories/merges.txt")),
        ("holds", include_str!("stories/holds.txt")),
        ("groups", include_str!("stories/groups.txt")),
        ("priorities", include_str!("stories/priorities.txt")),
        ("room", include_str!("stories/room.txt")),
        ("runs", include_str!("stories/runs.txt")),
        ("shutdown", include_str!("stories/shutdown.txt")),
        ("control", include_str!("stories/control.txt")),
        ("waits", include_str!("stories/waits.txt")),
        ("looks", include_str!("stories/looks.txt")),
        ("slack", include_str!("stories/slack.txt")),
    ];
    let themes = themes.into_iter();
    themes
        .flat_map(|(group, text)| theme(group, text))
        .collect()
});

/// The rules of a theme.
fn theme(group: &'static str, text: &'static str) -> Vec<Rule> {
    let mut rules = Vec::new();
    let mut line = 1;
    for story in text.split_inclusive("\n\n") {
        if !story.starts_with('#') {
            let rule = Rule::read(group, story.trim_ascii_end(), line);
            rules.push(rule.unwrap_or_else(|wrong| unreadable(group, line, &wrong)));
        }
        line += story.matches('\n').count();
    }
    rules
}

#[expect(clippy::panic, reason = "this is how a test fails")]
fn unreadable(group: &str, line: usize, wrong: &str) -> ! {
    panic!("proptest/src/stories/{group}.txt:{line}: {wrong}")
}
