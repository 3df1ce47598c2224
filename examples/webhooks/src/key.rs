//! What the queue holds: a subscription, and the object that may be due to it.

use std::fmt;
use std::sync::Arc;

/// A subscription and an object. Its clones share their text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// As [`parse_key`] reads it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.subscription, self.object)
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

/// Parses a key as its `Display` writes it.
pub(crate) fn parse_key(text: &str) -> Option<Key> {
    let (subscription, object) = text.split_once('/')?;
    Some(Key::new(parse_id(subscription)?, parse_id(object)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_short_and_plain() {
        for id in ["a", "Node-7.local_2", "...", ".a", &"x".repeat(128)] {
            assert_eq!(parse_id(id).as_deref(), Some(id));
        }
        for text in [
            "",
            ".",
            "..",
            "a/b",
            "a b",
            "a%20b",
            "ä",
            "a\n",
            &"x".repeat(129),
        ] {
            assert_eq!(parse_id(text), None, "{text:?}");
        }
    }

    #[test]
    fn keys_are_read_as_they_are_shown() {
        let key = Key::new("s1", "node-7");
        assert_eq!(parse_key(&key.to_string()), Some(key));
        for text in ["s1", "s1/", "/o", "s1/o/p"] {
            assert_eq!(parse_key(text), None, "{text:?}");
        }
    }
}
