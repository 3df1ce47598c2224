//! Text for people: times in their words, and ids that cannot do harm where they are shown.

use std::fmt::{self, Display, Write};
use std::time::Duration;

/// How much of an id is kept.
pub(crate) const ID_MAX: usize = 16 * 1024;

/// What a value displays, cut after `max` bytes. Takes no more memory than that.
pub(crate) fn cut(value: &(impl Display + ?Sized), max: usize) -> String {
    let mut text = Cut {
        text: String::new(),
        max,
    };
    // An error says that it was cut.
    if write!(text, "{value}").is_err() {
        text.text.push('…');
    }
    text.text
}

pub(crate) fn id(key: &(impl Display + ?Sized)) -> String {
    cut(key, ID_MAX)
}

struct Cut {
    text: String,
    max: usize,
}

impl Write for Cut {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.max.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let fits = (0..=room).rev().find_map(|end| part.get(..end));
        self.text.push_str(fits.unwrap_or_default());
        Err(fmt::Error)
    }
}

/// Returns whether a value displays exactly this text. Allocates nothing.
pub(crate) fn displays(value: &impl Display, text: &str) -> bool {
    struct Rest<'t>(&'t str);

    impl Write for Rest<'_> {
        fn write_str(&mut self, part: &str) -> fmt::Result {
            self.0 = self.0.strip_prefix(part).ok_or(fmt::Error)?;
            Ok(())
        }
    }

    let mut rest = Rest(text);
    write!(rest, "{value}").is_ok() && rest.0.is_empty()
}

/// A text of strangers where people read it: short, and on one line. Control characters, and those
/// that turn the direction of writing, are shown as what they are.
///
/// # Examples
///
/// ```
/// use requeue_inspect::Shown;
///
/// assert_eq!(Shown("a\nb\u{202e}c").to_string(), "a\\nb\\u{202e}c");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Shown<'t>(
    /// The text.
    pub &'t str,
);

impl Shown<'_> {
    /// How many characters are shown: of a longer text these many of its begin and end.
    const HALF: usize = 60;
}

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let begin = self.0.chars().take(Self::HALF * 2 + 1);
        if begin.clone().count() <= Self::HALF * 2 {
            return begin.into_iter().try_for_each(|c| show(c, f));
        }
        begin.take(Self::HALF).try_for_each(|c| show(c, f))?;
        f.write_str(" … ")?;
        let end: Vec<char> = self.0.chars().rev().take(Self::HALF).collect();
        end.into_iter().rev().try_for_each(|c| show(c, f))
    }
}

fn show(c: char, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let turns = matches!(c,
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    if c.is_control() || turns {
        write!(f, "{}", c.escape_default())
    } else {
        f.write_char(c)
    }
}

/// A time as people say it.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
/// use requeue_inspect::Span;
///
/// assert_eq!(Span(Duration::from_micros(1_240)).to_string(), "1.2 ms");
/// assert_eq!(Span(Duration::from_secs(3_700)).to_string(), "1 h 1 min");
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Span(
    /// The time.
    pub Duration,
);

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.as_secs();
        match seconds {
            0 if self.0.as_micros() < 1_000 => write!(f, "{} µs", self.0.as_micros()),
            0 if self.0.as_millis() < 100 => write!(f, "{:.1} ms", self.0.as_secs_f64() * 1e3),
            0 => write!(f, "{} ms", self.0.as_millis()),
            1..60 => write!(f, "{:.1} s", self.0.as_secs_f64()),
            60..3_600 => write!(f, "{} min {} s", seconds / 60, seconds % 60),
            3_600..86_400 => write!(f, "{} h {} min", seconds / 3_600, seconds / 60 % 60),
            _ => write!(f, "{} d {} h", seconds / 86_400, seconds / 3_600 % 24),
        }
    }
}

/// Whole milliseconds, as the JSON has them.
pub(crate) fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A count with its noun.
pub(crate) fn count(n: usize, noun: &str) -> String {
    match n {
        1 => format!("1 {noun}"),
        _ => format!("{n} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_id_takes_bounded_memory_and_room() {
        let long = "ä".repeat(1_000_000);
        let id = id(&long);
        assert!(id.len() <= ID_MAX + '…'.len_utf8() && id.ends_with('…'));
        assert_eq!(Shown(&id).to_string().chars().count(), 123);
        let short = "x".repeat(120);
        assert_eq!(Shown(&short).to_string(), short);
    }

    #[test]
    fn an_id_is_compared_as_it_displays_itself() {
        assert!(displays(&format_args!("{}-{}", "node", 7), "node-7"));
        for other in ["node-", "node-71", "mode-7", ""] {
            assert!(
                !displays(&format_args!("{}-{}", "node", 7), other),
                "{other}"
            );
        }
    }

    #[test]
    fn nothing_that_is_shown_turns_or_breaks_the_line() {
        let shown = Shown("a\u{0}b\u{1b}[31m\u{202e}c\r\n").to_string();
        assert_eq!(shown, "a\\u{0}b\\u{1b}[31m\\u{202e}c\\r\\n");
    }

    #[test]
    fn times_are_said_as_people_say_them() {
        let millis = [
            (0, "0 µs"),
            (85, "85.0 ms"),
            (850, "850 ms"),
            (3_240, "3.2 s"),
        ];
        let more = [
            (250_000, "4 min 10 s"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 d 4 h"),
        ];
        for (ms, said) in millis.into_iter().chain(more) {
            assert_eq!(Span(Duration::from_millis(ms)).to_string(), said);
        }
    }
}
