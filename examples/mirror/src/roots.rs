//! The two trees, and access to their entries that never leaves them.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::FileType;

use crate::dir::{Dir, Spot};
use crate::error::{Error, doing};
use crate::plan::{Seen, Shape};
use crate::stat::Id;
use crate::text::Escaped;

/// Source and target, neither inside the other.
#[derive(Debug)]
pub(crate) struct Roots {
    source: Root,
    target: Root,
    /// Distinguishes the source from a later directory of the same path, such as the bare mount
    /// point of a removed disk.
    source_id: Id,
}

/// The top of a tree. It is open from the start, so a later directory of that path is another tree.
#[derive(Debug)]
struct Root {
    /// Absolute, without symlinks: for the user, and for the watch.
    path: PathBuf,
    dir: Dir,
}

/// A place in a tree, and its entry.
#[derive(Debug)]
pub(crate) struct Look {
    /// `None` for [`Seen::NoParent`].
    spot: Option<Spot>,
    pub(crate) seen: Seen,
}

impl Roots {
    /// Checks both trees and makes the target's directory. The error is one line for the user.
    pub(crate) fn open(source: &Path, target: &Path) -> Result<Self, String> {
        let say = |what: &str, path: &Path, error: io::Error| {
            format!("{what} {}: {error}", Escaped(path))
        };
        let shown = (Escaped(source), Escaped(target));
        let metadata = fs::metadata(source).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => format!("no such source: {}", shown.0),
            _ => say("cannot read the source", source, error),
        })?;
        if !metadata.is_dir() {
            return Err(format!("the source is not a directory: {}", shown.0));
        }
        fs::read_dir(source).map_err(|error| say("cannot read the source", source, error))?;
        let canonical = fs::canonicalize(source)
            .map_err(|error| say("cannot read the source", source, error))?;

        let cannot = |error| say("cannot use the target", target, error);
        let above = existing_part(target).map_err(cannot)?;
        if !fs::metadata(&above).map_err(cannot)?.is_dir() {
            return Err(format!("the target is not a directory: {}", shown.1));
        }
        // Checked before the target is made, because it must not be made inside the source.
        refuse_overlap(&canonical, &above, target)?;
        fs::create_dir_all(target).map_err(cannot)?;
        let target_canonical = fs::canonicalize(target).map_err(cannot)?;
        refuse_overlap(&canonical, &target_canonical, target)?;
        if is_inside(&canonical, &target_canonical) {
            return Err(format!(
                "the source is inside the target, which would be cleared of it: {}",
                shown.0
            ));
        }
        let opened = Root::open(canonical).and_then(|root| {
            let stat = root.dir.own_stat()?;
            Ok((root, stat.id))
        });
        let (source, source_id) =
            opened.map_err(|error| say("cannot read the source", source, error))?;
        let target = Root::open(target_canonical).map_err(cannot)?;
        Ok(Self {
            source,
            target,
            source_id,
        })
    }

    pub(crate) fn source(&self) -> &Path {
        &self.source.path
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target.path
    }

    /// Returns what the source has at `path`.
    pub(crate) fn look_at_source(&self, path: &Path) -> Result<Look, Error> {
        let look = self.source.look(path).map_err(doing("read the source"))?;
        if path.as_os_str().is_empty() {
            self.check_source()?;
        }
        Ok(look)
    }

    /// Returns what the target has at `path`.
    pub(crate) fn look_at_target(&self, path: &Path) -> Result<Look, Error> {
        self.target.look(path).map_err(doing("read the target"))
    }

    /// Checks that the source is still the same directory. Call it before a path is deleted because
    /// the source does not have it.
    pub(crate) fn check_source(&self) -> Result<(), Error> {
        match fs::symlink_metadata(&self.source.path) {
            Ok(metadata) if id(&metadata) == self.source_id => Ok(()),
            _ => Err(Error::SourceLost),
        }
    }
}

impl Root {
    fn open(path: PathBuf) -> io::Result<Self> {
        let dir = Dir::open(&path)?;
        Ok(Self { path, dir })
    }

    /// Returns the entry at `path`. No symlink is followed, not even in a parent.
    fn look(&self, path: &Path) -> io::Result<Look> {
        let Some(spot) = self.dir.find(path)? else {
            return Ok(Look {
                spot: None,
                seen: Seen::NoParent,
            });
        };
        let seen = look_once(&spot)?;
        let spot = Some(spot);
        Ok(Look { spot, seen })
    }
}

impl Look {
    /// Returns the place.
    ///
    /// # Errors
    ///
    /// [`Error::Interfered`] if its parent does not exist.
    pub(crate) fn spot(&self) -> Result<&Spot, Error> {
        self.spot.as_ref().ok_or(Error::Interfered)
    }

    pub(crate) fn is_directory(&self) -> bool {
        matches!(self.seen, Seen::Here(Shape::Directory { .. }))
    }

    /// Opens the directory at this place. Returns `None` if it no longer exists.
    pub(crate) fn open_directory(&self) -> io::Result<Option<Dir>> {
        match &self.spot {
            Some(spot) => spot.dir.child(&spot.name),
            None => Ok(None),
        }
    }
}

fn look_once(spot: &Spot) -> io::Result<Seen> {
    let Some(stat) = spot.dir.stat(&spot.name)? else {
        return Ok(Seen::Absent);
    };
    let (rights, mtime) = (stat.rights(), stat.mtime);
    Ok(Seen::Here(match stat.kind {
        FileType::Directory => Shape::Directory { rights, mtime },
        FileType::RegularFile => Shape::File {
            size: stat.size,
            rights,
            mtime,
        },
        FileType::Symlink => match spot.dir.read_link(&spot.name) {
            Ok(to) => Shape::Link { to, mtime },
            // It is something else by now. An event or the next run finds it.
            Err(error) if is_absent(&error) => return Ok(Seen::Absent),
            Err(error) => return Err(error),
        },
        _ => Shape::Special,
    }))
}

/// Whether an error says that there is nothing at the path.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    let absent = [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory];
    absent.contains(&error.kind())
}

fn refuse_overlap(source: &Path, target: &Path, shown: &Path) -> Result<(), String> {
    if is_same(source, target) && fs::symlink_metadata(shown).is_ok() {
        return Err(format!(
            "source and target are the same directory: {}",
            Escaped(shown)
        ));
    }
    if is_inside(target, source) {
        return Err(format!(
            "the target is inside the source: {}",
            Escaped(shown)
        ));
    }
    Ok(())
}

/// The longest part of `path` that exists, without symlinks.
fn existing_part(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let exists = |part: &&Path| fs::symlink_metadata(part).is_ok();
    let part = path.ancestors().find(exists);
    fs::canonicalize(part.unwrap_or(&path))
}

/// Whether `inner` is `outer` or below it. Directories are compared by identity, so a second mount
/// of a directory is found too.
fn is_inside(inner: &Path, outer: &Path) -> bool {
    inner.ancestors().any(|above| is_same(above, outer))
}

fn is_same(one: &Path, other: &Path) -> bool {
    let id = |path| fs::metadata(path).ok().as_ref().map(id);
    one == other || (id(one).is_some() && id(one) == id(other))
}

fn id(metadata: &Metadata) -> Id {
    (metadata.dev(), metadata.ino())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn no_symlink_is_followed_on_the_way() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("real/sub")).unwrap();
        fs::write(root.path().join("real/sub/file"), "x").unwrap();
        symlink("real", root.path().join("link")).unwrap();
        let canonical = Root::open(fs::canonicalize(root.path()).unwrap()).unwrap();
        let look = |path: &str| canonical.look(Path::new(path)).unwrap().seen;

        assert!(matches!(
            look("real/sub/file"),
            Seen::Here(Shape::File { size: 1, .. })
        ));
        assert!(matches!(look("link"), Seen::Here(Shape::Link { .. })));
        assert_eq!(look("link/sub/file"), Seen::NoParent);
        assert_eq!(look("real/sub/file/deeper"), Seen::NoParent);
        assert_eq!(look("real/sub/other"), Seen::Absent);
        assert_eq!(look("gone/sub/file"), Seen::NoParent);
        assert!(matches!(look(""), Seen::Here(Shape::Directory { .. })));
    }

    #[test]
    fn an_empty_place_is_not_the_source() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("source");
        fs::create_dir(&source).unwrap();
        let roots = Roots::open(&source, &root.path().join("target")).unwrap();
        roots.check_source().unwrap();

        fs::rename(&source, root.path().join("moved")).unwrap();
        assert!(matches!(roots.check_source(), Err(Error::SourceLost)));
        fs::create_dir(&source).unwrap();
        assert!(matches!(
            roots.look_at_source(Path::new("")),
            Err(Error::SourceLost)
        ));
    }

    #[test]
    fn a_second_name_of_the_source_is_the_source() {
        let root = tempfile::tempdir().unwrap();
        let source = root.path().join("source");
        fs::create_dir(&source).unwrap();
        symlink("source", root.path().join("alias")).unwrap();
        let refused = Roots::open(&source, &root.path().join("alias/new/deep")).unwrap_err();
        assert!(refused.contains("inside the source"), "{refused}");
        assert!(!source.join("new").exists());
        let refused = Roots::open(&source, &root.path().join("alias")).unwrap_err();
        assert!(refused.contains("the same directory"), "{refused}");
    }
}
