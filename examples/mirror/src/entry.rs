//! Makes one entry of the target like the source's.

use std::path::Path;
use std::sync::Arc;

use crate::copy::{self, Retouched};
use crate::dir::Spot;
use crate::error::{Error, doing};
use crate::key::Key;
use crate::mirror::{Mirror, count, mark};
use crate::plan::{Plan, Seen, Shape};
use crate::removal::remove;
use crate::roots::Look;

impl Mirror {
    /// Corrects the target at `path`, and adds the keys of other paths that this affects.
    pub(crate) fn entry(&self, path: &Arc<Path>) -> Result<(), Error> {
        let source = self.roots.look_at_source(path)?;
        let target = self.roots.look_at_target(path)?;
        let is_special = source.seen == Seen::Here(Shape::Special);
        mark(&self.troubles.special, path, is_special);
        if let Some(watch) = &self.watch
            && !source.is_directory()
        {
            watch.forget(path);
        }
        let changed = match Plan::new(&source.seen, &target.seen) {
            Plan::Nothing => {
                self.note_rights_left_out(path, &source.seen, &target.seen);
                count(&self.tally.right, 1);
                return Ok(());
            }
            Plan::Parent => {
                // Once the parent exists, its tree adds this path again.
                self.add_parent(path);
                return Ok(());
            }
            Plan::Retouch(shape) => match self.retouch(path, shape, target.spot()?)? {
                Retouched::Done(_) => return Ok(()),
                Retouched::Shared => self.make(path, shape, &source, target.spot()?, false),
            },
            Plan::Delete => self.delete(path, target.spot()?),
            Plan::Make { shape, first } => self.make(path, shape, &source, target.spot()?, first),
        };
        // The parent's time has changed too, perhaps even by a failure. The queue coalesces many
        // such adds into one run, after the keys that are queued before it.
        self.add_parent(path);
        changed
    }

    fn add_parent(&self, path: &Path) {
        if let Some(parent) = Key::parent_of(path) {
            self.add(parent);
        }
    }

    fn retouch(&self, path: &Arc<Path>, shape: &Shape, to: &Spot) -> Result<Retouched, Error> {
        let retouched = copy::retouch(to, shape)?;
        if let Retouched::Done(mode) = retouched {
            self.note_mode(path, shape, mode);
            count(&self.tally.retouched, 1);
            self.tell("set mode or time of", path);
        }
        Ok(retouched)
    }

    fn delete(&self, path: &Path, to: &Spot) -> Result<(), Error> {
        self.roots.check_source()?;
        copy::in_directory(&to.dir, || clear(to))?;
        count(&self.tally.deleted, 1);
        self.tell("deleted", path);
        Ok(())
    }

    fn make(
        &self,
        path: &Arc<Path>,
        shape: &Shape,
        source: &Look,
        to: &Spot,
        first: bool,
    ) -> Result<(), Error> {
        let clear = || if first { clear(to) } else { Ok(()) };
        match shape {
            Shape::Directory { .. } => {
                copy::in_directory(&to.dir, || {
                    clear()?;
                    copy::make_directory(to)
                })?;
                // The directory exists now, even if this run fails. So its mode, its time and its
                // contents get runs of their own.
                self.add(Key::Entry(Arc::clone(path)));
                self.add(Key::Tree(Arc::clone(path)));
                count(&self.tally.directories, 1);
                self.tell("made directory", path);
            }
            Shape::File { .. } => {
                let from = source.spot()?;
                let copied = || copy::copy_file(from, to, &self.temps, clear);
                let copied = copy::in_directory(&to.dir, copied)?;
                self.note_mode(path, shape, Some(copied.mode));
                count(&self.tally.files, 1);
                count(&self.tally.bytes, copied.bytes);
                self.tell("copied", path);
            }
            Shape::Link { to: text, mtime } => {
                let linked = || copy::make_link(text, *mtime, to, &self.temps, clear);
                copy::in_directory(&to.dir, linked)?;
                count(&self.tally.links, 1);
                self.tell("linked", path);
            }
            Shape::Special => {}
        }
        Ok(())
    }

    /// Records for the report whether the copy has fewer rights than its source.
    fn note_mode(&self, path: &Arc<Path>, shape: &Shape, mode: Option<u32>) {
        let wanted = shape.rights().map(|rights| rights.mode);
        mark(&self.troubles.without_set_id, path, wanted != mode);
    }

    fn note_rights_left_out(&self, path: &Arc<Path>, source: &Seen, target: &Seen) {
        if let (Seen::Here(shape), Seen::Here(there)) = (source, target) {
            let mode = there.rights().map(|rights| rights.mode);
            self.note_mode(path, shape, mode);
        } else {
            mark(&self.troubles.without_set_id, path, false);
        }
    }
}

fn clear(to: &Spot) -> Result<(), Error> {
    remove(to).map_err(doing("delete"))
}
