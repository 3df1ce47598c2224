//! Tables of extremes.

use std::fmt::Write;
use std::time::Duration;

use super::{Extremes, Watch};
use crate::harness::{Suite, median, three_digits};

/// One of those that do the same operations.
#[derive(Clone, Copy, Debug)]
pub struct Contender {
    name: &'static str,
    play: fn(usize, &mut Watch),
}

impl Contender {
    /// A contender that `play` has do its operations, on so many keys.
    pub const fn new(name: &'static str, play: fn(usize, &mut Watch)) -> Self {
        Self { name, play }
    }
}

/// Measures and prints one line for each kind of operation: `rounds` rounds of each contender in
/// turn. The table has the columns `columns`; a contender that is missing has a dash.
pub fn row(
    suite: &mut Suite,
    work: &str,
    columns: &[&str],
    (rounds, keys): (usize, usize),
    contenders: &[Contender],
) {
    if !suite.asks_for(work) {
        return;
    }
    let (rounds, keys) = if suite.is_quick() {
        (1, keys.min(100))
    } else {
        (rounds, keys)
    };
    let rounds: Vec<Vec<Round>> = (0..rounds)
        .map(|_| contenders.iter().map(|it| Round::of(it, keys)).collect())
        .collect();
    let Some(first) = rounds.first().and_then(|round| round.first()) else {
        return;
    };
    for (name, _) in &first.extremes {
        let mut line = format!("| {work}: {name} |");
        let ours = contenders
            .first()
            .and_then(|it| cell(it.name, name, &rounds));
        for column in columns {
            let theirs = cell(column, name, &rounds);
            line.push_str(&theirs.map_or_else(|| String::from(" – |"), |it| it.show(ours)));
            if let Some(cell) = theirs {
                let work = format!("{work}: {name}");
                suite.record(&work, keys as u64, column, cell.slowest, "ns");
            }
        }
        suite.print(columns, &line);
    }
}

/// Measures an empty section so many times, and returns what that says of every other figure.
pub fn noise(suite: &Suite, operations: usize) -> String {
    let (rounds, operations) = if suite.is_quick() {
        (1, 100)
    } else {
        (5, operations)
    };
    let empty = Contender::new("", |count, watch: &mut Watch| {
        for _ in 0..count {
            watch.operation("", || ());
        }
    });
    let rounds: Vec<_> = (0..rounds)
        .map(|_| vec![Round::of(&empty, operations)])
        .collect();
    let medians: Vec<f64> = rounds
        .iter()
        .flatten()
        .flat_map(|round| &round.extremes)
        .map(|(_, it)| nanos(it.median))
        .collect();
    let Some(cell) = cell("", "", &rounds) else {
        return String::new();
    };
    format!(
        "Noise floor: an empty section, measured {operations} times: median {}, 99.99 % {}, \
         slowest {} ({}–{}).",
        show(median(&medians)),
        show(cell.percentile.unwrap_or(cell.slowest)),
        show(cell.slowest),
        show(cell.range.0),
        show(cell.range.1),
    )
}

/// What one contender did in one round.
struct Round {
    contender: &'static str,
    extremes: Vec<(&'static str, Extremes)>,
}

impl Round {
    fn of(contender: &Contender, keys: usize) -> Self {
        let mut watch = Watch::default();
        (contender.play)(keys, &mut watch);
        let names = watch.names().iter();
        Self {
            contender: contender.name,
            extremes: names
                .filter_map(|name| Some((*name, watch.extremes(name)?)))
                .collect(),
        }
    }
}

/// The extremes of one operation of one contender over all rounds.
#[derive(Clone, Copy)]
struct Cell {
    is_first: bool,
    /// The median of the rounds, in nanoseconds. `None` of fewer than 10,000 operations.
    percentile: Option<f64>,
    slowest: f64,
    /// The slowest operation of the fastest and of the slowest round.
    range: (f64, f64),
}

fn cell(contender: &str, name: &str, rounds: &[Vec<Round>]) -> Option<Cell> {
    let is_meant = |round: &&Round| round.contender == contender;
    let of_all = rounds.iter().flatten().filter(is_meant);
    let extremes: Vec<Extremes> = of_all
        .flat_map(|round| &round.extremes)
        .filter(|(other, _)| *other == name)
        .map(|(_, extremes)| *extremes)
        .collect();
    let operations = extremes.first()?.operations;
    let slowest: Vec<f64> = extremes.iter().map(|it| nanos(it.slowest)).collect();
    let percentiles: Vec<f64> = extremes.iter().map(|it| nanos(it.percentile)).collect();
    let first = rounds.first()?.first()?;
    Some(Cell {
        is_first: first.contender == contender,
        percentile: (operations >= 10_000).then(|| median(&percentiles)),
        slowest: median(&slowest),
        range: slowest.iter().fold((f64::MAX, 0.0), |(least, most), it| {
            (least.min(*it), most.max(*it))
        }),
    })
}

impl Cell {
    /// ` 0.82 µs, 41.2 ms (40.9 ms–43.0 ms) **1.03×** |`.
    fn show(&self, ours: Option<Self>) -> String {
        let mut text = String::from(" ");
        // Writing to a string does not fail.
        if let Some(percentile) = self.percentile {
            let _ = write!(text, "{}, ", show(percentile));
        }
        let (least, most) = self.range;
        let _ = write!(
            text,
            "{} ({}–{})",
            show(self.slowest),
            show(least),
            show(most)
        );
        if let Some(ours) = ours.filter(|_| !self.is_first) {
            let _ = write!(text, " **{:.2}×**", self.slowest / ours.slowest);
        }
        text.push_str(" |");
        text
    }
}

fn show(nanos: f64) -> String {
    match nanos {
        ..1e3 => format!("{} ns", three_digits(nanos)),
        1e3..1e6 => format!("{} µs", three_digits(nanos / 1e3)),
        _ => format!("{} ms", three_digits(nanos / 1e6)),
    }
}

fn nanos(duration: Duration) -> f64 {
    duration.as_nanos() as f64
}
