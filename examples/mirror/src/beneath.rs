//! Opens a directory below another one without following a symlink.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;

/// How a directory is opened to go through it. With `O_PATH` it need not be readable.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
pub(crate) const WALK: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
pub(crate) const WALK: OFlags = OFlags::RDONLY;

/// Opens the directory at `path` below `dir`. The path is not empty, has no `..` in it, and is not
/// longer than the system takes.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) fn open_beneath(dir: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    use rustix::fs::{ResolveFlags, openat2};

    let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    match openat2(dir, path, flags, Mode::empty(), resolve) {
        // Linux before 5.6 does not have the call, and some sandboxes forbid it.
        Err(Errno::NOSYS | Errno::PERM) => open_one_by_one(dir, path),
        opened => opened,
    }
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) fn open_beneath(dir: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    open_one_by_one(dir, path)
}

/// Opens each directory on the way from the one before it.
fn open_one_by_one(dir: BorrowedFd<'_>, path: &Path) -> Result<OwnedFd, Errno> {
    let flags = WALK | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at: Option<OwnedFd> = None;
    for name in path {
        let from = at.as_ref().map_or(dir, OwnedFd::as_fd);
        at = Some(rustix::fs::openat(from, name, flags, Mode::empty())?);
    }
    at.ok_or(Errno::NOENT)
}

/// Whether an open failed because of a symlink. Systems have different errors for that.
pub(crate) fn is_symlink(error: Errno) -> bool {
    matches!(error, Errno::LOOP | Errno::MLINK)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::os::unix::fs::{MetadataExt, symlink};

    use super::*;

    #[test]
    fn both_ways_to_open_agree() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b/c")).unwrap();
        fs::write(root.path().join("a/file"), "x").unwrap();
        symlink("a", root.path().join("inside")).unwrap();
        symlink("/", root.path().join("outside")).unwrap();
        let dir = File::open(root.path()).unwrap();
        let is_refused = |error| {
            let absent = [Errno::NOENT, Errno::NOTDIR];
            is_symlink(error) || absent.contains(&error)
        };
        for open in [open_beneath, open_one_by_one] {
            for path in [".", "a", "a/b", "a/b/c"] {
                let opened = File::from(open(dir.as_fd(), Path::new(path)).unwrap());
                let expected = fs::metadata(root.path().join(path)).unwrap();
                assert_eq!(opened.metadata().unwrap().ino(), expected.ino());
            }
            for path in [
                "inside",
                "inside/b",
                "outside",
                "outside/etc",
                "a/file",
                "a/x/b",
                "",
            ] {
                let error = open(dir.as_fd(), Path::new(path)).unwrap_err();
                assert!(is_refused(error), "{path}: {error}");
            }
        }
    }
}
