//! The keys of the queue.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use crate::text::Escaped;

/// A path to check, relative to both trees. The root is the empty path.
///
/// The queue stores a key once and hands out clones, so a key should be cheap to clone. This one
/// only counts references.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Key {
    /// The entry at this path: whether it exists, its type, content, mode and time. The children of
    /// a directory have their own keys, so an event costs a look at one path.
    Entry(Arc<Path>),
    /// The contents of the directory at this path: adds the keys of its children, at every depth.
    /// It changes nothing itself, so it may run beside the entry's own key.
    Tree(Arc<Path>),
}

impl Key {
    pub(crate) fn entry(path: &Path) -> Self {
        Self::Entry(path.into())
    }

    pub(crate) fn tree(path: &Path) -> Self {
        Self::Tree(path.into())
    }

    /// Both keys of the root, to check everything.
    pub(crate) fn everything() -> [Self; 2] {
        [Self::entry(Path::new("")), Self::tree(Path::new(""))]
    }

    /// The directory that changes when the entry at `path` comes or goes; none for the root.
    pub(crate) fn parent_of(path: &Path) -> Option<Self> {
        path.parent().map(Self::entry)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Entry(path) if path.as_os_str().is_empty() => f.write_str("."),
            Self::Entry(path) => Escaped(path).fmt(f),
            Self::Tree(path) if path.as_os_str().is_empty() => f.write_str("./*"),
            Self::Tree(path) => write!(f, "{}/*", Escaped(path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_its_path() {
        assert_eq!(Key::entry(Path::new("a/b")).to_string(), "a/b");
        assert_eq!(Key::tree(Path::new("a/b")).to_string(), "a/b/*");
        assert_eq!(Key::everything().map(|key| key.to_string()), [".", "./*"]);
    }

    #[test]
    fn the_root_has_no_parent() {
        let parent = |path| Key::parent_of(Path::new(path)).map(|key| key.to_string());
        assert_eq!(parent(""), None);
        assert_eq!(parent("a"), Some(".".into()));
        assert_eq!(parent("a/b"), Some("a".into()));
    }
}
