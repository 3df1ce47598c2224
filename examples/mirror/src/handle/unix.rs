//! An entry that is held open if possible. A symlink or an unreadable entry is known only by its
//! name in an open directory. If another entry takes that name, it is changed instead.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec};

use super::{mode_of, modified};
use crate::stat::Stat;

/// An open entry.
#[derive(Debug)]
pub(crate) struct Handle {
    fd: Option<OwnedFd>,
    dir: OwnedFd,
    name: OsString,
}

impl Handle {
    pub(crate) fn open(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        Ok(Self {
            fd: rustix::fs::openat(dir, name, flags, Mode::empty()).ok(),
            dir: dir.try_clone_to_owned()?,
            name: name.to_owned(),
        })
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        let stat = match &self.fd {
            Some(fd) => rustix::fs::fstat(fd),
            None => rustix::fs::statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW),
        };
        Ok(stat?.into())
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        let Some(fd) = &self.fd else {
            let mode = mode_of(mode);
            let nofollow = AtFlags::SYMLINK_NOFOLLOW;
            return Ok(rustix::fs::chmodat(&self.dir, &self.name, mode, nofollow)?);
        };
        set_mode(fd.as_fd(), mode)
    }

    pub(crate) fn set_time(&self, mtime: Timespec) -> io::Result<()> {
        let Some(fd) = &self.fd else {
            let (times, nofollow) = (modified(mtime), AtFlags::SYMLINK_NOFOLLOW);
            return Ok(rustix::fs::utimensat(
                &self.dir, &self.name, &times, nofollow,
            )?);
        };
        set_time(fd.as_fd(), mtime)
    }
}

/// Sets the mode of what is open.
pub(crate) fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    Ok(rustix::fs::fchmod(fd, mode_of(mode))?)
}

/// Sets the time of what is open.
pub(crate) fn set_time(fd: BorrowedFd<'_>, mtime: Timespec) -> io::Result<()> {
    Ok(rustix::fs::futimens(fd, &modified(mtime))?)
}
