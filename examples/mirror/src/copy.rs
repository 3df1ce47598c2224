//! Writes into the target, first under a temporary name and then by a rename. So no half-written
//! copy has its final name.
//!
//! A copy gets its time before its name. A program that is killed leaves only whole entries, and
//! [temporary](Temps) ones. The next run deletes the latter, because the source does not have them.
//! (This does not cover power cuts, because nothing is flushed to disk.)

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Timespec;
use rustix::io::Errno;

use crate::dir::{Dir, Spot, is_symlink};
use crate::error::{Error, doing};
use crate::handle;
use crate::plan::{Rights, Shape};
use crate::roots::is_absent;
use crate::sparse::copy_content;
use crate::stat::Stat;

/// How long a file must be unchanged before it is copied.
///
/// File systems take times from a clock with at least a hundred ticks per second. Two writes within
/// one tick have the same time, so a copy between them would look equal forever. Two ticks after a
/// write, no other write can have its time.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// The result of copying a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copied {
    pub(crate) bytes: u64,
    /// The mode of the copy.
    pub(crate) mode: u32,
}

/// Copies the content, mode and time of a file, and puts the copy in the place of `to`. `clear`
/// removes what a rename cannot replace.
///
/// # Errors
///
/// [`Error::Unsettled`] if the source has changed meanwhile, or just before: `to` is as it was.
pub(crate) fn copy_file(
    from: &Spot,
    to: &Spot,
    temps: &Temps,
    clear: impl FnOnce() -> Result<(), Error>,
) -> Result<Copied, Error> {
    let source = from.dir.open_file(&from.name).map_err(unreadable)?;
    let before = stat_of(&source).map_err(doing("read the source"))?;
    if !before.is_file() || !has_rested(before.mtime) {
        return Err(Error::Unsettled);
    }
    let temp = temps.beside(to);
    let copy = to.dir.create_file(&temp.name);
    let copy = copy.map_err(doing("create a file"))?;
    let bytes = copy_content(&source, &copy, before.size).map_err(doing("copy"))?;
    let mode = give_mode(&copy, &before).map_err(doing("set the permissions"))?;
    handle::set_time(copy.as_fd(), before.mtime).map_err(doing("set the time"))?;
    drop(copy);

    // Looked up by name, because the file may have changed, or another may have its name now.
    match from.dir.stat(&from.name) {
        Ok(Some(after)) if after == before => {}
        _ => return Err(Error::Unsettled),
    }
    clear()?;
    temp.rename()?;
    Ok(Copied { bytes, mode })
}

/// Makes a symlink in the place of `to`.
pub(crate) fn make_link(
    text: &Path,
    mtime: Timespec,
    to: &Spot,
    temps: &Temps,
    clear: impl FnOnce() -> Result<(), Error>,
) -> Result<(), Error> {
    let temp = temps.beside(to);
    to.dir
        .create_link(text, &temp.name)
        .map_err(doing("create a symlink"))?;
    let link = to.dir.handle(&temp.name);
    link.and_then(|link| link.set_time(mtime))
        .map_err(doing("set the time"))?;
    clear()?;
    temp.rename()
}

/// Makes a directory. Only its owner has access until its own key runs again.
pub(crate) fn make_directory(to: &Spot) -> Result<(), Error> {
    let made = to.dir.create_directory(&to.name);
    made.map_err(doing("create a directory"))
}

/// The result of setting mode or time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Retouched {
    /// The new mode. A symlink has none.
    Done(Option<u32>),
    /// The file has other names. They may be outside the target, so nothing was changed.
    Shared,
}

/// Sets the mode and the time of an entry whose content is right.
///
/// # Errors
///
/// [`Error::Interfered`] if there is an entry of another type by now.
pub(crate) fn retouch(to: &Spot, shape: &Shape) -> Result<Retouched, Error> {
    let entry = to.dir.handle(&to.name).map_err(doing("open an entry"))?;
    let stat = entry.stat().map_err(doing("read the target"))?;
    let set_mode = |rights: &Rights| {
        let mode = rights.mode_for(stat.owner);
        let set = entry.set_mode(mode).map_err(doing("set the permissions"));
        set.map(|()| Retouched::Done(Some(mode)))
    };
    let set_time = |mtime| entry.set_time(mtime).map_err(doing("set the time"));
    match shape {
        Shape::Directory { rights, mtime } if stat.is_directory() => {
            let done = set_mode(rights)?;
            set_time(*mtime)?;
            Ok(done)
        }
        Shape::File { .. } if stat.is_file() && stat.links > 1 => Ok(Retouched::Shared),
        // The time is equal, or it would not be the same file.
        Shape::File { rights, .. } if stat.is_file() => set_mode(rights),
        Shape::Link { mtime, .. } if stat.is_link() => {
            set_time(*mtime)?;
            Ok(Retouched::Done(None))
        }
        _ => Err(Error::Interfered),
    }
}

/// Runs `work`, which creates, renames or deletes an entry of `dir`. A read-only directory is made
/// writable. Its own key follows every such change, and restores its mode.
pub(crate) fn in_directory<T>(
    dir: &Dir,
    mut work: impl FnMut() -> Result<T, Error>,
) -> Result<T, Error> {
    match work() {
        Err(Error::Io { error, .. })
            if error.kind() == io::ErrorKind::PermissionDenied && dir.open_up().is_ok() =>
        {
            work()
        }
        done => done,
    }
}

/// Gives a copy the mode of its source, without bits that its owner may not have. Returns the mode.
fn give_mode(copy: &File, source: &Stat) -> io::Result<u32> {
    let mode = source.rights().mode_for(stat_of(copy)?.owner);
    handle::set_mode(copy.as_fd(), mode)?;
    Ok(mode)
}

fn stat_of(file: &File) -> io::Result<Stat> {
    Ok(rustix::fs::fstat(file)?.into())
}

/// If the file is now missing or a symlink, the source has changed. Anything else is an error.
fn unreadable(error: io::Error) -> Error {
    let is_link = Errno::from_io_error(&error).is_some_and(is_symlink);
    if is_link || is_absent(&error) {
        Error::Unsettled
    } else {
        doing("read the source")(error)
    }
}

/// Whether a file was last written to long enough ago. A time in the future counts as long ago.
fn has_rested(mtime: Timespec) -> bool {
    // Before 1970 is long ago.
    let seconds = u64::try_from(mtime.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(mtime.tv_nsec).unwrap_or(0);
    let modified = UNIX_EPOCH.checked_add(Duration::new(seconds, nanos));
    let age = modified.map(|modified| SystemTime::now().duration_since(modified));
    !matches!(age, Some(Ok(age)) if age < REST)
}

/// Names of unfinished entries, which no other run uses.
#[derive(Debug)]
pub(crate) struct Temps {
    prefix: String,
    count: AtomicU64,
}

impl Temps {
    pub(crate) fn new() -> Self {
        // A process id may repeat. Together with the time it does not.
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_nanos();
        Self {
            prefix: format!(".requeue-mirror-{}-{now:x}-", std::process::id()),
            count: AtomicU64::new(0),
        }
    }

    /// Whether the name is one of this run's, so that a worker is still busy with it.
    pub(crate) fn is_ours(&self, name: &OsStr) -> bool {
        name.as_bytes().starts_with(self.prefix.as_bytes())
    }

    fn beside<'s>(&self, spot: &'s Spot) -> Temp<'s> {
        let number = self.count.fetch_add(1, Ordering::Relaxed);
        Temp {
            spot,
            name: format!("{}{number}.tmp", self.prefix).into(),
            is_kept: false,
        }
    }
}

/// A temporary entry beside another. It is removed on drop, unless it was renamed.
struct Temp<'s> {
    spot: &'s Spot,
    name: OsString,
    is_kept: bool,
}

impl Temp<'_> {
    /// Renames it to the other's name.
    fn rename(mut self) -> Result<(), Error> {
        let renamed = self.spot.dir.rename(&self.name, &self.spot.name);
        renamed.map_err(doing("rename the copy"))?;
        self.is_kept = true;
        Ok(())
    }
}

impl Drop for Temp<'_> {
    fn drop(&mut self) {
        if self.is_kept {
            return;
        }
        // It may not exist. The next run removes what this cannot.
        let dir = &self.spot.dir;
        if let Err(error) = dir.remove_file(&self.name)
            && error.kind() == io::ErrorKind::PermissionDenied
            && dir.open_up().is_ok()
        {
            let _ = dir.remove_file(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use std::path::PathBuf;

    use super::*;

    struct Case {
        root: tempfile::TempDir,
        temps: Temps,
    }

    const OLD: Timespec = Timespec {
        tv_sec: 1_000_000_000,
        tv_nsec: 7,
    };

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

        fn spot(&self, name: &str) -> Spot {
            let root = Dir::open(self.root.path()).unwrap();
            root.find(Path::new(name)).unwrap().unwrap()
        }

        fn write_old(&self, name: &str, content: &str) {
            fs::write(self.path(name), content).unwrap();
            let file = self.spot(name);
            file.dir.handle(&file.name).unwrap().set_time(OLD).unwrap();
        }

        fn copy(&self, from: &str, to: &str) -> Result<Copied, Error> {
            let (from, to) = (self.spot(from), self.spot(to));
            copy_file(&from, &to, &self.temps, || Ok(()))
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
        case.write_old("from", "content");
        fs::set_permissions(case.path("from"), Permissions::from_mode(0o4751)).unwrap();
        case.write_old("to", "other");

        let copied = case.copy("from", "to").unwrap();
        assert_eq!((copied.bytes, copied.mode), (7, 0o4751));
        assert_eq!(fs::read_to_string(case.path("to")).unwrap(), "content");
        let stat = case.spot("to").dir.stat(OsStr::new("to")).unwrap().unwrap();
        assert_eq!((stat.mode, stat.mtime), (0o4751, OLD));
        assert_eq!(case.names(), ["from", "to"]);
    }

    #[test]
    fn a_file_that_was_just_written_is_left_alone() {
        let before_now = |age: Duration| {
            let time = SystemTime::now() - age;
            let time = time.duration_since(UNIX_EPOCH).unwrap();
            has_rested(Timespec {
                tv_sec: time.as_secs().try_into().unwrap(),
                tv_nsec: time.subsec_nanos().into(),
            })
        };
        assert!(before_now(REST));
        // On a machine so busy that it has rested by the time it is looked at, this says nothing.
        let begun = std::time::Instant::now();
        assert!(!before_now(Duration::ZERO) || begun.elapsed() >= REST);
        // Before 1970.
        assert!(has_rested(Timespec {
            tv_sec: -5,
            tv_nsec: 1
        }));
        // From the future.
        assert!(has_rested(Timespec {
            tv_sec: i64::MAX,
            tv_nsec: 1
        }));
    }

    #[test]
    fn a_source_that_changes_meanwhile_leaves_the_target_alone() {
        let changes: [fn(&Path); 4] = [
            |from| fs::write(from, "changed").unwrap(),
            |from| fs::set_permissions(from, Permissions::from_mode(0o600)).unwrap(),
            |from| fs::remove_file(from).unwrap(),
            |from| {
                fs::remove_file(from).unwrap();
                symlink("to", from).unwrap();
            },
        ];
        for change in changes {
            let case = Case::new();
            case.write_old("from", "content");
            case.write_old("to", "other");
            let from = case.spot("from");
            let source = from.dir.open_file(&from.name).unwrap();
            let before = stat_of(&source).unwrap();
            change(&case.path("from"));
            assert!(from.dir.stat(&from.name).unwrap() != Some(before));
            if !case.path("from").is_file() || case.path("from").is_symlink() {
                assert!(matches!(case.copy("from", "to"), Err(Error::Unsettled)));
                assert_eq!(fs::read_to_string(case.path("to")).unwrap(), "other");
            }
        }
    }

    #[test]
    fn neither_symlinks_nor_directories_are_read() {
        let case = Case::new();
        case.write_old("real", "content");
        symlink(case.path("real"), case.path("link")).unwrap();
        assert!(matches!(case.copy("link", "to"), Err(Error::Unsettled)));
        fs::create_dir(case.path("directory")).unwrap();
        let copied = case.copy("directory", "to");
        assert!(matches!(copied, Err(Error::Unsettled)));
        assert_eq!(case.names(), ["directory", "link", "real"]);
    }

    #[test]
    fn nothing_is_left_of_a_copy_that_fails() {
        let case = Case::new();
        case.write_old("from", "content");
        // A rename cannot put a file in the place of a directory.
        fs::create_dir(case.path("to")).unwrap();
        assert!(case.copy("from", "to").is_err());
        assert_eq!(case.names(), ["from", "to"]);
    }

    #[test]
    fn nothing_is_left_of_a_copy_whose_directory_was_closed_meanwhile() {
        let case = Case::new();
        case.write_old("from", "content");
        let (from, to) = (case.spot("from"), case.spot("to"));
        let mut closes = vec![()];
        let mut close = || {
            if closes.pop().is_some() {
                let read_only = Permissions::from_mode(0o500);
                fs::set_permissions(case.root.path(), read_only).unwrap();
            }
            Ok(())
        };
        // To root it stays open, and there is one copy less.
        let copied = in_directory(&to.dir, || copy_file(&from, &to, &case.temps, &mut close));
        assert_eq!(copied.unwrap().bytes, 7);
        assert_eq!(case.names(), ["from", "to"]);
    }

    #[test]
    fn a_link_replaces_a_file() {
        let case = Case::new();
        case.write_old("to", "other");
        let to = case.spot("to");
        make_link(Path::new("no/where"), OLD, &to, &case.temps, || Ok(())).unwrap();
        assert_eq!(
            fs::read_link(case.path("to")).unwrap(),
            Path::new("no/where")
        );
        let metadata = fs::symlink_metadata(case.path("to")).unwrap();
        assert_eq!(
            (metadata.mtime(), metadata.mtime_nsec()),
            (1_000_000_000, 7)
        );
        assert_eq!(case.names(), ["to"]);
    }

    #[test]
    fn temporary_names_are_known_again() {
        let case = Case::new();
        let spot = case.spot("b");
        let temp = case.temps.beside(&spot);
        assert!(case.temps.is_ours(&temp.name));
        let other = OsStr::new(".requeue-mirror-1-2-3.tmp");
        assert!(!case.temps.is_ours(other));
    }
}
