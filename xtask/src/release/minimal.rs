//! Whether the lower bounds of the manifests are true.

use std::fs;

use super::packages::{choose, unpack};
use crate::invocation::Invocation;
use crate::report::Verdict;
use crate::servers::with_protoc;
use crate::workspace::Workspace;

/// Checks the packages with the oldest versions that they ask for. Without what only tests depend
/// on: users do not have it, and it would ask for newer ones.
pub(super) fn check(workspace: &Workspace) -> Verdict {
    let folder = workspace.target().join("minimal");
    let unpacked = unpack(workspace, &folder)?;
    for package in &unpacked {
        let file = package.folder.join("Cargo.toml");
        let said = |error: std::io::Error| format!("{}: {error}", file.display());
        let text = fs::read_to_string(&file).map_err(said)?;
        fs::write(&file, for_users(&text)).map_err(said)?;
    }
    // Apart, because kube asks for newer versions than the others do.
    let names: Vec<&str> = unpacked
        .iter()
        .map(|package| package.name.as_str())
        .collect();
    let (kube, ours): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| **name == KUBE);
    for (members, features) in [(ours, None), (kube, Some("k8s-openapi/latest"))] {
        choose(&unpacked, &members, &folder)?;
        Invocation::new("cargo update --quiet -Z direct-minimal-versions")
            .variable("RUSTC_BOOTSTRAP", "1")
            .run(&folder)?;
        let features = features.into_iter().flat_map(|names| ["--features", names]);
        let check = Invocation::new("cargo check --locked --keep-going --lib --workspace")
            .args(["--all-features"])
            .args(features);
        with_protoc(check, workspace)?.run(&folder)?;
    }
    Ok(())
}

const KUBE: &str = "requeue-kube";

/// A manifest that cargo has written, without the sections of what only tests depend on.
fn for_users(manifest: &str) -> String {
    let mut is_kept = true;
    let kept = manifest.lines().filter(|line| {
        if line.starts_with('[') {
            is_kept = !line.contains("dev-dependencies");
        }
        is_kept
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_do_not_have_what_tests_depend_on() {
        let text = "[dependencies.a]\nversion = \"1\"\n\n[dev-dependencies.b]\nversion = \"2\"\n\
                    \n[target.'cfg(x)'.dev-dependencies.c]\nversion = \"3\"\n[lints]\nd = 1\n";
        let expected = "[dependencies.a]\nversion = \"1\"\n\n[lints]\nd = 1\n";
        assert_eq!(for_users(text), expected);
    }
}
