//! A queue fed by a file watcher. Events name the changed file, and a run reads it as it is now.
//!
//! ```text
//! the last of 100 versions was seen
//! ```

use std::{fs, io};

use notify::{RecursiveMode, Watcher};
use requeue::std::WorkQueue;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let queue = WorkQueue::new();
    let changed = queue.producer();
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // An error or `event.need_rescan()` means that events were lost. Then list the folder.
        for path in event.into_iter().flat_map(|event| event.paths) {
            let _ = changed.add(path);
        }
    })?;
    watcher.watch(folder.path(), RecursiveMode::NonRecursive)?;

    for version in 1..=100 {
        fs::write(folder.path().join("config"), version.to_string())?;
    }
    queue.run(1, |path| -> io::Result<()> {
        match fs::read_to_string(path) {
            Ok(version) if version == "100" => queue.shut_down(), // Only in this example.
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {} // Do not retry a deleted file.
        }
        Ok(())
    })?;
    println!("the last of 100 versions was seen");
    Ok(())
}
