//! What the queue holds: a subscription, and the object that may be due to it.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::Deserialize;

/// A subscription and an object. Its clones share their text.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub(crate) struct Key {
    pub(crate) subscription: Arc<str>,
    pub(crate) object: Arc<str>,
}

impl Key {
    pub(crate) fn new(subscription: impl Into<Arc<str>>, object: impl Into<Arc<str>>) -> Self {
        Self {
            subscription: subscription.into(),
            object: object.into(),
        }
    }

    /// Returns the group that it belongs to: its subscription.
    pub(crate) fn group(&self) -> Arc<str> {
        Arc::clone(&self.subscription)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.subscription, self.object)
    }
}

/// Reads a key as its `Display` writes it.
impl FromStr for Key {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let key = text.split_once('/').and_then(|(subscription, object)| {
            Some(Self::new(parse_id(subscription)?, parse_id(object)?))
        });
        key.ok_or("a key is SUBSCRIPTION/OBJECT")
    }
}

impl TryFrom<String> for Key {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

const ID_LEN_MAX: usize = 128;

/// Parses an id: 1 to 128 letters, digits, dots, dashes and underscores, so that it needs no
/// encoding in a path or a log. `.` and `..` are none: clients take them out of a path.
pub(crate) fn parse_id(text: &str) -> Option<Arc<str>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_short = (1..=ID_LEN_MAX).contains(&text.len());
    let is_id = is_short && text.bytes().all(is_plain) && ![".", ".."].contains(&text);
    is_id.then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        for id in ["a", "Node-7.local_2", "...", ".a", &"x".repeat(128)] {
            assert_eq!(parse_id(id).as_deref(), Some(id));
        }
        let long = "x".repeat(129);
        for text in ["", ".", "..", "a/b", "a b", "a%20b", "ä", "a\n", &long] {
            assert_eq!(parse_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn keys_are_read_as_they_are_shown() {
        let key = Key::new("s1", "node-7");
        assert_eq!(key.to_string().parse(), Ok(key));
        for text in ["s1", "s1/", "/o", "s1/o/p"] {
            assert!(text.parse::<Key>().is_err(), "{text:?}");
        }
    }
}
