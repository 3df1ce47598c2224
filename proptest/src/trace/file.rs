//! Finding and reading files of recordings, compressed or not.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;

/// The text of a file. gzip is told by its first bytes.
///
/// # Errors
///
/// If the file cannot be read, or is not text.
pub fn read(path: &Path) -> io::Result<String> {
    let bytes = fs::read(path)?;
    let mut text = String::new();
    if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&bytes[..]).read_to_string(&mut text)?;
    } else {
        bytes.as_slice().read_to_string(&mut text)?;
    }
    Ok(text)
}

/// The files that a path names: itself, or the recordings in a folder and below it, in the order of
/// their names.
///
/// # Errors
///
/// If the path, or a folder below it, cannot be read.
pub fn find(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries = fs::read_dir(path)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    let mut files = Vec::new();
    for entry in entries {
        if entry.is_dir() {
            files.extend(find(&entry)?);
        } else if is_recording(&entry) {
            files.push(entry);
        }
    }
    Ok(files)
}

/// Whether a file of a folder is worth a look.
fn is_recording(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.gz")
}
