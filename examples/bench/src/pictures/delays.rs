//! The figures of what the example `delays` prints.

use crate::figures::Figure;

/// What prints the delay after each of the first twenty failures.
pub const COMMAND: &str =
    "cargo run --example delays -- 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20";

/// Reads the table: a line of failures, and a line for each limiter.
pub fn figures(table: &str) -> Vec<Figure> {
    let mut lines = table.lines();
    let failures = lines.next().unwrap_or_default().split_whitespace();
    let failures: Vec<u64> = failures.filter_map(|word| word.parse().ok()).collect();
    let mut figures = Vec::new();
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        let Some(after_name) = words.len().checked_sub(failures.len()) else {
            continue;
        };
        let (name, delays) = words.split_at(after_name);
        for (failure, delay) in failures.iter().zip(delays) {
            figures.extend(nanos(delay).map(|value| Figure {
                table: String::from("Delays"),
                work: String::from("delay"),
                size: *failure,
                contender: name.join(" "),
                value,
                unit: String::from("ns"),
            }));
        }
    }
    figures
}

/// A duration as `Debug` writes it.
fn nanos(text: &str) -> Option<f64> {
    let (number, unit) = text.split_at(text.find(char::is_alphabetic)?);
    let factor = match unit {
        "ns" => 1.0,
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * factor).round())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read() {
        let found = figures("failure  1  10\nat most 20 s  0ns  2.56s\nNoLimit  5ms  1µs\n");
        let found: Vec<(&str, u64, f64)> = found
            .iter()
            .map(|figure| (figure.contender.as_str(), figure.size, figure.value))
            .collect();
        let expected = [
            ("at most 20 s", 1, 0.0),
            ("at most 20 s", 10, 2.56e9),
            ("NoLimit", 1, 5e6),
            ("NoLimit", 10, 1e3),
        ];
        assert_eq!(found, expected);
    }
}
