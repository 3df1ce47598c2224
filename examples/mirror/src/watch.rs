//! Listening to the source: each event is a key, and nothing more.

use std::path::Path;
use std::sync::Mutex;

use notify::event::{AccessKind, AccessMode, CreateKind, ModifyKind, RenameMode};
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use crate::error::Error;
use crate::key::Key;
use crate::mirror::{Queue, locked};

/// inotify watches single directories. Who watches recursively through it learns of a new
/// directory, and watches it, too late for what was made in it meanwhile. So a directory is watched
/// here when its tree is about to be listed. Elsewhere the system itself watches recursively.
const PER_DIRECTORY: bool = cfg!(any(target_os = "linux", target_os = "android"));

/// The watch over the source. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    watcher: Mutex<RecommendedWatcher>,
}

/// What became of a directory that was to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// What happens in it from now on is heard of.
    Here,
    Gone,
}

impl Watch {
    /// Adds a key to `queue` for everything that happens in `source`.
    pub(crate) fn new(source: &Path, queue: Queue) -> Result<Self, Error> {
        let root = source.to_path_buf();
        let handler = move |event| {
            // The queue refuses them when it shuts down: what changes then is the next run's.
            queue.add_many(keys(&event, &root), drop);
        };
        let mut watcher = notify::recommended_watcher(handler).map_err(Error::Watch)?;
        let mode = if PER_DIRECTORY {
            RecursiveMode::NonRecursive
        } else {
            RecursiveMode::Recursive
        };
        watcher.watch(source, mode).map_err(Error::Watch)?;
        let watcher = Mutex::new(watcher);
        Ok(Self { watcher })
    }

    /// Makes sure that a directory is watched. What is listed after this and what is heard of make
    /// up everything there is in it.
    pub(crate) fn cover(&self, directory: &Path) -> Result<Watched, Error> {
        if !PER_DIRECTORY {
            return Ok(Watched::Here);
        }
        let mut watcher = locked(&self.watcher);
        match watcher.watch(directory, RecursiveMode::NonRecursive) {
            Ok(()) => Ok(Watched::Here),
            Err(error) if is_gone(&error) => Ok(Watched::Gone),
            Err(error) => Err(Error::Watch(error)),
        }
    }
}

fn is_gone(error: &notify::Error) -> bool {
    match &error.kind {
        notify::ErrorKind::PathNotFound => true,
        notify::ErrorKind::Io(error) => crate::roots::is_absent(error),
        _ => false,
    }
}

/// Where something may be wrong after an event.
fn keys(event: &notify::Result<Event>, root: &Path) -> Vec<Key> {
    let event = match event {
        Ok(event) if !event.need_rescan() => event,
        // Events were lost, and with them what they were about.
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
        // A directory's time changes with what is in it, and the system does not tell.
        keys.extend(Key::parent_of(path));
        if may_bring_tree(event.kind) {
            keys.push(Key::tree(path));
        }
    }
    keys
}

/// Reading is none of our business, least of all our own.
fn is_change(kind: EventKind) -> bool {
    match kind {
        EventKind::Access(AccessKind::Close(AccessMode::Write)) => true,
        EventKind::Access(_) => false,
        _ => true,
    }
}

/// Whether a directory may have come with something in it already.
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
    fn lost_events_mean_everything() {
        let event = Event::new(EventKind::Other).set_flag(Flag::Rescan);
        assert_eq!(keys(&Ok(event), Path::new("/")), Key::everything());
        let error = notify::Error::generic("broken");
        assert_eq!(keys(&Err(error), Path::new("/")), Key::everything());
    }
}
