//! Copies the content of a file, without its holes.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

/// Copies the first `size` bytes of `source` into `copy`, which is empty. Holes of the source
/// become holes of the copy. Returns the number of copied bytes.
///
/// Ends early if the source has become shorter.
pub(crate) fn copy_content(source: &File, mut copy: &File, size: u64) -> io::Result<u64> {
    let mut copied = 0;
    let mut at = 0;
    // Each iteration moves forward.
    while let Some(data) = next_data(source, at..size)? {
        let mut reader = source;
        reader.seek(SeekFrom::Start(data.start))?;
        copy.seek(SeekFrom::Start(data.start))?;
        let length = data.end - data.start;
        let bytes = io::copy(&mut reader.take(length), &mut copy)?;
        copied += bytes;
        if bytes < length {
            break;
        }
        at = data.end;
    }
    // A hole at the end of the file.
    copy.set_len(size)?;
    Ok(copied)
}

/// Returns the next data in `range`, or `None` if the rest is a hole.
#[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
fn next_data(file: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    if range.is_empty() {
        return Ok(None);
    }
    let start = match seek(file, SeekFrom::Data(range.start)) {
        Ok(start) if start < range.end => start.max(range.start),
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        // The file system has no holes.
        Err(Errno::INVAL | Errno::NOTSUP) => return Ok(Some(range)),
        Err(error) => return Err(error.into()),
    };
    let end = match seek(file, SeekFrom::Hole(start)) {
        Ok(end) if start < end && end < range.end => end,
        _ => range.end,
    };
    Ok(Some(start..end))
}

/// Returns the whole range: holes are not known here.
#[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
fn next_data(_: &File, range: Range<u64>) -> io::Result<Option<Range<u64>>> {
    Ok((!range.is_empty()).then_some(range))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::fs::{FileExt, MetadataExt};

    use super::*;

    const MIB: u64 = 1 << 20;

    fn copy_of(source: &File) -> File {
        let copy = tempfile::tempfile().unwrap();
        let size = source.metadata().unwrap().len();
        copy_content(source, &copy, size).unwrap();
        copy
    }

    fn content(mut file: &File) -> Vec<u8> {
        let mut content = Vec::new();
        file.seek(SeekFrom::Start(0)).unwrap();
        file.read_to_end(&mut content).unwrap();
        content
    }

    #[test]
    fn data_and_holes_come_in_any_order() {
        // Where data stands, and how long the file is.
        let layouts: [(&[u64], u64); 6] = [
            (&[], 0),
            (&[], 4 * MIB),
            (&[0], 4 * MIB),
            (&[4 * MIB - 1], 4 * MIB),
            (&[MIB, 3 * MIB], 4 * MIB + 1),
            (&[0, 2 * MIB, 4 * MIB], 4 * MIB + 1),
        ];
        for (places, size) in layouts {
            let source = tempfile::tempfile().unwrap();
            for place in places {
                source.write_all_at(b"x", *place).unwrap();
            }
            source.set_len(size).unwrap();
            let copy = copy_of(&source);
            assert!(content(&copy) == content(&source), "{places:?} {size}");
            let blocks = |file: &File| file.metadata().unwrap().blocks();
            assert!(blocks(&copy) <= blocks(&source), "{places:?} {size}");
        }
    }

    #[test]
    fn a_source_that_has_shrunk_ends_the_copy() {
        let mut source = tempfile::tempfile().unwrap();
        source.write_all(&[7; 100]).unwrap();
        let copy = tempfile::tempfile().unwrap();
        assert_eq!(copy_content(&source, &copy, 200).unwrap(), 100);
    }
}
