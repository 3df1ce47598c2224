//! Where a queue and the model part, as a timeline.

use std::fmt;

/// Where a queue and the model part.
///
/// Its `Display` is a timeline: what was done and what came of it, step by step, what went wrong,
/// and what the model expects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Failure {
    /// What was done, and what came of it.
    pub timeline: Vec<String>,
    /// What is wrong.
    pub wrong: String,
    /// The state that the model expects, with the time.
    pub model: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let last = [&self.wrong];
        for (number, step) in (1..).zip(self.timeline.iter().chain(last)) {
            writeln!(f, "{number:3}. {step}")?;
        }
        write!(f, "Expected state at {}", self.model)
    }
}

impl std::error::Error for Failure {}
