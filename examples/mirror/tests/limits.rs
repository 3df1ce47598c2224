//! Trees that are larger in some way than the system would have them.
#![cfg(unix)]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test may panic and say that it is skipped, and its support is shared"
)]

mod support;

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Command, Stdio};

use filetime::FileTime;
use rustix::fs::{AtFlags, Mode, OFlags, mkdirat, openat, unlinkat};
use support::Place;

#[test]
fn a_sparse_file_stays_sparse() {
    const SIZE: u64 = 1 << 30;
    const BLOCK: u64 = 512;
    let mut place = Place::new();
    let path = place.write("sparse", "");
    let file = File::options().write(true).open(&path).unwrap();
    file.set_len(SIZE).unwrap();
    for place in [0, SIZE / 2 + 1, SIZE - 3] {
        file.write_all_at(b"abc", place).unwrap();
    }
    drop(file);
    let old = FileTime::from_unix_time(1_000_000_000, 0);
    filetime::set_file_mtime(&path, old).unwrap();
    let blocks = fs::metadata(&path).unwrap().blocks();
    if blocks * BLOCK > SIZE / 2 {
        println!("skipped: the file system of the temporary directory keeps no holes");
        return;
    }

    let run = place.mirror(&[]);
    run.assert_code(0);
    let copy = place.target().join("sparse");
    let metadata = fs::metadata(&copy).unwrap();
    assert_eq!(metadata.len(), SIZE);
    assert_eq!(metadata.mtime(), old.unix_seconds());
    assert!(
        metadata.blocks() <= blocks,
        "{} > {blocks}",
        metadata.blocks()
    );
    let copy = File::open(copy).unwrap();
    let mut read = [0; 4];
    for (at, expected) in [
        (0, b"abc\0"),
        (SIZE / 2, b"\0abc"),
        (SIZE / 4, b"\0\0\0\0"),
        (SIZE - 4, b"\0abc"),
    ] {
        copy.read_exact_at(&mut read, at).unwrap();
        assert_eq!(&read, expected, "{at}");
    }
}

/// Goes down from a directory, a name at a time.
fn descend(top: &Path, names: &[String]) -> OwnedFd {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY;
    let mut at: OwnedFd = File::open(top).unwrap().into();
    for name in names {
        at = openat(&at, name, flags, Mode::empty()).unwrap();
    }
    at
}

#[test]
fn a_path_longer_than_the_system_takes_is_mirrored() {
    const PATH_MAX: usize = 4096;
    let place = Place::new();
    let names: Vec<String> = (0..30).map(|n| format!("{n:0200}")).collect();
    assert!(names.concat().len() > PATH_MAX);
    let mut at: OwnedFd = File::open(place.source()).unwrap().into();
    for name in &names {
        mkdirat(&at, name, Mode::RWXU).unwrap();
        at = openat(&at, name, OFlags::RDONLY, Mode::empty()).unwrap();
    }
    let flags = OFlags::WRONLY | OFlags::CREATE;
    let file: File = openat(&at, "file", flags, Mode::RWXU).unwrap().into();
    file.write_all_at(b"deep", 0).unwrap();
    file.set_modified(std::time::UNIX_EPOCH).unwrap();

    place.mirror(&[]).assert_code(0);
    let there = descend(&place.target(), &names);
    let copy: File = openat(&there, "file", OFlags::RDONLY, Mode::empty())
        .unwrap()
        .into();
    let mut content = [0; 5];
    assert_eq!(copy.read_at(&mut content, 0).unwrap(), 4);
    assert_eq!(&content[..4], b"deep");

    // And removed.
    unlinkat(&at, "file", AtFlags::empty()).unwrap();
    place.mirror(&[]).assert_code(0);
    let gone = openat(&there, "file", OFlags::RDONLY, Mode::empty());
    assert_eq!(gone.unwrap_err(), rustix::io::Errno::NOENT);
    fs::remove_dir_all(place.source().join(&names[0])).unwrap();
    let last = place.mirror(&[]);
    last.assert_code(0);
    assert_eq!(last.figure("deleted"), 1);
    place.assert_mirrored();
}

/// A command that runs another one with this limit, in a user namespace, so that the limit is for
/// that one alone. `None` if this machine does not allow that.
fn limited(limit: &str, to: usize) -> Option<Command> {
    let script = format!("echo {to} > /proc/sys/user/{limit} && exec \"$@\"");
    let command = |args: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["--user", "--map-root-user", "sh", "-c", &script, "sh"]);
        command.args(args).stdin(Stdio::null());
        command
    };
    let tried = command(&["true"]).stderr(Stdio::null()).status();
    tried
        .is_ok_and(|status| status.success())
        .then(|| command(&[]))
}

#[test]
fn what_cannot_be_watched_is_copied_all_the_same() {
    const DIRECTORIES: usize = 40;
    // The root and so many more are watched; or not even the root.
    for (limit, to, polled) in [
        ("max_inotify_watches", 10, DIRECTORIES + 1 - 10),
        ("max_inotify_instances", 0, DIRECTORIES + 1),
    ] {
        let Some(command) = limited(limit, to) else {
            println!("skipped: no user namespace to set {limit} in");
            return;
        };
        let mut place = Place::new();
        for number in 0..DIRECTORIES {
            place.write(format!("d{number}/file"), "before");
        }
        let mut run = place.start_by(command, &["--watch"]);
        run.wait_for("not every directory can be watched");
        run.wait_for("are the same");

        for number in 0..DIRECTORIES {
            place.write(format!("d{number}/file"), "after, and longer");
            place.write(format!("d{number}/new"), "new");
        }
        while !place.is_mirrored() {
            run.wait_for("are the same");
        }
        // What is polled may be removed, too.
        for number in 0..DIRECTORIES / 2 {
            fs::remove_dir_all(place.source().join(format!("d{number}"))).unwrap();
        }
        while !place.is_mirrored() {
            run.wait_for("are the same");
        }
        run.signal("INT");
        let outcome = run.end();
        outcome.assert_code(0);
        place.assert_mirrored();
        let warnings = outcome.stderr.matches("not every directory").count();
        assert_eq!(warnings, 1, "{outcome:?}");
        let still = outcome.figure("polled");
        assert!(still > 0 && still < polled as u64, "{outcome:?}");
    }
}
