//! The attributes of an entry.

use rustix::fs::{FileType, Mode, Timespec};

use crate::plan::{Owner, Rights};

/// The attributes that are compared or copied. If two of them are equal, nothing has changed the
/// file in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    pub(crate) kind: FileType,
    /// The permission bits, set-user-ID, set-group-ID and sticky included.
    pub(crate) mode: u32,
    pub(crate) owner: Owner,
    pub(crate) size: u64,
    /// How many names it has.
    pub(crate) links: u64,
    pub(crate) mtime: Timespec,
    pub(crate) id: Id,
    /// Every change of the above sets it, and no program can set it back.
    ctime: Timespec,
}

/// A file system, and an entry in it.
pub(crate) type Id = (u64, u64);

impl Stat {
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    pub(crate) fn is_file(&self) -> bool {
        self.kind == FileType::RegularFile
    }

    pub(crate) fn is_link(&self) -> bool {
        self.kind == FileType::Symlink
    }

    pub(crate) fn rights(&self) -> Rights {
        let (mode, owner) = (self.mode, self.owner);
        Rights { mode, owner }
    }
}

impl From<rustix::fs::Stat> for Stat {
    // The fields have another type on each system; none is wider.
    fn from(stat: rustix::fs::Stat) -> Self {
        Self {
            kind: FileType::from_raw_mode(stat.st_mode),
            mode: Mode::from_raw_mode(stat.st_mode).bits() as _,
            owner: Owner {
                user: stat.st_uid,
                group: stat.st_gid,
            },
            size: stat.st_size as _,
            links: stat.st_nlink as _,
            mtime: Timespec {
                tv_sec: stat.st_mtime as _,
                tv_nsec: stat.st_mtime_nsec as _,
            },
            id: (stat.st_dev as _, stat.st_ino as _),
            ctime: Timespec {
                tv_sec: stat.st_ctime as _,
                tv_nsec: stat.st_ctime_nsec as _,
            },
        }
    }
}
