//! Objects, as they come in: JSON that every receiver can read.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::response::Refused;

/// How deep arrays and objects may be nested. Common parsers stop at about 100 levels, and the
/// delivery adds one of its own.
const DEPTH_MAX: usize = 64;

/// Checks that `bytes` are JSON within the limits, and returns them as they are, except for the
/// white space around them.
///
/// Beyond the grammar this refuses what parsers disagree on: strings with half a surrogate pair,
/// numbers beyond the range of an `f64`, objects with the same name twice, and deep nesting. O(n).
///
/// # Errors
///
/// An answer for the client, with the line and the column.
pub(super) fn parse(bytes: &[u8]) -> Result<String, Refused> {
    check_depth(bytes)?;
    let no_json = |error: serde_json::Error| {
        Refused::input(format!("no JSON that every receiver can read: {error}"))
    };
    // The raw text skips strings and numbers without decoding them.
    let Unambiguous = serde_json::from_slice(bytes).map_err(no_json)?;
    let data: Box<RawValue> = serde_json::from_slice(bytes).map_err(no_json)?;
    Ok(String::from(Box::<str>::from(data)))
}

/// Counts the brackets that are not in strings. Runs before the parser, whose own limit is greater.
fn check_depth(bytes: &[u8]) -> Result<(), Refused> {
    let (mut depth, mut line, mut column) = (0_usize, 1_usize, 0_usize);
    let (mut in_string, mut is_escaped) = (false, false);
    for byte in bytes {
        column += 1;
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' if in_string => is_escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => depth += 1,
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            b'\n' => (line, column) = (line + 1, 0),
            _ => {}
        }
        if depth > DEPTH_MAX {
            let why = format!("nested deeper than {DEPTH_MAX} at line {line} column {column}");
            return Err(Refused::input(why));
        }
    }
    Ok(())
}

/// JSON of which every string and every number was decoded, and no object has a name twice: some
/// parsers keep the first value of a name, and some the last.
struct Unambiguous;

impl<'de> Deserialize<'de> for Unambiguous {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self, A::Error> {
        while let Some(Self) = list.next_element()? {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Self, A::Error> {
        let mut names = HashSet::new();
        while let Some(name) = object.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("the same name twice in one object"));
            }
            let Self = object.next_value()?;
        }
        Ok(self)
    }
}
