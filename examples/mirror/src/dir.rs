//! Open directories and their operations. All access to the two trees is through them.
//!
//! Every operation takes one name in an open directory, and follows no symlink. A path is a walk from
//! one open directory to the next. If another program replaces a directory by a symlink meanwhile, the
//! open directory stays the same, or the symlink is not entered. Paths may have any length.
//!
//! cap-std resolves a whole path, and follows symlinks that stay inside. Here a symlink is copied as a
//! symlink, and the attributes of an entry are set on the entry that was read.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::iter::once;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::handle::{self, Handle};
use crate::stat::Stat;

/// An open directory. It stays the same even if its path changes.
#[derive(Debug)]
pub(crate) struct Dir(OwnedFd);

/// A name in an open directory, whether or not there is an entry of that name.
#[derive(Debug)]
pub(crate) struct Spot {
    pub(crate) dir: Dir,
    pub(crate) name: OsString,
}

/// How a directory is opened to go through it. With `O_PATH` it need not be readable.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
const WALK: OFlags = OFlags::PATH;
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
const WALK: OFlags = OFlags::RDONLY;

/// The name of a directory in itself.
const ITSELF: &str = ".";

impl Dir {
    /// Opens the directory at `path`. Symlinks are followed, because the user has named the path.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = WALK | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Self(rustix::fs::open(path, flags, Mode::empty())?))
    }

    /// Opens the directory `name`. Returns `None` if it is missing, a file or a symlink.
    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Option<Self>> {
        self.walk([name])
    }

    /// Opens the directory at `path` below this one. Returns `None` if it or a parent is not a
    /// directory.
    pub(crate) fn walk<'p>(
        &self,
        path: impl IntoIterator<Item = &'p OsStr>,
    ) -> io::Result<Option<Self>> {
        let flags = WALK | OFlags::DIRECTORY;
        let mut names = path.into_iter();
        let first = names.next().unwrap_or(OsStr::new(ITSELF));
        let mut at: Option<OwnedFd> = None;
        for name in once(first).chain(names) {
            let from = at.as_ref().map_or(self.0.as_fd(), OwnedFd::as_fd);
            match open_at(from, name, flags) {
                Ok(fd) => at = Some(fd),
                Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
                Err(error) if is_symlink(error) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(at.map(Self))
    }

    /// Finds the entry at `path` below this directory. Returns `None` if a parent is not a
    /// directory. The empty path is the directory itself.
    pub(crate) fn find(&self, path: &Path) -> io::Result<Option<Spot>> {
        let mut names = names(path)?;
        let name = names.pop().unwrap_or(OsStr::new(ITSELF));
        let dir = self.walk(names)?;
        let name = name.to_owned();
        Ok(dir.map(|dir| Spot { dir, name }))
    }

    /// Returns the attributes of the entry `name`, or `None` if there is none.
    pub(crate) fn stat(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat.into())),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn own_stat(&self) -> io::Result<Stat> {
        Ok(rustix::fs::fstat(&self.0)?.into())
    }

    /// Returns the target of the symlink `name`.
    pub(crate) fn read_link(&self, name: &OsStr) -> io::Result<PathBuf> {
        let text = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(text.into_bytes()).into())
    }

    /// Returns the names in the directory, and whether each is a directory.
    pub(crate) fn list(&self) -> io::Result<Vec<(OsString, bool)>> {
        let itself = OsStr::new(ITSELF);
        let fd = self.open_at(itself, OFlags::RDONLY | OFlags::DIRECTORY)?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::new(fd)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == ITSELF || name == ".." {
                continue;
            }
            let is_directory = match entry.file_type() {
                // Some file systems do not report the type.
                FileType::Unknown => self.stat(name)?.is_some_and(|stat| stat.is_directory()),
                kind => kind == FileType::Directory,
            };
            names.push((name.to_owned(), is_directory));
        }
        Ok(names)
    }

    /// Opens the file `name` to read it, without waiting for the writer of a FIFO.
    pub(crate) fn open_file(&self, name: &OsStr) -> io::Result<File> {
        let fd = self.open_at(name, OFlags::RDONLY | OFlags::NONBLOCK)?;
        Ok(fd.into())
    }

    /// Creates the file `name`, for its owner alone.
    pub(crate) fn create_file(&self, name: &OsStr) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(rustix::fs::openat(&self.0, name, flags, mode)?.into())
    }

    /// Creates the directory `name`, for its owner alone.
    pub(crate) fn create_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    pub(crate) fn create_link(&self, text: &Path, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(text, &self.0, name)?)
    }

    /// Renames the entry `from` to `to`, and replaces an entry of that name.
    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    /// Removes the entry `name`, which is not a directory.
    pub(crate) fn remove_file(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    /// Removes the empty directory `name`.
    pub(crate) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Opens the entry `name` itself, to change its attributes.
    pub(crate) fn handle(&self, name: &OsStr) -> io::Result<Handle> {
        Handle::open(self.0.as_fd(), name)
    }

    /// Gives the directory's owner every right to it.
    pub(crate) fn open_up(&self) -> io::Result<()> {
        const ALL_TO_OWNER: u32 = 0o700;
        let mode = self.own_stat()?.mode;
        if mode & ALL_TO_OWNER == ALL_TO_OWNER {
            return Ok(());
        }
        handle::set_mode(self.0.as_fd(), mode | ALL_TO_OWNER)
    }

    fn open_at(&self, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
        open_at(self.0.as_fd(), name, flags)
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

fn open_at(dir: BorrowedFd<'_>, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::empty())
}

/// Whether an open failed because of a symlink. Systems have different errors for that.
pub(crate) fn is_symlink(error: Errno) -> bool {
    matches!(error, Errno::LOOP | Errno::MLINK)
}

/// The names of a path. It has no `..`, and does not start at the root.
fn names(path: &Path) -> io::Result<Vec<&OsStr>> {
    let name = |component| match component {
        Component::Normal(name) => Ok(name),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    };
    path.components().map(name).collect()
}
