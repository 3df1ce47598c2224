//! What is in a directory: the keys of its children.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::error::{Error, doing};
use crate::key::Key;
use crate::mirror::Mirror;
use crate::plan::{Seen, Shape};
use crate::roots::is_absent;
use crate::watch::Watched;

impl Mirror {
    /// Adds a key for everything that is in the directory on either side, and for the trees of the
    /// directories in it that are on both. A tree that is missing in the target is brought by its
    /// own entry, once that has been made.
    pub(crate) fn tree(&self, path: &Arc<Path>) -> Result<(), Error> {
        let entry = Key::Entry(Arc::clone(path));
        for seen in [
            self.roots.look_at_source(path)?,
            self.roots.look_at_target(path)?,
        ] {
            if !matches!(seen, Seen::Here(Shape::Directory { .. })) {
                self.add(entry);
                return Ok(());
            }
        }
        let from = self.roots.source().join(path);
        // Watched before it is listed, so that nothing is missed in between.
        if let Some(watch) = &self.watch
            && watch.cover(&from)? == Watched::Gone
        {
            self.add(entry);
            return Ok(());
        }
        let names = match list(&from) {
            Err(error) if is_absent(&error) => {
                self.add(entry);
                return Ok(());
            }
            names => names.map_err(doing("list the source"))?,
        };
        let mut names_there = match list(&self.roots.target().join(path)) {
            Err(error) if is_absent(&error) => HashMap::new(),
            names => names.map_err(doing("list the target"))?,
        };
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

/// The names in a directory, and which of them are directories.
fn list(directory: &Path) -> io::Result<HashMap<OsString, bool>> {
    fs::read_dir(directory)?
        .map(|entry| {
            let entry = entry?;
            Ok((entry.file_name(), entry.file_type()?.is_dir()))
        })
        .collect()
}
