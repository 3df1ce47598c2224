//! Contenders in one process, round about, so that the machine's moods hit all of them alike.

use crate::workloads::Round;

/// One of those that do the same work.
pub struct Contender<'a> {
    name: &'static str,
    /// The ratio to the first contender that is aimed at.
    aim: Option<f64>,
    round: Box<dyn FnMut() -> Round + 'a>,
}

impl<'a> Contender<'a> {
    /// A contender whose rounds are measured by `round`.
    pub fn new(name: &'static str, round: impl FnMut() -> Round + 'a) -> Self {
        Self {
            name,
            aim: None,
            round: Box::new(round),
        }
    }

    /// Sets how many times slower than the first contender this one is to be at least.
    #[must_use]
    pub const fn aim(mut self, ratio: f64) -> Self {
        self.aim = Some(ratio);
        self
    }
}

/// What came of a comparison: a row of a table.
#[derive(Debug)]
pub struct Row {
    /// What was done.
    pub work: String,
    /// The contenders, the first of which is ours.
    pub results: Vec<Figures>,
}

/// What came of a contender.
#[derive(Debug)]
pub struct Figures {
    /// Whose.
    pub name: &'static str,
    /// Median nanoseconds per operation.
    pub nanos: f64,
    /// The median divided by the first contender's.
    pub ratio: f64,
    /// The least and the largest ratio of two rounds that were run one after the other.
    pub ratios: (f64, f64),
    /// The ratio aimed at.
    pub aim: Option<f64>,
}

/// Runs `rounds` rounds of each contender in turn, after one that does not count.
pub fn compare(work: String, mut contenders: Vec<Contender<'_>>, rounds: usize) -> Row {
    let mut nanos: Vec<Vec<f64>> = vec![Vec::new(); contenders.len()];
    for round in 0..=rounds {
        for (contender, nanos) in contenders.iter_mut().zip(&mut nanos) {
            let Round { time, operations } = (contender.round)();
            if round > 0 {
                nanos.push(time.as_nanos() as f64 / operations as f64);
            }
        }
    }
    let ours = median(&nanos[0]);
    let figures = |(contender, theirs): (&Contender<'_>, &Vec<f64>)| {
        let pairwise = theirs.iter().zip(&nanos[0]).map(|(their, our)| their / our);
        Figures {
            name: contender.name,
            nanos: median(theirs),
            ratio: median(theirs) / ours,
            ratios: pairwise.fold((f64::MAX, 0.0), |(least, most), ratio| {
                (ratio.min(least), ratio.max(most))
            }),
            aim: contender.aim,
        }
    };
    let results = contenders.iter().zip(&nanos).map(figures).collect();
    Row { work, results }
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
