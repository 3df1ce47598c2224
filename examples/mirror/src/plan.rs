//! Comparing: what there is at a path on either side, and what follows.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use filetime::FileTime;

/// What there is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A directory that it should be in is missing, or is not a directory but, say, a symlink: who
    /// followed that one would write outside the tree.
    NoParent,
    Absent,
    Here(Shape),
}

/// What is compared of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory {
        mode: u32,
        mtime: FileTime,
    },
    /// Equal size and time stand for equal content, as they do for rsync and make. [`copy`] keeps
    /// them from being equal by accident.
    ///
    /// [`copy`]: crate::copy
    File {
        size: u64,
        mode: u32,
        mtime: FileTime,
    },
    Link {
        to: PathBuf,
        mtime: FileTime,
    },
    /// A device, a socket or a FIFO: not copied.
    Special,
}

impl Shape {
    pub(crate) fn of(path: &Path, metadata: &Metadata) -> io::Result<Self> {
        let kind = metadata.file_type();
        let mode = permissions(metadata);
        let mtime = FileTime::from_last_modification_time(metadata);
        Ok(if kind.is_dir() {
            Self::Directory { mode, mtime }
        } else if kind.is_file() {
            let size = metadata.len();
            Self::File { size, mode, mtime }
        } else if kind.is_symlink() {
            let to = fs::read_link(path)?;
            Self::Link { to, mtime }
        } else {
            Self::Special
        })
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }
}

/// The permission bits of a mode, set-user-ID, set-group-ID and sticky included.
pub(crate) fn permissions(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

/// What makes the target right.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan<'s> {
    /// It is.
    Nothing,
    /// The directory above has to be made right first. Making it brings back what is in it.
    Parent,
    /// The source has nothing there.
    Delete,
    /// Right but for mode or time.
    Retouch(&'s Shape),
    /// Make it like this. What is there now has to go `first` if it cannot be replaced in one step.
    Make { shape: &'s Shape, first: bool },
}

impl<'s> Plan<'s> {
    pub(crate) fn new(source: &'s Seen, target: &Seen) -> Self {
        let shape = match source {
            Seen::Here(Shape::Special) | Seen::Absent | Seen::NoParent => {
                return match target {
                    Seen::Here(_) => Self::Delete,
                    Seen::Absent | Seen::NoParent => Self::Nothing,
                };
            }
            Seen::Here(shape) => shape,
        };
        match target {
            Seen::NoParent => Self::Parent,
            Seen::Absent => Self::Make {
                shape,
                first: false,
            },
            Seen::Here(there) if shape == there => Self::Nothing,
            Seen::Here(there) if same_content(shape, there) => Self::Retouch(shape),
            Seen::Here(there) => Self::Make {
                shape,
                // A rename replaces anything but a directory by anything but a directory.
                first: shape.is_directory() || there.is_directory(),
            },
        }
    }
}

fn same_content(shape: &Shape, there: &Shape) -> bool {
    match (shape, there) {
        (Shape::Directory { .. }, Shape::Directory { .. }) => true,
        (Shape::Link { to: one, .. }, Shape::Link { to: other, .. }) => one == other,
        (
            Shape::File { size, mtime, .. },
            Shape::File {
                size: size_there,
                mtime: mtime_there,
                ..
            },
        ) => size == size_there && mtime == mtime_there,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(size: u64, mode: u32, mtime: i64) -> Seen {
        let mtime = FileTime::from_unix_time(mtime, 0);
        Seen::Here(Shape::File { size, mode, mtime })
    }

    fn directory(mode: u32, mtime: i64) -> Seen {
        let mtime = FileTime::from_unix_time(mtime, 0);
        Seen::Here(Shape::Directory { mode, mtime })
    }

    fn link(to: &str, mtime: i64) -> Seen {
        let mtime = FileTime::from_unix_time(mtime, 0);
        Seen::Here(Shape::Link {
            to: to.into(),
            mtime,
        })
    }

    fn plan(source: &Seen, target: &Seen) -> &'static str {
        match Plan::new(source, target) {
            Plan::Nothing => "nothing",
            Plan::Parent => "parent",
            Plan::Delete => "delete",
            Plan::Retouch(_) => "retouch",
            Plan::Make { first: false, .. } => "make",
            Plan::Make { first: true, .. } => "clear and make",
        }
    }

    #[test]
    fn equal_entries_need_nothing() {
        for seen in [file(5, 0o644, 7), directory(0o755, 7), link("x", 7)] {
            assert_eq!(plan(&seen, &seen.clone()), "nothing");
        }
        assert_eq!(plan(&Seen::Absent, &Seen::Absent), "nothing");
    }

    #[test]
    fn a_file_is_copied_if_size_or_time_differ() {
        let source = file(5, 0o644, 7);
        assert_eq!(plan(&source, &Seen::Absent), "make");
        assert_eq!(plan(&source, &file(6, 0o644, 7)), "make");
        assert_eq!(plan(&source, &file(5, 0o644, 8)), "make");
        assert_eq!(plan(&source, &file(5, 0o600, 7)), "retouch");
    }

    #[test]
    fn a_time_differs_by_a_nanosecond() {
        let at = |nanos| {
            Seen::Here(Shape::File {
                size: 1,
                mode: 0o644,
                mtime: FileTime::from_unix_time(7, nanos),
            })
        };
        assert_eq!(plan(&at(1), &at(2)), "make");
    }

    #[test]
    fn directories_and_links_are_retouched_or_replaced() {
        assert_eq!(plan(&directory(0o755, 7), &directory(0o555, 7)), "retouch");
        assert_eq!(plan(&directory(0o755, 7), &directory(0o755, 8)), "retouch");
        assert_eq!(plan(&link("x", 7), &link("x", 8)), "retouch");
        assert_eq!(plan(&link("x", 7), &link("y", 7)), "make");
    }

    #[test]
    fn only_directories_stand_in_the_way() {
        let (file, directory, link) = (file(5, 0o644, 7), directory(0o755, 7), link("x", 7));
        assert_eq!(plan(&file, &link), "make");
        assert_eq!(plan(&link, &file), "make");
        assert_eq!(plan(&file, &Seen::Here(Shape::Special)), "make");
        assert_eq!(plan(&file, &directory), "clear and make");
        assert_eq!(plan(&link, &directory), "clear and make");
        assert_eq!(plan(&directory, &file), "clear and make");
        assert_eq!(plan(&directory, &link), "clear and make");
    }

    #[test]
    fn what_has_no_source_goes() {
        for gone in [Seen::Absent, Seen::NoParent, Seen::Here(Shape::Special)] {
            assert_eq!(plan(&gone, &file(5, 0o644, 7)), "delete");
            assert_eq!(plan(&gone, &Seen::NoParent), "nothing");
        }
    }

    #[test]
    fn without_a_directory_above_nothing_is_made() {
        assert_eq!(plan(&file(5, 0o644, 7), &Seen::NoParent), "parent");
    }
}
