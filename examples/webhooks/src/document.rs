//! Objects, as they come in: JSON that every receiver can read.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

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
/// The reason, with the line and the column.
pub(crate) fn parse(bytes: &[u8]) -> serde_json::Result<String> {
    // The raw text skips strings and numbers without decoding them.
    let mut from = serde_json::Deserializer::from_slice(bytes);
    Unambiguous { depth: 0 }.deserialize(&mut from)?;
    from.end()?;
    let data: Box<RawValue> = serde_json::from_slice(bytes)?;
    Ok(String::from(Box::<str>::from(data)))
}

/// JSON of which every string and every number is decoded, and no object has a name twice: some
/// parsers keep the first value of a name, and some the last.
#[derive(Clone, Copy)]
struct Unambiguous {
    depth: usize,
}

impl Unambiguous {
    fn deeper<E: Error>(self) -> Result<Self, E> {
        let depth = self.depth + 1;
        match depth <= DEPTH_MAX {
            true => Ok(Self { depth }),
            false => Err(E::custom(format!("nested deeper than {DEPTH_MAX}"))),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Unambiguous {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Unambiguous {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        while list.next_element_seed(inner)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let (inner, mut names) = (self.deeper()?, HashSet::new());
        while let Some(name) = object.next_key::<String>()? {
            if !names.insert(name) {
                return Err(A::Error::custom("the same name twice in one object"));
            }
            object.next_value_seed(inner)?;
        }
        Ok(())
    }
}
