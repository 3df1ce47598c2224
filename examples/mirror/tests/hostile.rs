//! Other programs, and other users, that are up to no good in one of the trees.
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

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, chown, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use filetime::FileTime;
use support::{Content, Place, UNPRIVILEGED, is_root, set_mode, snapshot};

const DIRECTORIES: usize = 6;
const FILES: usize = 60;

/// What stands in the files outside.
const SECRET: &[u8] = b"secret";

/// How often a race is run.
const ROUNDS: usize = 3;

fn directory(number: usize) -> String {
    format!("d{number}")
}

/// Writes all files of the source, other ones in each round.
fn write_round(place: &mut Place, round: usize) {
    for number in 0..DIRECTORIES {
        let directory = directory(number);
        let _ = fs::remove_dir_all(place.source().join(&directory));
        for file in 0..FILES {
            let name = format!("{directory}/sub/f{}", file + round % 2 * FILES / 2);
            place.write(name, &format!("round {round}"));
        }
    }
}

/// A tree elsewhere with the same names, and more.
fn write_outside(place: &Place) -> PathBuf {
    let outside = place.path("outside");
    for number in 0..DIRECTORIES {
        let sub = outside.join(directory(number)).join("sub");
        fs::create_dir_all(&sub).unwrap();
        for file in 0..2 * FILES {
            fs::write(sub.join(format!("f{file}")), SECRET).unwrap();
            fs::write(sub.join(format!("g{file}")), SECRET).unwrap();
        }
    }
    outside
}

/// Runs the program while directories in `tree` are replaced by symlinks to `outside` and put back
/// all the time, on two levels, and `observe` looks on.
fn mirror_under_attack(place: &Place, tree: &Path, outside: &Path, observe: impl Fn() + Sync) {
    let parked = place.path("parked");
    fs::create_dir_all(&parked).unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut turn = 0;
            while !is_over.load(Ordering::Relaxed) {
                for number in 0..DIRECTORIES {
                    for name in [directory(number), directory(number) + "/sub"] {
                        // A symlink stays for a longer or shorter while.
                        turn = (turn + 1) % 8;
                        let victim = tree.join(&name);
                        swap_and_back(&victim, &outside.join(&name), &parked, turn * turn);
                    }
                }
                observe();
            }
        });
        // Whatever becomes of the paths that are attacked, the run ends.
        let run = place.mirror(&["--workers", "4", "--retries", "3"]);
        is_over.store(true, Ordering::Relaxed);
        assert!([Some(0), Some(1)].contains(&run.status.code()), "{run:?}");
    });
}

/// Either may fail, because the program removes and makes entries as well.
fn swap_and_back(victim: &Path, to: &Path, parked: &Path, turns: usize) {
    let (kept, link) = (parked.join("kept"), parked.join("link"));
    let _ = symlink(to, &link);
    if fs::rename(victim, &kept).is_err() {
        return;
    }
    let _ = fs::rename(&link, victim);
    for _ in 0..turns {
        thread::yield_now();
    }
    if victim.is_symlink() {
        let _ = fs::remove_file(victim);
    }
    if fs::rename(&kept, victim).is_err() {
        let _ = fs::remove_dir_all(&kept);
    }
}

#[test]
fn swaps_in_the_target_do_not_lead_outside() {
    let mut place = Place::new();
    let outside = write_outside(&place);
    let before = snapshot(&outside);
    for round in 0..ROUNDS {
        write_round(&mut place, round);
        mirror_under_attack(&place, &place.target(), &outside, || {});
        assert!(snapshot(&outside) == before, "outside was changed");
    }
    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
    assert!(snapshot(&outside) == before, "outside was changed");
}

#[test]
fn swaps_in_the_source_do_not_lead_outside() {
    let mut place = Place::new();
    let outside = write_outside(&place);
    for round in 0..ROUNDS {
        write_round(&mut place, round);
        let is_leaked = AtomicBool::new(false);
        mirror_under_attack(&place, &place.source(), &outside, || {
            let mut entries = snapshot(&place.target()).into_values();
            if entries.any(|entry| entry.content == Content::File(SECRET.into())) {
                is_leaked.store(true, Ordering::Relaxed);
            }
        });
        assert!(!is_leaked.into_inner(), "read from outside");
    }
    write_round(&mut place, 0);
    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
}

#[test]
fn a_hard_link_to_a_file_outside_is_replaced() {
    let mut place = Place::new();
    let source = place.write("file", "same size");
    set_mode(&source, 0o666);
    let outside = place.path("outside");
    fs::write(&outside, "precious!").unwrap();
    set_mode(&outside, 0o600);
    let time = FileTime::from_last_modification_time(&source.metadata().unwrap());
    filetime::set_file_mtime(&outside, time).unwrap();
    fs::create_dir(place.target()).unwrap();
    fs::hard_link(&outside, place.target().join("file")).unwrap();

    place.mirror(&[]).assert_code(0);
    place.assert_mirrored();
    assert_eq!(outside.metadata().unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(&outside).unwrap(), "precious!");
}

#[test]
fn set_id_bits_of_another_owner_are_left_out() {
    if !is_root() {
        println!("skipped: only root can give a file to another user");
        return;
    }
    let mut place = Place::new();
    for (name, mode) in [("user", 0o4755), ("group", 0o2755), ("plain", 0o755)] {
        let file = place.write(name, name);
        chown(&file, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
        set_mode(&file, mode);
    }
    set_mode(&place.write("ours", "ours"), 0o6755);
    let directory = place.source().join("directory");
    fs::create_dir(&directory).unwrap();
    chown(&directory, Some(UNPRIVILEGED), Some(UNPRIVILEGED)).unwrap();
    set_mode(&directory, 0o3777);
    // As a run without this rule has left it.
    fs::create_dir(place.target()).unwrap();
    fs::copy(place.source().join("user"), place.target().join("user")).unwrap();
    let time = place.source().join("user").metadata().unwrap();
    let time = FileTime::from_last_modification_time(&time);
    filetime::set_file_mtime(place.target().join("user"), time).unwrap();
    set_mode(&place.target().join("user"), 0o4755);

    for changes in [true, false] {
        let run = place.mirror(&[]);
        run.assert_code(0);
        let expected = [
            ("user", 0o755),
            ("group", 0o755),
            ("plain", 0o755),
            ("ours", 0o6755),
            ("directory", 0o1777),
        ];
        for (name, mode) in expected {
            let there = place.target().join(name).metadata().unwrap();
            assert_eq!(there.mode() & 0o7777, mode, "{name}");
        }
        let line = "mirror: set-user-ID and set-group-ID left out, the copy has another owner: ";
        assert_eq!(
            run.warnings(),
            ["directory", "group", "user"].map(|name| format!("{line}{name}"))
        );
        assert!(run.verdict().ends_with(", except for what is named above."));
        let set = run.figure("permissions or times set");
        assert_eq!(set > 0, changes, "{run:?}");
    }
}

#[test]
fn names_of_files_have_no_effect_on_a_terminal() {
    let mut place = Place::new();
    let names = [
        "a\nmirror: given up: forged",
        "\u{1b}]0;title\u{7}\u{1b}[2J",
        "\u{9b}31m\u{202e}txt",
        "back\\slash",
    ];
    for name in names {
        place.write(name, "x");
    }
    place.write(OsStr::from_bytes(b"not\xffunicode"), "x");
    let socket = place.source().join("so\rcket");
    let _socket = UnixListener::bind(socket).unwrap();
    let locked = place.write("locked\u{1b}[0m\n", "x");
    set_mode(&locked, 0o000);

    let run = place.mirror_unprivileged(&["--verbose", "--retries", "0"]);
    run.assert_code(1);
    for said in [&run.stdout, &run.stderr] {
        let is_raw = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        assert!(!said.contains(is_raw), "{said:?}");
        assert!(!said.contains("\nmirror: given up: forged"), "{said}");
    }
    for name in [
        "copied a\\nmirror: given up: forged\n",
        "copied \\u{1b}]0;title\\u{7}\\u{1b}[2J\n",
        "copied \\u{9b}31m\\u{202e}txt\n",
        "copied back\\\\slash\n",
        "copied not\\xffunicode\n",
    ] {
        assert!(run.stdout.contains(name), "{name} in {}", run.stdout);
    }
    let not_a_file = "mirror: not a file, directory or symlink: so\\rcket\n";
    assert!(run.stderr.contains(not_a_file), "{}", run.stderr);
    let given_up = "mirror: given up: locked\\u{1b}[0m\\n: cannot read";
    assert!(run.stderr.contains(given_up), "{}", run.stderr);

    let run = support::program(&["--forged\u{1b}[0m\n"]).output().unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert!(said.contains("forged\\u{1b}[0m\\n"), "{said:?}");
    let run = support::program(&["no\u{7}where", "target"])
        .output()
        .unwrap();
    let said = String::from_utf8(run.stderr).unwrap();
    assert_eq!(said, "mirror: no such source: no\\u{7}where\n");
}
