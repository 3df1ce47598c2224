//! What would be uploaded: whether it holds what it should, and builds.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{in_order, manifest_of, verdict};
use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::Verdict;
use crate::servers::with_protoc;
use crate::workspace::{Package, Workspace};

/// The largest file of a package, and the largest archive, in bytes. The largest of today are a
/// lock file and `requeue-core`.
const FILE_MAX: u64 = 150_000;
const ARCHIVE_MAX: u64 = 500_000;

/// What every package holds.
const NEEDED: [&str; 3] = ["README.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Packages what is published; cargo builds each package with the others. Its lock file is that of
/// the repository.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    let names = workspace.published().map(|package| package.name.as_str());
    let line = Invocation::new("cargo package --locked").packages(names);
    with_protoc(line, workspace)?.run(&workspace.root)?;
    let folder = workspace.target().join("packages");
    let unpacked = unpack(workspace, &folder)?;
    let mut found = Vec::new();
    for package in &unpacked {
        let files = files(&package.folder).map_err(|error| error.to_string())?;
        found.extend(mistakes(package, &files));
    }
    // Cargo cannot build this one: what it asks for is in no registry yet.
    let kube = Invocation::new("cargo check -p requeue-kube --all-features");
    let kube = kube.args(["--features", "k8s-openapi/latest"]);
    found.extend(kube.run(&folder).err());
    verdict(&found)
}

/// A package, as a user gets it.
pub(super) struct Unpacked {
    pub(super) name: String,
    archive: u64,
    pub(super) folder: PathBuf,
}

/// Packages all that is published in both workspaces, and makes a workspace of what is in the
/// archives, where each finds the others.
pub(super) fn unpack(workspace: &Workspace, folder: &Path) -> Result<Vec<Unpacked>, String> {
    let said = |error: io::Error| format!("{}: {error}", folder.display());
    if folder.is_dir() {
        fs::remove_dir_all(folder).map_err(said)?;
    }
    fs::create_dir_all(folder).map_err(said)?;
    let kube = workspace.kube()?;
    let mut unpacked = Vec::new();
    for of in [workspace, &kube] {
        // The lock file of a package would need the others in a registry.
        Invocation::new("cargo package --quiet --allow-dirty --no-verify --exclude-lockfile")
            .args(["--target-dir", &shown(folder)])
            .packages(of.published().map(|package| package.name.as_str()))
            .args(manifest_of(of))
            .run(&workspace.root)?;
        for package in in_order(of) {
            unpacked.push(unpack_one(package, folder)?);
        }
    }
    let names: Vec<&str> = unpacked.iter().map(|one| one.name.as_str()).collect();
    choose(&unpacked, &names, folder)?;
    Ok(unpacked)
}

/// Makes some packages the members of the workspace; the others are only depended on.
pub(super) fn choose(all: &[Unpacked], names: &[&str], folder: &Path) -> Result<(), String> {
    let place = |package: &Unpacked| {
        let folder = package.folder.file_name().unwrap_or_default();
        let is_member = names.contains(&package.name.as_str());
        (
            package.name.clone(),
            folder.display().to_string(),
            is_member,
        )
    };
    let places: Vec<_> = all.iter().map(place).collect();
    let file = folder.join("Cargo.toml");
    fs::write(&file, manifest(&places)).map_err(|error| format!("{}: {error}", file.display()))
}

fn unpack_one(package: &Package, folder: &Path) -> Result<Unpacked, String> {
    let name = format!("{}-{}", package.name, package.version);
    let archive = folder.join("package").join(format!("{name}.crate"));
    Invocation::new("tar -xzf")
        .args([shown(&archive)])
        .run(folder)?;
    let size = fs::metadata(&archive).map_err(|error| error.to_string())?;
    Ok(Unpacked {
        name: package.name.clone(),
        archive: size.len(),
        folder: folder.join(name),
    })
}

/// A workspace of packages, each with its folder and whether it is a member; all are taken instead
/// of those of the registry.
fn manifest(places: &[(String, String, bool)]) -> String {
    let folders = |members: bool| {
        let chosen = places.iter().filter(move |place| place.2 == members);
        chosen.map(|place| &place.1).collect::<Vec<_>>()
    };
    let patch = |(name, folder, _): &(String, String, bool)| {
        format!("{name} = {{ path = \"{folder}\" }}\n")
    };
    format!(
        "[workspace]\nresolver = \"3\"\nmembers = {:?}\nexclude = {:?}\n\n[patch.crates-io]\n{}",
        folders(true),
        folders(false),
        places.iter().map(patch).collect::<String>()
    )
}

/// The files below a folder, with their sizes.
fn files(folder: &Path) -> io::Result<Vec<(String, u64)>> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap_or(&path);
                found.push((shown(name), fs::metadata(&path)?.len()));
            }
        }
    }
    Ok(found)
}

fn mistakes(package: &Unpacked, files: &[(String, u64)]) -> Vec<String> {
    let name = &package.name;
    println!(
        "{name}: {} files, an archive of {} bytes",
        files.len(),
        package.archive
    );
    let is_there = |needed: &&str| files.iter().any(|(file, _)| file == needed);
    let absent = NEEDED.iter().filter(|needed| !is_there(needed));
    let mut found: Vec<String> = absent.map(|file| format!("{name} has no {file}")).collect();
    for (file, size) in files.iter().filter(|(_, size)| *size > FILE_MAX) {
        found.push(format!("{name} holds {file}, of {size} bytes"));
    }
    if package.archive > ARCHIVE_MAX {
        found.push(format!("{name} is an archive of {} bytes", package.archive));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_holds_what_it_should_and_is_small() {
        let package = |archive| Unpacked {
            name: "a".to_owned(),
            archive,
            folder: PathBuf::new(),
        };
        let mut files: Vec<_> = NEEDED.iter().map(|name| ((*name).to_owned(), 1)).collect();
        assert_eq!(mistakes(&package(1), &files), [""; 0]);
        files.remove(1);
        files.push(("traces/all.json".to_owned(), FILE_MAX + 1));
        let found = mistakes(&package(ARCHIVE_MAX + 1), &files);
        assert_eq!(
            found,
            [
                "a has no LICENSE-MIT".to_owned(),
                format!("a holds traces/all.json, of {} bytes", FILE_MAX + 1),
                format!("a is an archive of {} bytes", ARCHIVE_MAX + 1),
            ]
        );
    }

    #[test]
    fn each_package_finds_the_others() {
        let place = |name: &str, is_member| (name.to_owned(), format!("{name}-1"), is_member);
        let text = manifest(&[place("a", true), place("b", false)]);
        assert!(
            text.contains("members = [\"a-1\"]\nexclude = [\"b-1\"]"),
            "{text}"
        );
        assert!(text.ends_with("b = { path = \"b-1\" }\n"), "{text}");
    }
}
