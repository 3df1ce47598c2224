//! The slowest of many operations, each measured alone.

mod contenders;
mod scenarios;
mod table;

use std::time::Duration;

use cpu_time::ThreadTime;

pub use contenders::{Gauged, Gauges, Shared, Started};
pub use scenarios::{
    Ends, Reports, delays, end, fill, produce, produce_and_work, report_running, shut_down_due,
    take_delayed, work,
};
pub use table::{Contender, noise, row};

/// Does operations one by one, and measures each.
#[derive(Debug, Default)]
pub struct Watch {
    /// Names of operations.
    names: Vec<&'static str>,
    /// The operations in their order: which, and how long it took.
    samples: Vec<(u8, Duration)>,
    /// The process ends before the operation with this number.
    stop_at: Option<usize>,
    begun: usize,
}

impl Watch {
    /// Ends the process before the operation with this number, counted from zero, and measures
    /// nothing. What the operation costs is then the difference between two processes.
    pub fn stopping_at(number: usize) -> Self {
        Self {
            stop_at: Some(number),
            ..Self::default()
        }
    }

    /// Does an operation.
    #[inline]
    pub fn operation<T>(&mut self, name: &'static str, work: impl FnOnce() -> T) -> T {
        if let Some(number) = self.stop_at {
            if self.begun == number {
                std::process::exit(0);
            }
            self.begun += 1;
            return work();
        }
        let start = ThreadTime::now();
        let value = work();
        let took = start.elapsed();
        let known = self.names.iter().position(|other| *other == name);
        let index = known.unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        });
        self.samples.push((index as u8, took));
        value
    }

    /// The names of the operations, in the order in which they first came.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    /// How long the operations of this name took; without one, all of them.
    fn times(&self, name: Option<&str>) -> Vec<Duration> {
        let is_meant = |(index, _): &&(u8, Duration)| {
            name.is_none_or(|name| self.names[usize::from(*index)] == name)
        };
        let times = self.samples.iter().filter(is_meant);
        times.map(|(_, took)| *took).collect()
    }

    /// Returns the extremes of the operations of this name. `None` if there was none.
    fn extremes(&self, name: &str) -> Option<Extremes> {
        let mut times = self.times(Some(name));
        times.sort_unstable();
        let slowest = *times.last()?;
        Some(Extremes {
            operations: times.len(),
            median: times[times.len() / 2],
            percentile: times[(times.len() - 1) * 9_999 / 10_000],
            slowest,
        })
    }
}

/// Returns the number of the slowest operation of each name. The rounds do the same operations; an
/// operation counts with its fastest round, because an interruption hits one round only.
pub fn slowest(rounds: &[Watch]) -> Vec<(&'static str, usize)> {
    let Some(first) = rounds.first() else {
        return Vec::new();
    };
    let least = |number: usize| {
        let of_round = |round: &Watch| round.samples.get(number).map(|(_, took)| *took);
        rounds.iter().filter_map(of_round).min()
    };
    let slowest_of = |name: usize| {
        let numbers =
            (0..first.samples.len()).filter(|number| usize::from(first.samples[*number].0) == name);
        numbers.max_by_key(|number| least(*number))
    };
    let names = first.names.iter().enumerate();
    names
        .filter_map(|(index, name)| Some((*name, slowest_of(index)?)))
        .collect()
}

/// How long the slow ones of many operations took.
#[derive(Clone, Copy, Debug)]
struct Extremes {
    operations: usize,
    median: Duration,
    /// 99.99 % were no slower.
    percentile: Duration,
    slowest: Duration,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watch(nanos: &[u64]) -> Watch {
        Watch {
            names: vec!["add", "get"],
            samples: nanos
                .iter()
                .enumerate()
                .map(|(number, nanos)| ((number % 2) as u8, Duration::from_nanos(*nanos)))
                .collect(),
            ..Watch::default()
        }
    }

    #[test]
    fn an_interruption_of_one_round_is_not_the_slowest_operation() {
        let rounds = [
            watch(&[5, 90, 900, 7, 50, 8]),
            watch(&[800, 80, 6, 7, 55, 9]),
        ];
        assert_eq!(slowest(&rounds), [("add", 4), ("get", 1)]);
    }

    #[test]
    fn extremes_are_those_of_one_name() {
        let extremes = watch(&[5, 90, 900, 7, 50, 8]).extremes("get").unwrap();
        assert_eq!(extremes.operations, 3);
        assert_eq!(extremes.slowest, Duration::from_nanos(90));
        assert_eq!(extremes.median, Duration::from_nanos(8));
        assert!(watch(&[1, 2]).extremes("done").is_none());
    }
}
