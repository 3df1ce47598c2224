//! Where a queue and the model part, told as a story.

use std::fmt;

use crate::conformance::Rule;

/// Where a queue and the model part.
///
/// Printed it is a story: what was done and what came of it, step by step, what went wrong in the
/// end, how things should stand, and which rule is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What was done, and what came of it.
    pub story: Vec<String>,
    /// What is wrong.
    pub wrong: String,
    /// How things should stand.
    pub model: String,
    /// The rule that is broken, if one in particular is.
    pub rule: Option<&'static Rule>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, step) in self.story.iter().enumerate() {
            writeln!(f, "{:3}. {step}", index + 1)?;
        }
        writeln!(f, "{:3}. {}", self.story.len() + 1, self.wrong)?;
        write!(f, "How things should stand: {}", self.model)?;
        match self.rule {
            Some(rule) => write!(f, "\nBroken: {rule}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Failure {}
