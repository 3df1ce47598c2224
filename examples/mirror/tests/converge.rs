//! Runs that end by themselves: whatever the target was, it becomes what the source is.
#![cfg(unix)]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may panic, and its support is shared"
)]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

use support::{Place, set_mode};

fn varied() -> Place {
    let mut place = Place::new();
    for directory in 0..8 {
        for file in 0..12 {
            let name = format!("d{directory}/e{}/f{file}", file % 3);
            place.write(name, &"text".repeat(file * 100));
        }
    }
    for (mode, name) in [(0o600, "private"), (0o755, "program"), (0o4751, "suid")] {
        set_mode(&place.write(name, name), mode);
    }
    place.write("empty file", "");
    place.write("new\nline", "x");
    place.write(OsStr::from_bytes(b"not\xffunicode/\xfe"), "y");
    place.write("closed/file", "z");
    set_mode(&place.source().join("closed"), 0o555);
    fs::create_dir(place.source().join("empty")).unwrap();
    place.link("link", "d0/e0/f0");
    place.link("dangling", "/no/where");
    place.link("d1/up", "..");
    place
}

#[test]
fn a_tree_is_copied_and_then_found_right() {
    let place = varied();
    let first = place.mirror(&[]);
    first.assert_code(0);
    place.assert_mirrored();
    assert_eq!(first.figure("files copied"), 8 * 12 + 7);
    assert_eq!(first.figure("symlinks made"), 3);
    assert_eq!(first.figure("given up"), 0);
    assert_eq!(
        first.verdict(),
        "The target is the same as the source is now."
    );
    assert_eq!(first.figure("tried again"), 0);

    let again = place.mirror(&[]);
    again.assert_code(0);
    place.assert_mirrored();
    for figure in [
        "files copied",
        "directories made",
        "symlinks made",
        "permissions or times set",
        "deleted",
        "queued already",
    ] {
        assert_eq!(again.figure(figure), 0, "{figure}");
    }
}

#[test]
fn one_worker_or_many_make_the_same() {
    for workers in ["1", "16"] {
        let place = varied();
        place.mirror(&["--workers", workers]).assert_code(0);
        place.assert_mirrored();
    }
}

#[test]
fn only_what_differs_is_touched() {
    let mut place = varied();
    place.mirror(&[]).assert_code(0);

    place.write("d0/e0/f3", "other");
    set_mode(&place.source().join("program"), 0o700);
    set_mode(&place.source().join("d2"), 0o711);
    fs::remove_file(place.source().join("link")).unwrap();
    place.link("link", "elsewhere");
    let run = place.mirror(&[]);
    run.assert_code(0);
    place.assert_mirrored();
    assert_eq!(run.figure("files copied"), 1);
    assert_eq!(run.figure("symlinks made"), 1);
    assert_eq!(run.figure("deleted"), 0);
}

#[test]
fn what_the_source_does_not_have_is_deleted() {
    let place = varied();
    place.mirror(&[]).assert_code(0);
    fs::remove_dir_all(place.source().join("d3")).unwrap();
    fs::remove_file(place.source().join("private")).unwrap();
    fs::remove_file(place.source().join("dangling")).unwrap();
    // And what an earlier run that was killed has left behind.
    let temp = place.target().join("d0/.requeue-mirror-1-2-3.tmp");
    fs::write(&temp, "half").unwrap();

    let run = place.mirror(&[]);
    run.assert_code(0);
    place.assert_mirrored();
    assert_eq!(run.figure("deleted"), 4);
    assert_eq!(run.figure("files copied"), 0);
}

#[test]
fn any_type_becomes_any_other() {
    let kinds = ["file", "directory", "link"];
    let mut place = Place::new();
    let make = |place: &mut Place, name: &str, kind: &str| match kind {
        "file" => drop(place.write(name, kind)),
        "link" => place.link(name, "no/where"),
        _ => drop(place.write(Path::new(name).join("in/side"), kind)),
    };
    for from in kinds {
        for to in kinds {
            make(&mut place, &format!("{from} to {to}"), from);
        }
    }
    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();

    for from in kinds {
        for to in kinds.into_iter().filter(|to| *to != from) {
            let name = format!("{from} to {to}");
            let path = place.source().join(&name);
            match from {
                "directory" => fs::remove_dir_all(path).unwrap(),
                _ => fs::remove_file(path).unwrap(),
            }
            make(&mut place, &name, to);
        }
    }
    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
}

#[test]
fn nothing_outside_the_target_is_touched() {
    let mut place = Place::new();
    place.write("directory/file", "mine");
    place.link("gone later", "nowhere");
    let outside = place.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("file"), "precious").unwrap();
    fs::write(outside.join("other"), "precious").unwrap();
    fs::create_dir(place.target()).unwrap();
    for name in ["directory", "extra"] {
        symlink(&outside, place.target().join(name)).unwrap();
    }

    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
    for name in ["file", "other"] {
        let content = fs::read_to_string(outside.join(name)).unwrap();
        assert_eq!(content, "precious");
    }
}

#[test]
fn special_files_are_named_and_left_out() {
    let mut place = Place::new();
    place.write("file", "x");
    let _socket = UnixListener::bind(place.source().join("socket")).unwrap();
    let run = place.mirror(&[]);
    run.assert_code(0);
    let named = "mirror: not a file, directory or symlink: socket";
    assert_eq!(run.warnings(), [named]);
    assert_eq!(
        run.verdict(),
        "The target is the same as the source is now, except for what is named above."
    );
    assert!(place.target().join("file").exists());
    assert!(!place.target().join("socket").exists());
}

#[test]
fn what_cannot_be_copied_is_given_up_and_named() {
    let mut place = Place::new();
    place.write("fine", "x");
    set_mode(&place.write("locked", "x"), 0o000);

    let run = place.mirror_unprivileged(&["--retries", "2"]);
    run.assert_code(1);
    assert!(place.target().join("fine").exists());
    let [named] = run.warnings()[..] else {
        panic!("{run:?}");
    };
    let expected = "mirror: given up: locked: cannot read the source: ";
    assert!(named.starts_with(expected), "{run:?}");
    assert_eq!(run.figure("given up"), 1);
    assert_eq!(run.figure("tried again"), 2);
    assert_eq!(
        run.verdict(),
        "The target is not the same as the source yet (paths given up: 1, left undone: 0). The \
         next run goes on from here."
    );
}

#[test]
fn modes_that_keep_their_owner_out_are_mirrored() {
    let mut place = varied();
    set_mode(&place.source().join("closed"), 0o755);
    place.write("closed/inner/file", "x");
    place.write("shut/file", "y");
    set_mode(&place.source().join("closed/inner"), 0o500);
    set_mode(&place.source().join("closed"), 0o500);
    place.mirror_unprivileged(&[]).assert_code(0);
    place.assert_mirrored();

    // Unreadable in the source, so made the same in the target, and given up below.
    set_mode(&place.source().join("shut"), 0o000);
    place
        .mirror_unprivileged(&["--retries", "0"])
        .assert_code(1);
    set_mode(&place.source().join("shut"), 0o711);
    // Something to do in directories that may not be written to.
    for directory in ["closed/inner", "closed"] {
        set_mode(&place.source().join(directory), 0o700);
    }
    fs::remove_dir_all(place.source().join("closed/inner")).unwrap();
    place.write("closed/new", "z");
    set_mode(&place.source().join("closed"), 0o500);
    place.mirror_unprivileged(&[]).assert_code(0);
    place.assert_mirrored();
}

#[test]
fn bad_input_gets_one_line() {
    let mut place = Place::new();
    let file = place.write("file", "x");
    let (source, target) = (place.source(), place.target());
    let below = place.source().join("below/deep");
    symlink(&source, place.path("alias")).unwrap();
    let cases: [(&[&Path], &str); 8] = [
        (&[&place.path("gone"), &target], "no such source"),
        (&[&file, &target], "the source is not a directory"),
        (&[&source, &file], "the target is not a directory"),
        (&[&source, &source], "the same directory"),
        (&[&source, &place.path("alias")], "the same directory"),
        (&[&source, &below], "the target is inside the source"),
        (
            &[&source, &place.path("")],
            "the source is inside the target",
        ),
        (&[&source], "no TARGET"),
    ];
    for (args, expected) in cases {
        let run = support::program(args).output().unwrap();
        let said = String::from_utf8(run.stderr).unwrap();
        assert_eq!(run.status.code(), Some(2), "{said}");
        assert!(said.starts_with("mirror: "), "{said}");
        assert!(said.contains(expected), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(run.stdout.is_empty());
    }
    assert!(!target.exists());
    assert!(!below.exists());
    assert!(file.exists());
}
