//! Watches the source. Each event only adds a key.
//!
//! The system watches a limited number of directories. The others are polled: the key of their tree
//! is added from time to time, and the queue coalesces adds that are too fast.

use std::ops::Bound;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{ErrorKind, Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::key::Key;
use crate::mirror::{Paths, Queue, locked};
use crate::text::escaped;

/// inotify watches single directories. A recursive watch built on it would start to watch a new
/// directory too late, and miss entries that were made meanwhile. So a directory is watched here
/// before its tree is listed. Other systems watch recursively themselves.
const PER_DIRECTORY: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// How often directories are polled if there are few.
const POLL_EVERY: Duration = Duration::from_secs(1);

/// How much each polled directory adds to that. Listing one takes a small part of it.
const POLL_EVERY_PER_DIRECTORY: Duration = Duration::from_millis(1);

/// The watch over the source. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    /// The watcher, or why nothing can be watched.
    watcher: notify::Result<Mutex<RecommendedWatcher>>,
    /// The directories that are polled instead.
    polled: Paths,
    has_warned: AtomicBool,
}

/// The result of trying to watch a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// Its changes are reported from now on.
    Here,
    /// It is polled. The first time, the reason is for the user.
    Polled {
        warning: Option<String>,
    },
    Gone,
}

impl Watch {
    /// Adds a key to `queue` for every change in `source`.
    pub(crate) fn new(source: &Path, queue: Queue) -> Self {
        let root = source.to_path_buf();
        let handler = move |event| {
            // The queue refuses keys when it shuts down. The next run finds those changes.
            let _ = queue.add_many(keys(&event, &root));
        };
        let watcher = notify::recommended_watcher(handler).and_then(|mut watcher| {
            if !PER_DIRECTORY {
                watcher.watch(source, RecursiveMode::Recursive)?;
            }
            Ok(Mutex::new(watcher))
        });
        Self {
            watcher,
            polled: Paths::default(),
            has_warned: AtomicBool::new(false),
        }
    }

    /// Watches a directory of the source, or polls it if it cannot be watched. A list that is made
    /// after this call, together with the reported changes, misses nothing.
    pub(crate) fn cover(&self, source: &Path, path: &Arc<Path>) -> Watched {
        let covered = match &self.watcher {
            Ok(_) if !PER_DIRECTORY => Ok(()),
            Ok(watcher) => {
                let directory = source.join(path);
                locked(watcher).watch(&directory, RecursiveMode::NonRecursive)
            }
            Err(error) => return self.poll(path, &error.kind),
        };
        match covered {
            Ok(()) => {
                locked(&self.polled).remove(path);
                Watched::Here
            }
            Err(error) if is_gone(&error) => Watched::Gone,
            Err(error) => self.poll(path, &error.kind),
        }
    }

    /// Stops polling `path` and everything below it, because the directory no longer exists.
    pub(crate) fn forget(&self, path: &Path) {
        let mut polled = locked(&self.polled);
        let is_below = |other: &&Arc<Path>| other.starts_with(path);
        // Paths are sorted by name, so paths below this one follow it.
        let from = (Bound::Included(path), Bound::Unbounded);
        let below = polled.range::<Path, _>(from).take_while(is_below);
        let below: Vec<_> = below.cloned().collect();
        for path in below {
            polled.remove(&path);
        }
    }

    /// Returns how often to poll.
    pub(crate) fn poll_every(&self) -> Duration {
        let count = u32::try_from(self.polled_len()).unwrap_or(u32::MAX);
        POLL_EVERY.saturating_add(POLL_EVERY_PER_DIRECTORY.saturating_mul(count))
    }

    /// Returns the keys of all polled directories.
    pub(crate) fn polls(&self) -> Vec<Key> {
        let polled = locked(&self.polled);
        let trees = polled.iter().map(|path| Key::Tree(Arc::clone(path)));
        // The parent reports changes of a directory itself, or lists it when the parent is polled.
        // The root has no parent.
        let root = polled.get(Path::new("")).cloned().map(Key::Entry);
        trees.chain(root).collect()
    }

    pub(crate) fn is_polled(&self, path: &Path) -> bool {
        locked(&self.polled).contains(path)
    }

    pub(crate) fn polled_len(&self) -> usize {
        locked(&self.polled).len()
    }

    fn poll(&self, path: &Arc<Path>, why: &ErrorKind) -> Watched {
        locked(&self.polled).insert(Arc::clone(path));
        let is_first = !self.has_warned.swap(true, Ordering::Relaxed);
        Watched::Polled {
            warning: is_first.then(|| warning(why)),
        }
    }
}

fn warning(why: &ErrorKind) -> String {
    let why = match why {
        ErrorKind::MaxFilesWatch => "no watches are left (fs.inotify.max_user_watches)".to_owned(),
        ErrorKind::Io(error) => error.to_string(),
        other => escaped(&format!("{other:?}")),
    };
    format!(
        "not every directory can be watched: {why}; the others are polled once a second or less"
    )
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        ErrorKind::PathNotFound => true,
        ErrorKind::Io(error) => crate::roots::is_absent(error),
        _ => false,
    }
}

/// The keys to check after an event.
fn keys(event: &notify::Result<Event>, root: &Path) -> Vec<Key> {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        // Events were lost, so everything has to be checked.
        _ => return Key::everything().into(),
    };
    if !is_change(event.kind) {
        return Vec::new();
    }
    let mut keys = Vec::new();
    for path in &event.paths {
        let Ok(path) = path.strip_prefix(root) else {
            continue;
        };
        keys.push(Key::entry(path));
        // A directory's time changes with its contents, without an event of its own.
        keys.extend(Key::parent_of(path));
        if may_bring_tree(event.kind) {
            keys.push(Key::tree(path));
        }
    }
    keys
}

/// Reads are ignored, in particular our own.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

/// Whether a new directory may already have contents.
fn may_bring_tree(kind: EventKind) -> bool {
    match kind {
        EventKind::Create(kind) => kind != CreateKind::File,
        EventKind::Modify(ModifyKind::Name(RenameMode::From)) => false,
        EventKind::Modify(kind) => matches!(kind, ModifyKind::Name(_) | ModifyKind::Any),
        EventKind::Any | EventKind::Other => true,
        EventKind::Access(_) | EventKind::Remove(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use notify::event::{DataChange, Flag, MetadataKind, RemoveKind};

    use super::*;

    #[track_caller]
    fn check(kind: EventKind, paths: &[&str], expected: &[&str]) {
        let event = paths
            .iter()
            .fold(Event::new(kind), |event, path| event.add_path(path.into()));
        let keys = keys(&Ok(event), Path::new("/source"));
        let shown: Vec<String> = keys.iter().map(Key::to_string).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_change_is_the_entry_and_the_directory_it_is_in() {
        let data = EventKind::Modify(ModifyKind::Data(DataChange::Any));
        check(data, &["/source/a/b"], &["a/b", "a"]);
        check(
            EventKind::Create(CreateKind::File),
            &["/source/b"],
            &["b", "."],
        );
        check(
            EventKind::Remove(RemoveKind::File),
            &["/source/b"],
            &["b", "."],
        );
        let metadata = EventKind::Modify(ModifyKind::Metadata(MetadataKind::Any));
        check(metadata, &["/source"], &["."]);
        let closed = EventKind::Access(AccessKind::Close(AccessMode::Write));
        check(closed, &["/source/a/b"], &["a/b", "a"]);
    }

    #[test]
    fn a_directory_brings_what_is_in_it() {
        let folder = EventKind::Create(CreateKind::Folder);
        check(folder, &["/source/a"], &["a", ".", "a/*"]);
        let to = EventKind::Modify(ModifyKind::Name(RenameMode::To));
        check(to, &["/source/a"], &["a", ".", "a/*"]);
        let from = EventKind::Modify(ModifyKind::Name(RenameMode::From));
        check(from, &["/source/a"], &["a", "."]);
    }

    #[test]
    fn reading_is_no_change() {
        let opened = EventKind::Access(AccessKind::Open(AccessMode::Any));
        check(opened, &["/source/a"], &[]);
    }

    #[test]
    fn what_is_elsewhere_is_left_alone() {
        check(EventKind::Any, &["/elsewhere/a"], &[]);
    }

    #[test]
    fn what_cannot_be_watched_is_polled_until_it_is_gone() {
        let watch = Watch {
            watcher: Err(notify::Error::generic("none")),
            polled: Paths::default(),
            has_warned: AtomicBool::new(false),
        };
        let mut warnings = 0;
        for path in ["", "a", "a/b", "a/b/c", "a b", "b"] {
            let path = Path::new(path).into();
            match watch.cover(Path::new("/source"), &path) {
                Watched::Polled { warning } => warnings += usize::from(warning.is_some()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(warnings, 1);
        let shown = || -> Vec<String> { watch.polls().iter().map(Key::to_string).collect() };
        assert_eq!(
            shown(),
            ["./*", "a/*", "a/b/*", "a/b/c/*", "a b/*", "b/*", "."]
        );
        watch.forget(Path::new("a/b"));
        assert_eq!(shown(), ["./*", "a/*", "a b/*", "b/*", "."]);
        watch.forget(Path::new("a"));
        assert_eq!(shown(), ["./*", "a b/*", "b/*", "."]);
    }

    #[test]
    fn the_more_are_polled_the_less_often() {
        let watch = Watch {
            watcher: Err(notify::Error::generic("none")),
            polled: Mutex::new(
                (0..5000)
                    .map(|n: u32| Path::new(&n.to_string()).into())
                    .collect(),
            ),
            has_warned: AtomicBool::new(false),
        };
        assert_eq!(watch.poll_every(), Duration::from_secs(6));
    }

    #[test]
    fn lost_events_mean_everything() {
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(keys(&Ok(event), Path::new("/")), Key::everything());
        let error = notify::Error::generic("broken");
        assert_eq!(keys(&Err(error), Path::new("/")), Key::everything());
    }
}
