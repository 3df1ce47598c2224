//! Writing into the target: beside, then rename, so that nobody ever sees half a copy.
//!
//! A copy gets its time before its name. Killed at any moment, the program leaves entries that are
//! whole, and [temporary](Temps) ones, which the next run finds in the target alone and deletes. (A
//! power cut is another matter: nothing is flushed to the disk.)

use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use filetime::FileTime;

use crate::error::{Error, doing};
use crate::plan::permissions;
use crate::roots::is_absent;

/// How long a file has to have rested before it is copied.
///
/// File systems take their times from a clock that ticks a hundred times a second or more. Two
/// writes within a tick leave the same time: a copy made between them would look equal for ever.
/// What was last written two ticks ago cannot be written again under the same time.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// Copies the content, mode and time of a file, and puts the copy in the place of `to`. Answers how
/// many bytes were copied. `clear` removes what a rename cannot replace.
///
/// # Errors
///
/// [`Error::Unsettled`] if the source has changed meanwhile, or just before: `to` is as it was.
pub(crate) fn copy_file(
    from: &Path,
    to: &Path,
    temps: &Temps,
    clear: impl FnOnce() -> Result<(), Error>,
) -> Result<u64, Error> {
    let mut source = open(from)?;
    let before = source.metadata().map_err(doing("read the source"))?;
    if !before.is_file() || !has_rested(&before) {
        return Err(Error::Unsettled);
    }
    let temp = temps.beside(to);
    let mut copy = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temp.path)
        .map_err(doing("create a file"))?;
    let bytes = io::copy(&mut source, &mut copy).map_err(doing("copy"))?;
    copy.set_permissions(Permissions::from_mode(permissions(&before)))
        .map_err(doing("set the permissions"))?;
    let mtime = FileTime::from_last_modification_time(&before);
    filetime::set_file_handle_times(&copy, None, Some(mtime)).map_err(doing("set the time"))?;
    drop(copy);

    // By name: the file that was read may have changed, or another may have its name now.
    match fs::symlink_metadata(from) {
        Ok(after) if stamp(&after) == stamp(&before) => {}
        _ => return Err(Error::Unsettled),
    }
    clear()?;
    temp.rename(to)?;
    Ok(bytes)
}

/// Makes a symlink in the place of `to`.
pub(crate) fn make_link(
    text: &Path,
    mtime: FileTime,
    to: &Path,
    temps: &Temps,
    clear: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let temp = temps.beside(to);
    symlink(text, &temp.path).map_err(doing("create a symlink"))?;
    set_time(&temp.path, mtime)?;
    clear()?;
    temp.rename(to)
}

/// Makes a directory. Until its own turn comes again it is for its owner alone.
pub(crate) fn make_directory(to: &Path) -> Result<(), Error> {
    DirBuilder::new()
        .mode(0o700)
        .create(to)
        .map_err(doing("create a directory"))
}

/// Sets the mode of a file or directory.
pub(crate) fn set_mode(to: &Path, mode: u32) -> Result<(), Error> {
    fs::set_permissions(to, Permissions::from_mode(mode)).map_err(doing("set the permissions"))
}

/// Sets the time of a directory or symlink, by its name: neither need be readable.
pub(crate) fn set_time(to: &Path, mtime: FileTime) -> Result<(), Error> {
    filetime::set_symlink_file_times(to, mtime, mtime).map_err(doing("set the time"))
}

/// Deletes whatever is there, if anything is.
pub(crate) fn delete(path: &Path) -> Result<(), Error> {
    match remove(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
            // Directories that may not be written to, as they were mirrored. What cannot be opened
            // up will be refused below.
            open_up_below(path);
            remove(path)
        }
        removed => removed,
    }
    .map_err(doing("delete"))
}

/// Runs `work`, which creates, renames or deletes `path`. If its directory turns out to be
/// read-only it is made writable; its own key, which follows every such change, makes it right
/// again.
pub(crate) fn in_directory<T>(
    path: &Path,
    mut work: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    match (work(), path.parent()) {
        (Err(Error::Io { error, .. }), Some(parent))
            if error.kind() == io::ErrorKind::PermissionDenied && open_up(parent).is_ok() =>
        {
            work()
        }
        (done, _) => done,
    }
}

fn open(from: &Path) -> Result<File, Error> {
    // A symlink or a FIFO that has taken its place is neither followed nor waited for.
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
        .open(from);
    file.map_err(|error| {
        if is_absent(&error) || error.raw_os_error() == Some(libc::ELOOP) {
            Error::Unsettled
        } else {
            doing("read the source")(error)
        }
    })
}

/// Whether the file was last written to long enough ago. One from the future is taken as it is.
fn has_rested(metadata: &Metadata) -> bool {
    let Ok(modified) = metadata.modified() else {
        return true;
    };
    match SystemTime::now().duration_since(modified) {
        Ok(age) => age >= REST,
        Err(_) => true,
    }
}

/// Which file it is, and everything that a change of it changes.
fn stamp(metadata: &Metadata) -> impl PartialEq + use<> {
    let file = (metadata.dev(), metadata.ino(), metadata.mode());
    let mtime = (metadata.mtime(), metadata.mtime_nsec());
    let ctime = (metadata.ctime(), metadata.ctime_nsec());
    (file, metadata.len(), mtime, ctime)
}

fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if is_absent(&error) => Ok(()),
        removed => removed,
    }
}

/// Gives a directory's owner every right to it.
fn open_up(directory: &Path) -> io::Result<()> {
    let mode = permissions(&fs::symlink_metadata(directory)?);
    fs::set_permissions(directory, Permissions::from_mode(mode | 0o700))
}

fn open_up_below(directory: &Path) {
    let is_directory = |path: &Path| fs::symlink_metadata(path).is_ok_and(|m| m.is_dir());
    if !is_directory(directory) || open_up(directory).is_err() {
        return;
    }
    for child in fs::read_dir(directory).into_iter().flatten().flatten() {
        open_up_below(&child.path());
    }
}

/// Names for what is not finished, which no other run uses.
#[derive(Debug)]
pub(crate) struct Temps {
    prefix: String,
    count: AtomicU64,
}

impl Temps {
    pub(crate) fn new() -> Self {
        // A process id may come again; with the time it does not.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        Self {
            prefix: format!(".requeue-mirror-{}-{now:x}-", std::process::id()),
            count: AtomicU64::new(0),
        }
    }

    /// Whether the name is one of this run's, so that somebody is still busy with it.
    pub(crate) fn is_ours(&self, name: &OsStr) -> bool {
        name.as_bytes().starts_with(self.prefix.as_bytes())
    }

    fn beside(&self, path: &Path) -> Temp {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Temp {
            path: path.with_file_name(format!("{}{number}.tmp", self.prefix)),
            is_kept: false,
        }
    }
}

/// A temporary entry: gone when this is dropped, unless it was renamed.
struct Temp {
    path: PathBuf,
    is_kept: bool,
}

impl Temp {
    fn rename(mut self, to: &Path) -> Result<(), Error> {
        fs::rename(&self.path, to).map_err(doing("rename the copy"))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Temp {
    fn drop(&mut self) {
        if !self.is_kept {
            // It may not have been made; what else goes wrong, the next run puts right.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Case {
        root: tempfile::TempDir,
        temps: Temps,
    }

    impl Case {
        fn new() -> Self {
            Self {
                root: tempfile::tempdir().unwrap(),
                temps: Temps::new(),
            }
        }

        fn path(&self, name: &str) -> PathBuf {
            self.root.path().join(name)
        }

        fn write_old(&self, name: &str, content: &str) -> PathBuf {
            let path = self.path(name);
            fs::write(&path, content).unwrap();
            filetime::set_file_mtime(&path, FileTime::from_unix_time(1_000_000_000, 7)).unwrap();
            path
        }

        fn copy(&self, from: &Path, to: &Path) -> Result<u64, Error> {
            copy_file(from, to, &self.temps, || Ok(()))
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(self.root.path()).unwrap();
            let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
            let mut names: Vec<_> = names.map(|e| name(e).into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn a_copy_has_content_mode_and_time() {
        let case = Case::new();
        let from = case.write_old("from", "content");
        fs::set_permissions(&from, Permissions::from_mode(0o4751)).unwrap();
        let to = case.write_old("to", "other");

        assert_eq!(case.copy(&from, &to).unwrap(), 7);
        assert_eq!(fs::read_to_string(&to).unwrap(), "content");
        let metadata = fs::metadata(&to).unwrap();
        assert_eq!(permissions(&metadata), 0o4751);
        assert_eq!(
            (metadata.mtime(), metadata.mtime_nsec()),
            (1_000_000_000, 7)
        );
        assert_eq!(case.names(), ["from", "to"]);
    }

    #[test]
    fn a_file_that_was_just_written_is_left_alone() {
        let case = Case::new();
        let from = case.write_old("from", "content");
        let now = FileTime::from_system_time(SystemTime::now() + REST);
        filetime::set_file_mtime(&from, now).unwrap();
        // From the future by a hair: taken. From the present: not.
        assert!(has_rested(&fs::metadata(&from).unwrap()));
        filetime::set_file_mtime(&from, FileTime::now()).unwrap();
        let young = fs::metadata(&from).unwrap();
        assert!(!has_rested(&young) || FileTime::now().unix_seconds() > young.mtime());
    }

    #[test]
    fn a_source_that_changes_meanwhile_leaves_the_target_alone() {
        let case = Case::new();
        let from = case.write_old("from", "content");
        let to = case.write_old("to", "other");
        let before = fs::metadata(&from).unwrap();
        fs::set_permissions(&from, Permissions::from_mode(0o600)).unwrap();
        fs::write(&from, "changed").unwrap();
        assert!(stamp(&before) != stamp(&fs::metadata(&from).unwrap()));

        case.write_old("third", "x");
        fs::remove_file(&from).unwrap();
        assert!(matches!(case.copy(&from, &to), Err(Error::Unsettled)));
        assert_eq!(fs::read_to_string(&to).unwrap(), "other");
    }

    #[test]
    fn neither_symlinks_nor_fifos_are_read() {
        let case = Case::new();
        let real = case.write_old("real", "content");
        let link = case.path("link");
        symlink(&real, &link).unwrap();
        let to = case.path("to");
        assert!(matches!(case.copy(&link, &to), Err(Error::Unsettled)));
        let directory = case.path("directory");
        fs::create_dir(&directory).unwrap();
        assert!(matches!(case.copy(&directory, &to), Err(Error::Unsettled)));
        assert_eq!(case.names(), ["directory", "link", "real"]);
    }

    #[test]
    fn nothing_is_left_of_a_copy_that_fails() {
        let case = Case::new();
        let from = case.write_old("from", "content");
        // A rename cannot put a file in the place of a directory.
        fs::create_dir(case.path("to")).unwrap();
        assert!(case.copy(&from, &case.path("to")).is_err());
        assert_eq!(case.names(), ["from", "to"]);
    }

    #[test]
    fn a_link_replaces_a_file() {
        let case = Case::new();
        let to = case.write_old("to", "other");
        let mtime = FileTime::from_unix_time(5, 6);
        make_link(Path::new("no/where"), mtime, &to, &case.temps, || Ok(())).unwrap();
        assert_eq!(fs::read_link(&to).unwrap(), Path::new("no/where"));
        assert_eq!(fs::symlink_metadata(&to).unwrap().mtime_nsec(), 6);
        assert_eq!(case.names(), ["to"]);
    }

    #[test]
    fn delete_takes_everything_below_and_nothing_is_fine() {
        let case = Case::new();
        fs::create_dir_all(case.path("a/b/c")).unwrap();
        fs::write(case.path("a/b/file"), "x").unwrap();
        fs::set_permissions(case.path("a/b"), Permissions::from_mode(0o555)).unwrap();
        delete(&case.path("a")).unwrap();
        delete(&case.path("a")).unwrap();
        delete(&case.path("a/b")).unwrap();
        assert!(case.names().is_empty());
    }

    #[test]
    fn temporary_names_are_known_again() {
        let temps = Temps::new();
        let temp = temps.beside(Path::new("a/b"));
        assert_eq!(temp.path.parent(), Some(Path::new("a")));
        assert!(temps.is_ours(temp.path.file_name().unwrap()));
        assert!(!temps.is_ours(OsStr::new(".requeue-mirror-1-2-3.tmp")));
    }
}
