//! Breaking changes since the last release, found by cargo-semver-checks.

use std::path::Path;

use super::manifest_of;
use crate::debian::shown;
use crate::invocation::Invocation;
use crate::report::{Stop, Verdict};
use crate::servers::with_protoc;
use crate::workspace::Workspace;

/// The version that reads the format of the pinned Rust's rustdoc.
const TOOL: &str = "cargo-semver-checks@0.50.0";

/// Compares what is published with the last tag of it.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    let kube = workspace.kube()?;
    let of_all = last_tag("v[0-9]*", &workspace.root)?;
    let of_kube = last_tag("requeue-kube-v[0-9]*", &workspace.root)?;
    if of_all.is_none() && of_kube.is_none() {
        return Err(Stop::NotRun(
            "no tag v*, so nothing to compare with".to_owned(),
        ));
    }
    let tool = tool(workspace)?;
    let mut failures = Vec::new();
    for (of, tag) in [(workspace, of_all), (&kube, of_kube)] {
        let Some(tag) = tag else {
            continue;
        };
        let names = of.published().map(|package| package.name.as_str());
        let line = Invocation::new(&tool)
            .args(["semver-checks", "--all-features", "--baseline-rev", &tag])
            .packages(names)
            .args(manifest_of(of));
        failures.extend(with_protoc(line, workspace)?.run(&workspace.root).err());
    }
    super::verdict(&failures)
}

/// The highest version that was tagged before this commit.
fn last_tag(pattern: &str, root: &Path) -> Result<Option<String>, String> {
    let arguments = "tag --merged HEAD --no-contains HEAD --sort -version:refname --list";
    let arguments = arguments.split(' ').chain([pattern]).collect();
    let tags = super::printed("git", arguments, root)?;
    Ok(tags.lines().next().map(str::to_owned))
}

/// The program, built now if it is not there: below `target`, nothing is installed.
fn tool(workspace: &Workspace) -> Result<String, Stop> {
    let folder = workspace.target().join("tools");
    let program = folder.join("bin/cargo-semver-checks");
    if !program.is_file() {
        Invocation::new("cargo install --locked")
            .args(["--root", &shown(&folder), TOOL])
            .run(&workspace.root)
            .map_err(Stop::Skipped)?;
    }
    Ok(shown(&program))
}
