//! The public items of each published library: lists in the repository, which a change is reviewed
//! with.

use std::fs;
use std::path::Path;

use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::with_protoc;
use crate::toolchain;
use crate::workspace::{Package, Workspace};

/// Where the lists are.
const LISTS: &str = "docs/api";

/// Compares the lists with what the sources say, except for the workspace of `kube`: what it
/// depends on would be checked once more, with other features than for its tests.
pub(crate) fn check(workspace: &Workspace) -> Verdict {
    compare(&[workspace], workspace)
}

/// Compares all lists.
pub(crate) fn check_all(workspace: &Workspace) -> Verdict {
    compare(&[workspace, &workspace.kube()?], workspace)
}

/// Writes all lists.
pub(crate) fn write(workspace: &Workspace) -> Verdict {
    let folder = workspace.root.join(LISTS);
    make(&folder, &[workspace, &workspace.kube()?], workspace)
}

fn compare(which: &[&Workspace], workspace: &Workspace) -> Verdict {
    let made = workspace.target().join("api");
    make(&made, which, workspace)?;
    let packages = which.iter().flat_map(|which| which.published());
    let differ = packages.filter(|package| {
        let file = format!("{}.txt", package.name);
        let difference = Invocation::new("git --no-pager diff --no-index --unified=0")
            .args([format!("{LISTS}/{file}"), shown(&made.join(file))]);
        difference.run(&workspace.root).is_err()
    });
    let differ: Vec<&str> = differ.map(|package| package.name.as_str()).collect();
    if differ.is_empty() {
        return Ok(());
    }
    Err(Stop::Failed(format!(
        "{}: other public items than in {LISTS}; if that is meant, run `cargo xtask api`, and say \
         it in CHANGELOG.md",
        differ.join(", ")
    )))
}

/// Writes a list for each library into a folder, and leaves nothing else there.
fn make(folder: &Path, which: &[&Workspace], workspace: &Workspace) -> Verdict {
    pinned(&workspace.root)?;
    if folder.is_dir() {
        fs::remove_dir_all(folder).map_err(|error| error.to_string())?;
    }
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    let mut files = Vec::new();
    for of in which {
        let line = Invocation::new("cargo doc --all-features --no-deps --lib");
        let line = if of.root == workspace.root {
            // The selection of the step `doc`, whose builds this one shares.
            with_protoc(line.args(["--workspace"]), workspace)?
        } else {
            line.args(["-p", "requeue-kube", "--features", "k8s-openapi/latest"])
        };
        line.args(manifest_of(of))
            .variable("RUSTDOC", shown(&workspace.root.join("xtask/rustdoc-json")))
            .variable("RUSTDOCFLAGS", "-Zunstable-options --output-format json")
            .run(&workspace.root)?;
        let made = of.target().join("doc");
        let file = |package: &Package| made.join(package.name.replace('-', "_") + ".json");
        files.extend(of.published().map(|package| shown(&file(package))));
    }
    Invocation::new("cargo run --quiet -p public-items --")
        .args([shown(folder)])
        .args(files)
        .run(&workspace.root)?;
    Ok(())
}

/// What tells cargo which workspace is meant.
pub(crate) fn manifest_of(workspace: &Workspace) -> [String; 2] {
    let manifest = workspace.root.join("Cargo.toml");
    ["--manifest-path".to_owned(), shown(&manifest)]
}

/// Whether this is the Rust whose lists are in the repository: another one prints another format.
fn pinned(root: &Path) -> Verdict {
    let file = root.join("rust-toolchain.toml");
    let text = fs::read_to_string(file).map_err(|error| error.to_string())?;
    let channel = text
        .lines()
        .find_map(|line| line.strip_prefix("channel = "));
    let wanted = channel.unwrap_or_default().trim_matches('"');
    let release = toolchain::release(root)?;
    if release == wanted {
        return Ok(());
    }
    Err(Stop::Skipped(format!(
        "the lists are those of Rust {wanted}, and this is {release}"
    )))
}
