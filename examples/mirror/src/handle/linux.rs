//! An entry held open by a descriptor, even if it is a symlink or cannot be read.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, Timespec};
use rustix::io::Errno;
use rustix_linux_procfs::proc_self_fd;

use super::{mode_of, modified};
use crate::stat::Stat;

/// An open entry. It stays the same even if its name changes.
#[derive(Debug)]
pub(crate) struct Handle(OwnedFd);

impl Handle {
    pub(crate) fn open(dir: BorrowedFd<'_>, name: &OsStr) -> io::Result<Self> {
        let open = |how| {
            let flags = how | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            rustix::fs::openat(dir, name, flags, Mode::empty())
        };
        // An unreadable entry is opened with `O_PATH`. Changing it takes a detour.
        let readable = open(OFlags::RDONLY | OFlags::NONBLOCK);
        Ok(Self(readable.or_else(|_| open(OFlags::PATH))?))
    }

    pub(crate) fn stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.0)?.into())
    }

    pub(crate) fn set_mode(&self, mode: u32) -> io::Result<()> {
        set_mode(self.0.as_fd(), mode)
    }

    pub(crate) fn set_time(&self, mtime: Timespec) -> io::Result<()> {
        set_time(self.0.as_fd(), mtime)
    }
}

/// Sets the mode of what is open.
pub(crate) fn set_mode(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    match rustix::fs::fchmod(fd, mode_of(mode)) {
        // Opened with `O_PATH`.
        Err(Errno::BADF) => set_mode_by_number(fd, mode),
        set => Ok(set?),
    }
}

/// Sets the time of what is open.
pub(crate) fn set_time(fd: BorrowedFd<'_>, mtime: Timespec) -> io::Result<()> {
    match rustix::fs::utimensat(fd, "", &modified(mtime), AtFlags::EMPTY_PATH) {
        // Linux before 5.8 needs a name.
        Err(Errno::INVAL | Errno::NOENT) => set_time_by_number(fd, mtime),
        set => Ok(set?),
    }
}

/// Takes the detour through `/proc/self/fd`, where each descriptor has a name.
fn set_mode_by_number(fd: BorrowedFd<'_>, mode: u32) -> io::Result<()> {
    let number = fd.as_raw_fd().to_string();
    let mode = mode_of(mode);
    let set = rustix::fs::chmodat(proc_self_fd()?, number, mode, AtFlags::empty());
    Ok(set?)
}

fn set_time_by_number(fd: BorrowedFd<'_>, mtime: Timespec) -> io::Result<()> {
    let number = fd.as_raw_fd().to_string();
    let times = modified(mtime);
    let set = rustix::fs::utimensat(proc_self_fd()?, number, &times, AtFlags::empty());
    Ok(set?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn attributes_are_set_by_number_too() {
        let root = tempfile::tempdir().unwrap();
        let dir = fs::File::open(root.path()).unwrap();
        fs::create_dir(root.path().join("directory")).unwrap();
        symlink("directory", root.path().join("link")).unwrap();
        let place = |name: &str| {
            let flags = OFlags::PATH | OFlags::NOFOLLOW;
            rustix::fs::openat(&dir, name, flags, Mode::empty()).unwrap()
        };
        let mtime = |seconds| Timespec {
            tv_sec: seconds,
            tv_nsec: 7,
        };

        set_mode(place("directory").as_fd(), 0o711).unwrap();
        set_time_by_number(place("directory").as_fd(), mtime(5)).unwrap();
        set_time_by_number(place("link").as_fd(), mtime(6)).unwrap();
        let metadata = |name| fs::symlink_metadata(root.path().join(name)).unwrap();
        assert_eq!(metadata("directory").mode() & 0o7777, 0o711);
        assert_eq!(metadata("directory").mtime(), 5);
        assert_eq!(metadata("link").mtime(), 6);
    }
}
