//! The two trees, and looking into them without leaving them.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, doing};
use crate::plan::{Seen, Shape};

/// Source and target: absolute, without symlinks, neither inside the other.
#[derive(Debug)]
pub(crate) struct Roots {
    source: PathBuf,
    target: PathBuf,
    /// Tells the source from whatever stands in its place later, such as the bare mount point of a
    /// disk that was taken away.
    source_id: Id,
}

/// A file system and an entry in it.
type Id = (u64, u64);

impl Roots {
    /// Checks both trees and makes the target's directory. The error is one line for the user.
    pub(crate) fn open(source: &Path, target: &Path) -> Result<Self, String> {
        let say = |what: &str, path: &Path, error: io::Error| {
            format!("{what} {}: {error}", path.display())
        };
        let shown = (source.display(), target.display());
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
        // Before the target is made, lest it be made inside the source.
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
        Ok(Self {
            source: canonical,
            target: target_canonical,
            source_id: id(&metadata),
        })
    }

    pub(crate) fn source(&self) -> &Path {
        &self.source
    }

    pub(crate) fn target(&self) -> &Path {
        &self.target
    }

    /// What the source has at `path`.
    pub(crate) fn look_at_source(&self, path: &Path) -> Result<Seen, Error> {
        let seen = look(&self.source, path).map_err(doing("read the source"))?;
        if path.as_os_str().is_empty() {
            self.check_source()?;
        }
        Ok(seen)
    }

    /// What the target has at `path`.
    pub(crate) fn look_at_target(&self, path: &Path) -> Result<Seen, Error> {
        look(&self.target, path).map_err(doing("read the target"))
    }

    /// Makes sure that the source is still the directory it was, before something is deleted for
    /// being absent there.
    pub(crate) fn check_source(&self) -> Result<(), Error> {
        match fs::symlink_metadata(&self.source) {
            Ok(metadata) if id(&metadata) == self.source_id => Ok(()),
            _ => Err(Error::SourceLost),
        }
    }
}

/// What there is at `path` below `root`. No symlink is followed, not even above the path's end.
fn look(root: &Path, path: &Path) -> io::Result<Seen> {
    let mut above: Vec<&Path> = path.ancestors().skip(1).collect();
    // The root is its own affair; the rest from the top down.
    above.pop();
    for directory in above.into_iter().rev() {
        match look_once(&root.join(directory))? {
            Some(metadata) if metadata.is_dir() => {}
            _ => return Ok(Seen::NoParent),
        }
    }
    let full = root.join(path);
    let Some(metadata) = look_once(&full)? else {
        return Ok(Seen::Absent);
    };
    match Shape::of(&full, &metadata) {
        Ok(shape) => Ok(Seen::Here(shape)),
        Err(error) if is_absent(&error) => Ok(Seen::Absent),
        Err(error) => Err(error),
    }
}

fn look_once(path: &Path) -> io::Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(error),
    }
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
            shown.display()
        ));
    }
    if is_inside(target, source) {
        return Err(format!(
            "the target is inside the source: {}",
            shown.display()
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

/// Whether `inner` is `outer` or somewhere below it. Directories are compared by identity, so that
/// a second mount of one is found too.
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
        let look = |path: &str| look(root.path(), Path::new(path)).unwrap();

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
