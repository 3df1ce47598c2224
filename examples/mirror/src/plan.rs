//! Compares source and target at a path, and decides what to do.

use std::path::PathBuf;

use rustix::fs::Timespec;

/// The entry at a path, if there is one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    /// A parent is missing, or is not a directory. It may be a symlink that leads outside the tree.
    NoParent,
    Absent,
    Here(Shape),
}

/// The compared attributes of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Directory {
        rights: Rights,
        mtime: Timespec,
    },
    /// Equal size and time count as equal content, as in rsync and make. [`copy`] makes sure that
    /// they are not equal by accident.
    ///
    /// [`copy`]: crate::copy
    File {
        size: u64,
        rights: Rights,
        mtime: Timespec,
    },
    Link {
        to: PathBuf,
        mtime: Timespec,
    },
    /// A device, a socket or a FIFO: not copied.
    Special,
}

/// A mode, and the owner that it was set for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rights {
    pub(crate) mode: u32,
    pub(crate) owner: Owner,
}

/// User and group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    pub(crate) user: u32,
    pub(crate) group: u32,
}

impl Shape {
    pub(crate) fn is_directory(&self) -> bool {
        matches!(self, Self::Directory { .. })
    }

    /// The rights of a file or directory.
    pub(crate) fn rights(&self) -> Option<Rights> {
        match self {
            Self::Directory { rights, .. } | Self::File { rights, .. } => Some(*rights),
            Self::Link { .. } | Self::Special => None,
        }
    }
}

impl Rights {
    /// Returns the mode of a copy that belongs to `copy_owner`.
    ///
    /// Set-user-ID and set-group-ID are kept only if user and group are the same. Otherwise the
    /// copy would run with the rights of the user who made it. The sticky bit only removes rights,
    /// so it is kept.
    pub(crate) fn mode_for(self, copy_owner: Owner) -> u32 {
        const SET_ID: u32 = 0o6000;
        if self.owner == copy_owner {
            self.mode
        } else {
            self.mode & !SET_ID
        }
    }
}

/// How to correct the target.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Plan<'s> {
    /// It is.
    Nothing,
    /// The parent directory has to be corrected first. That adds the keys of its contents again.
    Parent,
    /// The source has nothing there.
    Delete,
    /// Only mode or time are wrong.
    Retouch(&'s Shape),
    /// Make it like this. `first` removes the present entry if one step cannot replace it.
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
            Seen::Here(there) if is_right(shape, there) => Self::Nothing,
            Seen::Here(there) if same_content(shape, there) => Self::Retouch(shape),
            Seen::Here(there) => Self::Make {
                shape,
                // A rename replaces anything but a directory by anything but a directory.
                first: shape.is_directory() || there.is_directory(),
            },
        }
    }
}

fn is_right(shape: &Shape, there: &Shape) -> bool {
    match (shape, there) {
        (
            Shape::Directory { rights, mtime },
            Shape::Directory {
                rights: rights_there,
                mtime: mtime_there,
            },
        ) => has_mode(*rights, *rights_there) && mtime == mtime_there,
        (
            Shape::File { rights, .. },
            Shape::File {
                rights: there_too, ..
            },
        ) => has_mode(*rights, *there_too) && same_content(shape, there),
        (Shape::Link { .. }, Shape::Link { .. }) => shape == there,
        _ => false,
    }
}

fn has_mode(rights: Rights, there: Rights) -> bool {
    rights.mode_for(there.owner) == there.mode
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

    const ALICE: Owner = Owner { user: 1, group: 1 };
    const BOB: Owner = Owner { user: 2, group: 2 };

    fn at(tv_sec: i64) -> Timespec {
        Timespec { tv_sec, tv_nsec: 0 }
    }

    fn rights(mode: u32) -> Rights {
        let owner = ALICE;
        Rights { mode, owner }
    }

    fn file(size: u64, mode: u32, mtime: i64) -> Seen {
        Seen::Here(Shape::File {
            size,
            rights: rights(mode),
            mtime: at(mtime),
        })
    }

    fn directory(mode: u32, mtime: i64) -> Seen {
        Seen::Here(Shape::Directory {
            rights: rights(mode),
            mtime: at(mtime),
        })
    }

    fn given_to(owner: Owner, seen: Seen) -> Seen {
        let Seen::Here(mut shape) = seen else {
            return seen;
        };
        if let Shape::Directory { rights, .. } | Shape::File { rights, .. } = &mut shape {
            rights.owner = owner;
        }
        Seen::Here(shape)
    }

    fn link(to: &str, mtime: i64) -> Seen {
        let mtime = at(mtime);
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
        let at = |tv_nsec| {
            Seen::Here(Shape::File {
                size: 1,
                rights: rights(0o644),
                mtime: Timespec { tv_sec: 7, tv_nsec },
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
    fn set_id_bits_are_for_the_same_owner_alone() {
        let group_only = Owner { user: 2, group: 1 };
        let user_only = Owner { user: 1, group: 2 };
        for mode in 0..=0o7777 {
            assert_eq!(rights(mode).mode_for(ALICE), mode);
            for other in [BOB, group_only, user_only] {
                assert_eq!(rights(mode).mode_for(other), mode & 0o1777);
            }
        }
    }

    #[test]
    fn a_copy_without_set_id_bits_is_right_if_another_owns_it() {
        let makers: [fn(u32) -> Seen; 2] = [|mode| file(5, mode, 7), |mode| directory(mode, 7)];
        for make in makers {
            let source = make(0o6755);
            assert_eq!(plan(&source, &make(0o6755)), "nothing");
            assert_eq!(plan(&source, &make(0o755)), "retouch");
            assert_eq!(plan(&source, &given_to(BOB, make(0o755))), "nothing");
            assert_eq!(plan(&source, &given_to(BOB, make(0o6755))), "retouch");
            assert_eq!(plan(&source, &given_to(BOB, make(0o700))), "retouch");
        }
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
