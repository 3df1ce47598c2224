//! The contents of a directory: adds the keys of its children.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, doing};
use crate::key::Key;
use crate::mirror::Mirror;
use crate::roots::Look;
use crate::watch::Watched;

impl Mirror {
    /// Adds a key for each child on either side, and for the tree of each directory that both sides
    /// have. If the target lacks a directory, its entry adds the tree once it is made.
    pub(crate) fn tree(&self, path: &Arc<Path>) -> Result<(), Error> {
        let entry = Key::Entry(Arc::clone(path));
        let source = self.roots.look_at_source(path)?;
        let target = self.roots.look_at_target(path)?;
        if !source.is_directory() || !target.is_directory() {
            self.add(entry);
            return Ok(());
        }
        // Watched before it is listed, so that nothing is missed in between.
        if let Some(watch) = &self.watch {
            match watch.cover(self.roots.source(), path) {
                Watched::Polled {
                    warning: Some(warning),
                } => self.progress.warn(&warning),
                Watched::Here | Watched::Polled { .. } => {}
                Watched::Gone => {
                    self.add(entry);
                    return Ok(());
                }
            }
        }
        let Some(names) = list(&source).map_err(doing("list the source"))? else {
            self.add(entry);
            return Ok(());
        };
        let names_there = list(&target).map_err(doing("list the target"))?;
        let mut names_there: HashMap<_, _> = names_there.into_iter().flatten().collect();
        names_there.retain(|name, _| !self.temps.is_ours(name));

        let mut keys = Vec::with_capacity(names.len());
        for (name, is_directory) in names {
            let is_directory_there = names_there.remove(&name) == Some(true);
            let child: Arc<Path> = path.join(name).into();
            if is_directory && is_directory_there {
                keys.push(Key::Tree(Arc::clone(&child)));
            }
            keys.push(Key::Entry(child));
        }
        let gone = names_there.into_keys();
        keys.extend(gone.map(|name| Key::entry(&path.join(name))));
        self.add_all(keys);
        Ok(())
    }
}

/// Returns the names in a directory and which of them are directories, or `None` if it is gone.
fn list(look: &Look) -> io::Result<Option<Vec<(OsString, bool)>>> {
    let dir = look.open_directory()?;
    dir.map(|dir| dir.list()).transpose()
}
