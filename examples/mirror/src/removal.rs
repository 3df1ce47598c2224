//! Removes an entry, and everything below it.

use std::ffi::{OsStr, OsString};
use std::io;

use rustix::io::Errno;

use crate::dir::{Dir, Spot};

/// A removal in progress. It holds only two directories open at any depth. To go up, it goes down
/// again from the start, because the parent of a moved directory may be outside.
pub(crate) struct Removal<'s> {
    spot: &'s Spot,
    /// The directories that are being emptied, each in the one before it.
    levels: Vec<Level>,
    /// The innermost of them.
    innermost: Option<Dir>,
}

struct Level {
    name: OsString,
    /// The directories in it that have not been emptied.
    directories: Vec<OsString>,
}

/// Removes the entry at `spot`, if there is one.
pub(crate) fn remove(spot: &Spot) -> io::Result<()> {
    let Some(mut removal) = Removal::begin(spot)? else {
        return Ok(());
    };
    // Each step empties or removes a directory. If another program adds an entry after that, the
    // removal fails.
    while removal.step()? {}
    Ok(())
}

impl<'s> Removal<'s> {
    /// Begins with the directory at `spot`. Returns `None` if there is none any more.
    pub(crate) fn begin(spot: &'s Spot) -> io::Result<Option<Self>> {
        let mut removal = Self {
            spot,
            levels: Vec::new(),
            innermost: None,
        };
        if removal.enter(&spot.name)? {
            return Ok(Some(removal));
        }
        match spot.dir.remove_file(&spot.name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(None),
        }
    }

    /// Does one step. Returns whether there is more to do.
    pub(crate) fn step(&mut self) -> io::Result<bool> {
        let Some(level) = self.levels.last_mut() else {
            return Ok(false);
        };
        if let Some(name) = level.directories.pop() {
            // If it is no longer a directory, its parent will not be empty.
            self.enter(&name)?;
            return Ok(true);
        }
        self.leave()?;
        Ok(!self.levels.is_empty())
    }

    /// Enters a directory and removes everything in it except directories. Returns `false` if it is
    /// not a directory.
    fn enter(&mut self, name: &OsStr) -> io::Result<bool> {
        let outer = self.innermost.as_ref().unwrap_or(&self.spot.dir);
        let Some(dir) = outer.child(name)? else {
            return Ok(false);
        };
        // The directory may be mirrored as read-only. If it cannot be made writable, the removal
        // reports why.
        let _ = dir.open_up();
        let mut directories = Vec::new();
        for (name, is_directory) in dir.list()? {
            if is_directory {
                directories.push(name);
            } else if let Err(error) = dir.remove_file(&name)
                && error.kind() != io::ErrorKind::NotFound
            {
                return Err(error);
            }
        }
        let name = name.to_owned();
        self.levels.push(Level { name, directories });
        self.innermost = Some(dir);
        Ok(true)
    }

    /// Goes up from the innermost directory, and removes it.
    fn leave(&mut self) -> io::Result<()> {
        let Some(emptied) = self.levels.pop() else {
            return Ok(());
        };
        if self.levels.is_empty() {
            self.innermost = None;
            return self.spot.dir.remove_directory(&emptied.name);
        }
        let names = self.levels.iter().map(|level| level.name.as_os_str());
        let Some(outer) = self.spot.dir.walk(names)? else {
            return Err(Errno::NOTDIR.into());
        };
        outer.remove_directory(&emptied.name)?;
        self.innermost = Some(outer);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn spot(root: &Path, name: &str) -> Spot {
        let root = Dir::open(root).unwrap();
        root.find(Path::new(name)).unwrap().unwrap()
    }

    #[test]
    fn everything_below_goes_and_nothing_is_fine() {
        let root = tempfile::tempdir().unwrap();
        for path in ["a/b/c", "a/b/d/e", "a/f"] {
            fs::create_dir_all(root.path().join(path)).unwrap();
        }
        for path in ["a/file", "a/b/file", "a/b/d/e/file", "file"] {
            fs::write(root.path().join(path), "x").unwrap();
        }
        for path in ["a/b/d", "a/b"] {
            let read_only = Permissions::from_mode(0o555);
            fs::set_permissions(root.path().join(path), read_only).unwrap();
        }
        remove(&spot(root.path(), "a")).unwrap();
        remove(&spot(root.path(), "a")).unwrap();
        remove(&spot(root.path(), "file")).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn no_depth_is_too_deep() {
        // More levels than a process usually may have files open, in a path longer than the system
        // takes.
        const LEVELS: usize = 1200;
        let root = tempfile::tempdir().unwrap();
        let mut dir = Dir::open(root.path()).unwrap();
        for _ in 0..LEVELS {
            dir.create_directory(OsStr::new("dddd")).unwrap();
            dir = dir.child(OsStr::new("dddd")).unwrap().unwrap();
        }
        remove(&spot(root.path(), "dddd")).unwrap();
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }
}
