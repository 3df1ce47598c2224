//! Where a queue and the model part, as a timeline.

use std::fmt;

use crate::rules::Rule;

/// Where a queue and the model part.
///
/// Its `Display` is a timeline: what was done and what came of it, step by step, what went wrong,
/// how things should stand, and which rule is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What was done, and what came of it.
    pub timeline: Vec<String>,
    /// What is wrong.
    pub wrong: String,
    /// How things should stand.
    pub model: String,
    /// The rule that is broken, if one in particular is.
    pub rule: Option<&'static Rule>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.timeline.iter().enumerate() {
            writeln!(f, "{:3}. {step}", index + 1)?;
        }
        writeln!(f, "{:3}. {}", self.timeline.len() + 1, self.wrong)?;
        write!(f, "How things should stand: {}", self.model)?;
        match self.rule {
            Some(rule) => write!(f, "\nBroken: {rule}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
