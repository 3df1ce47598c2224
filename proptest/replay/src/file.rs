//! Finding and reading files of recordings, compressed or not.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::read::MultiGzDecoder;
use walkdir::WalkDir;

/// Returns the text of a file. Decompresses gzip, which its first bytes tell.
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

/// Returns the files that a path names: itself, or the recordings in a folder and below it, in the
/// order of their names.
///
/// # Errors
///
/// If the path, or a folder below it, cannot be read.
pub fn find(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in WalkDir::new(path).sort_by_file_name() {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy();
        if name.ends_with(".jsonl") || name.ends_with(".jsonl.gz") {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}
