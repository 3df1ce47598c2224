//! Objects, as they come in: JSON that every receiver can read.

use serde_json::Value;
use serde_json::value::RawValue;

use super::response::Refused;

/// How deep arrays and objects may be nested. Common parsers stop at about 100 levels, and the
/// delivery adds one of its own.
const DEPTH_MAX: usize = 64;

/// Checks that `bytes` are JSON within the limits, and returns them as they are, except for the
/// white space around them.
///
/// Beyond the grammar this refuses what parsers disagree on: strings with half a surrogate pair,
/// numbers beyond the range of an `f64`, and deep nesting. O(n).
///
/// # Errors
///
/// An answer for the client, with the line and the column.
pub(super) fn parse(bytes: &[u8]) -> Result<String, Refused> {
    check_depth(bytes)?;
    let no_json = |error: serde_json::Error| {
        Refused::input(format!("no JSON that every receiver can read: {error}"))
    };
    // Only building the value decodes strings and numbers; the raw text skips them.
    let _: Value = serde_json::from_slice(bytes).map_err(no_json)?;
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
