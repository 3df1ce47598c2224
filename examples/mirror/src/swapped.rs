//! Each operation on an entry, after the directory that it is in was replaced by a symlink to one
//! elsewhere: between any two steps of it, nothing outside may be read, written or removed.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::Timespec;

use crate::copy::{Temps, copy_file, in_directory, make_directory, make_link, retouch};
use crate::dir::{Dir, Spot};
use crate::error::Error;
use crate::plan::{Owner, Rights, Shape};
use crate::removal::Removal;
use crate::stat::Stat;

const OLD: Timespec = Timespec {
    tv_sec: 1_000_000_000,
    tv_nsec: 7,
};

/// A tree `tree/victim/sub/…`, and one of the same names at `outside/sub/…`.
struct Case {
    root: tempfile::TempDir,
    temps: Temps,
    outside: BTreeMap<PathBuf, Stat>,
}

impl Case {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        for (tree, content) in [("tree/victim", "ours"), ("outside", "secret")] {
            let deep = root.path().join(tree).join("sub/deep");
            fs::create_dir_all(&deep).unwrap();
            for directory in [&deep, deep.parent().unwrap()] {
                fs::write(directory.join("file"), content).unwrap();
                symlink("nowhere", directory.join("link")).unwrap();
            }
        }
        let file = spot(&root.path().join("tree"), "victim/sub/file");
        file.dir.handle(&file.name).unwrap().set_time(OLD).unwrap();
        let outside = stats(&root.path().join("outside"));
        Self {
            root,
            temps: Temps::new(),
            outside,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn spot(&self, name: &str) -> Spot {
        spot(&self.path("tree"), name)
    }

    /// Puts a symlink to the outside in the place of a directory.
    fn swap(&self, victim: &str, outside: &str) {
        fs::rename(self.path(victim), self.path("kept")).unwrap();
        symlink(self.path(outside), self.path(victim)).unwrap();
    }

    #[track_caller]
    fn assert_untouched(&self) {
        assert_eq!(stats(&self.path("outside")), self.outside);
        let is_secret = |path: &PathBuf| {
            !path.is_symlink() && fs::read(path).is_ok_and(|text| text == b"secret")
        };
        let tree = [stats(&self.path("tree")), stats(&self.path("kept"))];
        let leaked: Vec<_> = tree
            .iter()
            .flat_map(BTreeMap::keys)
            .filter(|p| is_secret(p))
            .collect();
        assert!(leaked.is_empty(), "{leaked:?}");
    }
}

fn spot(root: &Path, name: &str) -> Spot {
    Dir::open(root)
        .unwrap()
        .find(Path::new(name))
        .unwrap()
        .unwrap()
}

/// Every attribute of everything at and below a path. That a file was changed shows in its times.
fn stats(root: &Path) -> BTreeMap<PathBuf, Stat> {
    let mut stats = BTreeMap::new();
    let mut pending = vec![root.to_path_buf()];
    while let Some(path) = pending.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else {
            continue;
        };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            pending.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let above = Dir::open(path.parent().unwrap()).unwrap();
        let stat = above.stat(path.file_name().unwrap()).unwrap().unwrap();
        stats.insert(path, stat);
    }
    stats
}

#[test]
fn a_copy_is_made_where_it_was_to_be() {
    for victim in ["tree/victim", "tree/victim/sub"] {
        let outside = victim.replace("tree/victim", "outside");
        // Before anything is done, and between the copy and its name.
        for swaps_late in [false, true] {
            let case = Case::new();
            let (from, to) = (
                case.spot("victim/sub/file"),
                case.spot("victim/sub/deep/file"),
            );
            let swap = || case.swap(victim, &outside);
            if !swaps_late {
                swap();
            }
            let clear = || {
                if swaps_late {
                    swap();
                }
                Ok(())
            };
            copy_file(&from, &to, &case.temps, clear).unwrap();
            assert_eq!(to.dir.stat(&to.name).unwrap().unwrap().mtime, OLD);
            case.assert_untouched();
        }
    }
}

#[test]
fn what_stands_in_the_place_of_a_file_is_not_read() {
    let case = Case::new();
    let (from, to) = (
        case.spot("victim/sub/file"),
        case.spot("victim/sub/deep/file"),
    );
    case.swap("tree/victim/sub/file", "outside/sub/file");
    assert!(from.dir.open_file(&from.name).is_err());
    let copied = copy_file(&from, &to, &case.temps, || Ok(()));
    assert!(matches!(copied, Err(Error::Unsettled)), "{copied:?}");
    case.assert_untouched();
}

#[test]
fn directories_and_symlinks_are_made_where_they_were_to_be() {
    let case = Case::new();
    let (directory, link) = (case.spot("victim/sub/new"), case.spot("victim/sub/other"));
    case.swap("tree/victim", "outside");
    make_directory(&directory).unwrap();
    make_link(Path::new("x"), OLD, &link, &case.temps, || Ok(())).unwrap();
    assert!(case.path("kept/sub/new").is_dir());
    assert!(case.path("kept/sub/other").is_symlink());
    case.assert_untouched();
}

#[test]
fn modes_and_times_are_set_where_they_were_to_be() {
    let metadata = fs::metadata(".").unwrap();
    let rights = Rights {
        mode: 0o741,
        owner: Owner {
            user: metadata.uid(),
            group: metadata.gid(),
        },
    };
    let (mtime, size) = (OLD, 4);
    let to = "nowhere".into();
    let cases = [
        ("victim/sub/deep", Shape::Directory { rights, mtime }),
        (
            "victim/sub/file",
            Shape::File {
                size,
                rights,
                mtime,
            },
        ),
        ("victim/sub/link", Shape::Link { to, mtime }),
    ];
    for (name, shape) in cases {
        let case = Case::new();
        let above = case.spot(name);
        case.swap("tree/victim", "outside");
        retouch(&above, &shape).unwrap();
        case.assert_untouched();

        // The entry itself, by a symlink to one elsewhere.
        let case = Case::new();
        let itself = case.spot(name);
        let outside = name.replace("victim", "outside");
        case.swap(&format!("tree/{name}"), &outside);
        let retouched = retouch(&itself, &shape);
        if let Shape::Link { .. } = shape {
            retouched.unwrap();
        } else {
            assert!(matches!(retouched, Err(Error::Interfered)), "{retouched:?}");
        }
        case.assert_untouched();
    }
}

#[test]
fn a_directory_is_opened_up_where_it_was() {
    let case = Case::new();
    let spot = case.spot("victim/sub/new");
    case.swap("tree/victim/sub", "outside/sub");
    let shut = fs::Permissions::from_mode(0o000);
    fs::set_permissions(case.path("kept"), shut).unwrap();
    let mut tries = 0;
    let done = in_directory(&spot.dir, || {
        tries += 1;
        match tries {
            1 => Err(crate::error::doing("try")(
                std::io::ErrorKind::PermissionDenied.into(),
            )),
            _ => make_directory(&spot),
        }
    });
    done.unwrap();
    assert_eq!(
        fs::metadata(case.path("kept")).unwrap().mode() & 0o777,
        0o700
    );
    case.assert_untouched();
}

#[test]
fn a_removal_stays_inside_after_any_of_its_steps() {
    let victims = ["tree/victim", "tree/victim/sub", "tree/victim/sub/deep"];
    for victim in victims {
        let outside = victim.replace("tree/victim", "outside");
        let mut steps_max = 0;
        for swapped_after in 0..10 {
            let case = Case::new();
            let top = case.spot("victim");
            let mut removal = Removal::begin(&top).unwrap().unwrap();
            let mut steps = 0;
            loop {
                if steps == swapped_after && case.path(victim).exists() {
                    case.swap(victim, &outside);
                }
                steps += 1;
                match removal.step() {
                    Ok(true) => {}
                    // The symlink stands in the way: the next run removes that.
                    Ok(false) | Err(_) => break,
                }
            }
            steps_max = steps_max.max(steps);
            case.assert_untouched();
        }
        assert!((3..10).contains(&steps_max), "{steps_max}");
    }
}
