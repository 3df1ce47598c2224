//! One entry: made as the source's is.

use std::path::Path;
use std::sync::Arc;

use crate::copy;
use crate::error::Error;
use crate::key::Key;
use crate::mirror::{Mirror, count, locked};
use crate::plan::{Plan, Seen, Shape};

impl Mirror {
    /// Makes the target right at `path`, and adds the keys of what else that touches.
    pub(crate) fn entry(&self, path: &Arc<Path>) -> Result<(), Error> {
        let source = self.roots.look_at_source(path)?;
        let target = self.roots.look_at_target(path)?;
        if source == Seen::Here(Shape::Special) {
            locked(&self.troubles.special).insert(Arc::clone(path));
        }
        let changed = match Plan::new(&source, &target) {
            Plan::Nothing => {
                count(&self.tally.right, 1);
                return Ok(());
            }
            Plan::Parent => {
                // Once the parent is there, its tree brings this path back.
                self.add_parent(path);
                return Ok(());
            }
            Plan::Retouch(shape) => return self.retouch(path, shape),
            Plan::Delete => self.delete(path),
            Plan::Make { shape, first } => self.make(path, shape, first),
        };
        // The directory's own time has changed with it, even by what failed. Of many such adds the
        // queue makes one run, after the last of those that are before it in the queue.
        self.add_parent(path);
        changed
    }

    fn add_parent(&self, path: &Path) {
        if let Some(parent) = Key::parent_of(path) {
            self.add(parent);
        }
    }

    fn retouch(&self, path: &Path, shape: &Shape) -> Result<(), Error> {
        self.set_mode_and_time(&self.roots.target().join(path), shape)?;
        count(&self.tally.retouched, 1);
        self.tell("set mode or time of", path);
        Ok(())
    }

    fn delete(&self, path: &Path) -> Result<(), Error> {
        self.roots.check_source()?;
        let to = self.roots.target().join(path);
        copy::in_directory(&to, || copy::delete(&to))?;
        count(&self.tally.deleted, 1);
        self.tell("deleted", path);
        Ok(())
    }

    fn make(&self, path: &Path, shape: &Shape, first: bool) -> Result<(), Error> {
        let to = self.roots.target().join(path);
        let clear = || if first { copy::delete(&to) } else { Ok(()) };
        match shape {
            Shape::Directory { .. } => {
                copy::in_directory(&to, || {
                    clear()?;
                    copy::make_directory(&to)
                })?;
                // It is there from now on, whatever happens next, so the rest must not depend on
                // this run: its mode and time, and what is in it.
                self.add(Key::entry(path));
                self.add(Key::tree(path));
                count(&self.tally.directories, 1);
                self.tell("made directory", path);
            }
            Shape::File { .. } => {
                let from = self.roots.source().join(path);
                let copied = || copy::copy_file(&from, &to, &self.temps, clear);
                let bytes = copy::in_directory(&to, copied)?;
                count(&self.tally.files, 1);
                count(&self.tally.bytes, bytes);
                self.tell("copied", path);
            }
            Shape::Link { to: text, mtime } => {
                let linked = || copy::make_link(text, *mtime, &to, &self.temps, clear);
                copy::in_directory(&to, linked)?;
                count(&self.tally.links, 1);
                self.tell("linked", path);
            }
            Shape::Special => {}
        }
        Ok(())
    }

    fn set_mode_and_time(&self, to: &Path, shape: &Shape) -> Result<(), Error> {
        match shape {
            Shape::Directory { mode, mtime } => {
                copy::set_mode(to, *mode)?;
                copy::set_time(to, *mtime)
            }
            // The time is equal, or it would not be the same file.
            Shape::File { mode, .. } => copy::set_mode(to, *mode),
            Shape::Link { mtime, .. } => copy::set_time(to, *mtime),
            Shape::Special => Ok(()),
        }
    }
}
