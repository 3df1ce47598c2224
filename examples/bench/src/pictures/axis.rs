//! Where values stand on an axis, and how they are written.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

use crate::harness::three_digits;

/// How values become distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scale {
    /// From the least to the largest.
    Linear,
    /// From nothing to the largest.
    FromZero,
    /// From one power of ten to another. There is no place for zero.
    Logarithmic,
}

impl Scale {
    /// Returns whether a value has a place.
    pub(super) fn holds(self, value: f64) -> bool {
        self != Self::Logarithmic || value > 0.0
    }

    fn place(self, value: f64) -> f64 {
        match self {
            Self::Linear | Self::FromZero => value,
            Self::Logarithmic => value.log10(),
        }
    }
}

/// An axis, and the values on it that are labelled.
pub(super) struct Axis {
    scale: Scale,
    range: Range<f64>,
    labelled: Vec<f64>,
}

impl Axis {
    /// The axis for values.
    pub(super) fn new(scale: Scale, values: impl Iterator<Item = f64>) -> Self {
        let (least, most) = values.fold((f64::MAX, f64::MIN), |(least, most), value| {
            (least.min(value), most.max(value))
        });
        let (range, labelled) = match scale {
            Scale::Linear => even(least..most),
            Scale::FromZero => even(0.0..most * 1.08),
            Scale::Logarithmic => {
                // What is hardly beyond a power of ten needs no further one.
                let first = (least.log10() + 0.05).floor();
                let last = (most.log10() - 0.05).ceil();
                let powers = (first as i32..=last as i32).map(|power| 10_f64.powi(power));
                let range = least.min(10_f64.powf(first))..most.max(10_f64.powf(last));
                (range, powers.collect())
            }
        };
        Self {
            scale,
            range,
            labelled,
        }
    }
}

fn even(range: Range<f64>) -> (Range<f64>, Vec<f64>) {
    let points = RangedCoordf64::from(range.clone()).key_points(6);
    (range, points)
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (begin, end): (i32, i32)) -> i32 {
        let [place, least, most] =
            [*value, self.range.start, self.range.end].map(|value| self.scale.place(value));
        begin + ((place - least) / (most - least) * f64::from(end - begin)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.labelled.clone()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// Writes a value with its unit, in three digits if it is not counted.
pub(super) fn show(value: f64, unit: &str) -> String {
    if unit != "ns" {
        return grouped(value.round() as u64);
    }
    let (value, unit) = match value {
        ..1e3 => (value, "ns"),
        1e3..1e6 => (value / 1e3, "µs"),
        1e6..1e9 => (value / 1e6, "ms"),
        _ => (value / 1e9, "s"),
    };
    let digits = three_digits(value);
    let digits = if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        &digits
    };
    format!("{digits} {unit}")
}

/// `12,345`.
fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_written_as_a_person_writes_them() {
        assert_eq!(show(1_234_567.0, "keys"), "1,234,567");
        assert_eq!(show(100.0, "bytes"), "100");
        assert_eq!(show(18.74, "ns"), "18.7 ns");
        assert_eq!(show(5e6, "ns"), "5 ms");
        assert_eq!(show(1e12, "ns"), "1000 s");
    }

    #[test]
    fn powers_of_ten_are_labelled() {
        let axis = Axis::new(Scale::Logarithmic, [700.0, 1_000_999.0].into_iter());
        assert_eq!(axis.key_points(10), [1e2, 1e3, 1e4, 1e5, 1e6]);
        assert_eq!(axis.map(&1e3, (0, 800)), 200);
    }
}
